// SPDX-License-Identifier: Apache-2.0
// What the source of a kernel library includes: the vocabulary of its target, what a kernel is
// launched with, and how a library names its kernels.
//
//   struct Shift : LibraryKernel {
//     static constexpr ArgumentEntry kArguments[] = {tensor("in", DType::kF32), ...};
//     static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {...}
//   };
//   WINDLASS_KERNEL_LIBRARY(libraryKernel<Shift>("shift"))
//
// docs/kernels.md says how one comes to run.
#pragma once

#include "native/isa/isa.h"
// After it, which marks functions of cores.
#include "windlass/kernel_table.h"

namespace windlass {

// Arguments, by name. Those of one kernel stand in the order of its calls.
constexpr ArgumentEntry tensor(const char* name, DType dtype) {
  return {name, ArgumentEntry::kTensor, static_cast<int32_t>(dtype), 0, ArgumentEntry::kAny,
          ArgumentEntry::kAny, 0};
}
constexpr ArgumentEntry tensor(const char* name) {
  return {name, ArgumentEntry::kTensor, ArgumentEntry::kAny, 0, ArgumentEntry::kAny,
          ArgumentEntry::kAny, 0};
}
constexpr ArgumentEntry distributed(const char* name, DType dtype) {
  return {name, ArgumentEntry::kDistributed, static_cast<int32_t>(dtype), 0, ArgumentEntry::kAny,
          ArgumentEntry::kAny, 0};
}
constexpr ArgumentEntry distributed(const char* name) {
  return {name, ArgumentEntry::kDistributed, ArgumentEntry::kAny, 0, ArgumentEntry::kAny,
          ArgumentEntry::kAny, 0};
}
constexpr ArgumentEntry scalar(const char* name, DType dtype) {
  return {name, ArgumentEntry::kScalar, static_cast<int32_t>(dtype), 0, ArgumentEntry::kAny,
          ArgumentEntry::kAny, 0};
}

// What a kernel is that says nothing else: one item, which runs once every rank has entered, and
// ranks that leave once all items have run. So every rank may touch every other's part.
struct LibraryKernel {
  static const char* refuses(const Launch&) { return nullptr; }
  WL_CORE static void plan(Launch&) {}
  WL_CORE static uint32_t phases(const Launch&) { return 1; }
  WL_CORE static uint32_t blocks(const Launch&, uint32_t) { return 1; }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kEveryRank; }
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

}  // namespace windlass

// libraryKernel<K>(name), and WINDLASS_KERNEL_LIBRARY(...), which names the kernels of this library
// once, at the end of one of its sources. Cores of their own have the code of all of them, the host
// has their table.
#if defined(WINDLASS_ON_CORES)
#include "windlass/library_on_gpu.h"
#else
#include "windlass/kernel_entries.h"
#endif
