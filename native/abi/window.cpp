// SPDX-License-Identifier: Apache-2.0
// C ABI: memory and windows.
#include <new>

#include "native/abi/handles.h"
#include "native/comm/host_operations.h"

using namespace windlass;

extern "C" {

int32_t wl_memory_alloc(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error) {
  return allocateMemory(bytes, alignment, memory, error);
}

void wl_memory_free(void* memory) {
  freeMemory(memory);
}

int32_t wl_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns, wl_window_t** window,
                         wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkNotNull(window, "window", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  *window = nullptr;
  std::unique_ptr<wl_window> made(new (std::nothrow) wl_window{comm->comm.groupPointer(), nullptr});
  const Code code = createWindow(comm->comm, bytes, deadline_ns,
                                 made == nullptr ? nullptr : &made->window, error);
  if (code == WL_OK) *window = made.release();
  return code;
}

void* wl_window_address(const wl_window_t* window, int32_t rank) {
  if (window == nullptr || rank < 0 || static_cast<uint32_t>(rank) >= window->group->ranks())
    return nullptr;
  return window->window->address(static_cast<uint32_t>(rank));
}

uint64_t wl_window_bytes(const wl_window_t* window) {
  return window == nullptr ? 0 : window->window->bytes();
}

void wl_window_free(wl_window_t* window) {
  if (window == nullptr) return;
  window->group->retire(std::move(window->window));
  delete window;
}

}  // extern "C"
