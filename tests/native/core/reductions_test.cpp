// SPDX-License-Identifier: Apache-2.0
// Gathering, scattering and reducing collectives against a slow reference, bit for bit: ranks x
// sizes x dtypes x ops x algorithms x in place or not, direct and by counted arrivals.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace reductions_test {

// Values whose sums are exact in no order but the canonical one: magnitudes differ, signs mix.
double valueAt(int rank, uint64_t index) {
  const uint32_t bits = stamp(3, static_cast<uint32_t>(rank), 0, index);
  const double scale = std::ldexp(1.0, static_cast<int>(bits % 13) - 6);
  return (static_cast<double>(bits >> 8 & 0xffff) / 4096 - 8) * scale;
}

template <class T>
T elementAt(int rank, uint64_t index) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(valueAt(rank, index));
  return static_cast<T>(stamp(5, static_cast<uint32_t>(rank), 0, index));
}

template <class T>
T combine(T a, T b, int op) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == WL_PRODUCT) return a * b;
    if (op == WL_MAX) return a > b ? a : b;
    if (op == WL_MIN) return a < b ? a : b;
    return a + b;
  } else {
    using U = std::make_unsigned_t<T>;
    // Wider than int, so that small types do not overflow on the way.
    if (op == WL_PRODUCT)
      return static_cast<T>(static_cast<U>(uint64_t{static_cast<U>(a)} * static_cast<U>(b)));
    if (op == WL_MAX) return a > b ? a : b;
    if (op == WL_MIN) return a < b ? a : b;
    if (op == WL_AND) return static_cast<T>(a & b);
    if (op == WL_OR) return static_cast<T>(a | b);
    if (op == WL_XOR) return static_cast<T>(a ^ b);
    return static_cast<T>(static_cast<U>(uint64_t{static_cast<U>(a)} + static_cast<U>(b)));
  }
}

// Result of an exclusive scan on rank 0.
template <class T>
T identity(int op) {
  using Limits = std::numeric_limits<T>;
  if (op == WL_PRODUCT) return 1;
  if (op == WL_AND) return static_cast<T>(-1);
  if (op == WL_MAX) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (op == WL_MIN) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return 0;
}

// The factor of a rank in a premultiplied sum, which f32 rounds.
double factorOf(int rank) { return 1.0 / (3 + rank); }

template <class T>
struct Typed;
template <>
struct Typed<float> {
  static constexpr int kDType = WL_F32;
};
template <>
struct Typed<double> {
  static constexpr int kDType = WL_F64;
};
template <>
struct Typed<int32_t> {
  static constexpr int kDType = WL_I32;
};
template <>
struct Typed<uint8_t> {
  static constexpr int kDType = WL_U8;
};
template <>
struct Typed<int64_t> {
  static constexpr int kDType = WL_I64;
};

// Expected results of the collectives, element by element, computed once for all ranks.
template <class T>
struct Reference {
  using Elements = std::vector<T>;

  Reference(int ranks, uint64_t count) : n(ranks) {
    const uint64_t bytes = count * sizeof(T);
    const uint64_t half = std::min((bytes / 2 + 63) / 64 * 64, bytes);
    for (int rank = 0; rank < n; ++rank) {
      Elements& own = inputs.emplace_back(count * static_cast<uint64_t>(n));
      for (uint64_t i = 0; i < own.size(); ++i) own[i] = elementAt<T>(rank, i);
      gathered.insert(gathered.end(), own.begin(), own.begin() + static_cast<int64_t>(count));
    }
    for (int op = 0; op < WL_REDUCE_OP_COUNT; ++op) {
      if (wl_dtype_can_reduce(Typed<T>::kDType, op) == 0) continue;
      for (uint64_t i = 0; i < gathered.size(); ++i) folded[op].push_back(fold(i, 0, true, op));
      for (uint64_t i = 0; i < count && n > 1; ++i) {
        const uint64_t at = i * sizeof(T);
        oneRing[op].push_back(ringFold(i, 0, bytes, true, op));
        twoRings[op].push_back(at < half ? ringFold(i, 0, half, true, op)
                                         : ringFold(i, half, bytes - half, false, op));
      }
    }
  }

