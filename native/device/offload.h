// SPDX-License-Identifier: Apache-2.0
// Host side of a rank's device, which runs the rank's collectives. The host copies the rank's data
// into a window that all devices of the group reach, and fetches the results from it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "native/core/offload_line.h"
#include "native/device/device_wait.h"
#include "native/device/offloaded_launch.h"
#include "native/device/offloaded_transfer.h"
#include "native/device/statements.h"
#include "native/device/watched_calls.h"

namespace windlass {

// Time for a kernel to end after the host has set its stop word. The kernel checks for the stop at
// every signal that it waits for.
constexpr int64_t kStopLimitNs = 2'000'000'000;
// Time for a driver call to return after its caller's time is over. A driver takes seconds to
// compile kernels for its GPU.
constexpr int64_t kCallLimitNs = 5'000'000'000;
// kCallLimitNs for this process. Tests set less.
inline std::atomic<int64_t> callLimitNs{kCallLimitNs};
// Time after the deadline at which a device ends an operation that its host has not stopped.
constexpr int64_t kDeviceOwnLimitNs = 2 * kStopLimitNs;
// Cores that an operation does not use don't write their lines. Those words must not fall behind by
// 2^22 operations (windlass/in_line.h). So all lines are written after this many operations. Tests
// set less.
constexpr uint32_t kAllLinesEvery = 1u << 20;
inline std::atomic<uint32_t> allLinesEvery{kAllLinesEvery};
// Difference between consecutive operation numbers in a device's window. Tests set more.
inline std::atomic<uint32_t> deviceSequenceStep{1};

// Returns the word of line `index` of those that a rank has read from its device.
inline uint32_t lineAt(const std::vector<unsigned char>& lines, size_t index) {
  uint32_t word = 0;
  std::memcpy(&word, lines.data() + index * kCoreLineBytes, sizeof word);
  return word;
}

// Reads the lines in a rank's part of a window, and derives from them the progress of each rank in
// the operation of `line`. The caller sets progress->phases and the number of its ranks. `lines` is
// room for the lines.
Code readProgress(RankDevice& device, const void* part, const InLine& line,
                  std::vector<unsigned char>* lines, OffloadProgress* progress, wl_error_t* error);

// The other ranks, as seen by the thread that hands an operation to its device.
class OffloadPeers : public AllRanks {
 public:
  // The wait of the rank's thread for the operation.
  virtual DeviceWait& wait() = 0;
  virtual int64_t leftNs() = 0;  // time left for the operation
  // Returns why the operation ended. If the deadline passes, publishes the ranks that made
  // the least progress.
  virtual Code ended(const OffloadProgress& progress) = 0;
  // Publishes that an operation which `ranks` hold up has exceeded its deadline. `why` names the
  // cause of its wait, such as "for its turn".
  virtual Code busy(const std::vector<uint32_t>& ranks, const char* why) = 0;

 protected:
  ~OffloadPeers() = default;
};

class Enqueuing;  // native/device/enqueuing.h
class Group;

class Offload {
 public:
  // Opens nothing yet. Throws std::bad_alloc.
  explicit Offload(uint32_t device);
  // Call only after closed() returned true, or if nothing was opened.
  ~Offload();

  // If a driver call does not return, each of these returns WL_DEVICE about callLimitNs after the
  // caller's time is over. A rank that waits for another rank's call waits a quarter longer. The
  // device then accepts no more work.
  //
  // Collective: every rank has entered the operation. If it fails on one rank, it fails on all. The
  // failed rank is *faultyRank, and its own error says why. If `peers` ended the operation,
  // *faultyRank is kNobody. It is also kNobody if all ranks refuse the operation (isRefusal()),
  // with nothing moved. An operation on a stream returns once all ranks have enqueued it.
  Code run(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
           wl_error_t* error);
  // Runs body(device, error) on the thread that makes the device's calls, after the device is open.
  // Not collective. Throws std::bad_alloc, also that of the body.
  using Body = std::function<Code(RankDevice& device, wl_error_t* error)>;
  Code alone(const Body& body, DeviceWait& wait, wl_error_t* error);

  // Returns the operations on streams; nullptr if there never were any.
  Enqueuing* enqueuing() const { return enqueuing_.load(); }

  // Ends the watch on operations on streams, when the rank leaves the communicator.
  void endStreams(DeviceWait& wait);
  // Abandons the thread that makes the device's calls if it has been in one driver call since
  // `sinceNs`. The device then accepts no more work, and `error` names the call. Returns true if
  // the thread is abandoned, now or before. Any thread.
  bool giveUp(int64_t sinceNs, wl_error_t* error);

