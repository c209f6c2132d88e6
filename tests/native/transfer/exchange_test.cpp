// SPDX-License-Identifier: Apache-2.0
// Words that ranks gather and exchange, of every number that one round and several hold.
#include "native/transfer/exchange.h"
#include "tests/native/core/comms.h"

namespace windlass_test {
namespace exchange_test {

using windlass::Exchange;
using windlass::WordList;

// What `from` has for `to`, or for all with `to` below 0.
WordList wordsFor(uint32_t from, int to) {
  constexpr uint64_t kLengths[] = {0, 1, 7, 600, 0, 3000, 21'000};
  const uint64_t length = kLengths[(from * 3 + static_cast<uint32_t>(to + 1)) % 7];
  WordList words;
  for (uint64_t i = 0; i < length; ++i)
    words.push_back(i << 32 | uint64_t{from} << 16 | static_cast<uint16_t>(to));
  return words;
}

class Exchanges : public testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {
 protected:
  template <class Body>
  void run(Body&& body) {
    Comms comms(ranks_, std::get<1>(GetParam()));
    comms.run([&](uint32_t rank, windlass::Comm& comm) {
      Error error;
      Exchange exchange(comm, 7, 0, &error);
      exchange.reserve();
      for (int again = 0; again < 2; ++again) body(rank, exchange);
      EXPECT_FALSE(exchange.failed());
    });
  }

  const uint32_t ranks_ = std::get<0>(GetParam());
};

TEST_P(Exchanges, GatherTheWordsOfAllRanks) {
  run([&](uint32_t rank, Exchange& exchange) {
    std::vector<WordList> all(ranks_);
    const auto take = [&](const Exchange::Round& round) {
      for (uint32_t from = 0; from < ranks_; ++from) {
        EXPECT_EQ(wordsFor(from, -1).size(), round.totals[from]);
        const uint64_t count = round.count(from);
        EXPECT_TRUE(count == 0 || round.at == all[from].size());
        all[from].insert(all[from].end(), round.words(from), round.words(from) + count);
      }
    };
    ASSERT_EQ(WL_OK, exchange.gather(wordsFor(rank, -1), take));
    for (uint32_t from = 0; from < ranks_; ++from)
      EXPECT_TRUE(wordsFor(from, -1) == all[from]) << "of rank " << from;
  });
}

TEST_P(Exchanges, BringEachRankWhatAnotherHasForIt) {
  run([&](uint32_t rank, Exchange& exchange) {
    std::vector<WordList> words;
    for (uint32_t to = 0; to < ranks_; ++to) words.push_back(wordsFor(rank, static_cast<int>(to)));
    ASSERT_EQ(WL_OK, exchange.exchange(&words));
    ASSERT_EQ(ranks_, words.size());
    for (uint32_t from = 0; from < ranks_; ++from) {
      EXPECT_TRUE(wordsFor(from, static_cast<int>(rank)) == words[from])
          << "rank " << rank << " of rank " << from;
    }
  });
}

TEST_P(Exchanges, SumMoreValuesThanARoundHolds) {
  run([&](uint32_t rank, Exchange& exchange) {
    WordList sums;
    for (uint64_t i = 0; i < 2500; ++i) sums.push_back((uint64_t{1} << 40) * i + rank);
    ASSERT_EQ(WL_OK, exchange.sum(sums.data(), sums.size()));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < sums.size(); ++i)
      wrong += sums[i] != (uint64_t{1} << 40) * i * ranks_ + ranks_ * (ranks_ - 1) / 2;
    EXPECT_EQ(0u, wrong);
  });
}

// Whichever call comes next tells all ranks, the failing one too, which has nothing for it.
TEST_P(Exchanges, TellWhatTheFirstRankThatCannotGoOnStates) {
  const uint32_t victim = ranks_ / 2;
  for (int call = 0; call < 3; ++call) {
    Comms comms(ranks_, std::get<1>(GetParam()));
    comms.run([&](uint32_t rank, windlass::Comm& comm) {
      Error error;
      Exchange exchange(comm, 7, 0, &error);
      if (rank < victim || call > 0) exchange.reserve();
      if (rank >= victim) windlass::fail(exchange.failure(), WL_RESOURCE, "no %u", rank);
      std::vector<WordList> words(rank < victim ? ranks_ : 0, WordList(3000));
      uint64_t sum = 1;
      const int code = call == 0   ? exchange.gather({}, [](const Exchange::Round&) { FAIL(); })
                       : call == 1 ? exchange.exchange(&words)
                                   : exchange.sum(&sum, 1);
      EXPECT_EQ(WL_RESOURCE, code);
      EXPECT_TRUE(contains(error.message, "rank " + std::to_string(victim) +
                                              "'s part of the transfer: no " +
                                              std::to_string(victim)))
          << error.message;
      // The communicator lives.
      Exchange next(comm, 7, 0, &error);
      next.reserve();
      EXPECT_EQ(WL_OK, next.sum(&sum, 1)) << error.message;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Exchanges,
                         testing::Combine(testing::Values(1u, 2u, 5u), testing::Values(1u, 64u)));

}  // namespace exchange_test
}  // namespace windlass_test
