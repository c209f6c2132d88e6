// SPDX-License-Identifier: Apache-2.0
// All-gather and reduce-scatter of matrices by columns against a slow reference, bit for bit:
// ranks x shapes x dtypes, direct and by counted arrivals.
#include <tuple>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace columns_test {

struct Matrix {
  int64_t rows;
  uint64_t columns;
};

// Without elements, one, odd ones, around staging and a piece; many short rows, few long ones, and
// rows that are larger than a piece.
std::vector<Matrix> shapes(bool large) {
  std::vector<Matrix> all = {{0, 3}, {3, 0},   {1, 1},    {1, 257},     {7, 1},     {5, 13},
                             {3, 341}, {64, 64}, {1000, 9}, {2, 40'001}, {129, 1'025}};
  if (large) all.insert(all.end(), {{1, 400'003}, {70'001, 3}, {1'000, 300}});
  return all;
}

// One dtype of each size: moves depend only on the size.
std::vector<int> dtypes() {
  if (!longForm()) return {WL_U8, WL_F32};
  return {WL_U8, WL_BF16, WL_F32, WL_C64};
}

// Byte `b` of element (row, column) of what `rank` brings.
uint8_t byteAt(int rank, uint64_t row, uint64_t column, uint64_t b) {
  return static_cast<uint8_t>(stamp(static_cast<uint32_t>(b), static_cast<uint32_t>(rank),
                                    static_cast<uint32_t>(row), column));
}

class Columns : public testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(Columns, LieSideBySideOnEveryRank) {
  const auto [n, cores, dtype] = GetParam();
  LocalRanks ranks(n, 30'000'000'000, 0xfffffff0u, cores);
  const auto size = static_cast<uint64_t>(wl_dtype_size(dtype));
  const auto all = static_cast<uint64_t>(n);
  const bool large = kSlow == 1 && (longForm() || (n == 3 && dtype == WL_F32));
  for (const Matrix& shape : shapes(large)) {
    const auto rows = static_cast<uint64_t>(shape.rows);
    const uint64_t count = rows * shape.columns;
    std::vector<uint8_t> want;
    for (uint64_t row = 0; row < rows; ++row)
      for (int from = 0; from < n; ++from)
        for (uint64_t column = 0; column < shape.columns; ++column)
          for (uint64_t b = 0; b < size; ++b) want.push_back(byteAt(from, row, column, b));
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<uint8_t> in(count * size + 64), out(all * count * size + 64, 0xee);
      for (uint64_t i = 0; i < count * size; ++i)
        in[i] = byteAt(rank, i / size / shape.columns, i / size % shape.columns, i % size);
      Error error;
      ASSERT_EQ(WL_OK, callCollective(comm, WL_OP_ALL_GATHER_DIM, in.data(), count, out.data(),
                                      all * count, dtype, 0, WL_AUTO, 0, shape.rows, 0, &error))
          << error.message;
      std::fill(in.begin(), in.end(), 0xdd);
      const uint64_t length = want.size();
      uint64_t right = 0;
      while (right < length && out[right] == want[right]) ++right;
      EXPECT_EQ(length, right) << "bytes of [" << shape.rows << ", " << shape.columns << "], rank "
                               << rank << " of " << n;
      EXPECT_TRUE(std::all_of(out.begin() + static_cast<int64_t>(length), out.end(),
                              [](uint8_t byte) { return byte == 0xee; }))
          << "written beyond the output";
    });
  }
}

// Elements of f32, with exact sums and with factors, and of integers otherwise.
template <class T>
T elementAt(int rank, uint64_t row, uint64_t column) {
  return static_cast<T>(byteAt(rank, row, column, 0) % 32);
}
double factorOf(int rank) { return 0.5 * (rank + 1); }

template <class T>
void checkReduced(LocalRanks& ranks, int dtype, int op, bool large) {
  const int n = ranks.size();
  const auto all = static_cast<uint64_t>(n);
  for (const Matrix& shape : shapes(large)) {
    const auto rows = static_cast<uint64_t>(shape.rows);
    const uint64_t count = rows * shape.columns;
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<T> in(all * count + 1), out(count + 8, T(99)), want(out);
      for (uint64_t i = 0; i < all * count; ++i)
        in[i] = elementAt<T>(rank, i / (all * shape.columns), i % (all * shape.columns));
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t column = static_cast<uint64_t>(rank) * shape.columns + i % shape.columns;
        T sum = 0;
        for (int from = 0; from < n; ++from) {
          const T term = elementAt<T>(from, i / shape.columns, column);
          if (op == WL_PREMULTIPLIED_SUM) sum = static_cast<T>(sum + T(factorOf(from)) * term);
          if (op == WL_SUM) sum = static_cast<T>(sum + term);
          if (op == WL_MAX) sum = std::max(sum, term);
        }
        want[i] = sum;
      }
      wl_call_t call = collectiveOf(WL_OP_REDUCE_SCATTER_DIM, in.data(), all * count, out.data(),
                                    count, dtype, op, WL_AUTO, 0, shape.rows, 0);
      call.factor = factorOf(rank);
      Error error;
      ASSERT_EQ(WL_OK, wl_submit(comm, &call, &error)) << error.message;
      std::fill(in.begin(), in.end(), T(98));
      EXPECT_TRUE(out == want) << "columns of [" << shape.rows << ", " << shape.columns
                               << "], rank " << rank << " of " << n << ", op " << op;
    });
  }
}

