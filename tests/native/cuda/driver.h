// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver as a program calls it beside Windlass, by the names that it exports: a GPU's own,
// or the stand-in for it. What tests tell the stand-in alone is in tests/native/cuda/stand_in.h.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace windlass_test::gpus {

template <class Function>
Function find(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}

inline void check(int result) {
  EXPECT_EQ(result, 0) << "the driver's result";
}

// How many GPUs this process sees; something of Windlass has opened them.
inline int count() {
  int found = 0;
  check(find<int (*)(int*)>("cuDeviceGetCount")(&found));
  return found;
}

// The primary context of a device, which is there, and current on this thread, for as long.
class Current {
 public:
  explicit Current(int device) : device_(device) {
    check(find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, device_));
    check(find<int (*)(void*)>("cuCtxPushCurrent_v2")(context_));
  }
  ~Current() {
    check(find<int (*)(void**)>("cuCtxPopCurrent_v2")(&context_));
    check(find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(device_));
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const int device_;
  void* context_ = nullptr;
};

// To and from memory of the device, of which nothing else is in flight; they are over once they
// return.
inline void toDevice(int device, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const Current current(device);
  check(find<int (*)(uint64_t, const void*, size_t)>("cuMemcpyHtoD_v2")(
      reinterpret_cast<uint64_t>(to), from, bytes));
}
inline void fromDevice(int device, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  const Current current(device);
  check(find<int (*)(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2")(
      to, reinterpret_cast<uint64_t>(from), bytes));
}

// Memory that a program has on a device.
template <class T>
class Memory {
 public:
  Memory(int device, size_t count) : device_(device), count_(count) {
    check(find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, device_));
    const Current current(device_);
    check(find<int (*)(uint64_t*, size_t)>("cuMemAlloc_v2")(&address_,
                                                           std::max<size_t>(bytes(), 1)));
  }
  ~Memory() {
    {
      const Current current(device_);
      check(find<int (*)(uint64_t)>("cuMemFree_v2")(address_));
    }
    check(find<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(device_));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* data() const { return reinterpret_cast<T*>(address_); }  // for the device
  size_t bytes() const { return count_ * sizeof(T); }
  void write(const std::vector<T>& all) const { toDevice(device_, data(), all.data(), bytes()); }
  std::vector<T> read() const {
    std::vector<T> all(count_);
    fromDevice(device_, all.data(), data(), bytes());
    return all;
  }

 private:
  const int device_;
  const size_t count_;
  void* context_ = nullptr;
  uint64_t address_ = 0;
};

}  // namespace windlass_test::gpus
