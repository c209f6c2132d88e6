// SPDX-License-Identifier: Apache-2.0
// Pipes of a core, and vector clocks over the pipes of all cores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace windlass::checked {

// The pipes: scalar, vector, load (global memory to unified buffer), store (unified buffer to
// global memory).
enum class Pipe : uint8_t { kS, kV, kMte2, kMte3 };
constexpr size_t kPipes = 4;
constexpr Pipe kEveryPipe[kPipes] = {Pipe::kS, Pipe::kV, Pipe::kMte2, Pipe::kMte3};
const char* nameOf(Pipe pipe);

// A vector clock. It has the number of instructions of each pipe that happened before its own time,
// and the cycle at which all of these end. The index of a pipe is its core's number times kPipes,
// plus its own number.
class Clock {
 public:
  explicit Clock(size_t pipes) : ticks_(pipes) {}

  uint64_t operator[](size_t pipe) const { return ticks_[pipe]; }
  uint64_t advance(size_t pipe) { return ++ticks_[pipe]; }
  void join(const Clock& other) {
    for (size_t i = 0; i < ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
    cycle = std::max(cycle, other.cycle);
  }

  uint64_t cycle = 0;

 private:
  std::vector<uint64_t> ticks_;
};

}  // namespace windlass::checked
