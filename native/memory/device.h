// SPDX-License-Identifier: Apache-2.0
// Interface between the host and a rank's device: its window, copies, and the kernel that runs on
// it. The target's runtime implements it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "native/base/error.h"
#include "native/memory/file_offer.h"
#include "windlass/offload.h"

namespace windlass {

// Lets the ranks of a window exchange data while they create it.
class AllRanks : public Liveness {
 public:
  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;
  // Collective all-gather: collects `bytes` bytes of every rank, in rank order. `bytes` is the same
  // on all ranks. Returns within the communicator's deadline. Fails on every rank after a failure.
  virtual Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) = 0;
  // Lowest rank that lives in the same process as `rank`.
  virtual uint32_t firstBeside(uint32_t rank) const = 0;

 protected:
  ~AllRanks() = default;
};

// Collective. Sends `own` to all ranks; own.code is this rank's result so far. Returns WL_OK if
// every rank's code is WL_OK. *faultyRank is the failing rank. It is kNobody if no rank failed, or
// only the exchange itself. *isWhole is true if all ranks sent theirs. Otherwise peers may still be
// in an earlier step.
template <class Statement>
Code stateToAll(AllRanks& exchange, const Statement& own, std::vector<Statement>& statements,
                uint32_t* faultyRank, bool* isWhole, wl_error_t* error) {
  const auto code = static_cast<Code>(own.code);
  const Code told =
      exchange.all(&own, statements.data(), sizeof own, code == WL_OK ? error : nullptr);
  *isWhole = told == WL_OK;
  *faultyRank = code == WL_OK ? kNobody : exchange.rank();
  if (code != WL_OK || told != WL_OK) return code != WL_OK ? code : told;
  for (uint32_t rank = 0; rank < statements.size(); ++rank) {
    const auto theirs = static_cast<Code>(statements[rank].code);
    if (theirs == WL_OK) continue;
    *faultyRank = rank;
    return fail(error, theirs,
                "rank %u could not make its part of the window: %s; its own error says more", rank,
                codeName(theirs));
  }
  return WL_OK;
}

class RankDevice;

constexpr uint64_t kMostWindowBytes = uint64_t{1} << 46;  // per rank

// Device memory for the parts of a window. The parts are `stride()` bytes apart. Within a process,
// the devices of all ranks reach each part at the same address. The destructor frees the memory.
class DeviceParts {
 public:
  virtual ~DeviceParts() = default;
  virtual void* base() const = 0;
  virtual uint64_t stride() const = 0;  // a multiple of the page size

  // Identifies a rank's part for other processes. Valid after that rank made it.
  struct Offer {
    FileOfferName name;
    uint64_t stride;
    uint64_t device;  // number within its process
  };
  virtual Offer offerOf(uint32_t rank) const = 0;

  // Steps of a rank that make the parts. All ranks complete one step before any starts the next. If
  // all ranks live in one process, ask and share are left out:
  // - make: makes this rank's part, zeroed.
  // - ask: asks ranks of other processes for the parts that they offer.
  // - share: gives this rank's part and takes the others. WL_PEER_LOST: one did not arrive.
  // - tryPeers: checks that this rank reaches its peers' parts, and leaves them zeroed.
  //
  // checkAdds() is no such step. It fails if adds to a peer's part are not atomic with adds of
  // other ranks. All run on the thread that makes the calls of `device`, the rank's own.
  virtual Code make(RankDevice& device, uint32_t rank, wl_error_t* error) = 0;
  virtual Code ask(uint32_t rank, const std::vector<Offer>& offers, Liveness& liveness,
                   wl_error_t* error) = 0;
  virtual Code share(RankDevice& device, uint32_t rank, Liveness& liveness, wl_error_t* error) = 0;
  virtual Code tryPeers(RankDevice& device, uint32_t rank, wl_error_t* error) const = 0;
  virtual Code checkAdds(RankDevice& device, uint32_t rank, uint32_t peer,
                         wl_error_t* error) const = 0;
};
// Reserves addresses for parts of `bytes` bytes. `devices` holds kNobody for a rank of one of the
// `otherProcesses` other processes, which make their own parts. Throws std::bad_alloc.
Code reserveParts(const std::vector<uint32_t>& devices, uint32_t otherProcesses, uint64_t bytes,
                  std::unique_ptr<DeviceParts>* parts, wl_error_t* error);

// A move between views of one dtype that one device executes.
struct DeviceMove {
  DType dtype;
  MoveViews views;
};
constexpr uint64_t kDeviceStageBytes = uint64_t{4} << 20;

// Properties of a device that decide how many cores an operation uses. All 0 if the runtime does
// not report them.
struct DeviceKind {
  uint32_t major;  // compute capability
  uint32_t minor;
  uint32_t multiprocessors;
};

// Window that one kind of operation uses. Not thread-safe: one thread makes all calls.
class KernelWindow {
 public:
  virtual ~KernelWindow() = default;

  // Collective: makes a window with a part of `bytes` bytes, equal on all ranks, on each rank's
  // device. Each part is zeroed before any peer learns of it. If one rank fails, all fail and
  // nothing is left behind. If the exchange itself fails, or this throws std::bad_alloc, call
  // closeWindow().
  virtual Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) = 0;
  // Rank where a failure of makeWindow() began; kNobody if the exchange itself failed.
  virtual uint32_t faultyRank() const = 0;
  // Frees the window, even after failures, and returns the first failure. Call after every rank's
  // kernels have stopped using it.
  virtual Code closeWindow(wl_error_t* error) = 0;
  // Address of the part of that rank, for kernels of this rank.
  virtual void* part(uint32_t rank) const = 0;
  virtual uint64_t partBytes() const = 0;  // a multiple of the page size; 0 without a window
};

