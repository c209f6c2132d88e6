// SPDX-License-Identifier: Apache-2.0
// C ABI: operations that one rank calls by itself. Arguments are checked here, before anything
// moves.
#include "native/comm/one_sided.h"

#include "native/abi/tensors.h"
#include "native/base/dtype.h"
#include "native/base/extent.h"

using namespace windlass;

namespace {

Code checkWindow(const wl_comm_t* comm, const wl_window_t* window, int32_t peer,
                 wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkNotNull(window, "window", error); code != WL_OK) return code;
  if (window->group != comm->comm.groupPointer())
    return fail(error, WL_INVALID_ARGUMENT, "window belongs to another communicator");
  const uint32_t ranks = comm->comm.group().ranks();
  if (peer >= 0 && static_cast<uint32_t>(peer) < ranks) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "peer %d is not in 0 to %u", peer, ranks - 1);
}

Code checkAligned(const wl_tensor_t& tensor, const char* name, wl_error_t* error) {
  const uint64_t size = sizeOf(static_cast<DType>(tensor.dtype));
  if (reinterpret_cast<uintptr_t>(tensor.data) % size == 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s is not aligned to its dtype's %llu bytes", name,
              static_cast<unsigned long long>(size));
}

// What both sides of a move share, once each has been checked by itself; *view is `remote` in the
// peer's part of the window.
Code resolve(const wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
             int32_t peer, const wl_tensor_t* remote, StridedView* view, wl_error_t* error) {
  if (Code code = checkSameShape(*local, "local", *remote, "remote", error); code != WL_OK)
    return code;
  if (local->dtype != remote->dtype) {
    return fail(error, WL_INVALID_ARGUMENT, "local has dtype %d, remote has %d; they must agree",
                local->dtype, remote->dtype);
  }
  if (Code code = checkAligned(*local, "local", error); code != WL_OK) return code;
  if (Code code = checkAligned(*remote, "remote", error); code != WL_OK) return code;
  *view = viewOf(*remote);
  int64_t reach = 0;
  if (!reachOf(view->ndim, view->shape, view->strides, sizeOf(view->dtype), &reach))
    return fail(error, WL_INVALID_ARGUMENT, "remote: its size overflows 63 bits");
  if (reach == 0) return WL_OK;
  const auto own = reinterpret_cast<uintptr_t>(window->window->address(comm->comm.rank()));
  const uint64_t offset = reinterpret_cast<uintptr_t>(view->data) - own;
  void* there =
      window->window->resolve(static_cast<uint32_t>(peer), offset, static_cast<uint64_t>(reach));
  if (there == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT,
                "remote reaches outside this rank's part of the window, of %llu bytes",
                static_cast<unsigned long long>(window->window->bytes()));
  }
  view->data = there;
  return WL_OK;
}

// *line is the one that `writer` writes in `owner`'s part of the window.
Code checkSignal(const wl_comm_t* comm, const wl_window_t* window, uint64_t signal, uint32_t owner,
                 uint32_t writer, uint32_t** line, wl_error_t* error) {
  const Window& memory = *window->window;
  const uint64_t lines = uint64_t{comm->comm.group().ranks()} * WL_SIGNAL_LINE_BYTES;
  if (signal % WL_SIGNAL_LINE_BYTES != 0 || lines > memory.bytes() ||
      signal > memory.bytes() - lines) {
    return fail(error, WL_INVALID_ARGUMENT,
                "signal %llu is not a multiple of %d with room for a line for each rank in %llu "
                "bytes",
                static_cast<unsigned long long>(signal), WL_SIGNAL_LINE_BYTES,
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
  if (Code code = checkWindow(comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkTensor(local, "local", false, error); code != WL_OK) return code;
  if (Code code = checkTensor(remote, "remote", true, error); code != WL_OK) return code;
  StridedView view = {};
  if (Code code = resolve(comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  return put(comm->comm, static_cast<uint32_t>(peer), view, viewOf(*local), error);
}

int32_t wl_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  if (Code code = checkWindow(comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkTensor(local, "local", false, error); code != WL_OK) return code;
  if (Code code = checkTensor(remote, "remote", true, error); code != WL_OK) return code;
  StridedView view = {};
  if (Code code = resolve(comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  if (!canAccumulate(view.dtype)) {
    return fail(error, WL_UNSUPPORTED,
                "local: accumulate takes f32, f16, bf16, i32, i16 and i8 alone, which every target "
                "adds atomically");
  }
  return accumulate(comm->comm, static_cast<uint32_t>(peer), view, viewOf(*local), error);
}

int32_t wl_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local, int32_t peer,
               const wl_tensor_t* remote, wl_error_t* error) {
  if (Code code = checkWindow(comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkTensor(local, "local", true, error); code != WL_OK) return code;
  if (Code code = checkTensor(remote, "remote", false, error); code != WL_OK) return code;
  StridedView view = {};
  if (Code code = resolve(comm, window, local, peer, remote, &view, error); code != WL_OK)
    return code;
  return get(comm->comm, static_cast<uint32_t>(peer), viewOf(*local), view, error);
}

int32_t wl_notify(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                  uint32_t value, wl_error_t* error) {
  if (Code code = checkWindow(comm, window, peer, error); code != WL_OK) return code;
  const auto owner = static_cast<uint32_t>(peer);
  uint32_t* line = nullptr;
  if (Code code = checkSignal(comm, window, signal, owner, comm->comm.rank(), &line, error);
      code != WL_OK)
    return code;
  return notify(comm->comm, owner, line, value, error);
}

int32_t wl_wait(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                uint32_t value, int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkWindow(comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  const auto writer = static_cast<uint32_t>(peer);
  uint32_t* line = nullptr;
  if (Code code = checkSignal(comm, window, signal, comm->comm.rank(), writer, &line, error);
      code != WL_OK)
    return code;
  return wait(comm->comm, writer, line, value, deadline_ns, error);
}

int32_t wl_test(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                uint32_t value, int32_t* reached, wl_error_t* error) {
  if (Code code = checkWindow(comm, window, peer, error); code != WL_OK) return code;
  if (Code code = checkNotNull(reached, "reached", error); code != WL_OK) return code;
  const auto writer = static_cast<uint32_t>(peer);
  uint32_t* line = nullptr;
  if (Code code = checkSignal(comm, window, signal, comm->comm.rank(), writer, &line, error);
      code != WL_OK)
    return code;
  bool isReached = false;
  const Code code = test(comm->comm, writer, line, value, &isReached, error);
  *reached = isReached ? 1 : 0;
  return code;
}

}  // extern "C"
