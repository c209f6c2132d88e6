// SPDX-License-Identifier: Apache-2.0
// Collectives on streams of their callers over the stand-in for NVIDIA's driver: their order, what
// is refused, and how each rank is told of what does not end.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "tests/native/cuda/given_back.h"
#include "tests/native/cuda/no_memory.h"
#include "tests/native/device/every_collective.h"

namespace windlass_test {
namespace streams_test {

constexpr int kRanks = 3;

// Each rank's stream fills its input, sums it, and keeps what comes of it.
std::vector<Outcome> sumOnStreams(int devices, int times) {
  constexpr size_t kCount = 1000;
  std::vector<Outcome> outcomes(kRanks);
  Program program(kRanks, devices, kCount);
  {
    LocalRanks ranks(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<size_t>(rank);
      program.stream(rank).copy(program.in[at], program.source[at], 4 * kCount);
    }
    ranks.run([&](int rank, wl_comm_t* comm) {
      const auto at = static_cast<size_t>(rank);
      Outcome& own = outcomes[at];
      uint64_t ticket = 0;
      for (int i = 0; i < times && own.code == WL_OK; ++i) {
        own.code = sum(comm, program.stream(rank).handle(), program.in[at], program.out[at], kCount,
                       &ticket, &own.error);
      }
      if (own.code == WL_OK) own.code = awaitEnqueued(comm, ticket, &own.error);
      if (own.code == WL_OK) {
        EXPECT_EQ(ticket, static_cast<uint64_t>(times));
      }
    });
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<size_t>(rank);
      if (outcomes[at].code != WL_OK) continue;
      program.stream(rank).copy(program.kept[at], program.out[at], 4 * kCount);
      program.stream(rank).synchronize();
    }
  }
  for (size_t rank = 0; rank < kRanks; ++rank) {
    if (outcomes[rank].code != WL_OK) continue;
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(program.kept[rank][i], program.sumAt(i)) << i;
  }
  return outcomes;
}

const std::string kTensors = std::to_string(4 * kRanks) + " allocations";

TEST_F(GpusStreams, CarryOperationsInTheirOrder) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    // More of them than are in flight at a time.
    for (const Outcome& one : sumOnStreams(devices, 100))
      EXPECT_EQ(one.code, WL_OK) << one.error.message;
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 100 * devices);
    EXPECT_EQ(gpus::held(), kTensors);
  }
}

TEST_F(GpusStreams, AllCollectivesComeToWhatTheirCallersGet) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    Program program(kRanks, devices, 1);
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      EveryCollective every(rank, kRanks, rank % devices);
      for (uint32_t round = 0; round < 5; ++round) {
        Error error;
        uint64_t ticket = 0;
        every.fill(round);
        ASSERT_EQ(every.enqueue(comm, program.stream(rank).handle(), &ticket, &error), WL_OK)
            << error.message;
        ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
        ASSERT_EQ(every.run(comm, &error), WL_OK) << error.message;
        EXPECT_EQ(every.differs(), -1) << "rank " << rank << " of " << devices << " devices";
      }
    });
  }
}

TEST_F(GpusStreams, TensorsOfAnotherDeviceThanTheirRanksAreCopied) {
  constexpr size_t kCount = 1000;
  gpus::devices(2);
  Program program(1, 2, kCount);
  auto* const in = gpus::tensor<int32_t>(1, kCount);
  auto* const out = gpus::tensor<int32_t>(1, kCount);
  std::iota(in, in + kCount, 7);
  for (int32_t* const to : {program.out[0], out}) {
    LocalRanks ranks(1);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint64_t ticket = 0;
      ASSERT_EQ(sum(comm, program.stream(rank).handle(), in, to, kCount, &ticket, &error), WL_OK)
          << error.message;
      ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    });
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(to[i], in[i]) << i;
  }
}

TEST_F(GpusStreams, ARankThatCallsItWithoutAStreamIsAMismatch) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    Program program(kRanks, devices, 1000);
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const auto at = static_cast<size_t>(rank);
      Error error;
      uint64_t ticket = 0;
      const int32_t code =
          rank == 1 ? program.sum(comm, rank, &ticket, &error)
                    : allReduce(comm, program.source[at], program.out[at], 1000, WL_I32, WL_SUM,
                                WL_TWO_PHASE, 0, &error);
      EXPECT_EQ(code, WL_MISMATCH) << error.message;
      EXPECT_TRUE(contains(error.message, "on a stream")) << error.message;
    });
  }
}