// Not thread-safe: one thread makes all calls.
class RankDevice : public KernelWindow {
 public:
  RankDevice() = default;
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  // Opens device `number`. A failure leaves nothing behind. Throws std::bad_alloc.
  virtual Code open(uint32_t number, wl_error_t* error) = 0;
  // Frees everything that open() acquired, even after an error, and returns the first error. Call
  // closeWindow() first.
  virtual Code close(wl_error_t* error) = 0;
  // Valid after open().
  virtual DeviceKind kind() const { return {}; }

  // Moves data with a kernel of this rank only. Returns after the kernel has ended.
  virtual Code move(const DeviceMove& move, wl_error_t* error) = 0;
  // Returns a staging buffer of kDeviceStageBytes on the device, for the data of one move.
  virtual Code stage(void** memory, wl_error_t* error) = 0;

  // Location of memory that a caller names.
  enum class Lies { kHost, kHere, kOtherDevice };
  // Memory that a caller names, and its name in errors.
  struct Named {
    const char* name;
    const void* data;
    uint64_t bytes;
  };
  virtual Code find(const Named& memory, Lies* lies, wl_error_t* error) = 0;
  // Copies between memory of any two devices of the process.
  virtual Code onDevices(void* to, const void* from, uint64_t bytes, wl_error_t* error) = 0;
  // Copies memory at `lies` to an address on the rank's device, and back.
  Code send(uint64_t to, const void* from, uint64_t bytes, Lies lies, wl_error_t* error) {
    auto* const there = reinterpret_cast<void*>(to);
    return lies == Lies::kHost ? toDevice(there, from, bytes, error)
                               : onDevices(there, from, bytes, error);
  }
  Code fetch(void* to, uint64_t from, uint64_t bytes, Lies lies, wl_error_t* error) {
    const auto* const there = reinterpret_cast<const void*>(from);
    return lies == Lies::kHost ? fromDevice(to, there, bytes, error)
                               : onDevices(to, there, bytes, error);
  }
  virtual Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) = 0;
  virtual Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) = 0;

  // Copies between the device and scattered host memory. fill() writes and take() reads bytes [at,
  // at + bytes) of the data in `buffer`, in order. The buffer is valid only during that call. Host
  // memory that fill() and take() access belongs to the copy until fillDevice() or takeFromDevice()
  // returns.
  using Fill = std::function<void(unsigned char* buffer, uint64_t at, uint64_t bytes)>;
  using Take = std::function<void(const unsigned char* buffer, uint64_t at, uint64_t bytes)>;
  virtual Code fillDevice(void* to, uint64_t bytes, const Fill& fill, wl_error_t* error);
  virtual Code takeFromDevice(const void* from, uint64_t bytes, const Take& take,
                              wl_error_t* error);
  // Copies rows of `bytes` bytes each, between memory of any two devices of the process. toStep and
  // fromStep are the distances between rows. All copies are complete on return.
  struct Rows {
    uint64_t to, from;
    uint64_t bytes, count;
    uint64_t toStep, fromStep;
  };
  virtual Code copyRows(const std::vector<Rows>& rows, wl_error_t* error);
  // Sets *is to true if kernels of all these devices reach memory that lies on one of them. It is
  // false unless the runtime confirms this.
  virtual Code isReached(const void* memory, uint64_t bytes, const std::vector<uint32_t>& devices,
                         bool* is, wl_error_t* error);

  // Loads a library's kernels unless they are loaded. They stay loaded until close(). Call while no
  // kernel of the window runs.
  virtual Code load(const void* image, wl_error_t* error);
  // Number of cores of a rank that run concurrently, at most `most`; 0 if the device does not
  // report it. `image` names a library's loaded kernels; nullptr means the target's.
  virtual uint32_t coresAtOnce(uint32_t most, const void* image) const = 0;
  // Address of the word by which the host stops kernels. `line` lies in the rank's part and has no
  // other use. The result is `line`, or memory that suits better.
  virtual uint64_t stopWord(uint64_t line) const = 0;
  // Host memory that this rank's kernels write too, and the address that they use.
  struct Notes {
    const void* memory;
    uint64_t address;
    uint64_t bytes;  // 0 if there is none
  };
  virtual Notes notes() const { return {}; }
  // Writes the stop word while a kernel runs.
  virtual Code writeStop(uint64_t word, uint32_t value, wl_error_t* error) = 0;

  // start() launches a kernel of library `image`, or of the target if `image` is nullptr. await()
  // returns WL_DEADLINE_EXCEEDED if the kernel has not ended after limitNs. The caller may call
  // await() again after WL_DEADLINE_EXCEEDED, and after another error while mayRunOn() is true. Any
  // other result means that the kernel has ended. giveUp() is the last call for a kernel.
  virtual Code start(const char* kernel, const void* image, const OffloadedOperation& given,
                     wl_error_t* error) = 0;
  virtual Code await(const char* kernel, int64_t limitNs, wl_error_t* error) = 0;
  virtual bool mayRunOn() = 0;
  virtual void giveUp() = 0;
  // Name of other work that has not ended in time and may still access its memory. Nothing is freed
  // then. Returns nullptr if there is no such work.
  virtual const char* lasting() const { return nullptr; }
};

// Creates a device of the target's runtime. Throws std::bad_alloc.
std::unique_ptr<RankDevice> makeRankDevice();

// On cuda, returns an error if no rank can have a device here. On other targets, the first
// operation reports that error.
Code checkDevices(wl_error_t* error);

// True if ranks of several processes reach one another's windows: on cuda.
bool devicesSpanProcesses();

// Number of the device, within the process, that rank `rank` of a group uses.
uint32_t deviceOf(uint32_t rank);

}  // namespace windlass
