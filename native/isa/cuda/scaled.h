// SPDX-License-Identifier: Apache-2.0
// Rows of floats, shared by the threads of a core: sums of weighted rows, and rows quantised by
// blocks. A row has one dimension.
#pragma once

#include <cstdint>

#include "native/isa/cuda/elements.h"
#include "native/isa/cuda/job.h"

namespace windlass::cuda {

template <class E>
WL_CORE_INLINE void weighVectors(const Job& job, uint32_t thread) {
  using In = InVector<E>;
  using Value = typename E::Value;
  constexpr uint32_t kCount = In::kCount;
  constexpr uint32_t kVectors = 2;
  const uint64_t start = job.head * sizeof(typename E::Raw);
  shareGroups<kVectors>(job, thread, [&](uint32_t, uint32_t first, uint32_t across,
                                         uint32_t count) {
    Value sum[kVectors * kCount];
    WL_UNROLL
    for (uint32_t i = 0; i < kVectors * kCount; ++i) sum[i] = 0;
    WL_NO_UNROLL
    for (uint32_t s = 0; s < job.sources; ++s) {
      const auto* from =
          reinterpret_cast<const Vector*>(job.data[job.targets + s] + start) + first;
      const auto weight = static_cast<Value>(job.weights[s]);
      Vector v[kVectors];
      WL_UNROLL
      for (uint32_t u = 0; u < kVectors; ++u) v[u] = loadIf(u < count, from + u * across);
      WL_UNROLL
      for (uint32_t i = 0; i < kVectors * kCount; ++i)
        sum[i] = weighed(s == 0, sum[i], weight, In::value(v[i / kCount], i % kCount));
    }
    Vector result[kVectors];
    WL_UNROLL
    for (uint32_t i = 0; i < kVectors * kCount; ++i)
      In::setRaw(&result[i / kCount], i % kCount, E::store(sum[i]));
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target) {
      auto* to = reinterpret_cast<Vector*>(job.data[target] + start) + first;
      WL_UNROLL
      for (uint32_t u = 0; u < kVectors; ++u) storeIf(u < count, to + u * across, result[u]);
    }
  });
}

template <class E>
WL_CORE_INLINE void weighEdges(const Job& job, uint32_t thread) {
  using Raw = typename E::Raw;
  shareEdges(job, thread, [&](uint64_t, uint64_t n) {
    const uint64_t at = job.edge(n) * sizeof(Raw);
    typename E::Value sum = 0;
    WL_NO_UNROLL
    for (uint32_t s = 0; s < job.sources; ++s) {
      const auto term = E::load(loadAnywhere<Raw>(job.data[job.targets + s] + at));
      sum = weighed(s == 0, sum, static_cast<typename E::Value>(job.weights[s]), term);
    }
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target)
      storeAnywhere(job.data[target] + at, E::store(sum));
  });
}

// Elements of a block for each lane of its warp.
constexpr uint32_t kLaneElements = kQuantBlock / kWarpThreads;
static_assert(kLaneElements == 4, "their codes are one word");

// Loads a lane's elements, with zeros after the end of the row.
template <class E>
WL_CORE_INLINE void loadLane(const Job& job, uint64_t first, uint64_t left, float* value) {
  using Raw = typename E::Raw;
  struct alignas(kLaneElements * sizeof(Raw)) Four {
    Raw raw[kLaneElements];
  };
  const unsigned char* from = job.data[job.targets] + first * sizeof(Raw);
  if (left >= kLaneElements && isAligned(from, sizeof(Four))) {
    const Four four = *reinterpret_cast<const Four*>(from);
    WL_UNROLL
    for (uint32_t i = 0; i < kLaneElements; ++i) value[i] = E::load(four.raw[i]);
    return;
  }
  WL_UNROLL
  for (uint32_t i = 0; i < kLaneElements; ++i) {
    value[i] = 0;
    if (i < left) value[i] = E::load(loadAnywhere<Raw>(from + i * sizeof(Raw)));
  }
}

WL_CORE_INLINE uint32_t largestOfLane(const float* value) {
  uint32_t largest = kLeastMagnitude;
  WL_UNROLL
  for (uint32_t i = 0; i < kLaneElements; ++i) {
    const uint32_t counted = countedMagnitude(value[i]);
    largest = counted > largest ? counted : largest;
  }
  return largest;
}

// Returns the largest magnitude in a block. `own` is the largest of the calling lane.
template <class E>
WL_CORE_INLINE uint32_t largestOfBlock([[maybe_unused]] const Job& job,
                                       [[maybe_unused]] uint64_t block, uint32_t own) {
#if defined(__CUDA_ARCH__)
  return __reduce_max_sync(0xffffffffu, own);
#else
  for (uint32_t lane = 0; lane < kWarpThreads; ++lane) {
    const uint64_t first = block * kQuantBlock + lane * kLaneElements;
    float value[kLaneElements];
    loadLane<E>(job, first, first < job.inner() ? job.inner() - first : 0, value);
    const uint32_t largest = largestOfLane(value);
    own = largest > own ? largest : own;
  }
  return own;
#endif
}

// Quantises blocks, one warp for each. The targets are the rows, then as many rows of scales.
template <class E>
WL_CORE_INLINE void quantiseBlocks(const Job& job, uint32_t thread) {
  thread = opaque(thread);
  const uint64_t elements = job.inner();
  const uint64_t blocks = quantBlocks(elements);
  const uint32_t rows = job.targets / 2;
  const uint32_t lane = thread % kWarpThreads;
  for (uint64_t block = thread / kWarpThreads; block < blocks; block += kWorkerWarps) {
    const uint64_t first = block * kQuantBlock + lane * kLaneElements;
    const uint64_t left = first < elements ? elements - first : 0;
    float value[kLaneElements];
    loadLane<E>(job, first, left, value);
    const float scale = scaleOf(largestOfBlock<E>(job, block, largestOfLane(value)));
    const float reciprocal = 1.0f / scale;
    uint32_t codes = 0;
    WL_UNROLL
    for (uint32_t i = 0; i < kLaneElements; ++i)
      codes |= uint32_t{quantised(value[i], reciprocal)} << (8 * i);
    WL_NO_UNROLL
    for (uint32_t row = 0; row < rows; ++row) {
      unsigned char* to = job.data[row] + first;
      if (left >= kLaneElements && isAligned(to, sizeof codes)) {
        *reinterpret_cast<uint32_t*>(to) = codes;
      } else {
        WL_UNROLL
        for (uint32_t i = 0; i < kLaneElements; ++i) {
          if (i < left) to[i] = static_cast<unsigned char>(codes >> (8 * i));
        }
      }
      if (lane == 0)
        storeAnywhere(job.data[rows + row] + block * sizeof scale, bitCast<uint32_t>(scale));
    }
  }
}

}  // namespace windlass::cuda