  // Expected result of an all-reduce.
  const Elements& reduced(int algorithm, int op) const {
    if (n == 1 || algorithm < WL_RING) return folded[op];
    return algorithm == WL_RING ? oneRing[op] : twoRings[op];
  }

  // A left fold of one element from the rank at `first` on, ascending or descending; the canonical
  // order is ascending from rank 0.
  T fold(uint64_t index, int first, bool ascending, int op) const {
    const auto valueOf = [&](int place) {
      return inputs[static_cast<size_t>(ascending ? place : n - 1 - place)][index];
    };
    T result = valueOf(first);
    for (int step = 1; step < n; ++step)
      result = combine(result, valueOf((first + step) % n), op == WL_AVG ? WL_SUM : op);
    return op == WL_AVG ? static_cast<T>(result / static_cast<T>(n)) : result;
  }

  // A left fold of one element over the first ranks.
  T prefix(uint64_t index, int ranks, int op) const {
    if (ranks == 0) return identity<T>(op);
    T result = inputs[0][index];
    for (int rank = 1; rank < ranks; ++rank)
      result = combine(result, inputs[static_cast<size_t>(rank)][index], op);
    return result;
  }

  // A premultiplied sum of one element over the first ranks.
  T premultiplied(uint64_t index, int ranks) const {
    T result = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const T product =
          static_cast<T>(factorOf(rank)) * inputs[static_cast<size_t>(rank)][index];
      result = rank == 0 ? product : result + product;
    }
    return result;
  }

  // A ring's order: a chunk starts at its own rank's right neighbour's left, and travels one way
  // round.
  T ringFold(uint64_t index, uint64_t start, uint64_t length, bool right, int op) const {
    const auto size = static_cast<uint64_t>(n);
    const uint64_t chunk = ((length + size - 1) / size + 63) / 64 * 64;
    return fold(index, static_cast<int>((index * sizeof(T) - start) / chunk), right, op);
  }

  int n;
  std::vector<Elements> inputs;  // of each rank, enough for one part a rank
  Elements gathered;             // the first part of each rank
  Elements folded[WL_REDUCE_OP_COUNT], oneRing[WL_REDUCE_OP_COUNT], twoRings[WL_REDUCE_OP_COUNT];
};

template <class T>
void compare(const T* got, const T* want, uint64_t count, const std::string& what) {
  if (count == 0 || std::memcmp(got, want, count * sizeof(T)) == 0) return;
  for (uint64_t i = 0; i < count; ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) {
      ADD_FAILURE() << what << ": element " << i << " is " << +got[i] << ", not " << +want[i];
      return;
    }
  }
}

