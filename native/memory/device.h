// SPDX-License-Identifier: Apache-2.0
// A rank's device as its host hands operations to it: its window, the copies to and from it, and
// the kernel that runs there. The runtime that the target takes fills it in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "native/base/error.h"
#include "native/memory/file_offer.h"
#include "windlass/offload.h"

namespace windlass {

// The ranks of a window, as they tell one another what it takes.
class AllRanks : public Liveness {
 public:
  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;
  // Collective: every rank's `bytes` bytes, the same number on all, in the order of ranks. It ends
  // within the communicator's deadline; after a failure nobody goes on.
  virtual Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) = 0;
  // The lowest of the ranks that live in the same process.
  virtual uint32_t firstBeside(uint32_t rank) const = 0;

 protected:
  ~AllRanks() = default;
};

// States `own`, which has a `code` of this rank so far, to all: WL_OK once all have stated theirs,
// and all are OK. *culprit is the rank that failed; kNobody: none, or the exchange itself ended.
// *isWhole: whether all have stated theirs; else peers may be at what comes before that still.
template <class Statement>
Code stateToAll(AllRanks& exchange, const Statement& own, std::vector<Statement>& statements,
                uint32_t* culprit, bool* isWhole, wl_error_t* error) {
  const auto code = static_cast<Code>(own.code);
  const Code told =
      exchange.all(&own, statements.data(), sizeof own, code == WL_OK ? error : nullptr);
  *isWhole = told == WL_OK;
  *culprit = code == WL_OK ? kNobody : exchange.rank();
  if (code != WL_OK || told != WL_OK) return code != WL_OK ? code : told;
  for (uint32_t rank = 0; rank < statements.size(); ++rank) {
    const auto theirs = static_cast<Code>(statements[rank].code);
    if (theirs == WL_OK) continue;
    *culprit = rank;
    return fail(error, theirs,
                "rank %u could not make its part of the window: %s; its own error says more", rank,
                codeName(theirs));
  }
  return WL_OK;
}

class StreamDevice;  // native/device/stream_device.h

constexpr uint64_t kMostWindowBytes = uint64_t{1} << 46;  // of a part

// Memory for the parts of a window that its ranks' devices hold, one after another, `stride()`
// apart. All devices of the ranks reach each part, at the same address. It is given back with this.
class DeviceParts {
 public:
  virtual ~DeviceParts() = default;
  virtual void* base() const = 0;
  virtual uint64_t stride() const = 0;  // in whole pages

  // By what ranks of other processes take a rank's, once that has made it.
  struct Offer {
    FileOfferName name;
    uint64_t stride;
    uint64_t device;  // as its process counts them
  };
  virtual Offer offerOf(uint32_t rank) const = 0;

 protected:
  DeviceParts() = default;
};
// Addresses for parts of `bytes`, of ranks that have those devices, kNobody where a rank lives in
// one of so many other processes; each makes its own. Throws std::bad_alloc.
Code reserveParts(const std::vector<uint32_t>& devices, uint32_t otherProcesses, uint64_t bytes,
                  std::unique_ptr<DeviceParts>* parts, wl_error_t* error);

// A move that a device makes by itself, of views of one dtype.
struct DeviceMove {
  DType dtype;
  MoveViews views;
};
constexpr uint64_t kDeviceStageBytes = uint64_t{4} << 20;

// What a device is among those that differ in how many cores an operation should have there; all 0
// where its runtime does not say.
struct DeviceKind {
  uint32_t major;  // of its compute capability
  uint32_t minor;
  uint32_t multiprocessors;
};

// One thread makes all calls.
class RankDevice {
 public:
  RankDevice() = default;
  virtual ~RankDevice() = default;
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  // Takes device `number`. A failure leaves nothing behind. Throws std::bad_alloc.
  virtual Code open(uint32_t number, wl_error_t* error) = 0;
  // Gives back what open() took, whatever fails, and tells the first failure. No window is left.
  virtual Code close(wl_error_t* error) = 0;
  // Once it is open.
  virtual DeviceKind kind() const { return {}; }