TEST_F(GpusStreams, WhatMovesNothingWaitsForTheStreamsOfAll) {
  for (const int devices : {1, 2}) {
    for (const int32_t operation : {WL_OP_BARRIER, WL_OP_ALL_REDUCE}) {
      gpus::reset();
      gpus::devices(devices);
      Program program(kRanks, devices, 1);
      LocalRanks ranks(kRanks);
      gpus::holdStream(program.stream(1).handle(), true);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        uint64_t ticket = 0;
        ASSERT_EQ(enqueue(comm, program.stream(rank).handle(), operation, nullptr, 0, nullptr, 0,
                          WL_I32, WL_AUTO, 0, &ticket, &error),
                  WL_OK)
            << error.message;
        EXPECT_EQ(ticket, 1u);
        int32_t over = 1;
        EXPECT_EQ(wl_enqueued_await(comm, ticket, 50 * kMs, &over, &error), WL_OK);
        EXPECT_EQ(over, 0);
      });
      gpus::holdStream(program.stream(1).handle(), false);
      ranks.run([&](int, wl_comm_t* comm) {
        Error error;
        EXPECT_EQ(awaitEnqueued(comm, 1, &error), WL_OK) << error.message;
      });
    }
  }
}

void failStreams(int devices, const std::string& call, int number, bool isDone) {
  SCOPED_TRACE(call + " " + std::to_string(number) + (isDone ? ", which is done" : ""));
  gpus::reset();
  gpus::devices(devices);
  std::vector<Outcome> outcomes(kRanks);
  Program own(kRanks, devices, 1000);
  const std::string before = gpus::held();
  {
    LocalRanks ranks(kRanks);
    gpus::failOnce(call, number, isDone);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Outcome& one = outcomes[static_cast<size_t>(rank)];
      uint64_t ticket = 0;
      for (int i = 0; i < 2 && one.code == WL_OK; ++i)
        one.code = own.sum(comm, rank, &ticket, &one.error);
      if (one.code == WL_OK) one.code = awaitEnqueued(comm, ticket, &one.error);
    });
  }
  gpus::failCall("", 0, 0);
  for (const Outcome& one : outcomes) {
    if (one.code == WL_OK) continue;
    EXPECT_EQ(one.code, WL_DEVICE) << one.error.message;
    EXPECT_EQ(one.error.faulty_rank_count, 1);
    EXPECT_TRUE(contains(one.error.message, call + " of device"));
  }
  EXPECT_TRUE(gpus::isGivenBack(call, isDone, before));
}

TEST_F(GpusStreams, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    sumOnStreams(devices, 2);
    std::map<std::string, int> calls;
    for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
    // Calls that are made once for the process, or that the program makes.
    for (const char* notOurs :
         {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuStreamSynchronize"})
      calls.erase(notOurs);
    for (const auto& [call, count] : calls) {
      const bool isLook = call == "cuStreamQuery" || call == "cuEventQuery";
      for (const int number : callsToFail(isLook ? std::min(count, 6) : count, Failing::kLast))
        for (const bool isDone : gpus::waysToFail(call)) failStreams(devices, call, number, isDone);
    }
  }
}

TEST_F(GpusStreams, WhatAllRefuseLeavesTheCommunicatorAsItIs) {
  gpus::devices(2);
  Program program(kRanks, 2, 100);
  UserStream ofAnother(1);
  const uint64_t destroyed = UserStream(0).handle();
  const NoMemory none;
  LocalRanks ranks(kRanks);
  std::vector<int32_t> host(100, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto at = static_cast<size_t>(rank);
    uint64_t ticket = 0;
    const auto isRefused = [&](uint64_t stream, const int32_t* in, const char* because,
                               int32_t code = WL_UNSUPPORTED) {
      Error error;
      EXPECT_EQ(sum(comm, stream, in, program.out[at], 100, &ticket, &error), code);
      EXPECT_TRUE(contains(error.message, rank == 0 ? because : "rank 0 does not put it"))
          << error.message;
      EXPECT_TRUE(contains(error.message, "rank " + std::to_string(rank) + ": "));
      EXPECT_EQ(error.operation, WL_OP_ALL_REDUCE);
      EXPECT_EQ(error.observer, rank);
      ASSERT_EQ(error.faulty_rank_count, 1);
      EXPECT_EQ(error.faulty_ranks[0], 0);
      EXPECT_EQ(ticket, 0u);
    };
    const uint64_t own = program.stream(rank).handle();
    isRefused(own, rank == 0 ? host.data() : program.source[at], "in lies in the host's memory");
    isRefused(rank == 0 ? 2 : own, program.source[at], "stream 2 is the calling thread's own");
    isRefused(rank == 0 ? ofAnother.handle() : own, program.source[at],
              "is not of the primary context of device 0");
    for (const uint64_t gone : {destroyed, uint64_t{0x5ca1ab1e}})
      isRefused(rank == 0 ? gone : own, program.source[at], "is no stream of this process",
                WL_INVALID_ARGUMENT);
    isRefused(own, rank == 0 ? static_cast<const int32_t*>(none.begin()) : program.source[at],
              "in, 400 bytes at 0x", WL_INVALID_ARGUMENT);
    Error error;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << error.message;
    EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    EXPECT_EQ(awaitEnqueued(comm, ticket + 1, &error), WL_INVALID_ARGUMENT);
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(program.out[at][i], program.sumAt(i)) << i;
  });
}