// Scans, and premultiplied sums of each operation that has them.
template <class T>
void checkScans(const Reference<T>& want, wl_comm_t* comm, int rank, uint64_t count,
                const std::string& where) {
  const auto n = static_cast<uint64_t>(want.n);
  const int dtype = Typed<T>::kDType;
  const std::vector<T>& in = want.inputs[static_cast<size_t>(rank)];
  const bool hasSums = wl_dtype_can_reduce(dtype, WL_SUM) != 0;
  std::vector<T> out(count + 1), expected(count + 1);
  const auto check = [&](wl_operation operation, int op, uint64_t inCount, uint64_t elements,
                         auto&& element) {
    wl_call_t call = collectiveOf(operation, in.data(), inCount, out.data(), count, dtype, op,
                                  WL_AUTO, want.n - 1, 0, 0);
    call.factor = factorOf(rank);
    std::fill(out.begin(), out.end(), T(77));
    Error error;
    ASSERT_EQ(WL_OK, wl_submit(comm, &call, &error)) << error.message;
    for (uint64_t i = 0; i < elements; ++i) expected[i] = element(i);
    expected[elements] = T(77);
    compare(out.data(), expected.data(), elements + 1,
            std::string(wl_operation_name(operation)) + ", op " + std::to_string(op) + ", " +
                where);
  };
  for (int op = 0; op < WL_REDUCE_OP_COUNT; ++op) {
    if (wl_dtype_can_reduce(dtype, op) == 0 || op == WL_AVG) continue;
    check(WL_OP_SCAN, op, count, count, [&](uint64_t i) { return want.prefix(i, rank + 1, op); });
    check(WL_OP_EXCLUSIVE_SCAN, op, count, count,
          [&](uint64_t i) { return want.prefix(i, rank, op); });
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!hasSums) return;
    const int op = WL_PREMULTIPLIED_SUM;
    const uint64_t before = count * static_cast<uint64_t>(rank);
    const auto ofAll = [&](uint64_t i) { return want.premultiplied(i, want.n); };
    check(WL_OP_SCAN, op, count, count,
          [&](uint64_t i) { return want.premultiplied(i, rank + 1); });
    check(WL_OP_EXCLUSIVE_SCAN, op, count, count,
          [&](uint64_t i) { return want.premultiplied(i, rank); });
    check(WL_OP_ALL_REDUCE, op, count, count, ofAll);
    check(WL_OP_REDUCE, op, count, rank == want.n - 1 ? count : 0, ofAll);
    check(WL_OP_REDUCE_SCATTER, op, count * n, count,
          [&](uint64_t i) { return ofAll(before + i); });
  }
}

class Reductions : public testing::TestWithParam<std::tuple<int, int>> {};

