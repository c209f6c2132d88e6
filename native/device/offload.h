// SPDX-License-Identifier: Apache-2.0
// A rank's device, which runs the rank's collectives by itself: what the host does around them.
// What the rank brings goes into a window of the device that all devices of the group reach, and
// what comes of it is fetched from there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "native/core/offload_line.h"
#include "native/device/offloaded_launch.h"
#include "native/device/offloaded_transfer.h"
#include "native/device/watched_calls.h"
#include "native/memory/device.h"

namespace windlass {

// Of a kernel that was told to stop: it looks at every signal that it waits for.
constexpr int64_t kStopLimitNs = 2'000'000'000;
// Of a call of the driver, once whoever waits for it has no time left. Kernels that a driver
// compiles for its GPU take seconds.
constexpr int64_t kCallLimitNs = 5'000'000'000;
// The same of this process; tests have less.
inline std::atomic<int64_t> callLimitNs{kCallLimitNs};
// A device ends by itself what its host has not told to stop for so long after the deadline.
constexpr int64_t kDeviceOwnLimitNs = 2 * kStopLimitNs;
// Looks at a signal before a core looks whether it shall stop.
constexpr uint32_t kDeviceLooks = 1024;
// Cores that an operation does not take leave their lines alone, whose words must not fall behind
// by 2^22 operations: windlass/in_line.h. After so many all lines are written; tests have less.
constexpr uint32_t kAllLinesEvery = 1u << 20;
inline std::atomic<uint32_t> allLinesEvery{kAllLinesEvery};
// From one operation's number in a device's window to the next one's; tests have more.
inline std::atomic<uint32_t> deviceSequenceStep{1};

// The next place in a device's window where something may begin.
constexpr uint64_t aligned(uint64_t at) {
  constexpr uint64_t kAlignment = 512;
  return (at + kAlignment - 1) / kAlignment * kAlignment;
}

// The word of line `index` of those that a rank has read of its device.
inline uint32_t lineAt(const std::vector<unsigned char>& lines, size_t index) {
  uint32_t word = 0;
  std::memcpy(&word, lines.data() + index * kDeviceLineBytes, sizeof word);
  return word;
}

// A rank whose thread waits for the one that makes its device's calls; on the former.
class DeviceWait : public Liveness {
 public:
  // The call that the driver does not return from, in which the other thread is; nullptr: none.
  virtual void tell(const char* call) = 0;

 protected:
  ~DeviceWait() = default;
};

// The other ranks, as one that hands an operation to its device sees them.
class OffloadPeers : public AllRanks {
 public:
  virtual DeviceWait& wait() = 0;
  virtual int64_t leftNs() = 0;  // of the time in which it goes on
  // Why it does not go on; at the deadline all are told so, with who is least far.
  virtual Code ended(const OffloadProgress& progress) = 0;
  // The same of what waits at the deadline, as `why` says, such as "for its turn", since those
  // ranks hold it up.
  virtual Code busy(const std::vector<uint32_t>& ranks, const char* why) = 0;

 protected:
  ~OffloadPeers() = default;
};

class Enqueuing;  // native/device/enqueuing.h
class Group;
struct OnStream;

class Offload {
 public:
  // What an operation takes of its rank.
  struct Buffers {
    const void* in;
    uint64_t inBytes;
    void* out;
    uint64_t outBytes;
    void* parts;  // a PartTable, or an ExpertTable
    uint64_t partBytes;
    // Of a transfer, whose images and table the sizes are of; nothing of those lies anywhere yet.
    OffloadedTransfer* transfer = nullptr;
    // Of a launch of a library's kernel, which alone it is, and of which nothing is known yet.
    OffloadedLaunch* launch = nullptr;
  };
  struct Operation {
    const char* name;
    uint32_t kernel;
    const Launch* launch;
    uint32_t phases;
    uint32_t cores;  // at most
    Buffers buffers;
    int32_t operation = 0;  // wl_operation, and as the communicator counts
    uint32_t sequence = 0;
  };

