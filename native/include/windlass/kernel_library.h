// SPDX-License-Identifier: Apache-2.0
// The header that the source of a kernel library includes. It provides the vocabulary of its
// target, the data that a kernel is launched with, and the way to name the library's kernels.
//
//   struct Shift : LibraryKernel {
//     static constexpr ArgumentEntry kArguments[] = {tensor("in", DType::kF32), ...};
//     static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {...}
//   };
//   WINDLASS_KERNEL_LIBRARY(libraryKernel<Shift>("shift"))
//
// See docs/reference/kernel-functions.md for the way a kernel is run.
#pragma once

#include "native/isa/isa.h"
// Must follow isa.h, which defines WL_CORE for separate cores.
#include "windlass/kernel_table.h"

namespace windlass {

// Arguments, by name, in the order of the kernel's call.
constexpr ArgumentEntry tensor(const char* name, DType dtype) {
  return {name, ArgumentEntry::kTensor, static_cast<int32_t>(dtype)};
}
constexpr ArgumentEntry tensor(const char* name) {
  return {name, ArgumentEntry::kTensor, ArgumentEntry::kAny};
}
constexpr ArgumentEntry distributed(const char* name, DType dtype) {
  return {name, ArgumentEntry::kDistributed, static_cast<int32_t>(dtype)};
}
constexpr ArgumentEntry distributed(const char* name) {
  return {name, ArgumentEntry::kDistributed, ArgumentEntry::kAny};
}
constexpr ArgumentEntry scalar(const char* name, DType dtype) {
  return {name, ArgumentEntry::kScalar, static_cast<int32_t>(dtype)};
}

// Defaults of a kernel: one item, which runs after every rank has entered. Ranks leave after all
// items have run, so every rank may access every other rank's part.
struct LibraryKernel {
  static const char* refuses(const Launch&) { return nullptr; }
  WL_CORE static void plan(Launch&) {}
  WL_CORE static uint32_t phases(const Launch&) { return 1; }
  WL_CORE static uint32_t blocks(const Launch&, uint32_t) { return 1; }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kEveryRank; }
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kEveryRank; }
};

}  // namespace windlass

// Defines libraryKernel<K>(name) and WINDLASS_KERNEL_LIBRARY(...). The macro lists the kernels of
// this library, once, at the end of one of its sources. Separate cores get the code of all kernels,
// and the host gets their table.
#if defined(WINDLASS_ON_CORES)
#include "windlass/library_on_gpu.h"
#else
#include "windlass/kernel_entries.h"
#endif