// Elements: none, one, odd, around a stage, around shared work, several pieces.
constexpr uint64_t kCounts[] = {0, 1, 5, 1023, 1025, 12'289};
constexpr uint64_t kLarge = 70'001;

template <class T>
void checkAll(LocalRanks& ranks, const std::vector<uint64_t>& counts) {
  const int n = ranks.size();
  const auto size = static_cast<uint64_t>(n);
  const int dtype = Typed<T>::kDType;
  for (const uint64_t count : counts) {
    const Reference<T> want(n, count);
    for (const bool inPlace : {false, true}) {
      ranks.run([&](int rank, wl_comm_t* comm) {
        const std::string where = std::to_string(n) + " ranks, rank " + std::to_string(rank) +
                                  ", " + std::to_string(count) + " elements" +
                                  (inPlace ? ", in place" : "");
        const uint64_t before = count * static_cast<uint64_t>(rank);  // of the lower ranks' parts
        Error error;
        std::vector<T> whole(count * size + 8), part(count + 8);
        const T* own = want.inputs[static_cast<size_t>(rank)].data();
        const auto fillWhole = [&] { std::copy_n(own, count * size, whole.data()); };
        const auto fillPart = [&](T* to) { std::copy_n(own, count, to); };
        T* ownPart = inPlace ? whole.data() + before : part.data();

        fillPart(ownPart);
        ASSERT_EQ(WL_OK, allGather(comm, ownPart, whole.data(), count, dtype, 0, &error))
            << error.message;
        compare(whole.data(), want.gathered.data(), count * size, "all-gather, " + where);

        const int root = n - 1;
        fillPart(ownPart);
        ASSERT_EQ(WL_OK, gather(comm, ownPart, rank == root ? whole.data() : nullptr, count,
                                   dtype, root, 0, &error))
            << error.message;
        if (rank == root)
          compare(whole.data(), want.gathered.data(), count * size, "gather, " + where);

        fillWhole();
        ASSERT_EQ(WL_OK, scatter(comm, rank == root ? whole.data() : nullptr, ownPart, count,
                                    dtype, root, 0, &error))
            << error.message;
        compare(ownPart, want.inputs[static_cast<size_t>(root)].data() + before, count,
                "scatter, " + where);

        for (int op = 0; op < WL_REDUCE_OP_COUNT; ++op) {
          if (wl_dtype_can_reduce(dtype, op) == 0) continue;
          const std::string which = "op " + std::to_string(op) + ", " + where;
          fillWhole();
          ASSERT_EQ(WL_OK,
                    reduceScatter(comm, whole.data(), ownPart, count, dtype, op, 0, &error))
              << error.message;
          compare(ownPart, want.folded[op].data() + before, count, "reduce-scatter, " + which);

          T* out = inPlace ? part.data() : whole.data();
          fillPart(part.data());
          ASSERT_EQ(WL_OK, reduce(comm, part.data(), rank == 0 ? out : nullptr, count, dtype, op,
                                     0, 0, &error))
              << error.message;
          if (rank == 0) compare(out, want.folded[op].data(), count, "reduce, " + which);

          for (const int algorithm :
               {WL_AUTO, WL_ONE_PHASE, WL_TWO_PHASE, WL_RING, WL_BIDIRECTIONAL_RING}) {
            fillPart(part.data());
            const int code =
                allReduce(comm, part.data(), out, count, dtype, op, algorithm, 0, &error);
            if (code == WL_INVALID_ARGUMENT && algorithm == WL_ONE_PHASE && inPlace) {
              EXPECT_NE(nullptr, std::strstr(error.message, "in place")) << error.message;
              continue;
            }
            ASSERT_EQ(WL_OK, code) << error.message;
            // Ordinary memory is pulled between processes, and between devices, in the canonical
            // order.
            const T* canonical = want.folded[op].data();
            const bool mayBePulled = ranks.others || isChecked();
            const bool isPulled =
                mayBePulled && std::memcmp(out, canonical, count * sizeof(T)) == 0;
            compare(out, isPulled ? canonical : want.reduced(algorithm, op).data(), count,
                    "all-reduce by algorithm " + std::to_string(algorithm) + ", " + which);
          }
        }
        if (!inPlace) checkScans(want, comm, rank, count, where);
        EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error))
            << "buffers are read until every rank is done";
      });
    }
  }
}

