// SPDX-License-Identifier: Apache-2.0
// A machine of 2 ranks with 2 cores each, some memory, and what kernels of tests take of it. Its
// cores take turns on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "native/isa/checked/instructions.h"

namespace windlass_test {

namespace checked = windlass::checked;
using windlass::bfloat16_t;
using windlass::half;

template <typename T>
using Global = pto::GlobalTensor<T, pto::Shape<>, pto::Stride<>>;
template <typename T, int Rows, int Cols>
using Tile = pto::Tile<pto::TileType::Vec, T, Rows, Cols, pto::BLayout::RowMajor, pto::DYNAMIC,
                       pto::DYNAMIC>;
using F32 = Tile<float, 16, 32>;
constexpr uint64_t kF32Bytes = 16 * 32 * sizeof(float);

// Rows of `columns` elements; `step` from one row to the next.
template <typename T>
Global<T> rowsOf(T* data, int64_t rows, int64_t columns, int64_t step = 0) {
  if (step == 0) step = columns;
  return Global<T>(data, pto::Shape<>(1, 1, 1, rows, columns),
                   pto::Stride<>(rows * step, rows * step, rows * step, step, 1));
}

inline void flag(pipe_t from, pipe_t to, int id = EVENT_ID0) {
  set_flag(from, to, id);
  wait_flag(from, to, id);
}

class TestMachine {
 public:
  static constexpr uint32_t kRanks = 2;
  static constexpr uint32_t kBlocks = 2;
  static constexpr size_t kFloats = 16384;

  explicit TestMachine(const checked::Architecture& architecture, uint64_t seed = 0,
                       bool traces = false)
      : machine({architecture, "a kernel", kRanks, kBlocks, seed, traces}) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      in[rank].resize(kFloats);
      std::iota(in[rank].begin(), in[rank].end(), 1.0f + 100000.0f * static_cast<float>(rank));
      out[rank].assign(kFloats, -1.0f);
      window[rank].assign(kFloats, -2.0f);
      machine.memory().add({rank, in[rank].data(), kFloats * sizeof(float), false});
      machine.memory().add({rank, out[rank].data(), kFloats * sizeof(float), false});
      machine.memory().add({rank, window[rank].data(), kFloats * sizeof(float), true});
      machine.memory().add({rank, &signals[rank], sizeof signals[rank], true});
      constant[rank].assign(kFloats, -3.0f);
      const uint64_t bytes = kFloats * sizeof(float);
      machine.memory().add({rank, constant[rank].data(), bytes, true, "constant"});
    }
  }

  // Runs a part of the kernel on that core.
  template <typename Body>
  void on(uint32_t rank, uint32_t block, Body&& body) {
    auto& core = cores_[rank * kBlocks + block];
    if (core == nullptr) core = std::make_unique<checked::Core>(machine, rank, block, patience);
    const checked::Core::Running running(*core);
    body();
  }
  void finish() {
    for (auto& core : cores_) {
      if (core != nullptr) core->finish();
    }
  }

  pto::comm::Signal signal(uint32_t rank, uint32_t index) {
    return pto::comm::Signal(&signals[rank].words[index * 16]);
  }

  struct alignas(64) Signals {
    int32_t words[64] = {};
  };
  int looks = 10;
  windlass::Patience patience;  // of cores that have yet to run something
  checked::Machine machine;
  std::vector<float> in[kRanks];
  std::vector<float> out[kRanks];
  std::vector<float> window[kRanks];
  std::vector<float> constant[kRanks];  // an argument that the kernel doesn't write
  Signals signals[kRanks];

 private:
  std::unique_ptr<checked::Core> cores_[kRanks * kBlocks];  // those that have run something
};

}  // namespace windlass_test
