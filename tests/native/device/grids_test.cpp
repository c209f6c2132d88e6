// SPDX-License-Identifier: Apache-2.0
// Grids of the target cuda over the stand-in for NVIDIA's driver: that ranks take as many cores as
// a table says, bounded by what a GPU runs at a time, and alike where their tables differ.
#include <cstdio>

#include "native/device/grids.h"
#include "tests/native/core/crew.h"
#include "tests/native/core/launches.h"
#include "tests/native/device/stream_programs.h"

namespace windlass_test {
namespace grids_test {

constexpr int kRanks = 2;
// A device of the stand-in has 16 multiprocessors of 2 blocks each.
constexpr const char* kKind = "9.0 16";

std::string table(const std::string& rows, int count) {
  return "windlass-cuda-grids 1\n" + rows + "end " + std::to_string(count) + "\n";
}
std::string row(const std::string& operation, int sharers, uint64_t from, uint64_t to, int cores,
                const std::string& kind = kKind, int ranks = kRanks) {
  return kind + " " + operation + " " + std::to_string(ranks) + " " + std::to_string(sharers) +
         " " + std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(cores) + "\n";
}

// Blocks of each launch since the stand-in was reset.
std::vector<int> blocksOfLaunches() {
  std::vector<int> blocks;
  for (const std::string& line : gpus::log()) {
    int count = 0;
    if (std::sscanf(line.c_str(), "cuLaunchCooperativeKernel %d", &count) == 1)
      blocks.push_back(count);
  }
  return blocks;
}

int32_t sumOf(wl_comm_t* comm, int rank, size_t count, Error* error) {
  std::vector<int32_t> in(count, rank + 1);
  std::vector<int32_t> out(count, -1);
  const int32_t code =
      allReduce(comm, in.data(), out.data(), count, WL_I32, WL_SUM, WL_TWO_PHASE, 0, error);
  const int ranks = wl_comm_size(comm);
  const auto expected = static_cast<ptrdiff_t>(count);
  if (code == WL_OK) {
    EXPECT_EQ(std::count(out.begin(), out.end(), ranks * (ranks + 1) / 2), expected);
  }
  return code;
}

// Ranks that may take as many cores as a device has.
class GpusGrids : public testing::Test {
 protected:
  GpusGrids() {
    gpus::reset();
    EXPECT_EQ(wl_cuda_grids_use(nullptr, nullptr), WL_OK);
  }
  ~GpusGrids() override {
    EXPECT_EQ(wl_cuda_grids_use(nullptr, nullptr), WL_OK);
    gpus::reset();
  }

  static void use(const std::string& text) {
    Error error;
    ASSERT_EQ(wl_cuda_grids_use(text.c_str(), &error), WL_OK) << error.message;
  }

  template <class Body>
  static void run(int ranks, const Body& body) {
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = ranks;
    config.deadline_ns = 20'000 * kMs;
    wl_group_t* group = nullptr;
    Error error;
    EXPECT_EQ(wl_group_create(&config, &group, &error), WL_OK) << error.message;
    OwnRanks own(group, all(ranks));
    own.run(body);
  }
  // Blocks of sums of these numbers of elements, one after another.
  static std::vector<int> blocksOfSums(const std::vector<size_t>& counts, int ranks = kRanks) {
    run(ranks, [&](int rank, wl_comm_t* comm) {
      for (const size_t count : counts) {
        Error ofSum;
        EXPECT_EQ(sumOf(comm, rank, count, &ofSum), WL_OK) << ofSum.message;
      }
    });
    return blocksOfLaunches();
  }

  static std::vector<int> all(int ranks) {
    std::vector<int> own(static_cast<size_t>(ranks));
    std::iota(own.begin(), own.end(), 0);
    return own;
  }
};

using Blocks = std::vector<int>;

TEST_F(GpusGrids, AreAsManyCoresAsFitWithoutATable) {
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{32}));
  gpus::reset();
  gpus::blocks(7);
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{6}));
}

