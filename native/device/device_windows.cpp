// SPDX-License-Identifier: Apache-2.0
#include "native/device/device_windows.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <vector>

#include "native/base/target.h"
#include "native/base/text.h"
#include "native/core/names.h"
#include "native/core/shared/object_operations.h"
#include "native/device/device_wait.h"
#include "native/device/kept_devices.h"
#include "native/device/offload_seats.h"
#include "native/device/watched_calls.h"

namespace windlass {
namespace {

// Deleter that leaks the window if an unfinished kernel or a hung driver call may still access it.
// The release itself may be such a call.
struct Returns {
  std::vector<uint32_t> devices;  // of each rank; kNobody: in another process

  void operator()(Window* window) const {
    const auto isKept = [](uint32_t device) {
      return device != kNobody && KeptDevices::has(device);
    };
    const uint64_t bytes = window->bytes() * devices.size();
    if (std::any_of(devices.begin(), devices.end(), isKept) || !isGivenBack(window))
      KeptDevices::addWindow(bytes);
  }

 private:
  static bool isGivenBack(Window* window) {
    try {
      return runWatched([window] { delete window; }, callLimitNs) == nullptr;
    } catch (const std::exception&) {
      // No thread, or no memory for one.
      return false;
    }
  }
};

// Reservation of a window's parts, before any rank makes its own. A thread that hangs in the driver
// may keep it.
struct Reservation {
  const uint64_t bytes;
  std::vector<uint32_t> devices;  // of each rank; kNobody: in another process
  uint32_t otherProcesses = 0;
  std::unique_ptr<DeviceParts> parts;
  wl_error_t failure = blankError();

  explicit Reservation(uint64_t asked) : bytes(asked) {}
  void make() {
    try {
      reserveParts(devices, otherProcesses, bytes, &parts, &failure);
    } catch (const std::bad_alloc&) {
      fail(&failure, WL_RESOURCE, "out of memory for a window of devices");
    }
  }
};

int64_t endOf(const Comm& comm, const TimeLimit& limit) {
  return limit.startNs +
         (limit.deadlineNs == 0 ? comm.group().config().deadlineNs : limit.deadlineNs);
}

// One rank's steps of the collective that creates a device window.
class Making {
 public:
  Making(Comm& comm, uint64_t bytes, const TimeLimit& limit)
      : comm_(comm),
        bytes_(bytes),
        descriptor_(Descriptor::of(WL_OP_DEVICE_WINDOW, bytes)),
        limit_(limit),
        waits_(comm.group(), comm.rank(), endOf(comm, limit)) {}

  Code run(std::shared_ptr<Window>* window, wl_error_t* error) {
    attempt([&] {
      if (window == nullptr) throw std::bad_alloc();
      // Memory that a rank makes on a stuck device would never be released.
      const uint32_t number = comm_.group().offloadSeats()[comm_.rank()].device;
      if (KeptDevices::check(number, &failure_) != WL_OK) return;
      reserve();
      // If ranks disagree, one of them may have made a host window.
      const auto makes = [&](RankDevice& device, wl_error_t* own) {
        return parts().make(device, comm_.rank(), own);
      };
      if (*made_ != nullptr && (*made_)->parts() != nullptr) onDevice(makes);
    });
    Code code = agree(error);
    if (code == WL_OK && reserved_->otherProcesses > 0) code = share(error);
    if (code != WL_OK) return code;
    const std::vector<uint32_t>& devices = reserved_->devices;
    const auto isFirst = [&](uint32_t device) { return device == devices[0]; };
    if (!std::all_of(devices.begin(), devices.end(), isFirst)) {
      const auto tries = [&](RankDevice& device, wl_error_t* own) {
        return parts().tryPeers(device, comm_.rank(), own);
      };
      code = step(tries, error);
    }
    if (code == WL_OK) *window = *made_;
    return code;
  }

