// SPDX-License-Identifier: Apache-2.0
// What is recorded of the last operations: whole while it is rewritten, in order, and stamped on
// one clock; and what a DeadlineExceeded's message makes of it.
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "native/core/flight_recorder.h"

namespace windlass_test {
namespace flight_recorder_test {

constexpr int64_t kMs = 1'000'000;

std::vector<wl_record_t> recorded(const wl_comm_t* comm, int rank, int capacity = WL_RECORDS) {
  std::vector<wl_record_t> records(static_cast<size_t>(capacity));
  records[0].struct_size = sizeof(wl_record_t);
  const int count = wl_comm_recorded(comm, rank, records.data(), capacity);
  EXPECT_GE(count, 0);
  records.resize(static_cast<size_t>(std::max(0, count)));
  return records;
}

// Waits until that rank waits inside the operation. Its entry is stamped by then.
void awaitWait(wl_comm_t* comm, int rank, int operation) {
  wl_rank_state_t state = {};
  state.struct_size = sizeof state;
  const int64_t start = wl_clock_ns();
  do {
    awaitInside(comm, rank, operation);
    ASSERT_EQ(WL_OK, wl_comm_state(comm, rank, &state));
    ASSERT_LT(wl_clock_ns() - start, 60'000 * kMs) << "rank " << rank << " does not wait";
  } while (state.awaited == -1);
}

// An all-to-all whose count tells its sequence.
uint64_t countOf(uint32_t sequence) {
  return 1 + sequence % 7;
}

int exchange(wl_comm_t* comm, uint32_t sequence, wl_error_t* error) {
  const auto ranks = static_cast<size_t>(wl_comm_size(comm));
  std::vector<uint16_t> in(ranks * 7), out(ranks * 7);
  return allToAll(comm, in.data(), out.data(), countOf(sequence), WL_U16,
                       sequence % 2 == 0 ? WL_PUSH : WL_PULL, 0, error);
}

void expectExchange(const wl_record_t& record, uint32_t sequence) {
  EXPECT_EQ(sequence, record.sequence);
  EXPECT_EQ(WL_OP_ALL_TO_ALL, record.operation);
  EXPECT_EQ(WL_U16, record.dtype);
  EXPECT_EQ(countOf(sequence), record.count);
  EXPECT_EQ(2 * countOf(sequence), record.bytes);
  EXPECT_EQ(sequence % 2 == 0 ? WL_PUSH : WL_PULL, record.algorithm);
  EXPECT_EQ("all-to-all(" + std::to_string(countOf(sequence)) + " x u16 to each rank, " +
                (sequence % 2 == 0 ? "push" : "pull") + ")",
            record.text);
}

class Recorder : public testing::TestWithParam<uint32_t> {};

TEST_P(Recorder, HoldsTheLast64OperationsOfEachRankNewestFirst) {
  const uint32_t first = GetParam();
  LocalRanks ranks(3, 20'000 * kMs, first);
  EXPECT_TRUE(recorded(ranks.comms[0], 2).empty());
  const auto run = [&](uint32_t from, uint32_t to) {
    ranks.run([&](int, wl_comm_t* comm) {
      Error error;
      for (uint32_t i = from; i < to; ++i)
        ASSERT_EQ(WL_OK, exchange(comm, first + i, &error)) << error.message;
    });
  };
  run(0, 3);
  EXPECT_EQ(3u, recorded(ranks.comms[0], 2).size());
  run(3, 100);
  for (int rank = 0; rank < 3; ++rank) {
    const auto records = recorded(ranks.comms[1], rank);
    ASSERT_EQ(WL_RECORDS, static_cast<int>(records.size()));
    for (uint32_t i = 0; i < records.size(); ++i) {
      expectExchange(records[i], first + 99 - i);
      EXPECT_EQ(WL_OK, records[i].code);
      EXPECT_LE(records[i].entered_ns, records[i].left_ns);
      if (i > 0) {
        EXPECT_GE(records[i - 1].entered_ns, records[i].entered_ns);
      }
    }
    EXPECT_EQ(5u, recorded(ranks.comms[1], rank, 5).size());
  }
  EXPECT_GE(wl_comm_last_to_enter(ranks.comms[0], first + 99), 0);
  EXPECT_EQ(-1, wl_comm_last_to_enter(ranks.comms[0], first + 35)) << "no longer there";
  EXPECT_EQ(-1, wl_comm_last_to_enter(ranks.comms[0], first + 100)) << "not yet there";
}

INSTANTIATE_TEST_SUITE_P(FirstSequence, Recorder, testing::Values(1, 0x7fffffe0u, 0xffffffe0u));

TEST(Recorded, TimesAreThoseOfTheClockAndTheLastToEnterIsNamed) {
  constexpr int64_t kLate = 60 * kMs;
  for (const int cores : {1, 64}) {
    LocalRanks ranks(3, 20'000 * kMs, 1, cores);
    std::vector<int64_t> before(3), after(3);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      if (rank == 1) {
        for (const int peer : {0, 2}) awaitWait(comm, peer, WL_OP_BARRIER);
        std::this_thread::sleep_for(std::chrono::nanoseconds(kLate));
      }
      before[static_cast<size_t>(rank)] = wl_clock_ns();
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      after[static_cast<size_t>(rank)] = wl_clock_ns();
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    });
    EXPECT_EQ(1, wl_comm_last_to_enter(ranks.comms[2], 1));
    for (int rank = 0; rank < 3; ++rank) {
      const auto records = recorded(ranks.comms[0], rank);
      ASSERT_EQ(2u, records.size());
      for (const wl_record_t& each : records)
        EXPECT_LE(each.waited_ns, each.left_ns - each.entered_ns + kMs);
      const wl_record_t& record = records[1];
      EXPECT_STREQ("barrier", record.text);
      EXPECT_GE(record.entered_ns, before[static_cast<size_t>(rank)] - kMs);
      EXPECT_LE(record.left_ns, after[static_cast<size_t>(rank)] + kMs);
      if (rank == 1) continue;
      EXPECT_GE(record.waited_ns, kLate - kMs);
      EXPECT_GE(record.left_ns, before[1] - kMs) << "the end of what waited is stamped";
    }
  }
}

TEST(Recorded, AOneSidedOperationHidesNoCollective) {
  LocalRanks ranks(2);
  ranks.run([](int rank, wl_comm_t* comm) {
    Error error;
    wl_window_t* window = nullptr;
    ASSERT_EQ(WL_OK, wl_window_create(comm, 4096, 0, &window, &error)) << error.message;
    if (rank == 1) awaitWait(comm, 0, WL_OP_BARRIER);
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    if (rank == 0) {
      ASSERT_EQ(WL_OK, wl_notify(comm, window, 1, 0, 7, &error)) << error.message;
    } else {
      ASSERT_EQ(WL_OK, wl_wait(comm, window, 0, 0, 7, 0, &error)) << error.message;
    }
    wl_window_free(window);
  });
  EXPECT_EQ(1, wl_comm_last_to_enter(ranks.comms[0], 2));
  const wl_record_t notify = recorded(ranks.comms[1], 0).at(0);
  EXPECT_STREQ("notify(value 7 to rank 1)", notify.text);
  EXPECT_EQ(2u, notify.sequence);
  EXPECT_EQ(1, notify.root);
  EXPECT_STREQ("wait(value 7 from rank 0)", recorded(ranks.comms[0], 1).at(0).text);
}

TEST(Recorded, BytesArePartsOfOneSizeOrWhatTheRankSends) {
  LocalRanks ranks(2);
  ranks.run([](int rank, wl_comm_t* comm) {
    Error error;
    const int64_t counts[] = {3, 5};
    std::vector<float> in(static_cast<size_t>(counts[rank])), out(8);
    ASSERT_EQ(WL_OK, callAllGatherV(comm, in.data(), in.size(), out.data(), out.size(), counts,
                                    WL_F32, 0, &error))
        << error.message;
  });
  EXPECT_EQ(12u, recorded(ranks.comms[0], 0).at(0).bytes);
  EXPECT_EQ(20u, recorded(ranks.comms[0], 1).at(0).bytes);
}

TEST(Recorded, TheEndOfWhatMovesALotIsStamped) {
  constexpr uint64_t kBytes = uint64_t{8} << 20;
  LocalRanks ranks(1);
  std::vector<uint8_t> in(kBytes), out(kBytes);
  Error error;
  const int64_t before = wl_clock_ns();
  ASSERT_EQ(WL_OK, allToAll(ranks.comms[0], in.data(), out.data(), kBytes, WL_U8, WL_AUTO, 0,
                                 &error));
  const int64_t took = wl_clock_ns() - before;
  const wl_record_t record = recorded(ranks.comms[0], 0).at(0);
  EXPECT_GT(record.left_ns, record.entered_ns);
  EXPECT_LE(record.left_ns - record.entered_ns, took + kMs);
}

wl_totals_t totalsOf(const wl_comm_t* comm, int operation) {
  wl_totals_t totals = {};
  totals.struct_size = sizeof totals;
  EXPECT_EQ(WL_OK, wl_comm_totals(comm, operation, &totals));
  return totals;
}

TEST(Totals, AddUpAllThatARankHasEndedByOperation) {
  constexpr uint32_t kCalls = 3 * WL_RECORDS;  // more than are recorded
  LocalRanks ranks(2);
  std::vector<uint64_t> waited(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    for (uint32_t i = 1; i <= kCalls; ++i) {
      ASSERT_EQ(WL_OK, exchange(comm, i, &error)) << error.message;
      waited[static_cast<size_t>(rank)] +=
          static_cast<uint64_t>(recorded(comm, rank, 1).at(0).waited_ns);
    }
  });
  uint64_t bytes = 0;
  for (uint32_t i = 1; i <= kCalls; ++i) bytes += 2 * countOf(i);
  for (size_t rank = 0; rank < 2; ++rank) {
    const wl_totals_t totals = totalsOf(ranks.comms[rank], WL_OP_ALL_TO_ALL);
    EXPECT_EQ(kCalls, totals.calls);
    EXPECT_EQ(0u, totals.failures);
    EXPECT_EQ(bytes, totals.bytes);
    EXPECT_EQ(waited[rank], totals.waited_ns);
    EXPECT_EQ(0u, totalsOf(ranks.comms[rank], WL_OP_BARRIER).calls);
  }
}

TEST(Totals, CountAFailureOfTheRankThatHasIt) {
  LocalRanks ranks(2, 20 * kMs);
  Error error;
  ASSERT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(ranks.comms[0], 0, &error));
  const wl_totals_t totals = totalsOf(ranks.comms[0], WL_OP_BARRIER);
  EXPECT_EQ(1u, totals.calls);
  EXPECT_EQ(1u, totals.failures);
  EXPECT_GE(totals.waited_ns, static_cast<uint64_t>(10 * kMs));
  EXPECT_EQ(0u, totalsOf(ranks.comms[1], WL_OP_BARRIER).calls);
}

TEST(Totals, RefuseWrongArguments) {
  LocalRanks ranks(1);
  wl_totals_t totals = {};
  totals.struct_size = sizeof totals;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_totals(nullptr, WL_OP_BARRIER, &totals));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_totals(ranks.comms[0], WL_OP_NONE, &totals));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_totals(ranks.comms[0], WL_OP_COUNT, &totals));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_totals(ranks.comms[0], WL_OP_BARRIER, nullptr));
  totals.struct_size = sizeof totals - 1;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_totals(ranks.comms[0], WL_OP_BARRIER, &totals));
}

