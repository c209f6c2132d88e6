// SPDX-License-Identifier: Apache-2.0
// Limits of each target, as plain data. The host checks a kernel against them before anything
// moves.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

namespace detail {

// A set of dtypes has a bit for each.
template <typename... D>
constexpr uint32_t setOf(D... dtypes) {
  return ((uint32_t{1} << static_cast<int>(dtypes)) | ...);
}

constexpr bool isIn(uint32_t set, DType dtype) {
  return (set >> static_cast<int>(dtype) & 1) != 0;
}

constexpr uint32_t kAscendFloats = setOf(DType::kF32, DType::kF16, DType::kBF16);
constexpr uint32_t kAscendIntegers = setOf(DType::kI32, DType::kU32, DType::kI16, DType::kU16,
                                           DType::kI8, DType::kU8, DType::kBool);

}  // namespace detail

constexpr Limits kSimLimits = {
    "sim", uint64_t{16} << 20, uint64_t{192} << 10, false, 0, 0xffffffffu, 0xffffffffu,
    0xffffffffu, true, true,
};
// tileBytes is the unified buffer without the part that casts use on A2/A3.
constexpr Limits kA2A3SimLimits = {
    "a2a3sim",
    uint64_t{16} << 20,
    uint64_t{184} << 10,
    true,
    0,
    kMostDeviceRanks,
    detail::kAscendFloats,
    detail::kAscendFloats | detail::kAscendIntegers,
    false,
    false,
};
constexpr Limits makeA5SimLimits() {
  constexpr uint32_t kNarrowFloats = detail::setOf(DType::kF8E4M3, DType::kF8E5M2);
  Limits limits = kA2A3SimLimits;
  limits.name = "a5sim";
  limits.tileBytes = uint64_t{256} << 10;
  limits.casts |= kNarrowFloats;
  limits.reduces |= kNarrowFloats;
  return limits;
}
constexpr Limits kA5SimLimits = makeA5SimLimits();

// Limits of a device that runs kernels itself: those of the target `like`, for fewer ranks.
constexpr Limits offloaded(const Limits& like, const char* name, uint32_t cores) {
  Limits limits = like;
  limits.name = name;
  limits.isolatesRanks = false;
  limits.mostRanks = kMostDeviceRanks;
  limits.offloadCores = cores;
  return limits;
}
constexpr Limits kA2A3Limits = offloaded(kA2A3SimLimits, "a2a3", 48);
constexpr Limits kA5Limits = offloaded(kA5SimLimits, "a5", 36);
// GPUs. Their cores are groups of threads and use no staging buffers.
constexpr Limits kCudaLimits = offloaded(kSimLimits, "cuda", 64);

}  // namespace windlass