 private:
  // Runs the body. Its exception or failure is this rank's part of the result that all ranks agree
  // on.
  template <class Body>
  void attempt(Body&& body) {
    try {
      body();
      if (failure_.code != WL_OK) name(&failure_);
    } catch (const std::bad_alloc&) {
      failure_ = noMemory(comm_.rank());
    } catch (const std::system_error&) {
      failure_ = errorOf(WL_RESOURCE, "the system has no more threads for a device's calls");
      name(&failure_);
    }
  }
  // Rewrites the failure for other ranks, and names this rank. A mismatch or a lost peer names its
  // ranks already.
  void name(wl_error_t* failure) const {
    if (failure->code == WL_MISMATCH || failure->code == WL_PEER_LOST) return;
    const wl_error_t own = *failure;
    *failure = errorOf(static_cast<Code>(own.code), "rank %u: %s: %s", comm_.rank(),
                       operationName(WL_OP_DEVICE_WINDOW), own.message);
    failure->operation = WL_OP_DEVICE_WINDOW;
    failure->observer = static_cast<int32_t>(comm_.rank());
    failure->sequence = comm_.operation().sequence();
    nameFaultyRank(failure, comm_.rank());
  }
  void onDevice(const Offload::Body& body) {
    failure_ = blankError();
    comm_.group().offloadSeats().offload(comm_.rank()).alone(body, waits_, &failure_);
  }
  Code agree(wl_error_t* error) {
    return shareDeviceOutcome({comm_, descriptor_, limit_, error}, failure_);
  }
  // Runs a step on this rank's device. All ranks agree on its result.
  Code step(const Offload::Body& body, wl_error_t* error) {
    attempt([&] { onDevice(body); });
    return agree(error);
  }
  DeviceParts& parts() const { return *(*made_)->parts(); }

  void reserve() {
    Group& group = comm_.group();
    reserved_ = std::make_shared<Reservation>(bytes_);
    for (uint32_t rank = 0; rank < group.ranks(); ++rank) {
      uint32_t first = 0;
      while (!group.liveTogether(first, rank)) ++first;
      const bool isHere = group.liveTogether(rank, comm_.rank());
      reserved_->otherProcesses += first == rank && !isHere ? 1 : 0;
      reserved_->devices.push_back(isHere ? group.offloadSeats()[rank].device : kNobody);
    }
    offers_.resize(group.ranks());
    const uint32_t sequence = comm_.operation().nextSequence();
    made_ = group.joint().make<Window>(sequence, JointObjects::kWindow, [&] {
      // Checks the devices of all ranks of this process; each rank reports its own, too.
      for (const uint32_t device : reserved_->devices) {
        if (device != kNobody && KeptDevices::check(device, &failure_) != WL_OK)
          return std::shared_ptr<Window>();
      }
      const char* const call =
          runWatched([reserved = reserved_] { reserved->make(); }, callLimitNs);
      if (call != nullptr) {
        fail(&failure_, WL_DEVICE, "the driver does not return from %s for a window of devices",
             call);
        return std::shared_ptr<Window>();
      }
      failure_ = reserved_->failure;
      if (reserved_->parts == nullptr) return std::shared_ptr<Window>();
      auto* const made =
          new Window(std::move(reserved_->parts), bytes_, comm_.operation().nextSequence());
      return std::shared_ptr<Window>(made, Returns{reserved_->devices});
    });
  }

  // Exchanges parts with other processes.
  Code share(wl_error_t* error) {
    const DeviceParts::Offer own = parts().offerOf(comm_.rank());
    Code code = gatherWords({comm_, descriptor_, limit_, error}, &own, sizeof own, offers_.data());
    if (code != WL_OK) return code;
    const auto asks = [&](RankDevice&, wl_error_t* failed) {
      return parts().ask(comm_.rank(), offers_, waits_, failed);
    };
    if (code = step(asks, error); code != WL_OK) return code;
    const auto shares = [&](RankDevice& device, wl_error_t* failed) {
      return parts().share(device, comm_.rank(), waits_, failed);
    };
    attempt([&] { onDevice(shares); });
    // Errors of other ranks say more than the loss of a peer.
    const wl_error_t lost = failure_;
    if (lost.code == WL_PEER_LOST) failure_ = blankError();
    code = agree(error);
    if (lost.code == WL_PEER_LOST) failure_ = lost;
    return code == WL_OK ? agree(error) : code;
  }

  Comm& comm_;
  const uint64_t bytes_;
  const Descriptor descriptor_;
  const TimeLimit limit_;
  DeviceWait waits_;
  wl_error_t failure_ = blankError();
  Joint<Window> made_;
  std::shared_ptr<Reservation> reserved_;
  std::vector<DeviceParts::Offer> offers_;
};

}  // namespace

Code createDeviceWindow(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                        std::shared_ptr<Window>* window, wl_error_t* error) {
  if (!kTarget.hasGpus()) {
    return fail(error, WL_UNSUPPORTED,
                "device window: target %s has no devices on which callers have tensors; windows of "
                "the host are made by window",
                kTarget.limits.name);
  }
  if (bytes > kMostWindowBytes / comm.group().ranks()) {
    return fail(error, WL_RESOURCE,
                "cannot map a device window of %llu bytes on %u ranks: more than a process can "
                "address",
                text(bytes), comm.group().ranks());
  }
  return Making(comm, bytes, TimeLimit::fromNow(deadlineNs)).run(window, error);
}

}  // namespace windlass
