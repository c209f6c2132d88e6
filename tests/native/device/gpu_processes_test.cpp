// SPDX-License-Identifier: Apache-2.0
// Collectives and experts of the target cuda whose ranks live in several processes, forked, each
// with the stand-in for NVIDIA's driver: bits, turns of communicators that share GPUs, and what
// comes of a process that is killed, or whose cores hang.
#include <filesystem>

#include "tests/native/core/crew.h"
#include "tests/native/cuda/stand_in.h"
#include "tests/native/device/expert_exchange.h"

namespace windlass_test {
namespace gpu_processes_test {

int openFiles() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    count += file.exists() || file.is_symlink() ? 1 : 0;
  return count;
}

// A rank's i-th element is rank + i. In the device's memory, or the host's.
int32_t sumOnce(wl_comm_t* comm, int rank, int count, bool isOnDevice, int32_t algorithm,
                int64_t deadlineNs, Error* error, bool* isRight) {
  const auto size = static_cast<size_t>(count);
  std::vector<int32_t> host(2 * size);
  int32_t* in = isOnDevice ? gpus::tensor<int32_t>(0, 2 * size) : host.data();
  int32_t* out = in + count;
  for (int i = 0; i < count; ++i) in[i] = rank + i;
  const int32_t code = allReduce(comm, in, out, size, WL_I32, WL_SUM, algorithm, deadlineNs, error);
  const int ranks = wl_comm_size(comm);
  *isRight = code == WL_OK;
  for (int i = 0; *isRight && i < count; ++i)
    *isRight = out[i] == ranks * (ranks - 1) / 2 + ranks * i;
  return code;
}

class GpuProcesses : public testing::TestWithParam<Crew> {
 protected:
  GpuProcesses() { gpus::reset(); }
  ~GpuProcesses() override { gpus::reset(); }
};

// The second time more elements, so that the window grows.
TEST_P(GpuProcesses, SumWhatTheirRanksBring) {
  for (const int devices : {1, 2}) {
    for (const bool isOnDevice : {false, true}) {
      gpus::devices(devices);
      const Crew crew = GetParam();
      Muster muster(crew);
      muster.run([&](Mate& mate) {
        for (const int count : {1000, 600'000}) {
          Error error;
          bool isRight = false;
          const int32_t code =
              sumOnce(mate.comm, mate.rank, count, isOnDevice, WL_TWO_PHASE, 0, &error, &isRight);
          if (code != WL_OK) std::fprintf(stderr, "%s\n", error.message);
          EXPECT_OF_MATE(mate, code == WL_OK && isRight);
        }
        mate.board.at[mate.rank] = 1;
        if (!mate.isFirst || !mate.board.awaitAll(crew, 1)) return;
        // All ranks of a process share a device: one grid for each operation.
        EXPECT_OF_MATE(mate, gpus::countCalls("cuLaunchCooperativeKernel") == 2);
        EXPECT_OF_MATE(mate, gpus::countCalls("cuMemImportFromShareableHandle") ==
                                 2 * (crew.processes - 1) * crew.threads);
      });
      EXPECT_EQ(muster.board().wrong, 0) << devices << " devices";
    }
  }
}

// Whatever the order in which threads of each process call, no two wait for one another.
TEST_P(GpuProcesses, OfCommunicatorsThatShareDevicesTakeTurns) {
  gpus::devices(2);
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    Error error;
    wl_comm_t* other = nullptr;
    EXPECT_OF_MATE(mate, wl_comm_split(mate.comm, 0, -mate.rank, 0, &other, &error) == WL_OK);
    if (other == nullptr) return;
    const auto sums = [&](wl_comm_t* comm) {
      for (int i = 0; i < 20; ++i) {
        Error own;
        bool isRight = false;
        const int32_t code =
            sumOnce(comm, wl_comm_rank(comm), 1000, false, WL_TWO_PHASE, 0, &own, &isRight);
        if (code != WL_OK) std::fprintf(stderr, "%s\n", own.message);
        EXPECT_OF_MATE(mate, code == WL_OK && isRight);
      }
    };
    std::thread beside([&] { sums(other); });
    sums(mate.comm);
    beside.join();
    wl_comm_free(other);
  });
  EXPECT_EQ(muster.board().wrong, 0);
}

