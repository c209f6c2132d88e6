// SPDX-License-Identifier: Apache-2.0
// Folds, shared by the threads of a core. One thread reads all terms of an element in ascending
// order before it writes the element. A target may therefore be one of the sources.
#pragma once

#include <cstdint>

#include "native/isa/cuda/elements.h"
#include "native/isa/cuda/job.h"

namespace windlass::cuda {

// Folds vectors of E, one source after another.
template <class E>
WL_CORE_INLINE void foldVectors(const Job& job, uint32_t thread) {
  using In = InVector<E>;
  using Value = typename E::Value;
  constexpr uint32_t kCount = In::kCount;
  constexpr uint32_t kVectors = sizeof(typename E::Raw) == 1 ? 1 : 2;
  const uint64_t start = job.head * sizeof(typename E::Raw);
  shareGroups<kVectors>(job, thread, [&](uint32_t row, uint32_t first, uint32_t across,
                                         uint32_t count) {
    const auto vectors = [&](uint32_t view) {
      return reinterpret_cast<Vector*>(job.at(view, row) + start) + first;
    };
    Value sum[kVectors * kCount];
    Vector v[kVectors];
    const auto term = [&](uint32_t i) { return In::value(v[i / kCount], i % kCount); };
    const auto loadAll = [&](const Vector* from) {
      WL_UNROLL
      for (uint32_t u = 0; u < kVectors; ++u) v[u] = loadIf(u < count, from + u * across);
    };
    if (job.sources > 0) loadAll(vectors(job.targets));
    WL_UNROLL
    for (uint32_t i = 0; i < kVectors * kCount; ++i)
      sum[i] = job.sources > 0 ? term(i) : identityOf<E>(job.from, job.op);
    WL_NO_UNROLL
    for (uint32_t s = 1; s < job.sources; ++s) {
      loadAll(vectors(job.targets + s));
      combineEach<kVectors * kCount>(job.op, sum, term);
    }
    Vector result[kVectors];
    WL_UNROLL
    for (uint32_t i = 0; i < kVectors * kCount; ++i) {
      Value value = sum[i];
      if constexpr (E::kIsFloat) {
        if (job.op == ReduceOp::kAvg) value = divided(value, job.terms);
      }
      In::setRaw(&result[i / kCount], i % kCount, E::store(value));
    }
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target) {
      Vector* to = vectors(target);
      WL_UNROLL
      for (uint32_t u = 0; u < kVectors; ++u) {
        storeIf(u < count, to + u * across, result[u]);
      }
    }
  });
}

// Folds the elements outside the vectors, and casts each through the wire dtype.
template <class E>
WL_CORE_INLINE void foldEdges(const Job& job, uint32_t thread) {
  using Raw = typename E::Raw;
  using Value = typename E::Value;
  const uint64_t toBytes = sizeOf(job.to);
  shareEdges(job, thread, [&](uint64_t row, uint64_t n) {
    const auto at = static_cast<int64_t>(job.edge(n));
    const auto term = [&](uint32_t s) {
      const uint32_t view = job.targets + s;
      return E::load(loadAnywhere<Raw>(job.at(view, row) + at * job.innerStep(view)));
    };
    Value sum = job.sources > 0 ? term(0) : identityOf<E>(job.from, job.op);
    WL_NO_UNROLL
    for (uint32_t s = 1; s < job.sources; ++s) {
      const Value next = term(s);
      combineEach<1>(job.op, &sum, [&](uint32_t) { return next; });
    }
    uint64_t bits;
    if constexpr (E::kIsFloat) {
      if (job.op == ReduceOp::kAvg) sum = divided(sum, job.terms);
      bits = E::store(sum);
      bits = castBits(job.wire, job.to, castBits(job.from, job.wire, bits));
    } else {
      bits = E::store(sum);
    }
    WL_NO_UNROLL
    for (uint32_t target = 0; target < job.targets; ++target)
      storeBits(job.at(target, row) + at * job.innerStep(target), bits, toBytes);
  });
}

// Cuts the innermost dimension of a fold.
WL_CORE inline void cutFold(Job* job) {
  if (job->from == job->to && job->from == job->wire)
    job->cut(kVectorBytes / static_cast<uint32_t>(sizeOf(job->from)));
}

}  // namespace windlass::cuda