// Rank 1's cores do nothing; the body has an operation on every rank's stream.
void onStuckRanks(int devices, int64_t deadlineNs,
                  const std::function<void(LocalRanks& ranks, int rank, uint64_t ticket)>& body) {
  gpus::reset();
  gpus::devices(devices);
  {
    Program program(kRanks, devices, 1000);
    LocalRanks ranks(kRanks);
    gpus::isStuck(1, true);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint64_t ticket = 0;
      ASSERT_EQ(program.sum(comm, rank, &ticket, &error, deadlineNs), WL_OK) << error.message;
      body(ranks, rank, ticket);
    });
  }
  EXPECT_EQ(gpus::held(), kTensors);
}

TEST_F(GpusStreams, AtTheDeadlineTheRankIsNamedWhoseCoresAreLeastFar) {
  for (const int devices : {1, 2}) {
    onStuckRanks(devices, 2'000 * kMs, [](LocalRanks& ranks, int rank, uint64_t ticket) {
      Error error;
      EXPECT_EQ(awaitEnqueued(ranks.comms[static_cast<size_t>(rank)], ticket, &error),
                WL_DEADLINE_EXCEEDED);
      ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
      EXPECT_EQ(error.faulty_ranks[0], 1) << error.message;
      EXPECT_TRUE(contains(error.message, "the device of rank 1 has ended 0"));
    });
  }
}

TEST_F(GpusStreams, AnAbortEndsWhatIsEnqueued) {
  for (const int devices : {1, 2}) {
    onStuckRanks(devices, 0, [](LocalRanks& ranks, int rank, uint64_t ticket) {
      wl_comm_t* comm = ranks.comms[static_cast<size_t>(rank)];
      Error error;
      if (rank == 2) {
        EXPECT_EQ(wl_comm_abort(comm, "enough of it", &error), WL_OK);
      }
      EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_ABORTED);
      EXPECT_TRUE(contains(error.message, "enough of it"));
    });
  }
}

TEST_F(GpusStreams, ARankThatClosesEndsWhatItHasEnqueued) {
  for (const int devices : {1, 2}) {
    onStuckRanks(devices, 0, [](LocalRanks& ranks, int rank, uint64_t ticket) {
      wl_comm_t* comm = ranks.comms[static_cast<size_t>(rank)];
      Error error;
      if (rank == 0) {
        wl_comm_close(comm, &error);
        return;
      }
      EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_ABORTED);
      ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
      EXPECT_EQ(error.faulty_ranks[0], 0) << error.message;
      EXPECT_TRUE(contains(error.message, "rank 0 closed the communicator while 1 operation"));
    });
  }
}

TEST_F(GpusStreams, ARankThatNeverComesIsNamed) {
  Program program(kRanks, 1, 1000);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    if (rank == 1) return;
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error, 100 * kMs), WL_DEADLINE_EXCEEDED);
    ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
    EXPECT_EQ(error.faulty_ranks[0], 1) << error.message;
  });
  EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 0);
}