// While cores of all others wait for one whose cores do nothing.
TEST_P(GpuProcesses, AKilledOneIsNamed) {
  const Crew crew = GetParam();
  constexpr int kKilled = 1;
  Muster muster(crew, 60'000 * kMs);
  muster.run(
      [&](Mate& mate) {
        Error error;
        bool isRight = false;
        EXPECT_OF_MATE(mate, sumOnce(mate.comm, mate.rank, 1000, false, WL_RING, 0, &error,
                                     &isRight) == WL_OK);
        mate.board.at[mate.rank] = 1;
        EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, 1));
        gpus::isStuck(kKilled, true);
        const int launches = gpus::countCalls("cuLaunchCooperativeKernel");
        std::thread beside([&] {
          if (await([&] { return gpus::countCalls("cuLaunchCooperativeKernel") > launches; }))
            mate.board.at[mate.rank] = 2;
        });
        const int32_t code =
            sumOnce(mate.comm, mate.rank, 1000, false, WL_RING, 0, &error, &isRight);
        beside.join();
        EXPECT_OF_MATE(mate, code == WL_PEER_LOST);
        EXPECT_OF_MATE(mate, error.faulty_rank_count == crew.threads);
        EXPECT_OF_MATE(mate, error.faulty_ranks[0] == kKilled);
        mate.board.at[mate.rank] = 3;
      },
      [&] {
        EXPECT_TRUE(muster.board().awaitAll(crew, 2));
        kill(muster.pid(kKilled), SIGKILL);
        EXPECT_TRUE(muster.board().awaitAll(crew, 3, kKilled));
      });
  EXPECT_EQ(muster.board().wrong, 0);
  EXPECT_EQ(muster.ends[kKilled], -SIGKILL);
}

TEST_P(GpuProcesses, AtTheDeadlineTheRankIsNamedWhoseCoresAreLeastFar) {
  constexpr int kSlowest = 1;
  Muster muster(GetParam());
  muster.run([&](Mate& mate) {
    Error error;
    bool isRight = false;
    EXPECT_OF_MATE(
        mate, sumOnce(mate.comm, mate.rank, 1000, false, WL_RING, 0, &error, &isRight) == WL_OK);
    mate.board.at[mate.rank] = 1;
    EXPECT_OF_MATE(mate, mate.board.awaitAll(GetParam(), 1));
    gpus::isStuck(kSlowest, true);
    const int32_t code =
        sumOnce(mate.comm, mate.rank, 1000, false, WL_RING, 2'000 * kMs, &error, &isRight);
    EXPECT_OF_MATE(mate, code == WL_DEADLINE_EXCEEDED);
    EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] == kSlowest);
    EXPECT_OF_MATE(mate, contains(error.message, "has ended 0 of "));
  });
  EXPECT_EQ(muster.board().wrong, 0);
}

TEST_P(GpuProcesses, AnAbortOfOneRankEndsTheKernelsOfAll) {
  constexpr int kStuck = 1;
  const Crew crew = GetParam();
  Muster muster(crew);
  muster.run([&](Mate& mate) {
    gpus::isStuck(kStuck, true);
    std::thread beside([&] {
      if (mate.rank != 0) return;
      EXPECT_OF_MATE(mate, await([] { return gpus::countCalls("cuLaunchCooperativeKernel") > 0; }));
      Error error;
      EXPECT_OF_MATE(mate, wl_comm_abort(mate.comm, "enough of it", &error) == WL_OK);
    });
    Error error;
    bool isRight = false;
    const int32_t code =
        sumOnce(mate.comm, mate.rank, 1000, false, WL_TWO_PHASE, 0, &error, &isRight);
    EXPECT_OF_MATE(mate, code == WL_ABORTED && contains(error.message, "enough of it"));
    beside.join();
  });
  EXPECT_EQ(muster.board().wrong, 0);
}

// Experts' rows lie on the host, which other processes don't reach, and on devices.
TEST_P(GpuProcesses, ExpertsGetTheirTokensAndGiveThemBack) {
  for (const int devices : {1, 2}) {
    for (const bool isOnDevice : {false, true}) {
      gpus::devices(devices);
      const ExpertExchange exchange(GetParam().ranks());
      Muster muster(GetParam());
      muster.run([&](Mate& mate) {
        const int rowsOn = isOnDevice ? mate.rank % devices : kOnHost;
        const std::string wrong = exchange.run(mate.comm, rowsOn, kOnHost, 2);
        if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
        EXPECT_OF_MATE(mate, wrong.empty());
      });
      EXPECT_EQ(muster.board().wrong, 0) << devices << " devices";
    }
  }
}

// All peers get the error, whichever call fails in one process.
TEST_P(GpuProcesses, AFailureInOneIsToldToAll) {
  for (const char* call :
       {"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMemCreate", "cuMemMap",
        "cuMemSetAccess", "cuLaunchCooperativeKernel", "cuMemcpyAsync", "cuStreamCreate"}) {
    Muster muster(GetParam());
    muster.run([&](Mate& mate) {
      if (mate.rank == 1) gpus::failCall(call, 1, 719);
      mate.board.at[mate.rank] = 1;
      EXPECT_OF_MATE(mate, mate.board.awaitAll(GetParam(), 1));
      Error error;
      bool isRight = false;
      const int32_t code =
          sumOnce(mate.comm, mate.rank, 1000, false, WL_TWO_PHASE, 0, &error, &isRight);
      EXPECT_OF_MATE(mate, code == WL_DEVICE);
      EXPECT_OF_MATE(mate, contains(error.message, std::string(call) + " of device"));
      EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] % 2 == 1);
    });
    EXPECT_EQ(muster.board().wrong, 0) << call;
  }
}