TEST_P(Reductions, MatchTheSlowReference) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000'000'000, 0xfffffff0u, cores);
  const std::vector<uint64_t> counts(std::begin(kCounts), std::end(kCounts));
  if (few()) {
    checkAll<float>(ranks, {1, 1025, 6'145});
    return;
  }
  checkAll<float>(ranks, counts);
  checkAll<float>(ranks, {kLarge});
  checkAll<double>(ranks, counts);
  checkAll<int32_t>(ranks, counts);
  checkAll<uint8_t>(ranks, counts);
  checkAll<int64_t>(ranks, counts);
}

INSTANTIATE_TEST_SUITE_P(RanksAndCores, Reductions,
                         testing::Combine(testing::ValuesIn(rankCounts()),
                                          testing::Values(1, 64)));

// Inputs are rewritten as soon as a call returns, outputs checked each time, thousands of times.
TEST(ReductionSoak, KeepsItsBitsOverAndOver) {
  for (const int n : {2, 3, 8}) {
    for (const int cores : {0, 64}) {
      LocalRanks ranks(n, 30'000'000'000, 0x7fffffe0u, cores);
      std::atomic<int> wrong{0};
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        const auto size = static_cast<uint64_t>(n);
        constexpr uint64_t kMost = 3000;
        std::vector<int32_t> in(kMost * size), out(kMost * size);
        std::mt19937 common(17), own(static_cast<uint32_t>(rank));
        const auto value = [](int from, int i, uint64_t e) {
          return static_cast<int32_t>(
              stamp(static_cast<uint32_t>(i), static_cast<uint32_t>(from), 0, e) >> 8);
        };
        const auto sum = [&](int i, uint64_t e) {
          int32_t total = 0;
          for (int from = 0; from < n; ++from) total += value(from, i, e);
          return total;
        };
        for (int i = 0; i < std::max(40, 2000 / slow()) && wrong == 0; ++i) {
          const uint64_t count = common() % kMost;
          const uint32_t kind = common() % 6;
          const int root = static_cast<int>(common() % size);
          const auto me = static_cast<uint64_t>(rank);
          for (uint64_t e = 0; e < count * size; ++e) in[e] = value(rank, i, e);
          if (own() % 64 == 0) spinFor(static_cast<int64_t>(own() % 20'000));
          int code = WL_OK;
          uint64_t outputs = count;
          std::function<int32_t(uint64_t)> want = [&](uint64_t e) { return sum(i, e); };
          switch (kind) {
            case 0:
              code = allReduce(comm, in.data(), out.data(), count, WL_I32, WL_SUM, WL_AUTO, 0,
                                   &error);
              break;
            case 1:
              code = reduce(comm, in.data(), out.data(), count, WL_I32, WL_SUM, root, 0, &error);
              if (rank != root) outputs = 0;
              break;
            case 2:
              code =
                  reduceScatter(comm, in.data(), out.data(), count, WL_I32, WL_SUM, 0, &error);
              want = [&](uint64_t e) { return sum(i, me * count + e); };
              break;
            case 3:
              code = allGather(comm, in.data(), out.data(), count, WL_I32, 0, &error);
              outputs = count * size;
              want = [&](uint64_t e) { return value(static_cast<int>(e / count), i, e % count); };
              break;
            case 4:
              code = gather(comm, in.data(), out.data(), count, WL_I32, root, 0, &error);
              outputs = rank == root ? count * size : 0;
              want = [&](uint64_t e) { return value(static_cast<int>(e / count), i, e % count); };
              break;
            default:
              code = scatter(comm, in.data(), out.data(), count, WL_I32, root, 0, &error);
              want = [&](uint64_t e) { return value(root, i, me * count + e); };
          }
          std::fill(in.begin(), in.end(), -1);
          ASSERT_EQ(WL_OK, code) << error.message;
          for (uint64_t e = 0; e < outputs; ++e) wrong += out[e] != want(e);
        }
      });
      EXPECT_EQ(0, wrong) << n << " ranks, " << cores << " cores";
    }
  }
}

// One all-reduce of which every rank keeps the canonical fold.
template <class T>
void checkLong(wl_comm_t* comm, int rank, int n, uint64_t count, uint64_t first, int op,
               bool inPlace, const std::string& what) {
  std::vector<T> in(count), out(inPlace ? 0 : count), want(count);
  for (uint64_t i = 0; i < count; ++i) {
    in[i] = elementAt<T>(rank, first + i);
    T fold = elementAt<T>(0, first + i);
    for (int from = 1; from < n; ++from)
      fold = combine(fold, elementAt<T>(from, first + i), op == WL_AVG ? WL_SUM : op);
    want[i] = op == WL_AVG ? static_cast<T>(fold / static_cast<T>(n)) : fold;
  }
  T* const result = inPlace ? in.data() : out.data();
  Error error;
  ASSERT_EQ(WL_OK, allReduce(comm, in.data(), result, count, Typed<T>::kDType, op, WL_AUTO, 0,
                             &error))
      << error.message;
  compare(result, want.data(), count, what);
}

// Reductions of many pieces alternate with short operations that use the same memory. Without
// shared memory, long reductions take another path than short ones.
TEST(LongReductions, KeepTheirBitsInTurnWithOthers) {
  for (const int n : rankCounts()) {
    LocalRanks ranks(n);
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::mt19937_64 common(seed() + static_cast<uint64_t>(n));
      const auto size = static_cast<uint64_t>(n);
      for (int i = 0; i < (longForm() ? 60 : kSlow > 1 ? 12 : 6) / (kSlow > 1 ? 4 : 1); ++i) {
        const uint64_t count = common() % (i % 3 == 0 ? 600'000 : 140'000);
        const uint64_t first = common();
        const bool inPlace = common() % 2 == 0;
        const uint32_t kind = common() % 5;
        const std::string what = "step " + std::to_string(i) + " of " + std::to_string(n) +
                                 " ranks, rank " + std::to_string(rank);
        if (kind == 0) checkLong<float>(comm, rank, n, count, first, WL_SUM, inPlace, what);
        if (kind == 1) checkLong<float>(comm, rank, n, count, first, WL_AVG, inPlace, what);
        if (kind == 2) checkLong<double>(comm, rank, n, count, first, WL_PRODUCT, inPlace, what);
        if (kind == 3) checkLong<int32_t>(comm, rank, n, count, first, WL_SUM, inPlace, what);
        if (kind == 4) checkLong<uint8_t>(comm, rank, n, count, first, WL_MAX, inPlace, what);
        if (testing::Test::HasFailure()) return;
        Error error;
        std::vector<int32_t> in(count / 8 * size), out(count / 8 * size);
        for (uint64_t e = 0; e < in.size(); ++e) in[e] = static_cast<int32_t>(e + first) * rank;
        ASSERT_EQ(WL_OK, allToAll(comm, in.data(), out.data(), count / 8, WL_I32, WL_AUTO, 0,
                                  &error))
            << error.message;
        for (uint64_t e = 0; e < out.size(); ++e) {
          const uint64_t from = e / (count / 8);
          const uint64_t at = static_cast<uint64_t>(rank) * (count / 8) + e % (count / 8);
          const int32_t want = static_cast<int32_t>(at + first) * static_cast<int32_t>(from);
          ASSERT_EQ(want, out[e]) << what << ": element " << e << " of the exchange";
        }
      }
    });
  }
}