TEST_F(GpusStreams, ARankWhoseStreamDoesNotComeIsNamed) {
  Program program(kRanks, 1, 1000);
  Program before(4, 1, 1000);
  LocalRanks ranks(kRanks);
  LocalRanks others(4);
  gpus::isStuck(3, true);
  others.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    UserStream& stream = rank == 0 ? program.stream(1) : before.stream(rank);
    const auto at = static_cast<size_t>(rank);
    EXPECT_EQ(sum(comm, stream.handle(), before.source[at], before.out[at], 1000, &ticket, &error),
              WL_OK)
        << error.message;
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    ASSERT_EQ(program.sum(comm, rank, &ticket, &error, 2'000 * kMs), WL_OK) << error.message;
    EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_DEADLINE_EXCEEDED);
    ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
    EXPECT_EQ(error.faulty_ranks[0], 1) << error.message;
    EXPECT_TRUE(contains(error.message, "the stream of rank 1 has not"));
  });
  Error error;
  EXPECT_EQ(wl_comm_abort(others.comms[0], "enough of it", &error), WL_OK);
}

// The 65th, one that takes a larger window, and one that is on no stream.
TEST_F(GpusStreams, WhatWaitsForThoseInFlightNamesTheStreamThatDoesNotCome) {
  for (const int devices : {1, 2}) {
    for (const int waits : {0, 1, 2}) {
      gpus::reset();
      gpus::devices(devices);
      const int before = waits == 0 ? 64 : 2;
      Program program(kRanks, devices, 4'000'000);
      LocalRanks ranks(kRanks);
      gpus::holdStream(program.stream(1).handle(), true);
      ranks.run([&](int rank, wl_comm_t* comm) {
        const auto at = static_cast<size_t>(rank);
        const auto put = [&](uint64_t count, int64_t deadlineNs, Error* error) {
          uint64_t ticket = 0;
          return sum(comm, program.stream(rank).handle(), program.source[at], program.out[at],
                     count, &ticket, error, deadlineNs);
        };
        Error error;
        for (int i = 0; i < before; ++i)
          ASSERT_EQ(put(100, 0, &error), WL_OK) << error.message;
        int32_t code = WL_OK;
        if (waits == 2) {
          std::vector<int32_t> own(100);
          code = broadcast(comm, own.data(), own.data(), 100, WL_I32, 0, 0, 300 * kMs, &error);
        } else {
          code = put(waits == 0 ? 100 : 4'000'000, 300 * kMs, &error);
        }
        // Kernels of one device take the tensors in place, and no larger window.
        if (waits == 1 && devices == 1) {
          EXPECT_EQ(code, WL_OK) << error.message;
          return;
        }
        EXPECT_EQ(code, WL_DEADLINE_EXCEEDED) << devices << " devices, " << waits << ": "
                                              << error.message;
        ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
        EXPECT_EQ(error.faulty_ranks[0], 1) << error.message;
        // The call that had no more time, and how much it had.
        const std::string called = waits == 2 ? "broadcast" : "all-reduce";
        EXPECT_EQ(error.operation, waits == 2 ? WL_OP_BROADCAST : WL_OP_ALL_REDUCE);
        EXPECT_EQ(error.sequence, static_cast<uint32_t>(before) + 1);
        EXPECT_TRUE(contains(error.message, "waited 0.300 s in " + called)) << error.message;
        EXPECT_TRUE(contains(error.message, "operations that are in flight")) << error.message;
        EXPECT_TRUE(contains(error.message, "the stream of rank 1 has not")) << error.message;
      });
      gpus::holdStream(program.stream(1).handle(), false);
    }
  }
}