// Rank 0 is between two of the steps by which ranks bring an operation to their devices, and rank
// 1, whose device has failed, owes the others why when its process is stopped.
TEST(GpuProcessesAlone, AStoppedOneIsNamedThatOwesWhyItsDeviceFailed) {
  const Crew crew = {2, 1};
  constexpr int kStopped = 1;
  constexpr const char* kCall = "cuMemcpyHtoDAsync";
  gpus::reset();
  Muster muster(crew, 60'000 * kMs);
  muster.run(
      [&](Mate& mate) {
        Error error;
        bool isRight = false;
        const auto sum = [&](int64_t deadlineNs) {
          return sumOnce(mate.comm, mate.rank, 1000, false, WL_RING, deadlineNs, &error, &isRight);
        };
        EXPECT_OF_MATE(mate, sum(0) == WL_OK);
        const int next = gpus::countCalls(kCall) + 1;
        mate.board.at[mate.rank] = 1;
        EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, 1));
        if (mate.rank == kStopped) {
          gpus::failCall(kCall, next, 719);
          sum(0);
          return;
        }
        gpus::delay(kCall, next);
        std::thread beside([&] {
          EXPECT_OF_MATE(mate, await([] { return gpus::holds() == 1; }));
          mate.board.at[mate.rank] = 2;
          EXPECT_OF_MATE(mate, await([&] { return mate.board.at[kStopped] == 2; }));
          gpus::letGo();
        });
        EXPECT_OF_MATE(mate, sum(1'500 * kMs) == WL_DEADLINE_EXCEEDED);
        beside.join();
        EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] == kStopped);
        EXPECT_OF_MATE(mate, contains(error.message, "rank 1 has not finished: it is in all"));
        mate.board.at[mate.rank] = 3;
      },
      [&] {
        EXPECT_TRUE(await([&] { return muster.board().at[0] >= 2; }));
        usleep(100'000);
        kill(muster.pid(kStopped), SIGSTOP);
        // All its threads: one that runs on tells the others why before it stops.
        EXPECT_EQ(waitpid(muster.pid(kStopped), nullptr, WUNTRACED), muster.pid(kStopped));
        muster.board().at[kStopped] = 2;
        EXPECT_TRUE(muster.board().awaitAll(crew, 3, kStopped));
        kill(muster.pid(kStopped), SIGCONT);
      });
  EXPECT_EQ(muster.board().wrong, 0);
  gpus::reset();
}

TEST(GpuProcessesAlone, RefuseMemoryThatCannotLeaveItsProcess) {
  gpus::reset();
  gpus::exports(false);
  Muster muster({2, 1});
  muster.run([&](Mate& mate) {
    Error error;
    bool isRight = false;
    const int32_t code =
        sumOnce(mate.comm, mate.rank, 1000, false, WL_TWO_PHASE, 0, &error, &isRight);
    EXPECT_OF_MATE(mate, code == WL_UNSUPPORTED);
    EXPECT_OF_MATE(mate, contains(error.message, "memory can't go to other processes"));
  });
  EXPECT_EQ(muster.board().wrong, 0);
  gpus::reset();
}

// Everything is freed even if a peer is killed after its first operation.
TEST(GpuProcessesAlone, GiveAllBack) {
  gpus::reset();
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = 4;
  config.device_cores = 2;
  for (const bool isKilled : {false, true}) {
    const ForkedGroup all(config, 2);
    Forks forks(2, [&](int process) {
      const int before = openFiles();
      int wrong = 0;
      {
        OwnRanks own(all, process);
        std::atomic<int> unlike{0};
        own.run([&](int rank, wl_comm_t* comm) {
          for (int times = 0; times < 2; ++times) {
            if (isKilled && times == 1 && rank == 1) kill(getpid(), SIGKILL);
            Error error;
            bool isRight = false;
            const int32_t code =
                sumOnce(comm, rank, 1000, false, WL_TWO_PHASE, 0, &error, &isRight);
            unlike += code == (isKilled && times == 1 ? WL_PEER_LOST : WL_OK) ? 0 : 1;
          }
        });
        wrong += unlike;
      }
      const std::string held = gpus::held();
      if (!held.empty()) std::fprintf(stderr, "process %d holds %s\n", process, held.c_str());
      wrong += held.empty() ? 0 : 10;
      return wrong + (openFiles() == before ? 0 : 20);
    });
    EXPECT_EQ(forks.wait(60'000 * kMs), (std::vector<int>{0, isKilled ? -SIGKILL : 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(Crews, GpuProcesses, testing::Values(Crew{2, 1}, Crew{2, 2}));

}  // namespace gpu_processes_test
}  // namespace windlass_test
