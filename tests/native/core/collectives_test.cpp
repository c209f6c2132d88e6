// SPDX-License-Identifier: Apache-2.0
// Collectives give the right bits over and over on one window, with inputs rewritten as soon as a
// call returns, random delays, sequences about to wrap, and busy threads beside.
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

#include <cstring>
#include <tuple>

namespace windlass_test {
namespace collectives_test {

struct Case {
  int ranks;
  int cores;  // 1: always counts arrivals; 64: always direct
  uint32_t firstSequence;
  int busy;
  int iterations;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.ranks << " ranks, " << c.cores << " cores, first sequence " << c.firstSequence << ", "
       << c.busy << " busy threads, " << c.iterations << " iterations";
}

class Soak : public testing::TestWithParam<Case> {};

// Sizes around the borders: eager-sized, shared work, pieces.
constexpr uint64_t kCounts[] = {1, 0, 3, 16, 257, 1000, 4096, 9000};
constexpr uint64_t kLargest = 9000;

TEST_P(Soak, MixedOperationsKeepTheirBits) {
  const Case c = GetParam();
  const uint64_t firstSeed = seed();
  BusyThreads busy(c.busy);
  LocalRanks ranks(c.ranks, 30'000'000'000, c.firstSequence, c.cores);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_window_t* window = nullptr;
    const uint64_t half = kLargest * 4 * static_cast<uint64_t>(c.ranks);
    ASSERT_EQ(WL_OK, wl_window_create(comm, 2 * half, 0, &window, &error)) << error.message;
    auto* in = static_cast<uint32_t*>(wl_window_address(window, rank));
    uint32_t* out = in + half / 4;
    std::mt19937_64 own(firstSeed + static_cast<uint64_t>(rank));
    std::mt19937_64 common(firstSeed * 31);
    const auto n = static_cast<uint32_t>(c.ranks);
    const auto me = static_cast<uint32_t>(rank);
    for (uint32_t i = 0; i < static_cast<uint32_t>(c.iterations) && wrong == 0; ++i) {
      const uint64_t count = kCounts[common() % 8];
      const uint32_t kind = static_cast<uint32_t>(common() % 5);
      const auto root = static_cast<uint32_t>(common() % n);
      if (own() % 64 == 0) spinFor(static_cast<int64_t>(own() % 30'000));
      int code = WL_OK;
      if (kind <= 1) {
        for (uint32_t to = 0; to < n; ++to) {
          for (uint64_t e = 0; e < count; ++e) in[to * count + e] = stamp(i, me, to, e);
        }
        code =
            allToAll(comm, in, out, count, WL_U32, kind == 0 ? WL_PUSH : WL_PULL, 0, &error);
        std::memset(in, 0xee, n * count * 4);
        for (uint32_t from = 0; from < n && code == WL_OK; ++from) {
          for (uint64_t e = 0; e < count; ++e)
            wrong += out[from * count + e] != stamp(i, from, me, e);
        }
      } else if (kind <= 3) {
        const bool inPlace = kind == 3;
        for (uint64_t e = 0; e < count && me == root; ++e)
          (inPlace ? out : in)[e] = stamp(i, root, 0, e);
        code = broadcast(comm, inPlace ? out : in, out, count, WL_U32, static_cast<int>(root),
                            WL_AUTO, 0, &error);
        if (!inPlace) std::memset(in, 0xdd, count * 4);
        for (uint64_t e = 0; e < count && code == WL_OK; ++e)
          wrong += out[e] != stamp(i, root, 0, e);
      } else {
        code = callBarrier(comm, 0, &error);
      }
      if (code != WL_OK) {
        ADD_FAILURE() << "rank " << rank << " iteration " << i << ": " << error.message;
        ++wrong;
        break;
      }
    }
    wl_window_free(window);
  });
  EXPECT_EQ(0, wrong);
}

// Operations after which a sequence that begins 32 before it wraps has done so.
constexpr int kPastWrap = 40;

std::vector<Case> cases() {
  std::vector<Case> all;
  std::vector<int> counts = rankCounts();
  if (!few()) counts.push_back(16);
  for (const int ranks : counts) {
    const int iterations = (ranks <= 2   ? 10'000
                            : ranks <= 4 ? 4'000
                            : ranks <= 8 ? 1'000
                                         : 400) /
                           slow();
    all.push_back({ranks, 1, 1, 0, iterations});
    all.push_back({ranks, 0, 0x7fffffe0u, 0, std::max(kPastWrap, iterations)});
    all.push_back({ranks, 0, 0xffffffe0u, 0, std::max(kPastWrap, iterations)});
    if (ranks > 1) all.push_back({ranks, 0, 1, 1, 400 / slow()});
    if (ranks > 1) all.push_back({ranks, 0, 1, 2, 400 / slow()});
  }
  // The sequence that follows 2^32 - 1.
  all.push_back({2, 0, 0, 0, 2'000 / slow()});
  all.push_back({3, 1, 0, 0, 1'000 / slow()});
  // Direct with more ranks than this machine may have cores: correct, if slow.
  all.push_back({4, 64, 0xffffffe0u, 0, std::max(kPastWrap, 1'000 / slow())});
  all.push_back({7, 64, 1, 0, 600 / slow()});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ranks, Soak, testing::ValuesIn(cases()));

struct Shape {
  int ranks;
  int cores;
  int algorithm;
};

class Sizes : public testing::TestWithParam<std::tuple<int, int>> {};

constexpr uint64_t kTile = 16384;

uint64_t severalTiles() {
  if (kSlow > 1) return 100'001;
  return longForm() ? 600'001 : 200'001;
}

TEST_P(Sizes, AllToAllMovesEveryByte) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000'000'000, 1, cores);
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{13}, kTile - 1, kTile, kTile + 1, severalTiles()}) {
    for (const int algorithm : {WL_AUTO, WL_PUSH, WL_PULL}) {
      ranks.run([&, size = static_cast<uint64_t>(n)](int rank, wl_comm_t* comm) {
        std::vector<uint8_t> in(bytes * size), out(bytes * size);
        for (uint64_t i = 0; i < in.size(); ++i) {
          in[i] = static_cast<uint8_t>(
              stamp(7, static_cast<uint32_t>(rank), static_cast<uint32_t>(i / bytes), i % bytes));
        }
        Error error;
        ASSERT_EQ(WL_OK,
                  allToAll(comm, in.data(), out.data(), bytes, WL_U8, algorithm, 0, &error))
            << error.message;
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < out.size(); ++i) {
          wrong += out[i] != static_cast<uint8_t>(stamp(7, static_cast<uint32_t>(i / bytes),
                                                        static_cast<uint32_t>(rank), i % bytes));
        }
        EXPECT_EQ(0u, wrong) << bytes << " bytes, rank " << rank;
      });
    }
  }
}

TEST_P(Sizes, BroadcastReachesEveryRankFromEveryRoot) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000'000'000, 1, cores);
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{13}, kTile - 1, kTile, kTile + 1, 3 * severalTiles()}) {
    for (int root = 0; root < n; ++root) {
      ranks.run([&, root](int rank, wl_comm_t* comm) {
        std::vector<uint8_t> in(bytes), out(bytes);
        for (uint64_t i = 0; i < bytes && rank == root; ++i)
          in[i] = static_cast<uint8_t>(stamp(9, 0, 0, i));
        Error error;
        ASSERT_EQ(WL_OK,
                  broadcast(comm, in.data(), out.data(), bytes, WL_U8, root, WL_AUTO, 0, &error))
            << error.message;
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < bytes; ++i)
          wrong += out[i] != static_cast<uint8_t>(stamp(9, 0, 0, i));
        EXPECT_EQ(0u, wrong) << bytes << " bytes, root " << root << ", rank " << rank;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RanksAndCores, Sizes,
                         testing::Combine(testing::ValuesIn(rankCounts()),
                                          testing::Values(1, 64)));

// With one core, 16 MiB in all exceed the caches.
class Outgrown : public testing::TestWithParam<int> {};

TEST_P(Outgrown, StreamsEveryByte) {
  const int n = GetParam();
  LocalRanks ranks(n, 30'000'000'000, 1, 1);
  const auto size = static_cast<uint64_t>(n);
  const int root = n - 1;
  const uint64_t all = (uint64_t{17} << 20) / size + 1;
  const uint64_t each = all / size + 1;
  const auto byteOf = [](int rank, uint64_t i) {
    return static_cast<uint8_t>(stamp(11, static_cast<uint32_t>(rank), 0, i));
  };
  // `length` bytes of each rank's, one after the other.
  const auto expected = [&](uint64_t length) {
    std::vector<uint8_t> bytes(size * length);
    for (uint64_t i = 0; i < bytes.size(); ++i)
      bytes[i] = byteOf(static_cast<int>(i / length), i % length);
    return bytes;
  };
  const std::vector<uint8_t> gatheredByAll = expected(each);
  const std::vector<uint8_t> gathered = expected(all);
  std::vector<uint8_t> summed(all);
  for (uint64_t i = 0; i < gathered.size(); ++i)
    summed[i % all] = static_cast<uint8_t>(summed[i % all] + gathered[i]);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const auto own = [&](uint64_t length) {
      std::vector<uint8_t> bytes(length);
      for (uint64_t i = 0; i < length; ++i) bytes[i] = byteOf(rank, i);
      return bytes;
    };
    const std::vector<uint8_t> in = own(all);
    std::vector<uint8_t> out(size * all);
    ASSERT_EQ(WL_OK, gather(comm, in.data(), out.data(), all, WL_U8, root, 0, &error))
        << error.message;
    EXPECT_TRUE(rank != root || out == gathered) << "gather";
    std::vector<uint8_t> part(all);
    ASSERT_EQ(WL_OK, scatter(comm, gathered.data(), part.data(), all, WL_U8, root, 0, &error))
        << error.message;
    EXPECT_TRUE(part == in) << "scatter, rank " << rank;
    ASSERT_EQ(WL_OK,
              broadcast(comm, in.data(), part.data(), all, WL_U8, root, WL_AUTO, 0, &error))
        << error.message;
    EXPECT_TRUE(std::equal(part.begin(), part.end(), gathered.end() - static_cast<long>(all)))
        << "broadcast, rank " << rank;
    out.resize(size * each);
    ASSERT_EQ(WL_OK, allGather(comm, own(each).data(), out.data(), each, WL_U8, 0, &error))
        << error.message;
    EXPECT_TRUE(out == gatheredByAll) << "all-gather, rank " << rank;
    for (const bool inPlace : {false, true}) {
      part = inPlace ? in : std::vector<uint8_t>(all);
      const void* terms = inPlace ? part.data() : in.data();
      ASSERT_EQ(WL_OK,
                allReduce(comm, terms, part.data(), all, WL_U8, WL_SUM, WL_AUTO, 0, &error))
          << error.message;
      EXPECT_TRUE(part == summed) << "all-reduce, rank " << rank;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Outgrown,
                         testing::ValuesIn(few() ? std::vector<int>{3}
                                                 : std::vector<int>{2, 3, 8}));

TEST(Barrier, NobodyLeavesBeforeAllHaveCome) {
  for (const int cores : {1, 64}) {
    for (const int n : {2, 5, 16}) {
      Shared<std::atomic<int>> came;
      LocalRanks ranks(n, 20'000'000'000, 1, cores);
      std::atomic<int> early{0};
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        for (int i = 1; i <= 200 / kSlow; ++i) {
          if ((i + rank) % 50 == 0) spinFor(20'000);
          came->fetch_add(1);
          ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
          if (came->load() < i * n) early.fetch_add(1);
          ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        }
      });
      EXPECT_EQ(0, early) << n << " ranks";
    }
  }
}

// A reader of a broadcast waits for the root alone where ranks have cores.
TEST(Broadcast, AReaderDoesNotWaitForOtherReaders) {
  Shared<std::atomic<bool>> secondIsDone;
  LocalRanks ranks(3, 20'000'000'000, 1, 64);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint32_t value = rank == 0 ? 42 : 0;
    if (rank == 1) {
      const int64_t start = wl_clock_ns();
      while (!*secondIsDone && wl_clock_ns() - start < 15'000'000'000) std::this_thread::yield();
      EXPECT_TRUE(*secondIsDone);
    }
    ASSERT_EQ(WL_OK, broadcast(comm, &value, &value, 1, WL_U32, 0, WL_AUTO, 0, &error))
        << error.message;
    EXPECT_EQ(42u, value);
    if (rank == 2) *secondIsDone = true;
  });
}

}  // namespace collectives_test
}  // namespace windlass_test
