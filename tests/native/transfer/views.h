// SPDX-License-Identifier: Apache-2.0
// Views with memory of their own, which transfers move.
#pragma once

#include "tests/native/transfer_configs.h"

namespace windlass_test {

struct View {
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<uint8_t> memory;

  void describe(Words* words) {
    addBinding(dtype, memory.data(), memory.size(), shape, strides, words);
  }
};

}  // namespace windlass_test