  // Nothing is opened yet. Throws std::bad_alloc.
  explicit Offload(uint32_t device);
  // Once closed() has said so, or where nothing was opened.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  // Each of these returns callLimitNs after its caller has no time left, where a call of the driver
  // does not return: WL_DEVICE, and the device takes nothing else.
  //
  // Collective: every rank has entered the operation. Where it fails on one rank it fails on all:
  // *culprit is that rank, whose own error says why; kNobody where `peers` ended it, and where all
  // refuse it, isRefusal(), with nothing moved.
  Code run(const Operation& operation, OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  // What the rank does by itself: body(device) on the thread that makes the device's calls, once it
  // is open.
  Code alone(const std::function<Code(RankDevice&)>& body, DeviceWait& wait, wl_error_t* error);

  // The same, but that it returns once all ranks have enqueued it on streams of theirs; an
  // operation's deadline is deadlineNs.
  Code enqueue(Group& group, const Operation& operation, int64_t deadlineNs, OnStream& on,
               OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);
  // What is on streams; nullptr: nothing was ever.
  Enqueuing* enqueuing() const { return enqueuing_.load(); }

  // The rank leaves the communicator: what is on streams is looked at no more.
  void endStreams();
  // Gives the thread up that makes the device's calls where the driver has not returned from one
  // since then; the error says which, and the device takes nothing else. Whether it is given up,
  // now or before. Any thread.
  bool giveUp(int64_t sinceNs, wl_error_t* error);

  // Whether a kernel runs on that did not end when it was told to, a copy whose time is up, or a
  // call that does not return: it may touch the windows of all ranks at any time.
  bool isStuck() const;
  // Has its thread give all back, or nothing where that `keeps`, and end. No device's kernels but
  // such as are stuck reach the window any more.
  void beginToClose(bool keeps);
  // Whether the thread has ended by `untilNs` of clockNs(). Where it has not, a call of the runtime
  // does not return, and this object has to stay.
  bool closed(int64_t untilNs);
  // Of the window, when it began to close.
  uint64_t windowBytes() const { return closingBytes_; }

 private:
  // How far it has come, or what it needs, as ranks tell one another.
  struct Stated {
    int32_t code;
    uint32_t cores;
    uint32_t device;
    uint64_t in, out, parts;
    // Where they lie, if that is on the rank's own device; else 0.
    uint64_t inThere, outThere;
  };
  // Where what a rank brings lies in its window, but what kernels take from where it lies.
  struct Places {
    uint64_t stop, in, out, parts, end;
  };
  // Where the caller has what this rank brings.
  struct Found {
    RankDevice::Lies in, out;
  };

  // The thread that the device's calls are made on. Throws std::system_error.
  void start();
  void serve();
  // Where what a body of that thread's began runs on.
  void keepWhatLasts();
  // Runs body() on the thread that the device's calls are made on. WL_DEVICE: that was given up,
  // and body() touches nothing any more.
  Code onItsThread(const std::function<void()>& body, DeviceWait& wait, wl_error_t* error);
  bool giveUpLocked(int64_t sinceNs);
  Code failGivenUp(wl_error_t* error) const;
  // The same of one that may lack memory or a thread, of which *culprit is then this rank.
  Code runOnItsThread(const std::function<Code()>& body, OffloadPeers& peers, uint32_t* culprit,
                      wl_error_t* error);
  Code runHere(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
               wl_error_t* error);
  Code open(wl_error_t* error);
  // Where what the rank brings lies, and how much that is.
  Code find(Buffers* buffers, const OffloadPeers& peers, uint32_t cores, wl_error_t* error);
  // Where the rank's part of the window has a transfer's images.
  OffloadedTransfer::Images imagesOf(uint32_t rank, uint32_t cores) const;
  // States `code` of this rank; Ok once all have stated Ok.
  Code agree(Code code, const Buffers& buffers, OffloadPeers& peers, uint32_t* culprit,
             wl_error_t* error);
  // Refuses what no window holds, on all ranks alike.
  Code checkExtents(uint32_t* culprit, wl_error_t* error) const;
  Places placesOf(const Stated& stated, uint32_t cores) const;
  // Has no core's lines to this rank fall behind. Nobody's cores are in an operation there.
  Code writeLines(uint32_t self, uint32_t most, wl_error_t* error);
  // Finds out how many cores the device runs at a time: those that it says, or as many as meet, of
  // `most`. More than those would wait for one another until the deadline.
  Code countCores(uint32_t most, OffloadPeers& peers, wl_error_t* error);
  // And of a library's kernel, of as many.
  Code countCoresOf(const OffloadedLaunch& launch, uint32_t most, wl_error_t* error);
  // Bytes that a kernel notes of a transfer: its counts, where there is room for them.
  uint64_t noteOf(const Buffers& buffers) const;
  Code fetch(const Buffers& buffers, const Places& own, const unsigned char* part,
             wl_error_t* error);
  // `call`: of a launch, where its OffloadedCall lies.
  Code runKernel(const Operation& operation, uint64_t call, OffloadPeers& peers, uint32_t* culprit,
                 wl_error_t* error);
  // Reads the rank's lines, and from them how far each rank is.
  Code readLines(const OffloadedOperation& given, wl_error_t* error);
  Code look(const OffloadedOperation& given, wl_error_t* error);
  // Of a kernel that has ended: whether it has to be told from one that its own deadline ended.
  Code checkWhole(const char* kernel, const OffloadedOperation& given, int64_t startNs,
                  wl_error_t* error);
  // Has the kernel end that runs; whether it did. The thread then waits for it no more.
  bool stop(const char* kernel, const OffloadedOperation& given);
  void nextSequence() {
    sequence_ += deviceSequenceStep.load(std::memory_order_relaxed);
    // Never 0, which is what the word that stops cores is until then.
    if (sequence_ == 0) ++sequence_;
  }

  const uint32_t number_;
  const std::unique_ptr<RankDevice> device_;
  std::vector<Stated> stated_;
  Found found_ = {};
  uint64_t inThere_ = 0;  // as Stated has them
  uint64_t outThere_ = 0;
  // All ranks', which live in one process: their kernels reach what lies on any rank's device.
  bool isOneDevice_ = false;
  OffloadProgress progress_ = {};
  std::vector<unsigned char> lines_;
  uint64_t held_ = 0;      // the transfer whose table the window has, whose operation was the last
  uint32_t sequence_ = 0;  // of operations in this window
  uint32_t written_ = 0;   // the one at which all lines were written
  uint32_t cores_ = 0;     // that the device runs at a time; 0: nobody has counted them
  uint32_t usable_ = 0;    // of those, in the operation in progress
  bool isOpen_ = false;
  std::unique_ptr<Enqueuing> owned_;  // enqueuing_
  std::atomic<Enqueuing*> enqueuing_{nullptr};
  std::atomic<bool> isStuck_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<const std::function<void()>*> body_{nullptr};
  std::atomic<bool> ends_{false};
  bool keeps_ = false;
  bool isClosed_ = false;
  uint64_t closingBytes_ = 0;
  const char* givenUp_ = nullptr;  // the call from which the thread did not come back
  WatchedCalls calls_;
  std::thread thread_;
};

}  // namespace windlass
