// SPDX-License-Identifier: Apache-2.0
// Collectives on streams of ranks that live in several processes, forked, each with the stand-in
// for NVIDIA's driver: bits, the order of what streams have, streams that come late or never, and
// what comes of a process that is killed, of an abort, of a deadline and of a call that fails.
#include <algorithm>

#include "tests/native/core/crew.h"
#include "tests/native/cuda/failing_calls.h"
#include "tests/native/device/every_collective.h"

namespace windlass_test {
namespace stream_processes_test {

constexpr size_t kCount = 1000;

// A rank's stream and tensors. Its i-th element is rank + i, and more in later rounds.
struct OnStream {
  OnStream(int rank, int devices)
      : stream(rank % devices), source(tensor(rank, devices)), in(tensor(rank, devices)),
        out(tensor(rank, devices)), kept(tensor(rank, devices)) {
    std::iota(source, source + kCount, rank);
  }
  static int32_t* tensor(int rank, int devices) {
    return gpus::tensor<int32_t>(rank % devices, kCount);
  }
  int32_t sum(wl_comm_t* comm, uint64_t* ticket, Error* error, int64_t deadlineNs = 0) {
    return windlass_test::sum(comm, stream.handle(), source, out, kCount, ticket, error,
                              deadlineNs);
  }
  bool isSum(const int32_t* of, int ranks, int more = 0) const {
    for (int i = 0; i < static_cast<int>(kCount); ++i)
      if (of[i] != ranks * (ranks - 1) / 2 + ranks * (i + more)) return false;
    return true;
  }

  UserStream stream;
  int32_t *source, *in, *out, *kept;
};

bool isOk(int32_t code, const Error& error) {
  if (code != WL_OK) std::fprintf(stderr, "%s\n", error.message);
  return code == WL_OK;
}

class StreamProcesses : public testing::TestWithParam<Crew> {
 protected:
  StreamProcesses() { gpus::reset(); }
  ~StreamProcesses() override { gpus::reset(); }

  static void expectRight(Muster& muster, const std::string& of = "") {
    EXPECT_EQ(muster.board().wrong, 0) << of;
  }
  // Rank 1 does what `strike` says, once all have an operation in flight that does not end, and
  // each rank awaits its own.
  static void strike(int64_t deadlineNs, const std::function<void(Mate&)>& strike,
                     const std::function<void(Mate&, int32_t, const Error&)>& check) {
    Muster muster(GetParam());
    muster.run([&](Mate& mate) {
      gpus::isStuck(1, true);
      OnStream own(mate.rank, 1);
      Error error;
      uint64_t ticket = 0;
      EXPECT_OF_MATE(mate, isOk(own.sum(mate.comm, &ticket, &error, deadlineNs), error));
      mate.board.at[mate.rank] = 1;
      EXPECT_OF_MATE(mate, mate.board.awaitAll(GetParam(), 1));
      if (mate.rank == 1) strike(mate);
      if (mate.comm == nullptr) return;
      const int32_t code = awaitEnqueued(mate.comm, ticket, &error);
      check(mate, code, error);
    });
    expectRight(muster);
  }
};

TEST_P(StreamProcesses, AllCollectivesComeToWhatTheirCallersGet) {
  for (const int devices : {1, 2}) {
    gpus::devices(devices);
    Muster muster(GetParam());
    muster.run([&](Mate& mate) {
      UserStream stream(mate.rank % devices);
      EveryCollective every(mate.rank, wl_comm_size(mate.comm), mate.rank % devices);
      for (uint32_t round = 0; round < 5; ++round) {
        Error error;
        uint64_t ticket = 0;
        every.fill(round);
        EXPECT_OF_MATE(mate,
                       isOk(every.enqueue(mate.comm, stream.handle(), &ticket, &error), error));
        EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
        EXPECT_OF_MATE(mate, isOk(every.run(mate.comm, &error), error));
        EXPECT_OF_MATE(mate, every.differs() == -1);
      }
    });
    expectRight(muster);
  }
}

// More operations than are in flight at a time, and none touches what a peer still reads.
TEST_P(StreamProcesses, CarryOperationsInTheirOrder) {
  constexpr int kTimes = 150;
  gpus::devices(2);
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    const int ranks = wl_comm_size(mate.comm);
    OnStream own(mate.rank, 2);
    std::vector<int32_t*> sources, results;
    for (int i = 0; i < kTimes; ++i) {
      sources.push_back(OnStream::tensor(mate.rank, 2));
      results.push_back(OnStream::tensor(mate.rank, 2));
      std::iota(sources.back(), sources.back() + kCount, mate.rank + i);
    }
    uint64_t ticket = 0;
    Error error;
    bool isRight = true;
    for (int i = 0; isRight && i < kTimes; ++i) {
      const auto at = static_cast<size_t>(i);
      own.stream.copy(own.in, sources[at], 4 * kCount);
      // In turns, operations that return before the other ranks have entered.
      isRight = isOk(sum(mate.comm, own.stream.handle(), own.in, own.out, kCount, &ticket, &error),
                     error);
      own.stream.copy(results[at], own.out, 4 * kCount);
      if (!isRight || i % 3 > 0) continue;
      isRight = isOk(enqueue(mate.comm, own.stream.handle(), WL_OP_BROADCAST, own.in, kCount,
                             own.kept, kCount, WL_I32, WL_AUTO, 0, &ticket, &error),
                     error);
    }
    EXPECT_OF_MATE(mate, isRight);
    EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
    own.stream.synchronize();
    for (int i = 0; i < kTimes; ++i)
      EXPECT_OF_MATE(mate, own.isSum(results[static_cast<size_t>(i)], ranks, i));
    for (size_t i = 0; i < kCount; ++i)
      EXPECT_OF_MATE(mate, own.kept[i] == static_cast<int32_t>(i) + kTimes - kTimes % 3 - 3);
  });
  expectRight(muster);
}

