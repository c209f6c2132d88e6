// SPDX-License-Identifier: Apache-2.0
// Messages: every size around the limits between all pairs of ranks, in every order of sends and
// receives, random programs in which all send first, and what ends a message.
#include <map>
#include <tuple>

#include "native/core/message/message_lane.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"

namespace windlass_test {
namespace messages_test {

using Bytes = std::vector<uint8_t>;

wl_message_t send(const void* data, uint64_t elements, int peer, int tag, int dtype = WL_U8) {
  wl_message_t message = {};
  message.struct_size = sizeof message;
  message.operation = WL_OP_SEND;
  message.peer = peer;
  message.tag = tag;
  message.dtype = dtype;
  message.data = const_cast<void*>(data);
  message.elements = elements;
  return message;
}

wl_message_t receive(void* data, uint64_t elements, int peer, int tag, int dtype = WL_U8) {
  wl_message_t message = send(data, elements, peer, tag, dtype);
  message.operation = WL_OP_RECEIVE;
  return message;
}

int32_t run(wl_comm_t* comm, wl_message_t message, wl_error_t* error, int64_t deadlineNs = 0) {
  return wl_messages(comm, &message, 1, deadlineNs, error);
}

void fill(uint8_t* data, uint64_t bytes, uint32_t round, int from, int to) {
  for (uint64_t i = 0; i < bytes; ++i)
    data[i] = static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(from),
                                         static_cast<uint32_t>(to), i));
}

bool isFilled(const uint8_t* data, uint64_t bytes, uint32_t round, int from, int to) {
  Bytes expected(bytes);
  fill(expected.data(), bytes, round, from, to);
  return bytes == 0 || std::memcmp(data, expected.data(), bytes) == 0;
}

// Messages that wl_messages_start began. awaitAll() awaits them as the thread of a caller does.
class Started {
 public:
  explicit Started(wl_comm_t* comm) : comm_(comm) {}

  int32_t start(std::vector<wl_message_t> messages, wl_error_t* error) {
    auto kept = std::make_unique<std::vector<wl_message_t>>(std::move(messages));
    uint64_t ticket = 0;
    const int32_t code = wl_messages_start(comm_, kept->data(),
                                           static_cast<uint32_t>(kept->size()), 0, &ticket, error);
    all_.push_back(std::move(kept));
    if (ticket != 0) open_.push_back(ticket);
    return code;
  }
  int32_t awaitAll(wl_error_t* error) {
    while (!open_.empty()) {
      uint64_t ticket = 0;
      if (int32_t code = wl_messages_next(comm_, 100 * kMs, &ticket, error)) return code;
      open_.erase(std::remove(open_.begin(), open_.end(), ticket), open_.end());
    }
    return WL_OK;
  }
  const wl_message_t& at(size_t call, size_t message = 0) const { return (*all_[call])[message]; }
  size_t open() const { return open_.size(); }
  uint64_t ticket(size_t i) const { return open_[i]; }

 private:
  wl_comm_t* comm_;
  std::vector<std::unique_ptr<std::vector<wl_message_t>>> all_;
  std::vector<uint64_t> open_;
};

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

// ---- what ends a message ------------------------------------------------------------------------

TEST(Message, OfAnotherDTypeEndsTheCommunicator) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<uint32_t> data(4);
    const int32_t code = rank == 0 ? run(comm, send(data.data(), 4, 1, 7, WL_I32), &error)
                                   : run(comm, receive(data.data(), 4, 0, 7, WL_F32), &error);
    if (rank == 1) {
      EXPECT_EQ(WL_MISMATCH, code);
      EXPECT_TRUE(contains(error.message, "rank 1: receive(at most 4 x f32 from rank 0, tag 7): "
                                          "rank 0 sends 4 x i32 with tag 7; dtypes must agree"));
      EXPECT_EQ(2, error.faulty_rank_count);
    }
    EXPECT_EQ(WL_MISMATCH, callBarrier(comm, 0, &error));
  });
}