// Rank 1 destroys its stream before the stream reaches its operation. The driver lets the stream go
// on. It goes on at once, or late.
TEST_F(GpusStreams, WhatADestroyedStreamHasInFlightEnds) {
  for (const int devices : {1, 2}) {
    for (const bool isLate : {false, true}) {
      gpus::reset();
      gpus::devices(devices);
      Program program(kRanks, devices, 1000);
      const std::string before = gpus::held();
      {
        LocalRanks ranks(kRanks);
        std::atomic<int> waited{0};
        ranks.run([&](int rank, wl_comm_t* comm) {
          const auto at = static_cast<size_t>(rank);
          auto own = std::make_unique<UserStream>(rank % devices);
          const uint64_t handle = own->handle();
          const auto put = [&](uint64_t stream, uint64_t* ticket, Error* error) {
            return sum(comm, stream, program.source[at], program.out[at], program.count, ticket,
                       error, isLate ? 2'000 * kMs : 0);
          };
          if (rank == 1) gpus::holdStream(handle, true);
          Error error;
          uint64_t ticket = 0;
          ASSERT_EQ(put(handle, &ticket, &error), WL_OK) << error.message;
          if (rank == 1) own.reset();
          if (!isLate) {
            int32_t isOver = 0;
            EXPECT_EQ(wl_enqueued_await(comm, ticket, 30 * kMs, &isOver, &error), WL_OK)
                << error.message;
            EXPECT_EQ(isOver, 0);
            ++waited;
            if (rank == 1) {
              EXPECT_TRUE(await([&] { return waited == kRanks; }));
              gpus::holdStream(handle, false);
            }
          }
          const int32_t code = awaitEnqueued(comm, ticket, &error);
          if (isLate) {
            EXPECT_EQ(code, WL_DEADLINE_EXCEEDED) << error.message;
            EXPECT_TRUE(contains(error.message, "the stream of rank 1 has not")) << error.message;
            EXPECT_EQ(error.faulty_ranks[0], 1);
            ++waited;
            if (rank == 1) {
              EXPECT_TRUE(await([&] { return waited == kRanks; }));
              gpus::holdStream(handle, false);
            }
            return;
          }
          ASSERT_EQ(code, WL_OK) << error.message;
          for (size_t i = 0; i < program.count; ++i)
            ASSERT_EQ(program.out[at][i], program.sumAt(i)) << i;
          // It is none any more, on rank 1; on another one all go on.
          const UserStream another(rank % devices);
          if (rank == 1) {
            EXPECT_EQ(gpus::find<int (*)(uint64_t)>("cuStreamQuery")(handle), 400);
          }
          ASSERT_EQ(put(another.handle(), &ticket, &error), WL_OK) << error.message;
          ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
        });
      }
      EXPECT_EQ(gpus::held(), before);
    }
  }
}

TEST_F(GpusStreams, LargerOperationsFollowSmallerOnes) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    Program program(kRanks, devices, 1'000'000);
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const auto at = static_cast<size_t>(rank);
      Error error;
      uint64_t ticket = 0;
      for (const uint64_t count : {1000u, 300'000u, 1000u, 1'000'000u}) {
        ASSERT_EQ(sum(comm, program.stream(rank).handle(), program.source[at], program.out[at],
                      count, &ticket, &error),
                  WL_OK)
            << error.message;
      }
      ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
      for (size_t i = 0; i < program.count; ++i)
        ASSERT_EQ(program.out[at][i], program.sumAt(i)) << i;
    });
  }
}

// Each device runs one grid at a time: one that waits for a peer behind another one would wait
// until its deadline.
TEST_F(GpusStreams, CommunicatorsThatShareSeveralGpusComeOneAfterAnother) {
  constexpr int kFour = 4;
  gpus::devices(2);
  gpus::blocks(kFour);
  Program programs[] = {{kFour, 2, 1000}, {kFour, 2, 1000}};
  LocalRanks ofOne(kFour);
  LocalRanks ofAnother(kFour);
  const auto sums = [](Program& program) {
    return [&program](int rank, wl_comm_t* comm) {
      const auto at = static_cast<size_t>(rank);
      Error error;
      uint64_t ticket = 0;
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << error.message;
        if (i % 20 > 0) continue;
        // An operation that is over when its call returns, in between.
        ASSERT_EQ(allReduce(comm, program.source[at], program.kept[at], program.count, WL_I32,
                            WL_SUM, WL_TWO_PHASE, 0, &error),
                  WL_OK)
            << error.message;
        for (size_t k = 0; k < program.count; ++k)
          ASSERT_EQ(program.kept[at][k], program.sumAt(k)) << k;
      }
      ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
      for (size_t k = 0; k < program.count; ++k)
        ASSERT_EQ(program.out[at][k], program.sumAt(k)) << k;
    };
  };
  std::thread beside([&] { ofAnother.run(sums(programs[1])); });
  ofOne.run(sums(programs[0]));
  beside.join();
}

}  // namespace streams_test
}  // namespace windlass_test
