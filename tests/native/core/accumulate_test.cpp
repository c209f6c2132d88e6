// SPDX-License-Identifier: Apache-2.0
// A put that accumulates: bit for bit as a fold of two where one rank adds at a time, and nothing
// lost where all do.
#include <tuple>

#include "native/isa/isa.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"

namespace windlass_test {
namespace accumulate_test {

using Bytes = std::vector<uint8_t>;
using windlass::DType;
using windlass::ReduceOp;
using windlass::StridedView;

constexpr int kDTypes[] = {WL_F32, WL_F16, WL_BF16, WL_I32, WL_I16, WL_I8};

// `value` as an element of `dtype`.
uint32_t element(int dtype, double value) {
  uint32_t bits = 0;
  const DType to = static_cast<DType>(dtype);
  if (to == DType::kI32 || to == DType::kI16 || to == DType::kI8) {
    const auto whole = static_cast<int32_t>(value);
    std::memcpy(&bits, &whole, sizeof whole);
  } else {
    windlass::TMOVE_CVT({&bits, to, 0, nullptr, nullptr},
                        {&value, DType::kF64, 0, nullptr, nullptr});
  }
  return bits;
}

class Adds : public testing::TestWithParam<std::tuple<int, int>> {};

// Every rank adds runs that begin anywhere, so that blocks, words and single elements of different
// ranks write the same lines.
TEST_P(Adds, OfAllRanksToTheSameElementsLoseNothing) {
  const auto [n, dtype] = GetParam();
  constexpr int64_t kCount = 4096;
  constexpr int64_t kShort = 100;
  constexpr int kRounds = 200 / (kSlow > 4 ? 4 : 1);
  const uint64_t firstSeed = seed();
  const auto size = static_cast<size_t>(wl_dtype_size(dtype));
  LocalRanks ranks(n, 60'000 * kMs);
  Windows windows(ranks, kCount * size, 1);
  // Small enough that each sum is exact in every dtype: at most 127, as i8 has it.
  const int rounds = std::min(kRounds, dtype == WL_I8 ? 120 / n : dtype == WL_BF16 ? 240 / n : 200);
  std::atomic<int> wrong{0};
  ranks.run([&, n = n, dtype = dtype](int rank, wl_comm_t* comm) {
    Error error;
    std::mt19937_64 random(firstSeed + static_cast<uint64_t>(rank));
    const uint32_t one = element(dtype, 1);
    Bytes ones(kCount * size);
    for (size_t i = 0; i < ones.size(); i += size) std::memcpy(&ones[i], &one, size);
    for (int round = 0; round < rounds; ++round) {
      // A part from anywhere, then what is left on either side of it.
      const auto start = static_cast<int64_t>(random() % (kCount - kShort));
      const int64_t ends[] = {0, start, start + static_cast<int64_t>(random() % kShort), kCount};
      for (const int part : {1, 0, 2}) {
        const View run({ends[part + 1] - ends[part]}, false, random);
        const size_t at = static_cast<size_t>(ends[part]) * size;
        const int code = windows.accumulate(rank, run.tensor(&ones[at], dtype), 0,
                                            run.tensor(windows.at(rank, at), dtype), &error);
        ASSERT_EQ(WL_OK, code) << error.message;
      }
    }
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    const uint32_t sum = element(dtype, rounds * n);
    for (size_t i = 0; rank == 0 && i < kCount; ++i)
      wrong += std::memcmp(windows.at(0, i * size), &sum, size) != 0;
  });
  EXPECT_EQ(0, wrong);
}

INSTANTIATE_TEST_SUITE_P(RanksAndDTypes, Adds,
                         testing::Combine(testing::Values(1, 2, 4, 8),
                                          testing::ValuesIn(kDTypes)));

// Any bits, NaNs and infinities among them, in views of every kind, each element against a fold of
// its own.
TEST(Accumulate, OfOneRankAddsAsAFoldOfTwoDoes) {
  std::mt19937_64 random(seed());
  LocalRanks ranks(2);
  Windows windows(ranks, 400'000, 1);
  Error error;
  for (const int dtype : kDTypes) {
    const auto size = static_cast<size_t>(wl_dtype_size(dtype));
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
             {}, {0}, {1}, {7}, {16}, {33}, {1000}, {9, 70}, {3, 4, 50}, {2, 3, 1, 4}}) {
      for (const bool isStrided : {false, true}) {
        const View local(shape, isStrided, random);
        const View remote(shape, isStrided && random() % 2 == 0, random);
        const size_t shift = random() % 64 * size;
        Bytes own(local.elements * size);
        Bytes before(remote.elements * size);
        for (uint8_t& byte : own) byte = static_cast<uint8_t>(random());
        for (uint8_t& byte : before) byte = static_cast<uint8_t>(random());
        Bytes expected = before;
        int64_t count = 1;
        for (const int64_t extent : shape) count *= extent;
        for (int64_t i = 0; i < count; ++i) {
          int64_t rest = i, to = 0, from = 0;
          for (size_t d = shape.size(); d-- > 0;) {
            to += rest % shape[d] * remote.strides[d];
            from += rest % shape[d] * local.strides[d];
            rest /= shape[d];
          }
          const auto type = static_cast<DType>(dtype);
          StridedView terms[2] = {
              {&expected[static_cast<size_t>(to) * size], type, 0, nullptr, nullptr},
              {&own[static_cast<size_t>(from) * size], type, 0, nullptr, nullptr}};
          windlass::TFOLD(terms, 1, terms, 2, ReduceOp::kSum);
        }
        std::memcpy(windows.at(1, shift), before.data(), before.size());
        const int code = windows.accumulate(0, local.tensor(own.data(), dtype), 1,
                                            remote.tensor(windows.at(0, shift), dtype), &error);
        ASSERT_EQ(WL_OK, code) << error.message;
        ASSERT_EQ(0, std::memcmp(windows.at(1, shift), expected.data(), expected.size()))
            << "dtype " << dtype << ", shape " << testing::PrintToString(shape)
            << ", local strides " << testing::PrintToString(local.strides) << ", remote strides "
            << testing::PrintToString(remote.strides) << ", from byte " << shift;
      }
    }
  }
}

TEST(Accumulate, RefusesADTypeThatSomeTargetCannotAdd) {
  LocalRanks ranks(1);
  Windows windows(ranks, 64, 1);
  std::mt19937_64 random(1);
  const View one({1}, false, random);
  for (int dtype = 0; dtype < WL_DTYPE_COUNT; ++dtype) {
    uint64_t term = 0;
    Error error;
    const int code = windows.accumulate(0, one.tensor(&term, dtype), 0,
                                        one.tensor(windows.at(0, 0), dtype), &error);
    if (std::find(std::begin(kDTypes), std::end(kDTypes), dtype) != std::end(kDTypes)) {
      EXPECT_EQ(WL_OK, code) << error.message;
    } else {
      EXPECT_EQ(WL_UNSUPPORTED, code);
      EXPECT_TRUE(contains(error.message, "takes f32, f16, bf16, i32, i16 and i8 alone"));
    }
  }
}

TEST(Accumulate, ToAPeerThatLeftIsToldSo) {
  LocalRanks ranks(2);
  Windows windows(ranks, 64, 1);
  std::mt19937_64 random(1);
  const View row({4}, false, random);
  float terms[4] = {};
  Error error;
  ASSERT_EQ(WL_OK, wl_comm_close(ranks.comms[1], &error));
  EXPECT_EQ(WL_ABORTED, windows.accumulate(0, row.tensor(terms, WL_F32), 1,
                                           row.tensor(windows.at(0, 0), WL_F32), &error));
  EXPECT_EQ(WL_OP_ACCUMULATE, error.operation);
  EXPECT_TRUE(contains(error.message, "accumulate(4 x f32 to rank 1)"));
}

}  // namespace accumulate_test
}  // namespace windlass_test