// The table gives one of them two cores a rank and the other one core.
TEST_P(StreamProcesses, OperationsFollowThoseOfOtherGrids) {
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    const int ranks = wl_comm_size(mate.comm);
    std::string rows;
    for (const char* of : {"broadcast", "reduce-scatter"})
      for (const int sharers : {1, 2})
        rows += "9.0 16 " + std::string(of) + " " + std::to_string(ranks) + " " +
                std::to_string(sharers) + " 0 1000000 " + (*of == 'b' ? "2" : "1") + "\n";
    Error error;
    const std::string table = "windlass-cuda-grids 1\n" + rows + "end 4\n";
    EXPECT_OF_MATE(mate, isOk(wl_cuda_grids_use(table.c_str(), &error), error));
    OnStream own(mate.rank, 1);
    // More than one block for each core.
    constexpr size_t kMany = 70'000;
    auto* const from = gpus::tensor<int32_t>(0, kMany);
    auto* const to = gpus::tensor<int32_t>(0, kMany);
    std::fill(from, from + kMany, mate.rank);
    const size_t part = kCount / static_cast<size_t>(ranks);
    uint64_t ticket = 0;
    bool isRight = true;
    for (int i = 0; isRight && i < 100; ++i) {
      isRight = isOk(enqueue(mate.comm, own.stream.handle(), WL_OP_BROADCAST, from, kMany, to,
                             kMany, WL_I32, WL_AUTO, 5000 * kMs, &ticket, &error),
                     error) &&
                isOk(enqueue(mate.comm, own.stream.handle(), WL_OP_REDUCE_SCATTER, own.source,
                             part * static_cast<size_t>(ranks), own.out, part, WL_I32, WL_AUTO,
                             5000 * kMs, &ticket, &error),
                     error);
    }
    EXPECT_OF_MATE(mate, isRight);
    EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
    EXPECT_OF_MATE(mate, isOk(wl_cuda_grids_use(nullptr, &error), error));
  });
  expectRight(muster);
}

