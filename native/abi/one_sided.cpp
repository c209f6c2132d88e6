// SPDX-License-Identifier: Apache-2.0
// C ABI: one-sided operations. Checks the arguments before anything moves. Errors begin with the
// caller's name for the operation.
#include "native/core/one_sided.h"
#include "native/device/device_one_sided.h"

#include "native/abi/tensors.h"
#include "native/base/dtype.h"
#include "native/base/extent.h"
#include "native/base/shared_bytes.h"

using namespace windlass;

namespace {

Code checkWindow(const char* what, const wl_comm_t* comm, const wl_window_t* window, int32_t peer,
                 wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkHandle(window, "window", error); code != WL_OK) return code;
  if (window->group != comm->comm.groupPointer())
    return fail(error, WL_INVALID_ARGUMENT, "%s: window belongs to another communicator", what);
  const uint32_t ranks = comm->comm.group().ranks();
  if (static_cast<uint32_t>(peer) < ranks) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s: peer is %d; it must lie in [0, %u)", what, peer,
              ranks);
}

Code checkAligned(const char* what, const wl_tensor_t& tensor, const char* name,
                  wl_error_t* error) {
  const uint64_t size = sizeOf(static_cast<DType>(tensor.dtype));
  if (reinterpret_cast<uintptr_t>(tensor.data) % size == 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s: %s is not aligned to its dtype's %llu bytes", what,
              name, static_cast<unsigned long long>(size));
}

[[gnu::cold]] Code unlike(const char* what, const wl_tensor_t& local, const wl_tensor_t& remote,
                          wl_error_t* error) {
  return fail(error, WL_INVALID_ARGUMENT,
              "%s: local is %s, remote %s; dtypes and shapes must agree", what,
              TensorText(local).text(), TensorText(remote).text());
}

[[gnu::cold]] Code overlapping(const char* what, const wl_tensor_t& local,
                               const wl_tensor_t& remote, wl_error_t* error) {
  return fail(error, WL_INVALID_ARGUMENT,
              "%s: local (%s) overlaps remote (%s), which is of this rank itself; the two must be "
              "apart",
              what, TensorText(local).text(), TensorText(remote).text());
}

[[gnu::cold]] Code noAtomicAdd(const wl_tensor_t& local, wl_error_t* error) {
  return fail(error, WL_UNSUPPORTED,
              "accumulate: local is %s; it takes f32, f16, bf16, i32, i16 and i8 alone, which "
              "every target adds atomically",
              TensorText(local).text());
}

// Checks a move's tensors against each other, after each has been checked. Sets *view to `remote`
// in the peer's part of the window.
Code resolve(const char* what, const wl_comm_t* comm, const wl_window_t* window,
             const wl_tensor_t* local, int32_t peer, const wl_tensor_t* remote, StridedView* view,
             wl_error_t* error) {
  if (local->dtype != remote->dtype || !haveSameShape(*local, *remote))
    return unlike(what, *local, *remote, error);
  if (Code code = checkAligned(what, *local, "local", error); code != WL_OK) return code;
  if (Code code = checkAligned(what, *remote, "remote", error); code != WL_OK) return code;
  *view = viewOf(*remote);
  int64_t reach = 0;
  if (!extentOf(view->ndim, view->shape, view->strides, sizeOf(view->dtype), &reach))
    return fail(error, WL_INVALID_ARGUMENT, "%s: the size of remote overflows 63 bits", what);
  if (reach == 0) return WL_OK;
  const auto own = reinterpret_cast<uintptr_t>(window->window->address(comm->comm.rank()));
  const uint64_t offset = reinterpret_cast<uintptr_t>(view->data) - own;
  void* there =
      window->window->resolve(static_cast<uint32_t>(peer), offset, static_cast<uint64_t>(reach));
  if (there == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: remote reaches outside this rank's part of the window, of %llu bytes", what,
                static_cast<unsigned long long>(window->window->bytes()));
  }
  view->data = there;
  if (static_cast<uint32_t>(peer) == comm->comm.rank() && shareBytes(viewOf(*local), *view))
    return overlapping(what, *local, *remote, error);
  return WL_OK;
}

// Names of a move for errors, and the side that it writes.
struct Move {
  const char* what;
  const char* local;
  const char* remote;
  bool writesLocal;
};
constexpr Move kPut = {"put", "put: local", "put: remote", false};
constexpr Move kAccumulate = {"accumulate", "accumulate: local", "accumulate: remote", false};
constexpr Move kGet = {"get", "get: local", "get: remote", true};

[[gnu::always_inline]] inline Code checkMove(const Move& move, const wl_comm_t* comm,
                                             const wl_window_t* window, const wl_tensor_t* local,
                                             int32_t peer, const wl_tensor_t* remote,
                                             StridedView* view, wl_error_t* error) {
  if (Code code = checkWindow(move.what, comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkTensor(local, move.local, move.writesLocal, error); code != WL_OK)
    return code;
  if (Code code = checkTensor(remote, move.remote, !move.writesLocal, error); code != WL_OK)
    return code;
  return resolve(move.what, comm, window, local, peer, remote, view, error);
}

// Returns the view of the window with its location: kHere if the window lies on devices, otherwise
// kHost.
MoveSide sideOf(const wl_window_t& window, const StridedView& view) {
  using Lies = RankDevice::Lies;
  return {view, window.window->parts() != nullptr ? Lies::kHere : Lies::kHost};
}

// Checks the signal. Sets *line to the line that `writer` writes in `owner`'s part of the window.
Code checkSignal(const char* what, const wl_comm_t* comm, const wl_window_t* window,
                 uint64_t signal, uint32_t owner, uint32_t writer, uint32_t** line,
                 wl_error_t* error) {
  const Window& memory = *window->window;
  if (memory.parts() != nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "%s: the window lies on devices, and hosts set and look at signals: make those in "
                "a window of the host",
                what);
  }
  const uint64_t lines = uint64_t{comm->comm.group().ranks()} * WL_SIGNAL_LINE_BYTES;
  if (signal % WL_SIGNAL_LINE_BYTES != 0 || lines > memory.bytes() ||
      signal > memory.bytes() - lines) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: signal %llu is not a multiple of %d with room for a line for each rank in "
                "%llu bytes",
                what, static_cast<unsigned long long>(signal), WL_SIGNAL_LINE_BYTES,
                static_cast<unsigned long long>(memory.bytes()));
  }
  auto* first = static_cast<unsigned char*>(memory.address(owner)) + signal;
  *line = reinterpret_cast<uint32_t*>(first + uint64_t{writer} * WL_SIGNAL_LINE_BYTES);
  return WL_OK;
}

}  // namespace

