// SPDX-License-Identifier: Apache-2.0
// target += source, atomically for each element. A loop exchanges the aligned 4-byte word that
// holds the element, at system scope, until no other thread changed the word in between.
#pragma once

#include <cstdint>

#include "native/isa/cuda/elements.h"
#include "native/isa/cuda/job.h"

namespace windlass::cuda {

// Writes `next` if the word holds `seen`. Returns the previous value.
WL_CORE_INLINE uint32_t exchange(uint32_t* word, uint32_t seen, uint32_t next) {
#if defined(__CUDA_ARCH__)
  return atomicCAS_system(word, seen, next);
#else
  return __sync_val_compare_and_swap(word, seen, next);
#endif
}

template <class E>
WL_CORE_INLINE void addElement(unsigned char* to, typename E::Raw term) {
  using Raw = typename E::Raw;
  static_assert(sizeof(Raw) <= sizeof(uint32_t), "an element lies in one word");
  const auto address = reinterpret_cast<uint64_t>(to);
  auto* word = reinterpret_cast<uint32_t*>(address & ~uint64_t{3});
  const uint32_t shift = 8 * static_cast<uint32_t>(address & 3);
  const uint32_t mask = (sizeof(Raw) == 4 ? ~0u : (1u << (8 * sizeof(Raw) % 32)) - 1u) << shift;
  uint32_t seen = *reinterpret_cast<volatile uint32_t*>(word);
  for (;;) {
    const auto own = E::load(static_cast<Raw>(seen >> shift));
    const auto sum = combine<ReduceOp::kSum>(own, E::load(term));
    const uint32_t next =
        (seen & ~mask) | ((static_cast<uint32_t>(E::store(sum)) << shift) & mask);
    const uint32_t found = exchange(word, seen, next);
    if (found == seen) return;
    seen = found;
  }
}

// Addresses of elements are multiples of the element size.
template <class E>
WL_CORE_INLINE void addElements(const Job& job, uint32_t thread) {
  using Raw = typename E::Raw;
  shareEdges(job, thread, [&](uint64_t row, uint64_t n) {
    const auto at = static_cast<int64_t>(n);
    const unsigned char* from = job.at(1, row) + at * job.innerStep(1);
    addElement<E>(job.at(0, row) + at * job.innerStep(0), loadAnywhere<Raw>(from));
  });
}

}  // namespace windlass::cuda
