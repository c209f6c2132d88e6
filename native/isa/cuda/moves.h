// SPDX-License-Identifier: Apache-2.0
// Moves, shared by the threads of a core: byte runs, views of one dtype, and views with a cast. A
// thread has several 16-byte accesses in flight.
#pragma once

#include <cstdint>

#include "native/isa/cuda/elements.h"
#include "native/isa/cuda/job.h"

namespace windlass::cuda {

// Number of accesses that a thread has in flight.
constexpr uint32_t kInFlight = 8;

// Copies words of T that are aligned on both sides.
template <typename T>
WL_CORE_INLINE void copyWords(uint32_t thread, unsigned char* dst, const unsigned char* src,
                              uint64_t count) {
  auto* to = reinterpret_cast<T*>(dst);
  const auto* from = reinterpret_cast<const T*>(src);
  uint64_t i = thread;
  for (; i + (kInFlight - 1) * kWorkers < count; i += kInFlight * kWorkers) {
    T word[kInFlight];
    WL_UNROLL
    for (uint32_t u = 0; u < kInFlight; ++u) word[u] = load(from + i + u * kWorkers);
    WL_UNROLL
    for (uint32_t u = 0; u < kInFlight; ++u) store(to + i + u * kWorkers, word[u]);
  }
  for (; i < count; i += kWorkers) store(to + i, load(from + i));
}

// Copies words of T, and the bytes before and after them one by one. Both sides have the same
// alignment to T.
template <typename T>
WL_CORE_INLINE void copyRun(uint32_t thread, unsigned char* dst, const unsigned char* src,
                            uint64_t bytes) {
  const uint64_t before = (0 - reinterpret_cast<uint64_t>(dst)) & (sizeof(T) - 1);
  const uint64_t head = before < bytes ? before : bytes;
  const uint64_t words = (bytes - head) / sizeof(T);
  const uint64_t behind = head + words * sizeof(T);
  copyWords<T>(thread, dst + head, src + head, words);
  // These are fewer bytes than two words have, so a thread copies at most one.
  if (thread < head + (bytes - behind)) {
    const uint64_t at = thread < head ? thread : thread - head + behind;
    dst[at] = src[at];
  }
}

// Copies `edges` bytes.
WL_CORE_INLINE void copyBytes(const Job& job, uint32_t thread) {
  thread = opaque(thread);
  unsigned char* dst = job.data[0];
  const unsigned char* src = job.data[1];
  const uint64_t apart = reinterpret_cast<uint64_t>(dst) ^ reinterpret_cast<uint64_t>(src);
  if (apart % 16 == 0) {
    copyRun<Vector>(thread, dst, src, job.edges);
  } else if (apart % 4 == 0) {
    copyRun<uint32_t>(thread, dst, src, job.edges);
  } else {
    copyRun<unsigned char>(thread, dst, src, job.edges);
  }
}

// Moves whole vectors. Both sides have the same dtype.
WL_CORE_INLINE void moveVectors(const Job& job, uint32_t thread) {
  const uint64_t start = job.head * sizeOf(job.from);
  shareGroups<kInFlight>(job, thread, [&](uint32_t row, uint32_t first, uint32_t across,
                                  uint32_t count) {
    const auto* source = reinterpret_cast<const Vector*>(job.at(job.targets, row) + start) + first;
    Vector v[kInFlight];
    WL_UNROLL
    for (uint32_t u = 0; u < kInFlight; ++u) {
      v[u] = loadIf(u < count, source + u * across);
    }
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target) {
      auto* to = reinterpret_cast<Vector*>(job.at(target, row) + start) + first;
      WL_UNROLL
      for (uint32_t u = 0; u < kInFlight; ++u) {
        storeIf(u < count, to + u * across, v[u]);
      }
    }
  });
}