  // True if a kernel did not stop, a copy is late, a driver call does not return, or operations on
  // streams are in flight. Such work may access the windows of all ranks at any time.
  bool isStuck() const;
  // Tells the device's thread to release everything and end; with `keeps` it releases nothing. Only
  // kernels that are stuck may still reach the window.
  void beginToClose(bool keeps);
  // Returns true if the thread has ended by `untilNs` of clockNs(). Otherwise a runtime call does
  // not return, and this object must not be destroyed.
  bool closed(int64_t untilNs);
  // Bytes of this rank's part of the window when it began to close.
  uint64_t windowBytes() const { return closingBytes_; }

 private:
  // Body of the thread that makes the device's calls.
  void serve();
  // Marks the device as stuck if work that a body began still runs.
  void keepWhatLasts();
  // Runs body() on the thread that makes the device's calls, and returns its result. If that thread
  // is abandoned, returns WL_DEVICE, and body() touches nothing any more. Throws std::bad_alloc,
  // also that of body().
  Code onItsThread(const std::function<Code()>& body, DeviceWait& wait, wl_error_t* error);
  bool giveUpLocked(int64_t sinceNs);
  Code failGivenUp(wl_error_t* error) const;
  Code runHere(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
               wl_error_t* error);
  Code open(wl_error_t* error);
  // Finds the location and the size of the rank's data.
  Code find(DeviceOperation* operation, const OffloadPeers& peers, wl_error_t* error);
  // Rewrites all lines to this rank before their words fall behind by 2^22 operations. No core may
  // be in an operation of the window.
  Code writeLines(uint32_t self, uint32_t most, wl_error_t* error);
  // Finds how many of `most` cores the device runs at a time. If the device does not say, counts
  // those that meet in a kernel. More cores would wait for one another until the deadline.
  Code countCores(uint32_t most, OffloadPeers& peers, wl_error_t* error);
  // States the number of cores that the operation can use here.
  Code chooseCores(const DeviceOperation& operation, OffloadPeers& peers, wl_error_t* error);
  // Bytes of a transfer's counts that its kernel copies to host memory; 0 if there is no room for
  // them.
  uint64_t noteOf(const DeviceBuffers& buffers) const;
  // Copies the rank's data to its part of the window, and back.
  Code send(const DeviceOperation& operation, uint32_t self, wl_error_t* error);
  Code fetch(const DeviceOperation& operation, uint32_t self, wl_error_t* error);
  Code runKernel(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
                 wl_error_t* error);
  // Awaits the running kernel until goesOn() returns false, and checks it once more then. If it is
  // still running, returns WL_DEADLINE_EXCEEDED. If the device fails, stops it.
  template <class GoesOn>
  Code await(const char* kernel, const OffloadedOperation& given, wl_error_t* error,
             GoesOn&& goesOn);
  // Reads the progress of each rank.
  Code look(const OffloadedOperation& given, wl_error_t* error);
  // Returns WL_DEADLINE_EXCEEDED if the kernel ended early, at its own deadline.
  Code checkWhole(const char* kernel, const OffloadedOperation& given, int64_t startNs,
                  wl_error_t* error);
  // Stops the running kernel. Returns true if it ended; otherwise nobody waits for it any more.
  bool stop(const char* kernel, const OffloadedOperation& given);
  void nextSequence() {
    sequence_ += deviceSequenceStep.load(std::memory_order_relaxed);
    // Never 0, which the stop word holds until a kernel is stopped.
    if (sequence_ == 0) ++sequence_;
  }

  const uint32_t number_;
  const std::unique_ptr<RankDevice> device_;
  Statements stated_;
  OffloadProgress progress_ = {};
  std::vector<unsigned char> lines_;
  uint64_t held_ = 0;  // id of the transfer that ran last, whose table is in the window; 0: none
  uint32_t sequence_ = 0;  // number of the last operation in this window
  uint32_t written_ = 0;   // number of the operation at which all lines were written
  uint32_t cores_ = 0;     // cores that the device runs at a time; 0: not counted yet
  bool isOpen_ = false;
  std::unique_ptr<Enqueuing> owned_;  // see enqueuing_
  std::atomic<Enqueuing*> enqueuing_{nullptr};
  std::atomic<bool> isStuck_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<const std::function<Code()>*> body_{nullptr};
  std::optional<Code> outcome_;  // of the last body; empty if it threw std::bad_alloc
  std::atomic<bool> ends_{false};
  bool keeps_ = false;
  bool isClosed_ = false;
  uint64_t closingBytes_ = 0;
  const char* givenUp_ = nullptr;  // the call from which the thread did not return
  WatchedCalls calls_;
  std::thread thread_;
};

}  // namespace windlass
