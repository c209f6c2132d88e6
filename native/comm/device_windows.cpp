// SPDX-License-Identifier: Apache-2.0
#include "native/comm/device_windows.h"

#include <algorithm>
#include <new>
#include <vector>

#include "native/base/target.h"
#include "native/comm/host_operations.h"
#include "native/comm/kept_devices.h"
#include "native/comm/names.h"
#include "native/comm/offload_seats.h"

namespace windlass {
namespace {

// Keeps a window of which a kernel may touch a part that did not end.
struct Returns {
  std::vector<uint32_t> devices;  // of each rank

  void operator()(Window* window) const {
    const auto isKept = [](uint32_t device) {
      return KeptDevices::check(device, nullptr) != WL_OK;
    };
    if (std::none_of(devices.begin(), devices.end(), isKept)) {
      delete window;
    } else {
      KeptDevices::addWindow(window->bytes() * devices.size());
    }
  }
};

Code refuse(const Comm& comm, uint64_t bytes, wl_error_t* error) {
  if (kTarget.image == nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "device window: target %s has no devices on which callers have tensors; windows of "
                "the host are made by window",
                kTarget.limits.name);
  }
  if (comm.group().config().spansProcesses) {
    return fail(error, WL_UNSUPPORTED,
                "device window: ranks in several processes have none yet: have them be threads of "
                "one");
  }
  if (bytes <= kMostWindowBytes / comm.group().ranks()) return WL_OK;
  return fail(error, WL_RESOURCE,
              "cannot map a device window of %llu bytes on %u ranks: more than a process can "
              "address",
              static_cast<unsigned long long>(bytes), comm.group().ranks());
}

wl_error_t ofDevice(Comm& comm, const std::function<Code(RankDevice&, wl_error_t*)>& body) {
  wl_error_t error = blankError();
  Offload& own = comm.group().offloadSeats().offload(comm.rank());
  own.alone([&](RankDevice& device) { return body(device, &error); }, &error);
  return error;
}

}  // namespace

Code createDeviceWindow(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                        std::shared_ptr<Window>* window, wl_error_t* error) {
  if (Code code = refuse(comm, bytes, error); code != WL_OK) return code;
  const uint32_t ranks = comm.group().ranks();
  const TimeLimit limit = TimeLimit::fromNow(deadlineNs);
  const Descriptor descriptor = Descriptor::of(WL_OP_DEVICE_WINDOW, bytes);
  wl_error_t failure = blankError();
  Group::Joint<Window> made;
  std::vector<uint32_t> devices;
  const auto attempt = [&](auto&& body) {
    try {
      body();
    } catch (const std::bad_alloc&) {
      failure = noMemory(comm.rank());
    }
  };
  attempt([&] {
    if (window == nullptr) throw std::bad_alloc();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      devices.push_back(comm.group().offloadSeats()[rank].device);
    made = comm.group().join<Window>(comm.nextSequence(), Group::kJointWindow, [&] {
      std::unique_ptr<DeviceParts> parts;
      if (reserveParts(devices, bytes, &parts, &failure) != WL_OK) return std::shared_ptr<Window>();
      return std::shared_ptr<Window>(new Window(std::move(parts), bytes), Returns{devices});
    });
    // Where ranks disagree, one of them may have made a window of the host.
    DeviceParts* const parts = *made == nullptr ? nullptr : (*made)->parts();
    if (parts == nullptr) return;
    failure = ofDevice(comm, [&](RankDevice& device, wl_error_t* own) {
      return device.makePart(*parts, comm.rank(), own);
    });
  });
  Code code = shareOutcome(comm, descriptor, failure, limit, error);
  const auto isFirst = [&](uint32_t device) { return device == devices[0]; };
  if (code == WL_OK && !std::all_of(devices.begin(), devices.end(), isFirst)) {
    attempt([&] {
      failure = ofDevice(comm, [&](RankDevice& device, wl_error_t* own) {
        return device.tryParts(*(*made)->parts(), comm.rank(), own);
      });
    });
    code = shareOutcome(comm, descriptor, failure, limit, error);
  }
  if (code == WL_OK) *window = *made;
  return code;
}

}  // namespace windlass