TEST_F(GpusGrids, AreThoseOfTheirTable) {
  use(table(row("all-reduce", 2, 0, 40'000, 3) + row("all-reduce", 2, 40'001, 80'000, 5) +
                row("all-gather", 2, 0, 1'000'000, 1),
            3));
  // Bytes of a rank; from there on no row says anything.
  EXPECT_EQ(blocksOfSums({10'000, 10'001, 20'000, 20'001}), (Blocks{6, 10, 10, 32}));
}

// Operations whose numbers are as far apart as their words allow. A word that some cores do not
// write would then read as reached three operations later, by a rank that enters before the other's
// upper cores.
class GpusLines : public GpusGrids {
 protected:
  GpusLines() {
    gpus::devices(2);
    gpus::isLate(1);
    windlass::deviceSequenceStep = (1u << 22) - 1;
  }
  ~GpusLines() override { windlass::deviceSequenceStep = 1; }

  static constexpr size_t kMany = 1'000'000;
};

TEST_F(GpusLines, OfCoresThatATableLeavesOutDoNotFallBehind) {
  use(table(row("all-reduce", 1, 0, 40'000, 3), 1));
  EXPECT_EQ(blocksOfSums({kMany, 10, 10, kMany, 10, 10, 10, kMany}).size(), 16u);
}

TEST_F(GpusLines, OfCoresThatALibrarysKernelHasNoRoomForDoNotFallBehind) {
  gpus::libraryBlocks(1);
  const auto* const kernels = library();
  run(kRanks, [&](int rank, wl_comm_t* comm) {
    std::vector<float> data(100, 5.0f);
    for (int i = 0; i < 6; ++i) {
      Error error;
      ASSERT_EQ(sumOf(comm, rank, kMany, &error), WL_OK) << error.message;
      for (int launches = 0; launches < 2; ++launches) {
        Words words;
        words.tensor(WL_F32, data.data(), {100}).tensor(WL_F32, data.data(), {100});
        ASSERT_EQ(words.launch(comm, "vocabulary", &error, 0, kernels), WL_OK) << error.message;
      }
    }
  });
}

TEST_F(GpusGrids, OnStreamsAreAllCoresNowAndThenSoThatNoneFallsBehind) {
  use(table(row("all-reduce", 2, 0, 4000, 1), 1));
  windlass::allLinesEvery = 3;
  Program program(kRanks, 1, 1000);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    for (int i = 0; i < 6; ++i) {
      uint64_t ticket = 0;
      Error error;
      ASSERT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << error.message;
      ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    }
  });
  windlass::allLinesEvery = windlass::kAllLinesEvery;
  const int all = kRanks * (deviceCores() == 0 ? 16 : deviceCores());
  EXPECT_EQ(blocksOfLaunches(), (Blocks{kRanks, kRanks, all, kRanks, kRanks, all}));
}

TEST_F(GpusGrids, AreNeverMoreThanRunAtATime) {
  use(table(row("all-reduce", 2, 0, 1'000'000, 1024), 1));
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{32}));
  gpus::reset();
  // A row of another processor makes the table one of other devices.
  gpus::blocks(7);
  use(table(row("all-reduce", 2, 0, 1'000'000, 1) + row("all-reduce", 2, 0, 1'000'000, 4, "9.0 7"),
            2));
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{6}));
  gpus::reset();
  gpus::blocks(7);
  use(table(row("all-reduce", 2, 0, 1'000'000, 2, "9.0 7"), 1));
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{4}));
}

