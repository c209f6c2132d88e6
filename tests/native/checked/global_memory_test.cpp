// SPDX-License-Identifier: Apache-2.0
// Who touched which byte of global memory, against a list of touches for each byte.
#include "native/isa/checked/global_memory.h"

#include <gtest/gtest.h>

#include <random>

namespace windlass_test {
namespace global_memory_test {

using namespace windlass::checked;

constexpr size_t kBytes = 200;
constexpr size_t kAllPipes = 8;

struct Touch {
  Touching touching;
  size_t pipe;
  uint64_t tick;
};

// Whether the touch is ordered after those of its byte that it conflicts with; then it's one of
// them.
bool isOrdered(std::vector<Touch>* byte, const Touch& touch, const Clock& clock) {
  bool ordered = true;
  for (const Touch& before : *byte) {
    const bool conflicts = before.touching != touch.touching || touch.touching == Touching::kWrite;
    ordered = ordered && (!conflicts || before.tick <= clock[before.pipe]);
  }
  if (touch.touching == Touching::kWrite) byte->clear();
  byte->push_back(touch);
  return ordered;
}

TEST(GlobalMemory, FindsEachUnorderedTouchOfAnyByte) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    GlobalMemory memory;
    unsigned char bytes[kBytes];
    std::vector<Touch> touches[kBytes];
    std::vector<Clock> clocks(kAllPipes, Clock(kAllPipes));
    int unordered = 0;
    for (int step = 0; step < 400; ++step) {
      const size_t pipe = random() % kAllPipes;
      for (int joins = 0; joins < 6; ++joins) clocks[pipe].join(clocks[random() % kAllPipes]);
      clocks[pipe].advance(pipe);
      // Rows of columns, some of them apart.
      GlobalRef tensor = {&bytes[random() % 100], windlass::DType::kU8, {1, 1, 1, 1, 1}, {}};
      tensor.shape[3] = static_cast<int64_t>(1 + random() % 3);
      tensor.shape[4] = static_cast<int64_t>(1 + random() % 12);
      tensor.strides[3] = static_cast<int64_t>(random() % 30);
      tensor.strides[4] = static_cast<int64_t>(1 + random() % 3);
      const auto touching = static_cast<Touching>(random() % 3);
      const Issue issue = {static_cast<Pipe>(pipe % kPipes),
                           clocks[pipe],
                           pipe / kPipes * kPipes,
                           {"touch", static_cast<uint64_t>(step), 0, 0}};
      const bool found = memory.touch(tensor, touching, issue).has_value();
      bool expected = false;
      const auto first = static_cast<unsigned char*>(tensor.data) - bytes;
      for (int64_t row = 0; row < tensor.shape[3]; ++row) {
        for (int64_t column = 0; column < tensor.shape[4]; ++column) {
          const int64_t at = first + row * tensor.strides[3] + column * tensor.strides[4];
          const Touch touch = {touching, pipe, clocks[pipe][pipe]};
          expected = !isOrdered(&touches[at], touch, clocks[pipe]) || expected;
        }
      }
      ASSERT_EQ(found, expected) << "seed " << seed << ", step " << step;
      unordered += found ? 1 : 0;
    }
    EXPECT_GT(unordered, 20);
    EXPECT_LT(unordered, 380);
  }
}

// Its owner has left: who gets the memory next is ordered by what gave it to them.
TEST(GlobalMemory, WhatIsDroppedOwesNothing) {
  GlobalMemory memory;
  unsigned char bytes[kBytes];
  const Region own = {0, bytes + 50, 100, false};
  const Clock clock(kAllPipes);
  const auto write = [&](size_t firstPipe) {
    const GlobalRef all = {bytes, windlass::DType::kU8, {1, 1, 1, 1, kBytes}, {0, 0, 0, 0, 1}};
    Clock stamped = clock;
    stamped.advance(firstPipe);
    return memory.touch(all, Touching::kWrite, {Pipe::kS, stamped, firstPipe, {"write", 1, 0, 0}});
  };
  memory.add(own);
  const auto address = reinterpret_cast<uint64_t>(bytes) + 60;
  EXPECT_NE(nullptr, memory.reach(0, address, 10));
  EXPECT_EQ(nullptr, memory.reach(1, address, 10));
  EXPECT_FALSE(write(0).has_value());
  EXPECT_TRUE(write(kPipes).has_value());
  memory.drop(own);
  EXPECT_EQ(nullptr, memory.reach(0, address, 10));
  GlobalRef dropped = {bytes + 50, windlass::DType::kU8, {1, 1, 1, 1, 100}, {0, 0, 0, 0, 1}};
  const Issue first = {Pipe::kS, clock, 0, {"write", 2, 0, 0}};
  EXPECT_FALSE(memory.touch(dropped, Touching::kWrite, first).has_value());
  dropped.data = bytes + 49;
  EXPECT_TRUE(memory.touch(dropped, Touching::kWrite, first).has_value());
}

}  // namespace global_memory_test
}  // namespace windlass_test