TEST_P(StreamProcesses, LargerOperationsFollowSmallerOnes) {
  constexpr size_t kMost = 700'000;
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    UserStream stream(0);
    auto* const in = gpus::tensor<int32_t>(0, kMost);
    auto* const out = gpus::tensor<int32_t>(0, kMost);
    std::iota(in, in + kMost, mate.rank);
    const int ranks = wl_comm_size(mate.comm);
    Error error;
    uint64_t ticket = 0;
    for (const size_t count : {size_t{1000}, size_t{300'000}, size_t{1000}, kMost})
      EXPECT_OF_MATE(
          mate, isOk(sum(mate.comm, stream.handle(), in, out, count, &ticket, &error), error));
    EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
    int wrong = 0;
    for (int i = 0; i < static_cast<int>(kMost); ++i)
      wrong += out[i] != ranks * (ranks - 1) / 2 + ranks * i ? 1 : 0;
    EXPECT_OF_MATE(mate, wrong == 0);
  });
  expectRight(muster);
}

// Rank 1's stream comes once all others have waited for it for a while.
TEST_P(StreamProcesses, AStreamThatComesLateIsWaitedFor) {
  for (const bool isBarrier : {false, true}) {
    Muster muster(GetParam());
    muster.run([&](Mate& mate) {
      OnStream own(mate.rank, 1);
      if (mate.rank == 1) gpus::holdStream(own.stream.handle(), true);
      Error error;
      uint64_t ticket = 0;
      const int32_t code =
          isBarrier ? enqueue(mate.comm, own.stream.handle(), WL_OP_BARRIER, nullptr, 0, nullptr, 0,
                              0, WL_AUTO, 0, &ticket, &error)
                    : own.sum(mate.comm, &ticket, &error);
      EXPECT_OF_MATE(mate, isOk(code, error) && ticket == 1);
      int32_t over = 1;
      EXPECT_OF_MATE(mate, wl_enqueued_await(mate.comm, ticket, 100 * kMs, &over, &error) == WL_OK);
      EXPECT_OF_MATE(mate, over == 0);
      mate.board.at[mate.rank] = 1;
      EXPECT_OF_MATE(mate, mate.board.awaitAll(GetParam(), 1));
      if (mate.rank == 1) gpus::holdStream(own.stream.handle(), false);
      EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
      EXPECT_OF_MATE(mate, isBarrier || own.isSum(own.out, wl_comm_size(mate.comm)));
    });
    expectRight(muster);
  }
}

TEST_P(StreamProcesses, ARankWhoseStreamDoesNotComeIsNamed) {
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    OnStream own(mate.rank, 1);
    if (mate.rank == 1) gpus::holdStream(own.stream.handle(), true);
    Error error;
    uint64_t ticket = 0;
    EXPECT_OF_MATE(mate, isOk(own.sum(mate.comm, &ticket, &error, 3'000 * kMs), error));
    EXPECT_OF_MATE(mate, awaitEnqueued(mate.comm, ticket, &error) == WL_DEADLINE_EXCEEDED);
    EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
    EXPECT_OF_MATE(mate, contains(error.message, "the stream of rank 1 has not"));
    mate.board.at[mate.rank] = 1;
    EXPECT_OF_MATE(mate, mate.board.awaitAll(GetParam(), 1));
    if (mate.rank == 1) gpus::holdStream(own.stream.handle(), false);
  });
  expectRight(muster);
}

TEST_P(StreamProcesses, AtTheDeadlineTheRankIsNamedWhoseCoresAreLeastFar) {
  strike(
      3'000 * kMs, [](Mate&) {},
      [](Mate& mate, int32_t code, const Error& error) {
        EXPECT_OF_MATE(mate, code == WL_DEADLINE_EXCEEDED);
        EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
        EXPECT_OF_MATE(mate, contains(error.message, "the device of rank 1 has ended 0"));
      });
}

TEST_P(StreamProcesses, AnAbortEndsWhatIsEnqueued) {
  strike(
      0,
      [](Mate& mate) {
        Error error;
        EXPECT_OF_MATE(mate, wl_comm_abort(mate.comm, "enough of it", &error) == WL_OK);
      },
      [](Mate& mate, int32_t code, const Error& error) {
        EXPECT_OF_MATE(mate, code == WL_ABORTED && contains(error.message, "enough of it"));
      });
}

TEST_P(StreamProcesses, ARankThatClosesEndsWhatItHasEnqueued) {
  strike(
      0,
      [](Mate& mate) {
        Error error;
        EXPECT_OF_MATE(mate, wl_comm_close(mate.comm, &error) == WL_OK);
        mate.comm = nullptr;
      },
      [](Mate& mate, int32_t code, const Error& error) {
        EXPECT_OF_MATE(mate, code == WL_ABORTED);
        EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
        EXPECT_OF_MATE(mate, contains(error.message, "rank 1 closed the communicator while 1 op"));
      });
}

// While cores of all others wait for one whose cores do nothing, or while they enqueue.
TEST_P(StreamProcesses, AKilledOneIsNamed) {
  const Crew crew = GetParam();
  constexpr int kKilled = 1;
  for (const bool isInFlight : {true, false}) {
    Muster muster(crew, 60'000 * kMs);
    muster.run(
        [&](Mate& mate) {
          OnStream own(mate.rank, 1);
          Error error;
          uint64_t ticket = 0;
          EXPECT_OF_MATE(mate, isOk(own.sum(mate.comm, &ticket, &error), error));
          EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
          if (isInFlight) gpus::isStuck(kKilled, true);
          mate.board.at[mate.rank] = 1;
          EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, 1));
          int32_t code = WL_OK;
          if (isInFlight) {
            EXPECT_OF_MATE(mate, isOk(own.sum(mate.comm, &ticket, &error), error));
            mate.board.at[mate.rank] = 2;
            code = awaitEnqueued(mate.comm, ticket, &error);
          } else {
            mate.board.at[mate.rank] = 2;
            while (code == WL_OK) code = own.sum(mate.comm, &ticket, &error);
          }
          EXPECT_OF_MATE(mate, code == WL_PEER_LOST);
          EXPECT_OF_MATE(mate, error.faulty_rank_count == crew.threads);
          EXPECT_OF_MATE(mate, error.faulty_ranks[0] == kKilled);
          mate.board.at[mate.rank] = 3;
        },
        [&] {
          EXPECT_TRUE(muster.board().awaitAll(crew, 2));
          usleep(5'000);
          kill(muster.pid(kKilled), SIGKILL);
          EXPECT_TRUE(muster.board().awaitAll(crew, 3, kKilled));
        });
    expectRight(muster);
    EXPECT_EQ(muster.ends[kKilled], -SIGKILL);
  }
}

// All peers get the error, whichever call fails in one process, and no process keeps anything.
TEST_P(StreamProcesses, AFailureInOneIsToldToAll) {
  const Crew crew = GetParam();
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = crew.ranks();
  config.device_cores = 2;
  config.deadline_ns = 20'000 * kMs;
  for (const char* call :
       {"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMemCreate", "cuMemMap",
        "cuMemSetAccess", "cuLaunchCooperativeKernel", "cuMemcpyAsync", "cuMemcpyHtoDAsync",
        "cuStreamCreate", "cuStreamWaitEvent", "cuStreamGetCtx", "cuEventCreate", "cuEventRecord",
        "cuEventQuery", "cuMemAlloc", "cuMemHostAlloc"}) {
    const Shared<std::atomic<int>> made;  // in the second process
    // 0: none fails.
    const auto sumTwice = [&](int number) {
      const ForkedGroup all(config, crew.processes);
      Forks forks(crew.processes, [&](int process) {
        std::atomic<int> wrong{0};
        {
          std::vector<std::unique_ptr<OnStream>> programs;
          for (const int rank : all.ranksOf(process))
            programs.push_back(std::make_unique<OnStream>(rank, 1));
          const std::string before = gpus::held();
          {
            OwnRanks own(all, process);
            if (process == 1 && number > 0) gpus::failCall(call, number, 719);
            own.run([&](int rank, wl_comm_t*& comm) {
              OnStream& program = *programs[static_cast<size_t>(rank / crew.processes)];
              Error error;
              uint64_t ticket = 0;
              int32_t code = program.sum(comm, &ticket, &error);
              if (code == WL_OK) code = program.sum(comm, &ticket, &error);
              if (code == WL_OK) code = awaitEnqueued(comm, ticket, &error);
              if (code == WL_OK) return;
              const bool isTold = code == WL_DEVICE && error.faulty_rank_count == 1 &&
                                  error.faulty_ranks[0] % crew.processes == 1 &&
                                  contains(error.message, std::string(call) + " of device");
              if (!isTold) std::fprintf(stderr, "rank %d: %d %s\n", rank, code, error.message);
              wrong += isTold ? 0 : 1;
            });
          }
          gpus::failCall("", 0, 0);
          if (process == 1) *made = gpus::countCalls(call);
          if (const std::string held = gpus::held(); held != before) {
            std::fprintf(stderr, "process %d holds %s, and not %s\n", process, held.c_str(),
                         before.c_str());
            wrong += 10;
          }
        }
        return wrong.load();
      });
      EXPECT_EQ(forks.wait(60'000 * kMs), std::vector<int>(static_cast<size_t>(crew.processes), 0))
          << call << " " << number;
    };
    sumTwice(0);
    EXPECT_GE(*made, 1) << call;
    // Looks are as many as come.
    const int most = std::string(call) == "cuEventQuery" ? std::min<int>(*made, 5) : made->load();
    for (const int number : callsToFail(most, Failing::kLast)) sumTwice(number);
  }
}

TEST_P(StreamProcesses, AGraphIsRefusedAndTheCommunicatorLives) {
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    OnStream own(mate.rank, 1);
    if (mate.rank == 1) own.stream.beginCapture(2);
    Error error;
    uint64_t ticket = 1;
    EXPECT_OF_MATE(mate, own.sum(mate.comm, &ticket, &error) == WL_UNSUPPORTED && ticket == 0);
    EXPECT_OF_MATE(mate, contains(error.message, "the stream of rank 1 captures a graph, which"));
    mate.board.at[mate.rank] = 1;
    EXPECT_OF_MATE(mate, mate.board.awaitAll(GetParam(), 1));
    if (mate.rank == 1) UserStream::dropGraph(own.stream.endCapture());
    EXPECT_OF_MATE(mate, isOk(own.sum(mate.comm, &ticket, &error), error));
    EXPECT_OF_MATE(mate, isOk(awaitEnqueued(mate.comm, ticket, &error), error));
    EXPECT_OF_MATE(mate, own.isSum(own.out, wl_comm_size(mate.comm)));
  });
  expectRight(muster);
}

// Whatever the order in which threads of each process enqueue, no two grids wait for one another.
TEST_P(StreamProcesses, OfCommunicatorsThatShareDevicesTakeTurns) {
  const int threads = GetParam().threads;
  gpus::devices(2);
  gpus::blocks(threads);
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    Error error;
    wl_comm_t* other = nullptr;
    EXPECT_OF_MATE(mate, wl_comm_split(mate.comm, 0, -mate.rank, 0, &other, &error) == WL_OK);
    if (other == nullptr) return;
    const auto sums = [&](wl_comm_t* comm) {
      OnStream own(mate.rank, 2);
      Error ofOwn;
      uint64_t ticket = 0;
      for (int i = 0; i < 40; ++i)
        EXPECT_OF_MATE(mate, isOk(own.sum(comm, &ticket, &ofOwn), ofOwn));
      EXPECT_OF_MATE(mate, isOk(awaitEnqueued(comm, ticket, &ofOwn), ofOwn));
      std::vector<int32_t> sum(own.out, own.out + kCount);
      EXPECT_OF_MATE(mate, own.isSum(sum.data(), wl_comm_size(comm)));
    };
    std::thread beside([&] { sums(other); });
    sums(mate.comm);
    beside.join();
    wl_comm_free(other);
  });
  expectRight(muster);
}

INSTANTIATE_TEST_SUITE_P(Crews, StreamProcesses, testing::Values(Crew{2, 1}, Crew{2, 2}));

}  // namespace stream_processes_test
}  // namespace windlass_test