TEST(Recorded, AnOperationInProgressAndHowItFailed) {
  LocalRanks ranks(2, 20'000 * kMs);
  std::thread waiting([&] {
    Error error;
    EXPECT_EQ(WL_ABORTED, exchange(ranks.comms[0], 1, &error));
  });
  awaitWait(ranks.comms[1], 0, WL_OP_ALL_TO_ALL);
  wl_record_t record = recorded(ranks.comms[1], 0).at(0);
  expectExchange(record, 1);
  EXPECT_EQ(WL_RECORD_INSIDE, record.code);
  EXPECT_GT(record.entered_ns, 0);
  EXPECT_EQ(0, record.left_ns);
  EXPECT_EQ(0, record.waited_ns);
  EXPECT_EQ(0, wl_comm_last_to_enter(ranks.comms[1], 1));
  EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[1], "enough", nullptr));
  waiting.join();
  record = recorded(ranks.comms[1], 0).at(0);
  EXPECT_EQ(WL_ABORTED, record.code);
  EXPECT_GT(record.left_ns, record.entered_ns);
  EXPECT_TRUE(recorded(ranks.comms[1], 1).empty());
}

// A writer cycles through the records at full speed, and a reader reads the records that are
// rewritten next.
TEST(Recorded, AReaderNeverSeesHalfOfARecord) {
  using windlass::Descriptor;
  using windlass::FlightRecorder;
  const auto recorder = std::make_unique<FlightRecorder>();
  const windlass::TickScale scale(windlass::TickScale::Mark::now(),
                                  windlass::TickScale::Mark::now());
  std::atomic<int> looks{2'000'000 / kSlow};
  std::thread writer([&] {
    for (uint32_t i = 1; looks.load(std::memory_order_relaxed) > 0; ++i) {
      recorder->enter(i, Descriptor::of(WL_OP_BROADCAST, i, 0, 0, 0, static_cast<int32_t>(i)), i);
      recorder->leave(static_cast<int32_t>(i & 0xff), i, false);
    }
  });
  uint64_t whole = 0;
  for (uint64_t look = 0; looks > 0; ++look) {
    windlass::Recorded seen;
    const uint64_t newest = recorder->newest();
    if (newest < FlightRecorder::kRecords) continue;
    --looks;
    const uint64_t number = newest - FlightRecorder::kRecords + 1 + look % 4;
    if (!recorder->read(number, scale, &seen)) continue;
    ++whole;
    const auto i = static_cast<uint32_t>(number);
    const bool same = seen.sequence == i && seen.descriptor.count == i && seen.bytes == i &&
                      seen.descriptor.root() == static_cast<int32_t>(i) &&
                      seen.code == static_cast<int32_t>(i & 0xff) && seen.waitedNs == i;
    if (same) continue;
    ADD_FAILURE() << "operation " << i << ": " << seen.sequence << ' ' << seen.descriptor.count
                  << ' ' << seen.bytes << ' ' << seen.code << ' ' << seen.waitedNs;
    looks = 0;
  }
  writer.join();
  EXPECT_GT(whole, 0u);
}

