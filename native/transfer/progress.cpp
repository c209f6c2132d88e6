// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/progress.h"

namespace windlass {

void Progress::reset() {
  for (Chunk& chunk : chunks_) __atomic_store_n(&chunk.done, 0, __ATOMIC_RELAXED);
}

void Progress::addMoved(uint64_t* moved, uint64_t count) const {
  for (const Chunk& chunk : chunks_) {
    if (chunk.binding >= count || chunk.items == 0) continue;
    const uint64_t done = __atomic_load_n(&chunk.done, __ATOMIC_ACQUIRE);
    const uint64_t each = chunk.bytes / chunk.items;
    moved[chunk.binding] += each * done + chunk.bytes % chunk.items * done / chunk.items;
  }
}

}  // namespace windlass