// Values whose sums are exact in any order, so that rings are held to them too.
TEST(LongReductions, PremultipliedSumsAreOfEveryRanksFactor) {
  if (wl_dtype_can_reduce(WL_F32, WL_SUM) == 0) return;
  for (const int n : rankCounts()) {
    LocalRanks ranks(n);
    ranks.run([&](int rank, wl_comm_t* comm) {
      for (const uint64_t count : {3u, 2'000u, 60'000u}) {
        for (const int algorithm :
             {WL_AUTO, WL_ONE_PHASE, WL_TWO_PHASE, WL_RING, WL_BIDIRECTIONAL_RING}) {
          std::vector<float> in(count), out(count);
          for (uint64_t i = 0; i < count; ++i)
            in[i] = static_cast<float>(i % 100 + static_cast<uint64_t>(rank));
          wl_call_t call = collectiveOf(WL_OP_ALL_REDUCE, in.data(), count, out.data(), count,
                                        WL_F32, WL_PREMULTIPLIED_SUM, algorithm, 0, 0, 0);
          call.factor = 0.25 * (rank + 1);
          Error error;
          ASSERT_EQ(WL_OK, wl_submit(comm, &call, &error)) << error.message;
          for (uint64_t i = 0; i < count; ++i) {
            float sum = 0;
            for (int from = 0; from < n; ++from)
              sum += 0.25f * static_cast<float>(from + 1) *
                     static_cast<float>(i % 100 + static_cast<uint64_t>(from));
            ASSERT_EQ(sum, out[i]) << "element " << i << " of " << count << ", algorithm "
                                   << algorithm << ", rank " << rank << " of " << n;
          }
        }
      }
    });
  }
}

