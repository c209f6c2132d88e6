// SPDX-License-Identifier: Apache-2.0
// Graphs that hold collectives, over the stand-in for NVIDIA's driver: what their launches come to,
// and which captures are refused.
#include <functional>

#include "tests/native/collective_calls.h"
#include "tests/native/device/every_collective.h"
#include "tests/native/device/graph_replay.h"
#include "tests/native/device/stream_programs.h"

namespace windlass_test {
namespace graphs_test {

constexpr int kRanks = 3;

TEST_F(GpusStreams, AGraphOfSeveralCollectivesRunsAsOftenAsItIsLaunched) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    replay(kRanks, devices, 1000);
    EXPECT_EQ(gpus::held(), "");
  }
}

// The second of two operations overwrites the result of the first, whose streams are late. Between
// them ranks capture another operation.
TEST_F(GpusStreams, OperationsKeepTheirOrderAroundACapture) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    const std::vector<int64_t> counts[] = {{3, 1}, {1, 3}};
    constexpr int kTwo = 2;
    Program first(kTwo, devices, 1000), second(kTwo, devices, 1000), captured(kTwo, devices, 1000);
    for (int32_t* const source : second.source)
      for (size_t i = 0; i < 1000; ++i) source[i] += 1000;
    LocalRanks ranks(kTwo);
    const auto enqueue = [&](Program& of, const std::vector<int64_t>& parts) {
      std::vector<uint64_t> tickets(kTwo);
      ranks.run([&](int rank, wl_comm_t* comm) {
        const auto at = static_cast<size_t>(rank);
        Error error;
        EXPECT_EQ(enqueueAllGatherV(comm, of.stream(rank).handle(), of.source[at],
                                    static_cast<uint64_t>(parts[at]), of.out[at], 4,
                                    parts.data(), WL_I32, 0, &tickets[at], &error),
                  WL_OK)
            << error.message;
      });
      return tickets;
    };
    gpus::holdStream(first.stream(1).handle(), true);
    const std::vector<uint64_t> one = enqueue(first, counts[0]);
    captured.beginCapture();
    enqueue(captured, counts[0]);
    void* const graph = captured.endCapture();
    ASSERT_NE(graph, nullptr);
    const std::vector<uint64_t> two = enqueue(second, counts[1]);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      int32_t isOver = 0;
      EXPECT_EQ(wl_enqueued_await(comm, two[static_cast<size_t>(rank)], 50 * kMs, &isOver, &error),
                WL_OK)
          << error.message;
      EXPECT_EQ(isOver, 0);
    });
    gpus::holdStream(first.stream(1).handle(), false);
    ranks.run([&](int rank, wl_comm_t* comm) {
      for (const auto& tickets : {one, two}) {
        Error error;
        EXPECT_EQ(awaitEnqueued(comm, tickets[static_cast<size_t>(rank)], &error), WL_OK)
            << error.message;
      }
    });
    for (size_t rank = 0; rank < kTwo; ++rank) {
      const auto gathered = [&](const Program& of) {
        return std::vector<int32_t>(of.out[rank], of.out[rank] + 4);
      };
      EXPECT_EQ(gathered(first), (std::vector<int32_t>{0, 1, 2, 1})) << devices << ", " << rank;
      EXPECT_EQ(gathered(second), (std::vector<int32_t>{1000, 1001, 1002, 1003}))
          << devices << ", " << rank;
    }
    UserStream::dropGraph(graph);
  }
}

// If two captures took turns, the order of their operations would be unknown.
TEST_F(GpusStreams, ACaptureThatAnotherCameAfterTakesNoMore) {
  gpus::devices(2);
  Program first(kRanks, 2, 1000), second(kRanks, 2, 1000);
  LocalRanks ranks(kRanks);
  const auto enqueue = [&](Program& of, int32_t code) {
    ranks.run([&](int rank, wl_comm_t* comm) {
      uint64_t ticket = 0;
      Error error;
      EXPECT_EQ(of.sum(comm, rank, &ticket, &error), code) << error.message;
      if (code != WL_OK) {
        EXPECT_TRUE(contains(error.message, "captured since")) << error.message;
      }
    });
  };
  first.beginCapture();
  enqueue(first, WL_OK);
  second.beginCapture();
  enqueue(first, WL_OK);
  enqueue(second, WL_OK);
  enqueue(first, WL_UNSUPPORTED);
  void* const graph = first.endCapture();
  ASSERT_NE(graph, nullptr);
  enqueue(second, WL_OK);
  void* const other = second.endCapture();
  ASSERT_NE(other, nullptr);
  for (void* const each : {graph, other}) {
    Program& of = each == graph ? first : second;
    of.stream(0).launch(each);
    of.stream(0).synchronize();
    for (const int32_t* const out : of.out)
      for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(out[i], of.sumAt(i)) << i;
    UserStream::dropGraph(each);
  }
}