TEST_P(Columns, OfTheReductionGoToEachRank) {
  const auto [n, cores, dtype] = GetParam();
  LocalRanks ranks(n, 30'000'000'000, 0xfffffff0u, cores);
  const bool large = kSlow == 1 && (longForm() || (n == 3 && dtype == WL_F32));
  if (dtype == WL_U8) checkReduced<uint8_t>(ranks, dtype, WL_MAX, large);
  if (dtype != WL_F32) return;
  checkReduced<float>(ranks, dtype, WL_SUM, large);
  checkReduced<float>(ranks, dtype, WL_PREMULTIPLIED_SUM, false);
}

INSTANTIATE_TEST_SUITE_P(RanksCoresAndDTypes, Columns,
                         testing::Combine(testing::ValuesIn(rankCounts()), testing::Values(1, 64),
                                          testing::ValuesIn(dtypes())));

TEST(ColumnArguments, AreCheckedBeforeAnythingIsSent) {
  LocalRanks ranks(2);
  alignas(64) float memory[64] = {};
  const auto refused = [&](uint64_t in, uint64_t out, int64_t rows, float* to,
                           const std::string& says) {
    Error error;
    EXPECT_EQ(WL_INVALID_ARGUMENT,
              callCollective(ranks.comms[0], WL_OP_ALL_GATHER_DIM, memory, in, to, out, WL_F32,
                             0, WL_AUTO, 0, rows, 0, &error));
    EXPECT_TRUE(contains(error.message, says));
  };
  refused(6, 12, 4, memory + 32, "in has 6 elements, which are not 4 rows");
  refused(6, 12, 0, memory + 32, "in has 6 elements, which are not 0 rows");
  refused(6, 12, -1, memory + 32, "rows is -1");
  refused(6, 12, int64_t{1} << 31, memory + 32, "rows is 2147483648");
  refused(6, 11, 2, memory + 32, "out has 11 elements, in has 6; with 2 ranks");
  refused(6, 12, 2, memory, "does not work in place");
}

TEST(ColumnArguments, RanksAgreeOnTheRows) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    float in[12] = {}, out[24] = {};
    Error error;
    EXPECT_EQ(WL_MISMATCH, callCollective(comm, WL_OP_ALL_GATHER_DIM, in, 12, out, 24, WL_F32,
                                          0, WL_AUTO, 0, rank == 0 ? 3 : 4, 0, &error));
    EXPECT_TRUE(contains(error.message, "all-gather-dim(12 x f32 of each rank, 3 rows)"));
    EXPECT_TRUE(contains(error.message, "4 rows"));
  });
}

}  // namespace columns_test
}  // namespace windlass_test