extern "C" {

int32_t wl_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local, int32_t peer,
               const wl_tensor_t* remote, wl_error_t* error) {
  StridedView view = {};
  if (Code code = checkMove(kPut, comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  if (window->window->parts() != nullptr) {
    return putByDevice(comm->comm, static_cast<uint32_t>(peer), sideOf(*window, view),
                       viewOf(*local), error);
  }
  return put(comm->comm, static_cast<uint32_t>(peer), view, viewOf(*local), error);
}

int32_t wl_device_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  StridedView view = {};
  if (Code code = checkMove(kPut, comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  if (Code code = checkGpus("put", error); code != WL_OK) return code;
  return putByDevice(comm->comm, static_cast<uint32_t>(peer), sideOf(*window, view), viewOf(*local),
                     error);
}

int32_t wl_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  StridedView view = {};
  if (Code code = checkMove(kAccumulate, comm, window, local, peer, remote, &view, error);
      code != WL_OK)
    return code;
  if (!canAccumulate(view.dtype)) return noAtomicAdd(*local, error);
  if (const DeviceParts* parts = window->window->parts(); parts != nullptr) {
    return accumulateByDevice(comm->comm, static_cast<uint32_t>(peer), parts,
                              sideOf(*window, view), viewOf(*local), error);
  }
  return accumulate(comm->comm, static_cast<uint32_t>(peer), view, viewOf(*local), error);
}

int32_t wl_device_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  StridedView view = {};
  if (Code code = checkMove(kAccumulate, comm, window, local, peer, remote, &view, error);
      code != WL_OK)
    return code;
  if (!canAccumulate(view.dtype)) return noAtomicAdd(*local, error);
  if (Code code = checkGpus("accumulate", error); code != WL_OK) return code;
  return accumulateByDevice(comm->comm, static_cast<uint32_t>(peer), window->window->parts(),
                            sideOf(*window, view), viewOf(*local), error);
}

int32_t wl_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local, int32_t peer,
               const wl_tensor_t* remote, wl_error_t* error) {
  StridedView view = {};
  if (Code code = checkMove(kGet, comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  if (window->window->parts() != nullptr) {
    return getByDevice(comm->comm, static_cast<uint32_t>(peer), viewOf(*local),
                       sideOf(*window, view), error);
  }
  return get(comm->comm, static_cast<uint32_t>(peer), viewOf(*local), view, error);
}

int32_t wl_device_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  StridedView view = {};
  if (Code code = checkMove(kGet, comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  if (Code code = checkGpus("get", error); code != WL_OK) return code;
  return getByDevice(comm->comm, static_cast<uint32_t>(peer), viewOf(*local),
                     sideOf(*window, view), error);
}

int32_t wl_device_clear(wl_comm_t* comm, const wl_tensor_t* tensor, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkTensor(tensor, "tensor", true, error); code != WL_OK) return code;
  if (Code code = checkGpus("clear", error); code != WL_OK) return code;
  const StridedView view = viewOf(*tensor);
  const auto body = [&](RankDevice& device, wl_error_t* own) {
    return clearByDevice(device, view, own);
  };
  return haveDevice(comm->comm, WL_OP_PUT, view, body, error);
}

int32_t wl_notify(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                  uint32_t value, wl_error_t* error) {
  if (Code code = checkWindow("notify", comm, window, peer, error); code != WL_OK) return code;
  const auto owner = static_cast<uint32_t>(peer);
  uint32_t* line = nullptr;
  if (Code code =
          checkSignal("notify", comm, window, signal, owner, comm->comm.rank(), &line, error);
      code != WL_OK)
    return code;
  return notify(comm->comm, owner, line, value, error);
}

int32_t wl_wait(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                uint32_t value, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkWindow("await", comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  const auto writer = static_cast<uint32_t>(peer);
  uint32_t* line = nullptr;
  if (Code code =
          checkSignal("await", comm, window, signal, comm->comm.rank(), writer, &line, error);
      code != WL_OK)
    return code;
  return wait(comm->comm, writer, line, value, deadline_ns, error);
}

int32_t wl_test(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                uint32_t value, int32_t* reached, wl_error_t* error) {
  if (Code code = checkWindow("test", comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkNotNull(reached, "test: reached", error); code != WL_OK) return code;
  const auto writer = static_cast<uint32_t>(peer);
  uint32_t* line = nullptr;
  if (Code code =
          checkSignal("test", comm, window, signal, comm->comm.rank(), writer, &line, error);
      code != WL_OK)
    return code;
  bool isReached = false;
  const Code code = test(comm->comm, writer, line, value, &isReached, error);
  *reached = isReached ? 1 : 0;
  return code;
}

}  // extern "C"