TEST_F(GpusStreams, GiveBackWhatGraphsHeldOnceAllRanksHaveClosed) {
  gpus::devices(2);
  Program program(kRanks, 2, 1000);
  const std::string own = gpus::held();
  LocalRanks ranks(kRanks);
  std::vector<uint64_t> tickets(kRanks);
  const auto enqueue = [&](int rank, wl_comm_t* comm) {
    const auto at = static_cast<size_t>(rank);
    Error error;
    ASSERT_EQ(sum(comm, program.stream(rank).handle(), program.in[at], program.out[at], 1000,
                  &tickets[at], &error),
              WL_OK)
        << error.message;
    if (tickets[at] == 0) return;
    EXPECT_EQ(awaitEnqueued(comm, tickets[at], &error), WL_OK) << error.message;
  };
  ranks.run(enqueue);
  const std::vector<uint64_t> first = tickets;
  program.beginCapture();
  ranks.run(enqueue);
  void* const graph = program.endCapture();
  ASSERT_NE(graph, nullptr);
  UserStream::dropGraph(graph);
  // A handle may be closed again, and asked for what it has enqueued, until it is freed.
  for (int time = 0; time < 2; ++time) {
    for (wl_comm_t* comm : ranks.comms) EXPECT_EQ(wl_comm_close(comm, nullptr), WL_OK);
    EXPECT_EQ(gpus::held(), own);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      EXPECT_EQ(awaitEnqueued(comm, first[static_cast<size_t>(rank)], &error), WL_OK)
          << error.message;
    });
  }
}

// A graph also holds operations with parts of different sizes. The sizes of the capture stay.
TEST_F(GpusStreams, AGraphHoldsAllCollectives) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    Program program(kRanks, devices, kRanks);
    std::vector<EveryCollective> every;
    for (int rank = 0; rank < kRanks; ++rank) every.emplace_back(rank, kRanks, rank % devices);
    LocalRanks ranks(kRanks);
    const auto run = [&](int rank, wl_comm_t* comm) {
      Error error;
      EXPECT_EQ(every[static_cast<size_t>(rank)].run(comm, &error), WL_OK) << error.message;
    };
    // The largest of them, of those that are captured.
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint64_t ticket = 0;
      const uint64_t stream = program.stream(rank).handle();
      const EveryCollective& own = every[static_cast<size_t>(rank)];
      ASSERT_EQ(own.enqueue(comm, stream, &ticket, &error), WL_OK) << error.message;
      ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    });
    program.beginCapture();
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint64_t ticket = 1;
      const uint64_t stream = program.stream(rank).handle();
      EXPECT_EQ(every[static_cast<size_t>(rank)].enqueue(comm, stream, &ticket, &error), WL_OK)
          << error.message;
      EXPECT_EQ(ticket, 0u);
    });
    void* const graph = program.endCapture();
    ASSERT_NE(graph, nullptr);
    for (uint32_t round = 0; round < 10; ++round) {
      for (EveryCollective& each : every) each.fill(round);
      // Others, of other counts, take what those in flight have.
      ranks.run([&](int rank, wl_comm_t* comm) {
        const int64_t counts[kRanks] = {1, 1, 1};
        Error error;
        uint64_t ticket = 0;
        const auto at = static_cast<size_t>(rank);
        for (int i = 0; round == 0 && i < 64; ++i) {
          ASSERT_EQ(enqueueAllGatherV(comm, program.stream(rank).handle(), program.in[at], 1,
                                      program.out[at], kRanks, counts, WL_I32, 0, &ticket,
                                      &error),
                    WL_OK)
              << error.message;
        }
        if (round == 0) {
          ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
        }
      });
      program.stream(0).launch(graph);
      program.stream(0).synchronize();
      ranks.run(run);
      for (const EveryCollective& each : every)
        ASSERT_EQ(each.differs(), -1) << "round " << round << ", " << devices << " devices";
    }
    UserStream::dropGraph(graph);
  }
}

// Each rank's stream captures what `begin` has it capture, and all refuse the operation.
void refuse(const std::function<void(Program&)>& begin, const std::function<void(Program&)>& end,
            const char* because) {
  gpus::reset();
  Program program(kRanks, 1, 100);
  LocalRanks ranks(kRanks);
  begin(program);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_UNSUPPORTED);
    EXPECT_TRUE(contains(error.message, because));
  });
  end(program);
  EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << error.message;
    EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    for (size_t i = 0; i < 100; ++i)
      ASSERT_EQ(program.out[static_cast<size_t>(rank)][i], program.sumAt(i)) << i;
  });
}

TEST_F(GpusStreams, ACaptureOfSomeRanksIsRefused) {
  refuse([](Program& program) { program.stream(1).beginCapture(); },
         [](Program& program) { UserStream::dropGraph(program.stream(1).endCapture()); },
         "the stream of rank 1 captures a graph and that of rank ");
}

TEST_F(GpusStreams, TwoGraphsAreRefused) {
  refuse(
      [](Program& program) {
        program.stream(0).beginCapture();
        program.stream(1).follow(program.stream(0));
        program.stream(2).beginCapture();
      },
      [](Program& program) {
        program.stream(0).follow(program.stream(1));
        for (const int rank : {0, 2}) UserStream::dropGraph(program.stream(rank).endCapture());
      },
      "capture two graphs");
}

TEST_F(GpusStreams, GraphsHoldNoMoreThanTheCommunicatorKeeps) {
  constexpr int kMost = 512;
  Program program(kRanks, 1, 100);
  LocalRanks ranks(kRanks);
  program.beginCapture();
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    for (int i = 0; i < kMost; ++i)
      ASSERT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << i << ": " << error.message;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_RESOURCE);
    EXPECT_TRUE(contains(error.message, "graphs hold 512 operations of this communicator"));
  });
  void* const graph = program.endCapture();
  ASSERT_NE(graph, nullptr);
  program.stream(0).launch(graph);
  program.stream(0).synchronize();
  for (const int32_t* out : program.out)
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(out[i], program.sumAt(i)) << i;
  UserStream::dropGraph(graph);
}

}  // namespace graphs_test
}  // namespace windlass_test