TEST(Message, LongerThanItsReceiveEndsTheCommunicator) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    const int32_t code = rank == 0 ? run(comm, send(data.data(), 100'000, 1, 7), &error)
                                   : run(comm, receive(data.data(), 99'999, 0, WL_ANY), &error);
    EXPECT_EQ(WL_MISMATCH, code);
    EXPECT_TRUE(contains(error.message, "rank 0 sends 100000 x u8 with tag 7; a receive must have "
                                        "room for the whole message"));
  });
}

TEST(Message, ThatDoesNotFitLeavesNoLaterOneToItsReceive) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<float> data(8);
    if (rank == 0) {
      ASSERT_EQ(WL_OK, run(comm, send(data.data(), 8, 1, 7, WL_F32), &error)) << error.message;
      ASSERT_EQ(WL_OK, run(comm, send(data.data(), 4, 1, 7, WL_F32), &error)) << error.message;
    }
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    if (rank == 1) {
      EXPECT_EQ(WL_MISMATCH, run(comm, receive(data.data(), 4, 0, 7, WL_F32), &error));
    }
    EXPECT_EQ(WL_MISMATCH, callBarrier(comm, 0, &error));
  });
}

// A slot that was never used has the number 0.
TEST(Message, HasANumberThatNoUnusedSlotHas) {
  for (const uint32_t first : {0xffffffffu, 0xfffffff4u, 0xfffffff1u}) {
    LocalRanks ranks(2, 20'000'000'000, first);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint8_t values[16] = {};
      Started started(comm);
      for (int i = 0; rank == 1 && i < 16; ++i)
        ASSERT_EQ(WL_OK, started.start({receive(values + i, 1, 0, 0, WL_BOOL)}, &error));
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      const uint8_t one = 1;
      for (int i = 0; rank == 0 && i < 16; ++i)
        ASSERT_EQ(WL_OK, run(comm, send(&one, 1, 1, 0, WL_BOOL), &error)) << error.message;
      ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
      for (int i = 0; rank == 1 && i < 16; ++i) {
        EXPECT_EQ(1, values[i]) << i << ", first " << first;
      }
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    });
  }
}

TEST(Message, ThatNoRankReceivesOrSendsPassesItsDeadline) {
  for (const bool sends : {true, false}) {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      Bytes data(100'000);
      const auto message = sends ? send(data.data(), 100'000, 1, 5) : receive(data.data(), 7, 1, 5);
      if (rank == 0) {
        EXPECT_EQ(WL_DEADLINE_EXCEEDED, run(comm, message, &error, 50 * kMs));
      } else {
        EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(comm, 0, &error));
      }
      EXPECT_TRUE(contains(error.message,
                           sends ? "rank 0 waited 0.050 s in send(100000 x u8 to rank 1, tag 5): "
                                   "rank 1 has not received it: "
                                 : "rank 0 waited 0.050 s in receive(at most 7 x u8 from rank 1, "
                                   "tag 5): rank 1 has not sent it: "));
      EXPECT_EQ(1, error.faulty_rank_count);
      EXPECT_EQ(1, error.faulty_ranks[0]);
    });
  }
}