TEST_F(GpusGrids, AreOfTheRanksThatShareADevice) {
  use(table(row("all-reduce", 2, 0, 1'000'000, 3) + row("all-reduce", 1, 0, 1'000'000, 4), 2));
  gpus::devices(2);
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{4, 4}));
  // Two ranks share a device and one has its own: all take what the fewest say.
  gpus::reset();
  gpus::devices(2);
  use(table(row("all-reduce", 2, 0, 1'000'000, 6, kKind, 3) +
                row("all-reduce", 1, 0, 1'000'000, 5, kKind, 3),
            2));
  Blocks blocks = blocksOfSums({10'000}, 3);
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(blocks, (Blocks{5, 10}));
}

TEST_F(GpusGrids, AreThoseOfTheTableOnStreamsToo) {
  use(table(row("all-reduce", 2, 0, 4000, 1), 1));
  Program program(kRanks, 1, 1001);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto at = static_cast<size_t>(rank);
    for (const uint64_t count : {1000u, 1001u}) {
      uint64_t ticket = 0;
      Error error;
      ASSERT_EQ(sum(comm, program.stream(rank).handle(), program.source[at], program.out[at], count,
                    &ticket, &error),
                WL_OK)
          << error.message;
      ASSERT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    }
  });
  const int most = deviceCores() == 0 ? 16 : deviceCores();
  EXPECT_EQ(blocksOfLaunches(), (Blocks{kRanks, kRanks * most}));
}

TEST_F(GpusGrids, ATextThatIsNoTableIsRefusedAndLeavesTheLastOne) {
  use(table(row("all-reduce", 2, 0, 1'000'000, 2), 1));
  Error error;
  EXPECT_EQ(wl_cuda_grids_use("windlass-cuda-grids 1\n", &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "line 2: it lacks its last line"));
  EXPECT_EQ(blocksOfSums({10'000}), (Blocks{4}));
}

TEST_F(GpusGrids, TheAbiSaysWhatTheyAreBoundedBy) {
  Error error;
  uint32_t cores = 0;
  EXPECT_EQ(wl_cuda_cores(0, &cores, &error), WL_OK) << error.message;
  EXPECT_EQ(cores, 32u);
  EXPECT_EQ(wl_cuda_cores(1, &cores, &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "there is no device 1"));
  EXPECT_EQ(gpus::held(), "");
  uint32_t rows = 7;
  EXPECT_EQ(wl_cuda_grids_rows(0, &rows, &error), WL_OK);
  EXPECT_EQ(rows, 0u);
  use(table(row("all-reduce", 2, 0, 9, 2) + row("all-reduce", 2, 10, 99, 3) +
                row("all-reduce", 2, 0, 9, 2, "8.0 108"),
            3));
  EXPECT_EQ(wl_cuda_grids_rows(0, &rows, &error), WL_OK);
  EXPECT_EQ(rows, 2u);
  EXPECT_EQ(wl_cuda_grids_rows(1, &rows, &error), WL_INVALID_ARGUMENT);
}

// Each process has a table of its own, or none, and all ranks the same grid at every call.
TEST_F(GpusGrids, OfProcessesWithOtherTablesAreAlike) {
  const Crew crew = {3, 1};
  const auto text = [](int process) {
    return table(row("all-reduce", 1, 0, 40'000, process == 0 ? 1 : 2, kKind, 3) +
                     row("all-reduce", 1, 40'001, 80'000, process == 1 ? 1 : 2, kKind, 3),
                 2);
  };
  for (const int without : {-1, 0, 1}) {
    Muster muster(crew);
    muster.run([&](Mate& mate) {
      Error error;
      if (mate.rank != without)
        EXPECT_OF_MATE(mate, wl_cuda_grids_use(text(mate.rank).c_str(), &error) == WL_OK);
      for (const size_t count : {10'000u, 20'000u, 20'001u})
        EXPECT_OF_MATE(mate, sumOf(mate.comm, mate.rank, count, &error) == WL_OK);
      const int most = deviceCores() == 0 ? 32 : deviceCores();
      const Blocks expected = {without == 0 ? 2 : 1, without == 1 ? 2 : 1, most};
      EXPECT_OF_MATE(mate, blocksOfLaunches() == expected);
    });
    EXPECT_EQ(muster.board().wrong, 0) << "without one: " << without;
  }
}

}  // namespace grids_test
}  // namespace windlass_test
