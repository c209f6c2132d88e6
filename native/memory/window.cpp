// SPDX-License-Identifier: Apache-2.0
#include "native/memory/window.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "native/base/free_memory.h"
#include "native/base/text.h"

namespace windlass {

Code Window::strideOf(const char* what, uint64_t bytes, uint32_t ranks, uint64_t* stride,
                      wl_error_t* error) {
  if (bytes > kLargest / ranks) {
    return fail(error, WL_RESOURCE,
                "cannot map a %s of %llu bytes on %u ranks: more than a process can address", what,
                text(bytes), ranks);
  }
  *stride = std::max(kPage, roundedUp(bytes, kPage));
  return WL_OK;
}

Code Window::mapBy(int kind, const char* what, uint64_t bytes, uint32_t ranks, Window** window,
                   wl_error_t* error) {
  *window = nullptr;
  uint64_t stride = 0;
  if (Code code = strideOf(what, bytes, ranks, &stride, error); code != WL_OK) return code;
  const uint64_t mapped = stride * ranks;
  void* base = mapMemory(mapped, kind);
  if (base == nullptr) {
    return fail(error, WL_RESOURCE,
                "cannot map a %s of %llu bytes on %u ranks: %s; free memory or ask for less", what,
                text(bytes), ranks, std::strerror(errno));
  }
  *window = new (std::nothrow) Window(base, bytes, stride, mapped);
  if (*window == nullptr) {
    unmapMemory(base, mapped);
    return fail(error, WL_RESOURCE, "out of memory");
  }
  return WL_OK;
}

Code Window::map(uint64_t bytes, uint32_t ranks, Window** window, wl_error_t* error) {
  // Pages take memory when touched. Touching more memory than is free would end the process.
  if (bytes >= kLargeBytes / ranks && bytes <= kLargest / ranks) {
    const FreeMemory free = FreeMemory::look();
    *window = nullptr;
    if (bytes > free.bytes / ranks) {
      return free.refuse(error, "cannot map a window of %llu bytes on %u ranks",
                         text(bytes), ranks);
    }
  }
  const Code code = mapBy(MAP_PRIVATE, "window", bytes, ranks, window, error);
  // Only advice: a kernel without transparent huge pages refuses it without other effects.
  if (code == WL_OK) madvise((*window)->base_, (*window)->mapped_, MADV_HUGEPAGE);
  return code;
}

Code Window::mapSparse(uint64_t bytes, uint32_t ranks, Window** window, wl_error_t* error) {
  const Code code = mapBy(kSparse, "memory pool", bytes, ranks, window, error);
  if (code == WL_OK) keepOutOfDumps((*window)->base_, (*window)->mapped_);
  return code;
}

Window::~Window() {
  if (mapped_ > 0) unmapMemory(base_, mapped_);
}

}  // namespace windlass