TEST(Recorded, AnyThreadReadsWhileRanksRun) {
  for (const int n : {1, 2, 3}) {
    LocalRanks ranks(n);
    std::atomic<int> looks{20};
    std::thread reader([&] {
      while (looks > 0) {
        size_t seen = 0;
        for (int rank = 0; rank < n; ++rank) {
          uint32_t newer = 0;
          for (const wl_record_t& record : recorded(ranks.comms[0], rank)) {
            expectExchange(record, record.sequence);
            EXPECT_TRUE(newer == 0 || record.sequence < newer);
            EXPECT_TRUE(record.code == WL_OK || record.code == WL_RECORD_INSIDE) << record.code;
            newer = record.sequence;
            ++seen;
          }
        }
        if (seen > WL_RECORDS / 2) --looks;
      }
    });
    // Rank 0 says before each operation whether there is another.
    std::atomic<uint32_t> last{1};
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      for (uint32_t i = 1; i <= last; ++i) {
        if (rank == 0 && looks > 0) last = i + 1;
        ASSERT_EQ(WL_OK, exchange(comm, i, &error)) << error.message;
      }
    });
    reader.join();
  }
}

TEST(Recorded, RefusesWrongArgumentsAndKeepsToTheCallersStride) {
  LocalRanks ranks(2);
  ranks.run([](int, wl_comm_t* comm) {
    Error error;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
  const wl_comm_t* comm = ranks.comms[0];
  wl_record_t one = {};
  one.struct_size = sizeof one;
  EXPECT_EQ(-1, wl_comm_recorded(nullptr, 0, &one, 1));
  EXPECT_EQ(-1, wl_comm_recorded(comm, -1, &one, 1));
  EXPECT_EQ(-1, wl_comm_recorded(comm, 2, &one, 1));
  EXPECT_EQ(-1, wl_comm_recorded(comm, 0, &one, -1));
  EXPECT_EQ(-1, wl_comm_recorded(comm, 0, nullptr, 1));
  EXPECT_EQ(0, wl_comm_recorded(comm, 0, nullptr, 0));
  one.struct_size -= 8;
  EXPECT_EQ(-1, wl_comm_recorded(comm, 0, &one, 1));
  EXPECT_EQ(-1, wl_comm_last_to_enter(nullptr, 1));

  struct Larger {
    wl_record_t record;
    uint64_t more;
  };
  std::vector<Larger> larger(3);
  for (Larger& each : larger) each.more = 77;
  larger[0].record.struct_size = sizeof(Larger);
  ASSERT_EQ(3, wl_comm_recorded(comm, 1, &larger[0].record, 3));
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(3 - i, larger[i].record.sequence);
    EXPECT_EQ(77u, larger[i].more);
  }
}

// The text without the process of each rank, which it names where ranks live in several.
std::string withoutProcesses(std::string text) {
  // Removes the names of processes without rank 0, which end with its communicator.
  if (text.empty()) return text;
  EXPECT_EQ(processes(2) > 0, text.find(" (process ") != std::string::npos) << text;
  for (size_t at; (at = text.find(" (process ")) != std::string::npos;)
    text.erase(at, text.find(')', at) + 1 - at);
  return text;
}

// Rank 0's message when, after `warmUps` exchanges of all ranks, those that do not `come` leave the
// others in a barrier.
std::string messageOf(int n, int warmUps, const std::function<bool(int)>& comes) {
  LocalRanks ranks(n, 20'000 * kMs, 1, 64);
  const auto inBarrier = [&](int rank) {
    const auto records = recorded(ranks.comms[0], rank, 1);
    return !records.empty() && records[0].operation == WL_OP_BARRIER;
  };
  std::string text;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    for (int i = 0; i < warmUps; ++i) {
      ASSERT_EQ(WL_OK, exchange(comm, static_cast<uint32_t>(1 + i), &error)) << error.message;
    }
    if (!comes(rank)) return;
    for (int peer = 1; rank == 0 && peer < n; ++peer) {
      while (comes(peer) && !inBarrier(peer)) std::this_thread::yield();
    }
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(comm, rank == 0 ? 100 * kMs : 0, &error));
    if (rank == 0) text = error.message;
  });
  return withoutProcesses(text);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PassedDeadlineText, SaysWhatTheRankThatIsBehindDidLastAndHowLongAgo) {
  const std::string text = messageOf(4, 4, [](int rank) { return rank != 3; });
  EXPECT_TRUE(says(text,
                   "waited 0.100 s in barrier, operation #5 on 4 ranks: rank 3 has not come: "
                   "it finished all-to-all(5 x u16 to each rank, push) #4 "))
      << text;
  const size_t at = text.find("#4 ");
  double ago = 0;
  char unit[8] = "";
  ASSERT_NE(std::string::npos, at) << text;
  ASSERT_EQ(2, std::sscanf(text.c_str() + at, "#4 %lf %7s ago. See what that", &ago, unit)) << text;
  // Rank 0 may enter the barrier before rank 3 has left what came before.
  EXPECT_GE(ago * (std::string(unit) == "s" ? 1000 : 1), 50) << text;
  EXPECT_TRUE(says(text, std::string(unit) + " ago. See what that")) << text;
}

TEST(PassedDeadlineText, SaysWhoCalledNothing) {
  const std::string text = messageOf(3, 0, [](int rank) { return rank != 2; });
  EXPECT_TRUE(says(text, "rank 2 has not come: it called nothing yet. See")) << text;
}

TEST(PassedDeadlineText, StaysShortWhenManyAreBehind) {
  const std::string text = messageOf(16, 1, [](int rank) { return rank < 4; });
  EXPECT_TRUE(says(text, "rank 4 has not come: it finished all-to-all #1 ")) << text;
  EXPECT_TRUE(says(text, "rank 11 has not come: ")) << text;
  EXPECT_FALSE(says(text, "rank 12")) << text;
  EXPECT_TRUE(says(text, " ago; and 4 more. See what those ranks are doing")) << text;
  EXPECT_LT(text.size(), 700u) << text;
}

}  // namespace flight_recorder_test
}  // namespace windlass_test
