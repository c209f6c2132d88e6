// SPDX-License-Identifier: Apache-2.0
// Messages: every size around the limits between all pairs of ranks, in every order of sends and
// receives, and random programs in which all send first.
#include <tuple>

#include "tests/native/core/message/messages.h"

namespace windlass_test {
namespace messages_test {

std::vector<uint64_t> sizes() {
  using windlass::kEagerMessageBytes, windlass::kMessageBlockBytes, windlass::kMessageHalfBytes,
      windlass::kShortMessageBytes;
  std::vector<uint64_t> all = {0, 1};
  for (const uint64_t limit :
       {kShortMessageBytes, kEagerMessageBytes, kMessageBlockBytes, kMessageHalfBytes})
    for (const uint64_t bytes : {limit - 1, limit, limit + 1}) all.push_back(bytes);
  all.push_back(3 * kMessageHalfBytes + 5);
  all.push_back(uint64_t{1} << 20);
  if (longForm()) all.push_back(uint64_t{64} << 20);
  return all;
}

class MessagesOf : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(MessagesOf, EverySizeBetweenAllPairs) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000 * kMs, 0xffffff00u, cores);
  const uint64_t most = sizes().back();
  Windows windows(ranks, 2 * most, 1);
  std::atomic<int> wrong{0};
  ranks.run([&, n = n](int rank, wl_comm_t* comm) {
    Error error;
    Bytes ordinary(2 * most + 1);
    uint32_t round = 0;
    for (const bool inWindow : {false, true}) {
      for (const uint64_t bytes : sizes()) {
        uint8_t* const out = inWindow ? windows.at(rank, 0) : ordinary.data();
        uint8_t* const in = out + most;
        for (int from = 0; from < n; ++from) {
          for (int to = 0; to < n; ++to) {
            ++round;
            const int tag = static_cast<int>(round % 7);
            fill(out, bytes, round, from, to);
            std::memset(in, 0x5a, bytes + 1 > most ? bytes : bytes + 1);
            if (from == to && rank == from) {
              wl_message_t both[] = {send(out, bytes, rank, tag), receive(in, most, rank, tag)};
              ASSERT_EQ(WL_OK, wl_messages(comm, both, 2, 0, &error)) << error.message;
              wrong += both[1].received != bytes || both[1].source != rank;
            } else if (rank == from) {
              ASSERT_EQ(WL_OK, run(comm, send(out, bytes, to, tag), &error)) << error.message;
              std::memset(out, 0x11, bytes);
            } else if (rank == to) {
              wl_message_t message = receive(in, most, from, tag);
              ASSERT_EQ(WL_OK, wl_messages(comm, &message, 1, 0, &error)) << error.message;
              wrong += message.received != bytes || message.source != from ||
                       message.found_tag != tag;
            }
            if (rank != to) continue;
            wrong += !isFilled(in, bytes, round, from, to);
            if (bytes < most) wrong += in[bytes] != 0x5a;
          }
        }
      }
    }
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
  EXPECT_EQ(0, wrong);
}

TEST_P(MessagesOf, RingsOfPairsThatBothSendFirst) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000 * kMs, 0x7fffff00u, cores);
  std::atomic<int> wrong{0};
  ranks.run([&, n = n](int rank, wl_comm_t* comm) {
    Error error;
    const int next = (rank + 1) % n;
    const int previous = (rank + n - 1) % n;
    uint32_t round = 0;
    for (const uint64_t bytes : sizes()) {
      Bytes out(bytes), in(bytes);
      for (int i = 0; i < 20 && bytes < 1 << 21; ++i) {
        ++round;
        fill(out.data(), bytes, round, rank, next);
        wl_message_t both[] = {send(out.data(), bytes, next, 3),
                               receive(in.data(), bytes, previous, 3)};
        ASSERT_EQ(WL_OK, wl_messages(comm, both, 2, 0, &error)) << error.message;
        wrong += !isFilled(in.data(), bytes, round, previous, rank);
      }
    }
  });
  EXPECT_EQ(0, wrong);
}

