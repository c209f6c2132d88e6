// SPDX-License-Identifier: Apache-2.0
// C ABI: one-sided operations. Checks the arguments before anything moves. Errors begin with the
// caller's name for the operation.
#include "native/core/one_sided.h"
#include "native/device/device_one_sided.h"

#include "native/abi/tensors.h"
#include "native/base/dtype.h"
#include "native/base/extent.h"

using namespace windlass;

namespace {

Code checkWindow(const char* what, const wl_comm_t* comm, const wl_window_t* window, int32_t peer,
                 wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkHandle(window, "window", error)) return code;
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
              name, text(size));
}

// Errors that describe tensors have a function of their own, because in the checks they would
// enlarge the stack. `format` takes the name of the move, local and remote.
[[gnu::cold]] Code badTensors(const char* format, const char* what, const wl_tensor_t& local,
                              const wl_tensor_t& remote, wl_error_t* error) {
  return fail(error, WL_INVALID_ARGUMENT, format, what, TensorText(local).text(),
              TensorText(remote).text());
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
  if (local->dtype != remote->dtype || !haveSameShape(*local, *remote)) {
    return badTensors("%s: local is %s, remote %s; dtypes and shapes must agree", what, *local,
                      *remote, error);
  }
  if (Code code = checkAligned(what, *local, "local", error)) return code;
  if (Code code = checkAligned(what, *remote, "remote", error)) return code;
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
                text(window->window->bytes()));
  }
  view->data = there;
  if (static_cast<uint32_t>(peer) == comm->comm.rank() && shareBytes(viewOf(*local), *view)) {
    return badTensors("%s: local (%s) overlaps remote (%s), which is of this rank itself; the two "
                      "must be apart",
                      what, *local, *remote, error);
  }
  return WL_OK;
}

// A move: its names in errors, and its operation.
struct Move {
  const char* what;
  const char* local;
  const char* remote;
  wl_operation operation;
};
constexpr Move kPut = {"put", "put: local", "put: remote", WL_OP_PUT};
constexpr Move kAccumulate = {"accumulate", "accumulate: local", "accumulate: remote",
                              WL_OP_ACCUMULATE};
constexpr Move kGet = {"get", "get: local", "get: remote", WL_OP_GET};

// Checks and runs a move. The rank's device runs it if `onDevice`, or if the window is on devices.
template <const Move& kMove, bool onDevice>
Code move(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local, int32_t peer,
          const wl_tensor_t* remote, wl_error_t* error) {
  constexpr bool kGets = kMove.operation == WL_OP_GET;
  if (Code code = checkWindow(kMove.what, comm, window, peer, error)) return code;
  if (Code code = checkTensor(local, kMove.local, kGets, error)) return code;
  if (Code code = checkTensor(remote, kMove.remote, !kGets, error)) return code;
  StridedView there = {};
  if (Code code = resolve(kMove.what, comm, window, local, peer, remote, &there, error))
    return code;
  if (kMove.operation == WL_OP_ACCUMULATE && !canAccumulate(there.dtype))
    return noAtomicAdd(*local, error);
  if (Code code = onDevice ? checkGpus(kMove.what, error) : WL_OK) return code;
  Comm& own = comm->comm;
  const auto to = static_cast<uint32_t>(peer);
  const StridedView here = viewOf(*local);
  const DeviceParts* parts = window->window->parts();
  if (!onDevice && parts == nullptr)
    return moveOneSided(own, kMove.operation, to, there, here, error);
  using Lies = RankDevice::Lies;
  const MoveSide side = {there, parts != nullptr ? Lies::kHere : Lies::kHost};
  return moveOneSidedByDevice(own, kMove.operation, to, parts, side, here, error);
}

// Checks a signal between this rank and `peer`. Sets *line to its line in the window: the one that
// this rank writes at the peer if `atPeer`, otherwise the one that the peer writes here.
Code checkSignal(const char* what, const wl_comm_t* comm, const wl_window_t* window, int32_t peer,
                 uint64_t signal, bool atPeer, uint32_t** line, wl_error_t* error) {
  if (Code code = checkWindow(what, comm, window, peer, error)) return code;
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
                what, text(signal), WL_SIGNAL_LINE_BYTES, text(memory.bytes()));
  }
  const auto other = static_cast<uint32_t>(peer);
  const uint32_t owner = atPeer ? other : comm->comm.rank();
  const uint64_t writer = atPeer ? comm->comm.rank() : other;
  auto* first = static_cast<unsigned char*>(memory.address(owner)) + signal;
  *line = reinterpret_cast<uint32_t*>(first + writer * WL_SIGNAL_LINE_BYTES);
  return WL_OK;
}

}  // namespace

extern "C" {

int32_t wl_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local, int32_t peer,
               const wl_tensor_t* remote, wl_error_t* error) {
  return move<kPut, false>(comm, window, local, peer, remote, error);
}

int32_t wl_device_put(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  return move<kPut, true>(comm, window, local, peer, remote, error);
}

int32_t wl_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  return move<kAccumulate, false>(comm, window, local, peer, remote, error);
}

int32_t wl_device_accumulate(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                             int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  return move<kAccumulate, true>(comm, window, local, peer, remote, error);
}

int32_t wl_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local, int32_t peer,
               const wl_tensor_t* remote, wl_error_t* error) {
  return move<kGet, false>(comm, window, local, peer, remote, error);
}

int32_t wl_device_get(wl_comm_t* comm, const wl_window_t* window, const wl_tensor_t* local,
                      int32_t peer, const wl_tensor_t* remote, wl_error_t* error) {
  return move<kGet, true>(comm, window, local, peer, remote, error);
}

int32_t wl_device_clear(wl_comm_t* comm, const wl_tensor_t* tensor, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkTensor(tensor, "tensor", true, error)) return code;
  if (Code code = checkGpus("clear", error)) return code;
  const StridedView view = viewOf(*tensor);
  const auto body = [&](RankDevice& device, wl_error_t* own) {
    return clearByDevice(device, view, own);
  };
  return haveDevice(comm->comm, WL_OP_PUT, view, body, error);
}

int32_t wl_notify(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                  uint64_t value, wl_error_t* error) {
  uint32_t* line = nullptr;
  if (Code code = checkSignal("notify", comm, window, peer, signal, true, &line, error))
    return code;
  return notify(comm->comm, static_cast<uint32_t>(peer), line, value, error);
}

int32_t wl_wait(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                uint64_t value, int64_t deadline_ns, wl_error_t* error) {
  uint32_t* line = nullptr;
  if (Code code = checkSignal("await", comm, window, peer, signal, false, &line, error))
    return code;
  if (Code code = checkDeadline(deadline_ns, error)) return code;
  return wait(comm->comm, static_cast<uint32_t>(peer), line, value, deadline_ns, error);
}

int32_t wl_test(wl_comm_t* comm, const wl_window_t* window, int32_t peer, uint64_t signal,
                uint64_t value, int32_t* reached, wl_error_t* error) {
  uint32_t* line = nullptr;
  if (Code code = checkSignal("test", comm, window, peer, signal, false, &line, error)) return code;
  if (Code code = checkNotNull(reached, "test: reached", error)) return code;
  bool isReached = false;
  const Code code =
      test(comm->comm, static_cast<uint32_t>(peer), line, value, &isReached, error);
  *reached = isReached ? 1 : 0;
  return code;
}

}  // extern "C"