TEST(Message, OfARankThatCloses) {
  for (const bool any : {true, false}) {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      Bytes data(10);
      if (rank == 1) {
        ASSERT_EQ(WL_OK, run(comm, send(data.data(), 10, 0, 5), &error));
        ASSERT_EQ(WL_OK, wl_comm_close(comm, &error)) << error.message;
        return;
      }
      ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 10, any ? WL_ANY : 1, 5), &error))
          << error.message;
      if (!any && hosts(2) == 1) {
        ASSERT_TRUE(await([&] {
          wl_rank_state_t state = {};
          state.struct_size = sizeof state;
          wl_comm_state(comm, 1, &state);
          return state.closed == 1;
        }));
        EXPECT_EQ(WL_ABORTED, run(comm, send(data.data(), 1, 1, 5), &error));
        EXPECT_TRUE(contains(error.message, "rank 1 closed the communicator, and rank 0 waits in "
                                            "send(1 x u8 to rank 1, tag 5)"));
        return;
      }
      EXPECT_EQ(WL_ABORTED, run(comm, receive(data.data(), 10, any ? WL_ANY : 1, 5), &error));
      EXPECT_TRUE(contains(error.message, any ? "all other ranks closed the communicator, and rank "
                                                "0 waits in receive(at most 10 x u8 from any rank"
                                              : "rank 1 closed the communicator, and rank 0 waits "
                                                "in receive(at most 10 x u8 from rank 1, tag 5)"));
    });
  }
}

TEST(Message, AnAbortEndsIt) {
  LocalRanks ranks(3);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    if (rank == 2) {
      usleep(20'000);
      wl_comm_abort(comm, "it is enough", &error);
      return;
    }
    const auto message =
        rank == 0 ? send(data.data(), 100'000, 1, 5) : receive(data.data(), 1, WL_ANY, 6);
    EXPECT_EQ(WL_ABORTED, run(comm, message, &error));
    EXPECT_TRUE(contains(error.message, "it is enough"));
  });
}

TEST(Message, ThatIsAsynchronousDelaysNothing) {
  LocalRanks ranks(2);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes out(300'000), in(300'000);
    fill(out.data(), out.size(), 1, rank, 1 - rank);
    Started started(comm);
    ASSERT_EQ(WL_OK, started.start({send(out.data(), out.size(), 1 - rank, 4)}, &error));
    for (int i = 0; i < 10; ++i) ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    EXPECT_EQ(1u, started.open());
    wl_message_t pair[] = {send(out.data(), 40, 1 - rank, 1), receive(in.data(), 40, 1 - rank, 1)};
    ASSERT_EQ(WL_OK, wl_messages(comm, pair, 2, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, started.start({receive(in.data(), in.size(), 1 - rank, 4)}, &error));
    ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
    wrong += !isFilled(in.data(), in.size(), 1, 1 - rank, rank);
  });
  EXPECT_EQ(0, wrong);
}

TEST(Message, IsWithdrawnUnlessAnotherRankMayHaveSeenIt) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes out(300'000), in(300'000);
    Started started(comm);
    int32_t withdrawn = 0;
    ASSERT_EQ(WL_OK, started.start({receive(in.data(), in.size(), 1 - rank, 4)}, &error));
    ASSERT_EQ(WL_OK, wl_messages_withdraw(comm, started.ticket(0), &withdrawn, &error));
    EXPECT_EQ(1, withdrawn);
    ASSERT_EQ(WL_OK, wl_messages_withdraw(comm, started.ticket(0), &withdrawn, &error));
    EXPECT_EQ(2, withdrawn);
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    Started sent(comm);
    ASSERT_EQ(WL_OK, sent.start({send(out.data(), out.size(), 1 - rank, 4)}, &error));
    ASSERT_EQ(WL_OK, wl_messages_withdraw(comm, sent.ticket(0), &withdrawn, &error));
    EXPECT_EQ(0, withdrawn);
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, run(comm, receive(in.data(), in.size(), 1 - rank, 4), &error));
    ASSERT_EQ(WL_OK, sent.awaitAll(&error)) << error.message;
  });
}