TEST_P(MessagesOf, TagsSelectAndKeepTheirOrder) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000 * kMs, 1, cores);
  std::atomic<int> wrong{0};
  ranks.run([&, n = n](int rank, wl_comm_t* comm) {
    Error error;
    const int next = (rank + 1) % n;
    const int previous = (rank + n - 1) % n;
    constexpr int kEach = 30;
    constexpr int kTags = 3;
    for (const uint64_t bytes : {uint64_t{4}, uint64_t{1000}, uint64_t{10'000}}) {
      std::vector<Bytes> out;
      Started started(comm);
      for (int i = 0; i < kEach; ++i) {
        for (int tag = 0; tag < kTags; ++tag) {
          out.emplace_back(bytes);
          fill(out.back().data(), bytes, static_cast<uint32_t>(i * kTags + tag), rank, next);
          ASSERT_EQ(WL_OK, started.start({send(out.back().data(), bytes, next, tag)}, &error))
              << error.message;
        }
      }
      Bytes in(bytes);
      for (int tag = kTags - 1; tag >= 0; --tag) {
        for (int i = 0; i < kEach; ++i) {
          wl_message_t message = receive(in.data(), bytes, i % 2 == 0 ? previous : WL_ANY, tag);
          ASSERT_EQ(WL_OK, wl_messages(comm, &message, 1, 0, &error)) << error.message;
          wrong += message.source != previous || message.found_tag != tag ||
                   !isFilled(in.data(), bytes, static_cast<uint32_t>(i * kTags + tag), previous,
                             rank);
        }
      }
      ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    }
  });
  EXPECT_EQ(0, wrong);
}

TEST_P(MessagesOf, AnySourceTakesEachRanksMessagesInOrder) {
  const auto [n, cores] = GetParam();
  LocalRanks ranks(n, 30'000 * kMs, 1, cores);
  std::atomic<int> wrong{0};
  constexpr uint32_t kEach = 100;
  ranks.run([&, n = n](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<uint32_t> out(2000), in(2000);
    if (rank > 0) {
      for (uint32_t i = 0; i < kEach; ++i) {
        out[0] = i;
        const uint64_t count = i % 3 == 0 ? 1 : i % 3 == 1 ? 100 : 2000;
        ASSERT_EQ(WL_OK, run(comm, send(out.data(), count, 0, rank, WL_U32), &error))
            << error.message;
      }
    } else {
      std::vector<uint32_t> seen(static_cast<size_t>(n));
      for (uint32_t i = 0; i < kEach * static_cast<uint32_t>(n - 1); ++i) {
        wl_message_t message = receive(in.data(), 2000, WL_ANY, WL_ANY, WL_U32);
        ASSERT_EQ(WL_OK, wl_messages(comm, &message, 1, 0, &error)) << error.message;
        wrong += message.source != message.found_tag;
        wrong += in[0] != seen[static_cast<size_t>(message.source)]++;
      }
    }
  });
  EXPECT_EQ(0, wrong);
}

// Every rank chooses the same random program, and begins all of a round's sends before it receives.
TEST_P(MessagesOf, RandomProgramsInWhichAllSendFirst) {
  const auto [n, cores] = GetParam();
  const uint64_t firstSeed = seed();
  LocalRanks ranks(n, 60'000 * kMs, 1, cores);
  std::atomic<int> wrong{0};
  const int programs = std::max(10, repetitions(600, 10'000) / slow());
  ranks.run([&, n = n](int rank, wl_comm_t* comm) {
    Error error;
    std::mt19937_64 random(firstSeed);
    for (int program = 0; program < programs; ++program) {
      struct Planned {
        int from, to, tag;
        uint64_t bytes;
        Bytes data;
      };
      std::vector<Planned> plan(1 + random() % 24);
      for (Planned& each : plan) {
        each.from = static_cast<int>(random() % static_cast<uint64_t>(n));
        each.to = static_cast<int>(random() % static_cast<uint64_t>(n));
        each.tag = static_cast<int>(random() % 3);
        const uint64_t most[] = {48, 4096, 9000, 200'000};
        each.bytes = random() % most[random() % 4];
      }
      const uint64_t order = random();
      const bool together = random() % 3 == 0;
      const bool collective = random() % 4 == 0;
      Started started(comm);
      std::vector<wl_message_t> group;
      const auto begin = [&](wl_message_t message) {
        if (together) {
          group.push_back(message);
        } else {
          ASSERT_EQ(WL_OK, started.start({message}, &error)) << error.message;
        }
      };
      for (Planned& each : plan) each.data.resize(each.bytes);
      std::vector<Bytes> in(plan.size());
      for (size_t i = 0; i < plan.size(); ++i) {
        Planned& each = plan[i];
        if (each.from != rank) continue;
        fill(each.data.data(), each.bytes, static_cast<uint32_t>(i), each.from, each.to);
        begin(send(each.data.data(), each.bytes, each.to, each.tag));
      }
      if (collective) {
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      }
      // Receives of one source and tag keep their order; others may change places.
      std::vector<size_t> mine;
      for (size_t i = 0; i < plan.size(); ++i)
        if (plan[i].to == rank) mine.push_back(i);
      std::stable_sort(mine.begin(), mine.end(), [&](size_t a, size_t b) {
        const auto key = [&](size_t i) {
          return stamp(static_cast<uint32_t>(order), static_cast<uint32_t>(plan[i].from),
                       static_cast<uint32_t>(plan[i].tag), 0);
        };
        return key(a) < key(b);
      });
      for (const size_t i : mine) {
        in[i].resize(plan[i].bytes);
        begin(receive(in[i].data(), plan[i].bytes, plan[i].from, plan[i].tag));
      }
      if (!group.empty()) {
        ASSERT_EQ(WL_OK, wl_messages(comm, group.data(), static_cast<uint32_t>(group.size()), 0,
                                     &error))
            << error.message;
      }
      ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
      for (const size_t i : mine)
        wrong += !isFilled(in[i].data(), plan[i].bytes, static_cast<uint32_t>(i), plan[i].from,
                           rank);
    }
  });
  EXPECT_EQ(0, wrong);
}

std::vector<std::tuple<int, int>> cases() {
  std::vector<std::tuple<int, int>> all;
  for (const int n : rankCounts()) {
    all.emplace_back(n, 0);
    if (n > 1 && !few()) all.emplace_back(n, n);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ranks, MessagesOf, testing::ValuesIn(cases()), [](const auto& tested) {
  return std::to_string(std::get<0>(tested.param)) + "On" +
         std::to_string(std::get<1>(tested.param));
});

}  // namespace messages_test
}  // namespace windlass_test