// Elements of a cast between f32 and a 2-byte dtype: two vectors of f32, one of the other.
constexpr uint32_t kCastGroup = 8;
template <DType kFrom, DType kTo>
WL_CORE_INLINE void castGroups(const Job& job, uint32_t thread) {
  using From = InVector<Element<kFrom>>;
  using To = InVector<Element<kTo>>;
  constexpr uint32_t kIn = kCastGroup / From::kCount;
  constexpr uint32_t kOut = kCastGroup / To::kCount;
  constexpr uint32_t kGroups = kInFlight / 2;
  shareGroups<kGroups>(job, thread, [&](uint32_t row, uint32_t first, uint32_t across,
                                  uint32_t count) {
    const auto* source = reinterpret_cast<const Vector*>(job.at(job.targets, row) +
                                                         job.head * sizeOf(kFrom)) +
                         first * kIn;
    Vector in[kGroups][kIn];
    WL_UNROLL
    for (uint32_t u = 0; u < kGroups; ++u) {
      WL_UNROLL
      for (uint32_t i = 0; i < kIn; ++i) {
        in[u][i] = loadIf(u < count, source + u * across * kIn + i);
      }
    }
    Vector out[kGroups][kOut];
    WL_UNROLL
    for (uint32_t u = 0; u < kGroups; ++u) {
      WL_UNROLL
      for (uint32_t i = 0; i < kCastGroup; ++i) {
        const auto value = From::value(in[u][i / From::kCount], i % From::kCount);
        To::setRaw(&out[u][i / To::kCount], i % To::kCount, Element<kTo>::store(value));
      }
    }
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target) {
      auto* to = reinterpret_cast<Vector*>(job.at(target, row) + job.head * sizeOf(kTo)) +
                 first * kOut;
      WL_UNROLL
      for (uint32_t u = 0; u < kGroups; ++u) {
        WL_UNROLL
        for (uint32_t i = 0; i < kOut; ++i) {
          storeIf(u < count, to + u * across * kOut + i, out[u][i]);
        }
      }
    }
  });
}

// Moves the elements outside the groups, one at a time.
WL_CORE_INLINE void moveEdges(const Job& job, uint32_t thread) {
  const uint64_t fromBytes = sizeOf(job.from);
  const uint64_t toBytes = sizeOf(job.to);
  const bool casts = job.from != job.wire || job.wire != job.to;
  const int64_t fromStep = job.innerStep(job.targets);
  shareEdges(job, thread, [&](uint64_t row, uint64_t n) {
    const auto at = static_cast<int64_t>(job.edge(n));
    uint64_t bits = loadBits(job.at(job.targets, row) + at * fromStep, fromBytes);
    if (casts) bits = castBits(job.wire, job.to, castBits(job.from, job.wire, bits));
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target)
      storeBits(job.at(target, row) + at * job.innerStep(target), bits, toBytes);
  });
}

// Cuts the innermost dimension of a move.
WL_CORE inline void cutMove(Job* job) {
  const auto isHalf = [](DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; };
  const DType from = job->from;
  const DType to = job->to;
  if (from == job->wire && job->wire == to) {
    job->cut(kVectorBytes / static_cast<uint32_t>(sizeOf(from)));
  } else if ((from == job->wire || job->wire == to) &&
             ((from == DType::kF32 && isHalf(to)) || (isHalf(from) && to == DType::kF32))) {
    job->cut(kCastGroup);
  }
}

WL_CORE_INLINE void moveGroups(const Job& job, uint32_t thread) {
  if (job.from == job.to) {
    moveVectors(job, thread);
  } else if (job.to == DType::kBF16) {
    castGroups<DType::kF32, DType::kBF16>(job, thread);
  } else if (job.to == DType::kF16) {
    castGroups<DType::kF32, DType::kF16>(job, thread);
  } else if (job.from == DType::kBF16) {
    castGroups<DType::kBF16, DType::kF32>(job, thread);
  } else {
    castGroups<DType::kF16, DType::kF32>(job, thread);
  }
}

}  // namespace windlass::cuda