  // Collective: a window with a part on each rank's device, of `bytes`, the same on all ranks, and
  // zeroed before any peer learns of it. Where it fails on one rank it fails on all, and leaves
  // nothing behind; where the exchange itself ends, or it throws std::bad_alloc, what closeWindow()
  // gives back.
  virtual Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) = 0;
  // The rank that a failure of makeWindow() began with; kNobody: what ranks tell one another ended
  // it.
  virtual uint32_t culprit() const = 0;
  // Gives it back as close() does. Call once no rank's kernels touch the window any more.
  virtual Code closeWindow(wl_error_t* error) = 0;
  // As this rank's kernels reach it.
  virtual void* part(uint32_t rank) const = 0;
  virtual uint64_t partBytes() const = 0;  // in whole pages; 0: there is no window

  // Makes this rank's of those parts, zeroed. Then, where ranks live in several processes, each
  // time once all have done what is before it: asks for those of others, which all have offered;
  // gives its own and takes theirs, WL_PEER_LOST where one did not come. Then tries whether it
  // reaches those of its peers, which are zero again. And whether its adds to a peer's part are
  // atomic beside those of others.
  virtual Code makePart(DeviceParts& parts, uint32_t rank, wl_error_t* error) = 0;
  virtual Code askForParts(DeviceParts& parts, uint32_t rank,
                           const std::vector<DeviceParts::Offer>& offers, Liveness& liveness,
                           wl_error_t* error) = 0;
  virtual Code shareParts(DeviceParts& parts, uint32_t rank, Liveness& liveness,
                          wl_error_t* error) = 0;
  virtual Code tryParts(const DeviceParts& parts, uint32_t rank, wl_error_t* error) = 0;
  virtual Code checkAdds(const DeviceParts& parts, uint32_t rank, uint32_t peer,
                         wl_error_t* error) = 0;
  // Moves by a kernel of this rank alone, which is over when it returns.
  virtual Code move(const DeviceMove& move, wl_error_t* error) = 0;
  // kDeviceStageBytes of the device, for what one move brings through them.
  virtual Code stage(void** memory, wl_error_t* error) = 0;

  // Where memory that a caller names lies.
  enum class Lies { kHost, kHere, kOtherDevice };
  // Such memory, and what errors call it.
  struct Named {
    const char* name;
    const void* data;
    uint64_t bytes;
  };
  virtual Code find(const Named& memory, Lies* lies, wl_error_t* error) = 0;
  // From memory of any device of the process to that of any.
  virtual Code onDevices(void* to, const void* from, uint64_t bytes, wl_error_t* error) = 0;
  virtual Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) = 0;
  virtual Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) = 0;

  // The same of what lies on the host in many places: fill() writes, take() reads bytes
  // [at, at + bytes) of it, in order. What they touch is theirs until the call returns.
  using Fill = std::function<void(unsigned char* buffer, uint64_t at, uint64_t bytes)>;
  using Take = std::function<void(const unsigned char* buffer, uint64_t at, uint64_t bytes)>;
  virtual Code fillDevice(void* to, uint64_t bytes, const Fill& fill, wl_error_t* error);
  virtual Code takeFromDevice(const void* from, uint64_t bytes, const Take& take,
                              wl_error_t* error);
  // Rows of so many bytes each, from memory of any device of the process to that of any; addresses
  // step from row to row. All are over once it returns.
  struct Rows {
    uint64_t to, from;
    uint64_t bytes, count;
    uint64_t toStep, fromStep;
  };
  virtual Code copyRows(const std::vector<Rows>& rows, wl_error_t* error);
  // Whether kernels of these devices all reach memory that lies on one of them. False unless the
  // runtime says so.
  virtual Code isReached(const void* memory, uint64_t bytes, const std::vector<uint32_t>& devices,
                         bool* is, wl_error_t* error);

  // Loads a library's kernels unless they are loaded; they stay until close(). No kernel of the
  // window runs.
  virtual Code load(const void* image, wl_error_t* error);
  // How many cores of a rank run at a time in the window's kernels, `most` at most; 0: the device
  // does not say. `image`: of a library's kernels, which are loaded; nullptr: of the target's own.
  virtual uint32_t coresAtOnce(uint32_t most, const void* image) const = 0;
  // Where kernels look whether they shall stop: in `line`, which is of the rank's part and has no
  // other use, or in memory that is better for it.
  virtual uint64_t stopWord(uint64_t line) const = 0;
  // Memory of the host that this rank's kernels write as well, and how they do.
  struct Notes {
    const void* memory;
    uint64_t address;
    uint64_t bytes;  // 0: there is none
  };
  virtual Notes notes() const { return {}; }
  // Writes that word while a kernel runs.
  virtual Code writeStop(uint64_t word, uint32_t value, wl_error_t* error) = 0;

  // Starts a kernel, of such a library or of the target's own, which runs on for ever where it does
  // not end. await(): WL_TIMEOUT after limitNs. It may be called again after WL_TIMEOUT, and after
  // an error while mayRunOn() is true; any other result means that the kernel has ended. giveUp():
  // nobody will call it.
  virtual Code start(const char* kernel, const void* image, const OffloadedOperation& given,
                     wl_error_t* error) = 0;
  virtual Code await(const char* kernel, int64_t limitNs, wl_error_t* error) = 0;
  virtual bool mayRunOn() = 0;
  virtual void giveUp() = 0;
  // What else runs on though its time is up, and may touch what it was given at any time: then
  // nothing is given back. nullptr: nothing.
  virtual const char* lasting() const { return nullptr; }

  // What it takes on streams of a caller's; nullptr: nothing. Once it is open.
  virtual StreamDevice* streams() { return nullptr; }
};

// Of the target's runtime. Throws std::bad_alloc.
std::unique_ptr<RankDevice> makeRankDevice();

// Why no rank has a device here, where the target's runtime is known before any is taken: that of
// cuda. Elsewhere the first operation says so.
Code checkDevices(wl_error_t* error);

// Whether ranks of several processes reach one another's windows: on cuda.
bool devicesSpanProcesses();

// The device that rank `rank` of a group takes, as the process counts them.
uint32_t deviceOf(uint32_t rank);

}  // namespace windlass