TEST(Message, WithWrongArgumentsIsRefused) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100);
    const auto expectRefused = [&](std::vector<wl_message_t> messages, const char* why) {
      EXPECT_EQ(WL_INVALID_ARGUMENT,
                wl_messages(comm, messages.data(), static_cast<uint32_t>(messages.size()), 0,
                            &error));
      EXPECT_TRUE(contains(error.message, why));
    };
    expectRefused({send(data.data(), 1, 2, 0)}, "send: peer is 2; it must lie in [0, 2)");
    expectRefused({send(data.data(), 1, WL_ANY, 0)}, "send: peer is -1");
    expectRefused({receive(data.data(), 1, -2, 0)}, "receive: peer is -2");
    expectRefused({send(data.data(), 1, 0, -1)}, "send: tag is -1; it must be 0 or more");
    expectRefused({receive(data.data(), 1, 0, -2)}, "receive: tag is -2");
    expectRefused({receive(nullptr, 1, 0, 0)}, "receive: data is NULL");
    expectRefused({receive(data.data(), 1, 0, 0, 99)}, "dtype 99 is unknown");
    expectRefused({send(data.data(), 10, 0, 0), receive(data.data() + 9, 10, 0, 0)}, "overlaps");
    expectRefused({receive(data.data() + 9, 10, 0, 0), receive(data.data(), 10, 0, 0)}, "overlaps");
    wl_message_t barrier = send(data.data(), 1, 0, 0);
    barrier.operation = WL_OP_BARRIER;
    expectRefused({barrier}, "barrier is no message: a group takes sends and receives");
    wl_message_t sends[] = {send(data.data(), 40, 1 - rank, 0), send(data.data(), 40, 1 - rank, 1)};
    ASSERT_EQ(WL_OK, wl_messages(comm, sends, 2, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 40, 1 - rank, 1), &error)) << error.message;
    ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 40, 1 - rank, 0), &error)) << error.message;
  });
}

// Lanes and blocks take memory once they are used.
TEST(Message, OfManyRanksTakesLittleMemory) {
  if (processes(1) > 0 || kSlow > 1) GTEST_SKIP() << "one process of threads tells";
  const auto residentBytes = [] {
    uint64_t pages[2] = {};
    FILE* const file = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(2, std::fscanf(file, "%lu %lu", &pages[0], &pages[1]));
    std::fclose(file);
    return pages[1] * 4096;
  };
  constexpr int kRanks = 1024;
  const uint64_t before = residentBytes();
  {
    LocalRanks ranks(kRanks);
    Error error;
    Bytes data(2000);
    const auto of = [&](int rank) { return ranks.comms[static_cast<size_t>(rank)]; };
    for (int rank = 0; rank < kRanks; ++rank)
      for (const int step : {1, 2, 5})
        ASSERT_EQ(WL_OK, run(of(rank), send(data.data(), 2000, (rank + step) % kRanks, step),
                             &error))
            << error.message;
    for (int rank = 0; rank < kRanks; ++rank)
      for (int i = 0; i < 3; ++i)
        ASSERT_EQ(WL_OK, run(of(rank), receive(data.data(), 2000, WL_ANY, WL_ANY), &error))
            << error.message;
    EXPECT_LT(residentBytes() - before, uint64_t{256} << 20);
    std::printf("%llu MiB\n", static_cast<unsigned long long>((residentBytes() - before) >> 20));
  }
}

TEST(Message, ThatWaitsIsInTheReport) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    if (rank == 0) {
      ASSERT_EQ(WL_OK, run(comm, send(data.data(), 100'000, 1, 5), &error)) << error.message;
      return;
    }
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    ASSERT_TRUE(await([&] {
      wl_comm_state(comm, 0, &state);
      return state.operation == WL_OP_SEND && state.awaited == 1;
    }));
    wl_record_t record = {};
    record.struct_size = sizeof record;
    if (hosts(2) == 1) {  // records of a rank stay on its host
      ASSERT_EQ(1, wl_comm_recorded(comm, 0, &record, 1));
      EXPECT_STREQ("send(100000 x u8 to rank 1, tag 5)", record.text);
      EXPECT_EQ(1, record.root);
      EXPECT_EQ(0, record.op);
      EXPECT_EQ(WL_AUTO, record.algorithm);
    }
    ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 100'000, 0, 5), &error)) << error.message;
  });
}

}  // namespace messages_test
}  // namespace windlass_test
