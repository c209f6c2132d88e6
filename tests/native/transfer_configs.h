// SPDX-License-Identifier: Apache-2.0
// The words of a transfer's configuration, as tests write them.
#pragma once

#include <cstdint>
#include <vector>

#include "windlass/windlass.h"

namespace windlass_test {

using Words = std::vector<int64_t>;

// Adds the binding of a view, of which memory of so many bytes has all.
inline void addBinding(int32_t dtype, const void* memory, uint64_t bytes,
                       const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                       Words* words) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  words->insert(words->end(), {dtype, static_cast<int64_t>(shape.size()), address, address,
                               static_cast<int64_t>(bytes)});
  words->insert(words->end(), shape.begin(), shape.end());
  words->insert(words->end(), strides.begin(), strides.end());
}

// The binding of a row of u32.
inline Words rowBinding(const uint32_t* memory, int64_t elements) {
  Words words;
  addBinding(WL_U32, memory, 4 * static_cast<uint64_t>(elements), {elements}, {1}, &words);
  return words;
}

// The chunks, one a rank, with which a rank takes rows of `count` u32 of all ranks, side by side.
inline Words gatherChunks(int64_t ranks, int64_t count) {
  Words chunks;
  for (int64_t rank = 0; rank < ranks; ++rank)
    chunks.insert(chunks.end(), {0, 0, WL_U32, WL_SUM, 1, 1, count, rank * count, rank, 0, 0});
  return chunks;
}

inline wl_transfer_config_t configOf(const Words& sources, uint32_t sourceCount,
                                     const Words& targets, uint32_t targetCount,
                                     const Words& chunks, uint64_t chunkCount) {
  wl_transfer_config_t config = {};
  config.struct_size = sizeof config;
  config.fingerprint = 0x1234;
  config.source_bindings = sources.data();
  config.source_binding_words = sources.size();
  config.source_binding_count = sourceCount;
  config.target_bindings = targets.data();
  config.target_binding_words = targets.size();
  config.target_binding_count = targetCount;
  config.chunks = chunks.data();
  config.chunk_words = chunks.size();
  config.chunk_count = chunkCount;
  return config;
}

}  // namespace windlass_test
