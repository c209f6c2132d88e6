// SPDX-License-Identifier: Apache-2.0
// Types behind the opaque handles of the C ABI, and checks that its functions share.
#pragma once

#include <memory>
#include <new>
#include <system_error>

#include "native/base/origin.h"
#include "native/base/text.h"
#include "native/core/comm.h"
#include "native/core/shared/observed_group.h"
#include "native/memory/memory_pool.h"
#include "native/transfer/transfer.h"

struct wl_group {
  std::shared_ptr<windlass::Group> group;
  windlass::Origin origin = {};
};

struct wl_comm {
  wl_comm(std::shared_ptr<windlass::Group> group, uint32_t rank) : comm(std::move(group), rank) {}
  windlass::Comm comm;
  windlass::Origin origin;
};

struct wl_window {
  std::shared_ptr<windlass::Group> group;
  std::shared_ptr<windlass::Window> window;
  windlass::Origin origin = {};
};

struct wl_memory_pool {
  std::shared_ptr<windlass::Group> group;
  windlass::MemoryPool pool;
  std::shared_ptr<windlass::Window> window;
  windlass::Origin origin = {};
};

struct wl_transfer {
  explicit wl_transfer(windlass::Comm& comm) : transfer(comm) {}
  windlass::Transfer transfer;
  windlass::Origin origin;
};

struct wl_report {
  std::unique_ptr<windlass::ObservedGroup> group;
};

namespace windlass {

// Defined in native/abi/processes.cpp.
Code checkProcess(const wl_process_t* process, const char* name, wl_error_t* error);
// Checks that the list names ranks of 0 to size - 1, at least one. Defined in the same file.
Code checkRanks(const int32_t* ranks, uint32_t count, uint32_t size, const char* name,
                wl_error_t* error);

inline Code checkNotNull(const void* pointer, const char* name, wl_error_t* error) {
  return pointer != nullptr ? WL_OK : fail(error, WL_INVALID_ARGUMENT, "%s is NULL", name);
}

// Checks that the caller's `out` is not NULL, and sets *out to `none`.
template <class Out>
Code checkOut(Out* out, const char* name, wl_error_t* error, Out none = {}) {
  if (out != nullptr) *out = none;
  return checkNotNull(out, name, error);
}

// Checks that the caller's struct is not NULL and has all fields that this library knows.
template <class Struct>
Code checkStruct(const Struct* given, const char* name, wl_error_t* error) {
  if (Code code = checkNotNull(given, name, error)) return code;
  if (given->struct_size >= sizeof(Struct)) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s->struct_size is %u, not %zu", name,
              given->struct_size, sizeof(Struct));
}

// Returns element `index` of the caller's array, in which each element has the size of the first.
template <class Struct>
Struct* elementOf(Struct* array, size_t index) {
  const uint32_t bytes = array->struct_size;
  auto* element =
      reinterpret_cast<Struct*>(reinterpret_cast<unsigned char*>(array) + bytes * index);
  element->struct_size = bytes;
  return element;
}

// Returns body(), or WL_RESOURCE with the message if `body` finds no memory or no thread.
template <class Body, class... Values>
Code withMemory(wl_error_t* error, const Body& body, const char* message, Values... values) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  return fail(error, WL_RESOURCE, message, values...);
}

// Checks that the handle is not NULL and belongs to this process. A forked process shares its
// parent's memory, so its calls would act as the parent's ranks.
template <class Handle>
Code checkHandle(const Handle* handle, const char* name, wl_error_t* error) {
  if (Code code = checkNotNull(handle, name, error)) return code;
  if (__builtin_expect(handle->origin.isHere(), 1)) return WL_OK;
  return fail(error, WL_CLOSED,
              "%s is of process %d, from which this one was forked; a process uses what it has "
              "opened itself",
              name, handle->origin.process());
}

// True if this process may free the handle. A handle of another process stays as it is.
template <class Handle>
bool isOwn(const Handle* handle) {
  return handle != nullptr && handle->origin.isHere();
}

inline Code checkDeadline(int64_t deadlineNs, wl_error_t* error) {
  if (deadlineNs >= 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "deadline_ns %lld is negative; 0 means the communicator's own", text(deadlineNs));
}

// Checks the longest silence of `who`, such as "a host". Defined in native/abi/processes.cpp.
Code checkSilence(int64_t silenceNs, const char* who, wl_error_t* error);

// Makes the first checks of a collective that creates *out, and sets it to NULL.
template <class Handle>
Code checkCreate(const wl_comm_t* comm, Handle** out, const char* name, int64_t deadlineNs,
                 wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkOut(out, name, error)) return code;
  return checkDeadline(deadlineNs, error);
}

// Checks and decodes the configuration. Defined in native/abi/group_config.cpp.
Code readGroupConfig(const wl_group_config_t* config, GroupConfig* out, wl_error_t* error);

// Makes the first checks of every operation of a communicator.
inline Code checkCall(const wl_comm_t* comm, int64_t deadlineNs, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  return checkDeadline(deadlineNs, error);
}

inline Code checkDType(int32_t dtype, wl_error_t* error) {
  if (dtype >= 0 && dtype < WL_DTYPE_COUNT) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "dtype %d is unknown", dtype);
}

}  // namespace windlass
