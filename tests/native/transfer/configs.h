// SPDX-License-Identifier: Apache-2.0
// The words of a transfer's configuration, as tests write them.
#pragma once

#include <cstdint>
#include <vector>

#include "windlass/windlass.h"

namespace windlass_test {

using Word = std::vector<int64_t>;

struct View {
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<uint8_t> memory;

  void describe(Word* words) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()));
    words->insert(words->end(), {dtype, static_cast<int64_t>(shape.size()), address, address,
                                 static_cast<int64_t>(memory.size())});
    words->insert(words->end(), shape.begin(), shape.end());
    words->insert(words->end(), strides.begin(), strides.end());
  }
};

inline wl_transfer_config_t configOf(const Word& sources, uint32_t sourceCount,
                                     const Word& targets, uint32_t targetCount,
                                     const Word& chunks, uint64_t chunkCount) {
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
