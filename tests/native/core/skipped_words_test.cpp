// SPDX-License-Identifier: Apache-2.0
// Words of the control block that some operations don't write, where so many of those have left
// them that a narrower word would come round.
#include <algorithm>

#include "native/core/collectives.h"
#include "tests/native/core/comms.h"

namespace windlass_test {
namespace skipped_words_test {

using windlass::Comm;
using windlass::Group;

constexpr uint64_t kRound = uint64_t{1} << 32;

struct Left {
  uint32_t ranks;
  uint32_t cores;    // 1: always counts arrivals; 64: always direct
  uint64_t skipped;  // operations since the words were written
  uint64_t first;    // the operation that follows them
};

void PrintTo(const Left& left, std::ostream* out) {
  *out << left.ranks << " ranks, " << left.cores << " cores, " << left.skipped
       << " operations skipped before #" << left.first;
}

// As an operation of one phase left every word, before all the others came that skip it.
void leaveWords(Group& group, const Left& left) {
  const uint64_t last = left.first - 1 - left.skipped;
  for (uint32_t rank = 0; rank < left.ranks; ++rank) {
    windlass::RankLines& lines = group.lines(rank);
    lines.done.word.store(windlass::phaseWord(last, 1));
    lines.work.next.store(windlass::workWord(last, 1, 0));
  }
  group.shared().released.store(last);
  group.shared().openPhase.store(windlass::phaseWord(last, 0));
}

class SkippedWords : public testing::TestWithParam<Left> {
 protected:
  SkippedWords() : ranks(GetParam().ranks, GetParam().cores, GetParam().first, 30'000 * kMs) {
    leaveWords(*ranks.group, GetParam());
  }

  Comms ranks;
};

TEST_P(SkippedWords, NoRankLeavesABarrierAlone) {
  const uint32_t n = GetParam().ranks;
  std::vector<std::atomic<int>> entered(n);
  ranks.run([&](uint32_t rank, Comm& comm) {
    Error error;
    for (int i = 1; i <= 3; ++i) {
      // Each of them is late once.
      if (rank == static_cast<uint32_t>(i) % n)
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      entered[rank] = i;
      ASSERT_EQ(WL_OK, runBarrier(comm, 0, &error)) << error.message;
      for (uint32_t peer = 0; peer < n; ++peer) {
        EXPECT_GE(entered[peer], i) << "rank " << rank << " left before rank " << peer << " came";
      }
    }
  });
}

TEST_P(SkippedWords, ARootLeavesALargeBroadcastAfterItsReaders) {
  constexpr uint64_t kCount = (kSlow > 1 ? uint64_t{256} << 10 : uint64_t{4} << 20) / 4;
  ranks.run([&](uint32_t rank, Comm& comm) {
    Error error;
    std::vector<uint32_t> data(kCount);
    for (uint32_t i = 0; i < 3; ++i) {
      const uint32_t root = i % GetParam().ranks;
      if (rank == root) std::fill(data.begin(), data.end(), stamp(i, root, 0, 0));
      ASSERT_EQ(WL_OK, runCollective(comm, WL_OP_BROADCAST, data.data(), data.data(), kCount,
                                     WL_AUTO, root, &error))
          << error.message;
      const auto right = std::count(data.begin(), data.end(), stamp(i, root, 0, 0));
      EXPECT_EQ(kCount, static_cast<uint64_t>(right))
          << "right on rank " << rank << ", root " << root;
      // First what its readers read last.
      for (uint64_t e = kCount; rank == root && e-- > 0;) data[e] = 0;
    }
  });
}

// Operations of one phase and of two, equal parts and parts that differ, small ones and claimed.
TEST_P(SkippedWords, EveryOperationGivesTheRightBits) {
  const uint32_t n = GetParam().ranks;
  ranks.run([&](uint32_t rank, Comm& comm) {
    Error error;
    constexpr uint64_t kClaimed = kSlow > 1 ? 13'000 : 50'000;
    for (const uint64_t count : {kClaimed, uint64_t{3}, uint64_t{9'000}}) {
      const std::vector<int64_t> counts(n, static_cast<int64_t>(count));
      std::vector<uint32_t> in(n * count);
      std::vector<uint32_t> out(n * count);
      std::vector<int64_t> received(n);
      for (uint32_t to = 0; to < n; ++to) {
        for (uint64_t i = 0; i < count; ++i) in[to * count + i] = stamp(1, rank, to, i);
      }
      wl_call_t call = allToAllVOf(in.data(), in.size(), counts.data(), nullptr, out.data(),
                                   out.size(), counts.data(), nullptr, WL_U32, 0);
      call.received_counts = received.data();
      const auto check = [&](windlass::Code code, const char* what) {
        ASSERT_EQ(WL_OK, code) << what << ": " << error.message;
        for (uint32_t from = 0; from < n; ++from) {
          for (uint64_t i = 0; i < count; ++i) {
            ASSERT_EQ(stamp(1, from, rank, i), out[from * count + i])
                << what << " of " << count << ", rank " << rank << " from " << from;
          }
        }
        std::fill(out.begin(), out.end(), 0);
      };
      check(windlass::allToAllV(comm, call, &error, nullptr), "all-to-all-v");
      check(windlass::allToAllVPacked(comm, call, &error), "packed all-to-all-v");
      check(runCollective(comm, WL_OP_ALL_TO_ALL, in.data(), out.data(), count, WL_PUSH, 0, &error),
            "all-to-all");
      check(runCollective(comm, WL_OP_ALL_TO_ALL, in.data(), out.data(), count, WL_PULL, 0, &error),
            "pulled all-to-all");
      std::vector<uint32_t> sums(count);
      ASSERT_EQ(WL_OK, runCollective(comm, WL_OP_ALL_REDUCE, in.data(), sums.data(), count, WL_RING,
                                     0, &error))
          << error.message;
      for (uint64_t i = 0; i < count; ++i) {
        uint32_t sum = 0;
        for (uint32_t from = 0; from < n; ++from) sum += stamp(1, from, 0, i);
        ASSERT_EQ(sum, sums[i]) << "ring of " << count << ", rank " << rank;
      }
    }
  });
}

std::vector<Left> cases() {
  std::vector<Left> all;
  for (const uint32_t ranks : few() ? std::vector<uint32_t>{3} : std::vector<uint32_t>{2, 5}) {
    for (const uint32_t cores : {1u, 64u}) {
      for (const uint64_t skipped : {uint64_t{65'535}, uint64_t{65'536}, kRound / 2, kRound - 1,
                                     kRound, kRound + kRound / 2}) {
        all.push_back({ranks, cores, skipped, 3 * kRound + 100});
      }
      // ENTER wraps in the midst of it.
      all.push_back({ranks, cores, kRound - 1, 3 * kRound - 2});
      all.push_back({ranks, cores, kRound / 2, 3 * kRound + kRound / 2 - 2});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Groups, SkippedWords, testing::ValuesIn(cases()));

}  // namespace skipped_words_test
}  // namespace windlass_test
