// SPDX-License-Identifier: Apache-2.0
// C ABI: memory, windows and memory pools.
#include "native/abi/handles.h"
#include "native/base/free_memory.h"
#include "native/core/shared/object_operations.h"
#include "native/device/device_windows.h"

using namespace windlass;

namespace {

// Sets *window to the handle of a window that `create` makes with the other ranks. `create` gets
// nullptr if this rank has no memory for the handle, which it reports to all ranks.
template <class Create>
Code makeWindow(wl_comm_t* comm, int64_t deadlineNs, wl_window_t** window, wl_error_t* error,
                const Create& create) {
  if (Code code = checkCreate(comm, window, "window", deadlineNs, error)) return code;
  std::unique_ptr<wl_window> made(new (std::nothrow) wl_window{comm->comm.groupPointer(), nullptr});
  const Code code = create(made == nullptr ? nullptr : &made->window);
  if (code == WL_OK) *window = made.release();
  return code;
}

}  // namespace

extern "C" {

int32_t wl_memory_alloc(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error) {
  return allocateMemory(bytes, alignment, memory, error);
}

void wl_memory_free(void* memory) {
  freeMemory(memory);
}

uint64_t wl_memory_available(void) {
  return FreeMemory::look().bytes;
}

int32_t wl_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns, wl_window_t** window,
                         wl_error_t* error) {
  return makeWindow(comm, deadline_ns, window, error, [&](std::shared_ptr<Window>* out) {
    return createWindow(comm->comm, {WL_OP_WINDOW, bytes}, deadline_ns, out, error);
  });
}

int32_t wl_device_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                                wl_window_t** window, wl_error_t* error) {
  return makeWindow(comm, deadline_ns, window, error, [&](std::shared_ptr<Window>* out) {
    return createDeviceWindow(comm->comm, bytes, deadline_ns, out, error);
  });
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
  if (!isOwn(window)) return;
  window->group->retire(std::move(window->window));
  delete window;
}

int32_t wl_memory_pool_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns,
                              wl_memory_pool_t** pool, wl_error_t* error) {
  if (Code code = checkCreate(comm, pool, "pool", deadline_ns, error)) return code;
  if (bytes == 0) return fail(error, WL_INVALID_ARGUMENT, "bytes is 0; it must be 1 or more");
  // Skips rounding above kLargest, since such a size fails anyway.
  const uint64_t pages = bytes > kLargest ? bytes : roundedUp(bytes, kPage);
  std::unique_ptr<wl_memory_pool> made;
  try {
    made.reset(new wl_memory_pool{comm->comm.groupPointer(), MemoryPool(pages), nullptr});
  } catch (const std::bad_alloc&) {
    // createWindow() reports this to all ranks.
  }
  const Code code = createWindow(comm->comm, {WL_OP_MEMORY_POOL, pages}, deadline_ns,
                                 made == nullptr ? nullptr : &made->window, error);
  if (code != WL_OK) return code;
  made->pool.layAt(made->window->address(comm->comm.rank()));
  *pool = made.release();
  return WL_OK;
}

int32_t wl_memory_pool_alloc(wl_memory_pool_t* pool, uint64_t bytes, void** memory,
                             wl_error_t* error) {
  if (Code code = checkHandle(pool, "pool", error)) return code;
  if (Code code = checkOut(memory, "memory", error)) return code;
  const Code code = pool->pool.take(bytes, memory, error);
  const wl_error_t* record = pool->group->failure();
  if (record == nullptr) return code;
  // A process declared dead may resume and write to memory that was freed since. The pool therefore
  // allocates nothing once the failure is visible. Memory allocated before that is safe.
  if (code == WL_OK) pool->pool.giveBack(*memory, nullptr);
  *memory = nullptr;
  return copyError(error, *record, "the communicator of the memory pool is dead: ");
}

int32_t wl_memory_pool_release(wl_memory_pool_t* pool, void* memory, wl_error_t* error) {
  if (Code code = checkHandle(pool, "pool", error)) return code;
  return pool->pool.giveBack(memory, error);
}

uint64_t wl_memory_pool_used(const wl_memory_pool_t* pool) {
  return pool == nullptr ? 0 : pool->pool.used();
}

void wl_memory_pool_free(wl_memory_pool_t* pool) {
  if (!isOwn(pool)) return;
  pool->group->retire(std::move(pool->window));
  delete pool;
}

}  // extern "C"