TEST(ReductionArguments, AreCheckedBeforeAnythingIsSent) {
  LocalRanks ranks(1);
  wl_comm_t* comm = ranks.comms[0];
  Error error;
  alignas(64) float buffer[64] = {};
  EXPECT_EQ(WL_UNSUPPORTED,
            allReduce(comm, buffer, buffer + 32, 4, WL_I32, WL_AVG, 0, 0, &error));
  EXPECT_EQ(WL_UNSUPPORTED,
            allReduce(comm, buffer, buffer + 32, 4, WL_BOOL, WL_SUM, 0, 0, &error));
  const auto refused = [&](int code, wl_operation operation, float* out, int dtype, int op,
                           const std::string& says) {
    EXPECT_EQ(code, callCollective(comm, operation, buffer, 4, out, 4, dtype, op, 0, 0, 2, 0,
                                   &error));
    EXPECT_TRUE(contains(error.message, says));
  };
  float* const other = buffer + 32;
  for (const int op : {WL_AND, WL_OR, WL_XOR}) {
    refused(WL_UNSUPPORTED, WL_OP_ALL_REDUCE, other, WL_F32, op,
            std::string("allReduce: dtype f32 doesn't reduce with ") +
                (op == WL_AND ? "and" : op == WL_OR ? "or" : "xor"));
    refused(WL_UNSUPPORTED, WL_OP_SCAN, other, WL_BOOL, op, "scan: dtype bool doesn't reduce");
    if (wl_dtype_can_reduce(WL_I32, op) == 0) {
      refused(WL_UNSUPPORTED, WL_OP_ALL_REDUCE, other, WL_I32, op,
              std::string(wl_target()) + " has no bitwise instructions");
    }
  }
  refused(WL_UNSUPPORTED, WL_OP_ALL_REDUCE, other, WL_I32, WL_PREMULTIPLIED_SUM,
          "dtype i32 doesn't reduce with premultiplied-sum");
  refused(WL_UNSUPPORTED, WL_OP_SCAN, other, WL_F32, WL_AVG, "scan: avg does not scan");
  refused(WL_UNSUPPORTED, WL_OP_EXCLUSIVE_SCAN, other, WL_F32, WL_AVG,
          "exclusiveScan: avg does not scan");
  refused(WL_INVALID_ARGUMENT, WL_OP_SCAN, buffer, WL_F32, WL_SUM, "does not work in place");
  refused(WL_INVALID_ARGUMENT, WL_OP_REDUCE_SCATTER_DIM, buffer, WL_F32, WL_SUM,
          "does not work in place");
  const int64_t four[] = {4};
  EXPECT_EQ(WL_UNSUPPORTED, callReduceScatterV(comm, buffer, 4, other, 4, four, WL_F32,
                                               WL_PREMULTIPLIED_SUM, 0, &error));
  EXPECT_TRUE(contains(error.message, "dtype f32 doesn't reduce with premultiplied-sum"));
  EXPECT_EQ(WL_UNSUPPORTED, reduce(comm, buffer, buffer + 32, 4, WL_C64, WL_SUM, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            allReduce(comm, buffer, buffer + 32, 4, WL_F32, WL_REDUCE_OP_COUNT, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            allReduce(comm, buffer, buffer + 32, 4, WL_F32, WL_SUM, WL_PUSH, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            allReduce(comm, buffer, buffer + 2, 4, WL_F32, WL_SUM, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, allGather(comm, buffer, buffer + 1, 4, WL_F32, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            reduceScatter(comm, buffer + 1, buffer, 4, WL_F32, WL_SUM, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, scatter(comm, buffer, buffer + 32, 4, WL_F32, 1, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, gather(comm, buffer, buffer + 32, 4, WL_F32, -1, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, reduce(comm, nullptr, buffer, 4, WL_F32, WL_SUM, 0, 0, &error));
  LocalRanks many(200);
  EXPECT_EQ(WL_UNSUPPORTED, allReduce(many.comms[0], buffer, buffer + 32, 4, WL_F32, WL_SUM,
                                          WL_RING, 0, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "phases")) << error.message;
}

}  // namespace reductions_test
}  // namespace windlass_test
