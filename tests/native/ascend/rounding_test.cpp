// SPDX-License-Identifier: Apache-2.0
// How A2/A3 and A5 round, as native/isa/ascend has them convert and fold, against sim: for each
// pair of float types and each reduction every value of 8 and of 16 bits, and of 32 bits those that
// are special and random ones; under a sanitizer, of 16 bits one in sixteen. docs/reference has
// where the bits differ: nowhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "native/base/dtype.h"
#include "native/isa/ascend/fused.h"
#include "native/isa/limits.h"
#include "native/isa/sim/loops.h"

namespace windlass {
namespace rounding_test {

using Room = Tile<TileType::Vec, uint8_t, 1, 147456>;

#if defined(__SANITIZE_ADDRESS__)
const int64_t kValues = std::getenv("WINDLASS_TEST_LONG") == nullptr ? 4096 : 65536;
#else
constexpr int64_t kValues = 65536;
#endif

struct Target {
  const checked::Architecture& architecture;
  const Limits& limits;
};
const Target kTargets[] = {{checked::kA2A3, kA2A3SimLimits}, {checked::kA5, kA5SimLimits}};

class Rounding : public testing::TestWithParam<const Target*> {
 protected:
  // Bit patterns of kValues elements. A small type has all patterns, repeated as often as they fit
  // and shuffled on request. A larger type has the important ones and random ones.
  std::vector<unsigned char> values(DType dtype, bool shuffles) {
    const size_t size = sizeOf(dtype);
    std::vector<uint32_t> bits(static_cast<size_t>(kValues));
    for (uint32_t i = 0; i < bits.size(); ++i) {
      // Odd multiples are all values of 8 and of 16 bits, in another order.
      bits[i] = size > 2 ? static_cast<uint32_t>(random_()) : i * 17;
      if (dtype == DType::kBool) bits[i] &= 1;
    }
    if (size > 2) {
      const uint32_t special[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                  0x7f800001u, 1, 0x007fffffu, 0x00800000u, 0x7f7fffffu,
                                  0x477fe000u, 0x477ff000u, 0x33000000u, 0x387fe000u, 0x7fffffffu};
      for (size_t i = 0; i < std::size(special); ++i) bits[i * 37] = special[i];
      // Halfway between two values of f16, and of bf16, and next to that.
      for (uint32_t i = 0; i < 3000; ++i) {
        const uint32_t half = i % 2 == 0 ? 0x1000u : 0x8000u;
        uint32_t& value = bits[1000 + i];
        value = (value & ~(2 * half - 1)) + half + i % 3 - 1;
      }
    }
    if (shuffles) std::shuffle(bits.begin(), bits.end(), random_);
    std::vector<unsigned char> bytes(bits.size() * size);
    for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bytes[i * size], &bits[i], size);
    return bytes;
  }
  static StridedView viewOf(std::vector<unsigned char>& bytes, DType dtype) {
    static const int64_t shape = kValues;
    static const int64_t stride = 1;
    return {bytes.data(), dtype, 1, &shape, &stride};
  }
  // Runs the kernel on one core.
  template <typename Kernel>
  void run(std::initializer_list<std::vector<unsigned char>*> memory, const Kernel& kernel) {
    checked::Machine machine({GetParam()->architecture, "rounding", 1, 1, 1, false});
    for (std::vector<unsigned char>* each : memory)
      machine.memory().add({0, each->data(), each->size(), false});
    checked::Core core(machine, 0, 0);
    const checked::Core::Running running(core);
    Room room;
    TASSIGN(room, 0);
    kernel(room);
    core.finish();
    ASSERT_EQ(machine.report(), "");
  }
  // Elements whose bits differ.
  static int64_t differences(const std::vector<unsigned char>& a,
                             const std::vector<unsigned char>& b, size_t size) {
    int64_t count = 0;
    for (size_t at = 0; at < a.size(); at += size)
      count += std::memcmp(&a[at], &b[at], size) == 0 ? 0 : 1;
    return count;
  }

  std::mt19937 random_{20261124};
};

TEST_P(Rounding, OfCastsIsThatOfSim) {
  int pairs = 0;
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      const auto source = static_cast<DType>(from);
      const auto target = static_cast<DType>(to);
      if (from == to || !GetParam()->limits.hasCast(source, target)) continue;
      std::vector<unsigned char> in = values(source, false);
      std::vector<unsigned char> out(in.size() / sizeOf(source) * sizeOf(target), 0xa5);
      std::vector<unsigned char> expected = out;
      TMOVE_CVT(viewOf(expected, target), viewOf(in, source));
      run({&in, &out}, [&](Room& room) {
        TMOVE_CVT(viewOf(out, target), viewOf(in, source), target, room);
      });
      EXPECT_EQ(differences(out, expected, sizeOf(target)), 0)
          << nameOf(source) << " to " << nameOf(target);
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, GetParam() == &kTargets[0] ? 3 * 2 : 5 * 4);
}

TEST_P(Rounding, OfReductionsIsThatOfSim) {
  int folds = 0;
  for (int of = 0; of < kDTypeCount; ++of) {
    const auto dtype = static_cast<DType>(of);
    for (int number = 0; number < kReduceOpCount; ++number) {
      const auto op = static_cast<ReduceOp>(number);
      if (!GetParam()->limits.hasReduce(dtype, op) || op == ReduceOp::kPremultipliedSum) continue;
      const bool compares = op == ReduceOp::kMax || op == ReduceOp::kMin;
      if (dtype == DType::kBool && !compares) continue;
      if (op == ReduceOp::kAvg && !isFloat(dtype)) continue;
      // Every value by another one, and once more by another still.
      std::vector<unsigned char> in[3] = {values(dtype, false), values(dtype, true),
                                          values(dtype, true)};
      std::vector<unsigned char> out(in[0].size(), 0xa5);
      std::vector<unsigned char> expected = out;
      StridedView terms[3];
      for (int i = 0; i < 3; ++i) terms[i] = viewOf(in[i], dtype);
      const StridedView sum = viewOf(expected, dtype);
      TFOLD(&sum, 1, terms, 3, op);
      run({&in[0], &in[1], &in[2], &out}, [&](Room& room) {
        const auto target = [&](uint32_t) { return viewOf(out, dtype); };
        const auto source = [&](uint32_t i) { return terms[i]; };
        TFOLD(viewsAt(1, target), viewsAt(3, source), op, dtype, room);
      });
      EXPECT_EQ(differences(out, expected, sizeOf(dtype)), 0) << nameOf(dtype) << ", op " << number;
      ++folds;
    }
  }
  // Floats have all operators, integers all but avg, bool two.
  EXPECT_EQ(folds, GetParam() == &kTargets[0] ? 3 * 5 + 6 * 4 + 2 : 5 * 5 + 6 * 4 + 2);
}

INSTANTIATE_TEST_SUITE_P(On, Rounding, testing::Values(&kTargets[0], &kTargets[1]),
                         [](const auto& of) { return of.param->architecture.name; });

}  // namespace rounding_test
}  // namespace windlass
