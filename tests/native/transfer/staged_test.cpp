// SPDX-License-Identifier: Apache-2.0
// Staged transfers against direct ones, over many phases; their failures; and stages that must be
// refused.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "native/base/target.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/transfer/views.h"
#include "windlass/kernel.h"

namespace windlass_test {
namespace staged_test {

// A box of 3 x 4 f32 values goes from rank 0 to rank 1 by way of a stage.
TEST(Transfer, BadStagesAreRefusedOnEveryRank) {
  alignas(64) static float memory[12];
  alignas(64) static float output[12];
  const auto binding = [](float* at) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(at));
    return Words{WL_F32, 2, address, address, 48, 3, 4, 4, 1};
  };
  const Words goodStage = {5, WL_BF16, 2, 64, 1, 3, 4, 1};
  const Words goodPrepare = {5, -1, WL_BF16, WL_SUM, 2, 1, 3, 4, 0, 0, 0, 0, 0, 0};
  const Words goodFinalize = {0, 0, WL_BF16, WL_SUM, 2, 1, 3, 4, 0, 0, 0, -1, 0, 0};
  struct Change {
    const char* what;
    int which;  // 0 stage, 1 prepare, 2 finalize
    size_t at;
    int64_t value;
    int code;
  };
  const Change changes[] = {
      {"phase", 0, 0, -1, WL_UNSUPPORTED},
      {"phase", 0, 0, int64_t{1} << 20, WL_UNSUPPORTED},
      {"dtype", 0, 1, 99, WL_INVALID_ARGUMENT},
      {"dimensions", 0, 2, 17, WL_INVALID_ARGUMENT},
      {"dimensions", 0, 2, -1, WL_INVALID_ARGUMENT},
      {"negative offset", 0, 3, -64, WL_INVALID_ARGUMENT},
      {"unaligned offset", 0, 3, 1, WL_INVALID_ARGUMENT},
      {"overflowing offset", 0, 3, INT64_MAX - 1, WL_INVALID_ARGUMENT},
      {"offset beyond memory", 0, 3, int64_t{1} << 60, WL_RESOURCE},
      {"readers", 0, 4, -1, WL_INVALID_ARGUMENT},
      {"words end early", 0, 4, 2, WL_INVALID_ARGUMENT},
      {"more words", 0, 4, 0, WL_INVALID_ARGUMENT},
      {"empty shape", 0, 5, 0, WL_INVALID_ARGUMENT},
      {"overflowing shape", 0, 5, int64_t{1} << 62, WL_INVALID_ARGUMENT},
      {"reader", 0, 7, -1, WL_INVALID_ARGUMENT},
      {"reader", 0, 7, WL_MAX_RANKS, WL_INVALID_ARGUMENT},
      {"another's box", 0, 7, 0, WL_INVALID_ARGUMENT},
      {"another phase", 1, 0, 4, WL_INVALID_ARGUMENT},
      {"no such box", 1, 1, -2, WL_INVALID_ARGUMENT},
      {"no such box", 1, 1, INT64_MIN, WL_INVALID_ARGUMENT},
      {"beyond the box", 1, 8, 1, WL_INVALID_ARGUMENT},
      {"two phases later", 2, 0, 7, WL_INVALID_ARGUMENT},
      {"no box of that rank", 2, 10, 1, WL_INVALID_ARGUMENT},
      {"no such box", 2, 11, -2, WL_INVALID_ARGUMENT},
      {"no such box", 2, 11, INT64_MIN, WL_INVALID_ARGUMENT},
      {"beyond the box", 2, 12, 1, WL_INVALID_ARGUMENT},
      {nullptr, 0, 0, 5, WL_OK},
  };
  LocalRanks ranks(2);
  for (const Change& change : changes) {
    ranks.run([&](int rank, wl_comm_t* comm) {
      Words stage = goodStage, prepare = goodPrepare, finalize = goodFinalize;
      (change.which == 0   ? stage
       : change.which == 1 ? prepare
                           : finalize)[change.at] = change.value;
      const Words source = binding(memory), target = binding(output);
      wl_transfer_config_t config = rank == 0 ? configOf(source, 1, {}, 0, prepare, 1)
                                              : configOf({}, 0, target, 1, finalize, 1);
      if (rank == 0) {
        for (int i = 0; i < 12; ++i) memory[i] = static_cast<float>(i);
        config.stages = stage.data();
        config.stage_words = stage.size();
        config.stage_count = 1;
      }
      Error error;
      wl_transfer_t* transfer = nullptr;
      ASSERT_EQ(change.code, wl_transfer_create(comm, &config, 0, &transfer, &error))
          << change.what << " = " << change.value << ": " << error.message;
      if (change.code != WL_OK) {
        EXPECT_NE(nullptr, std::strstr(error.message, "rank ")) << error.message;
        EXPECT_EQ(nullptr, transfer);
        return;
      }
      EXPECT_EQ(rank == 0 ? 128u : 0u, wl_transfer_staging_bytes(transfer));
      EXPECT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
      for (int i = 0; rank == 1 && i < 12; ++i) EXPECT_EQ(static_cast<float>(i), output[i]);
      wl_transfer_free(transfer);
    });
  }
}

// Both halves of the stage end where their sum is none.
TEST(Transfer, StagesThatNobodyHasRoomForAreRefused) {
  LocalRanks ranks(1);
  ranks.run([](int, wl_comm_t* comm) {
    const int64_t far = INT64_MAX - 1;
    const Words stages = {0, WL_U8, 1, far, 0, 1, 1, WL_U8, 1, far, 0, 1};
    wl_transfer_config_t config = configOf({}, 0, {}, 0, {}, 0);
    config.stages = stages.data();
    config.stage_words = stages.size();
    config.stage_count = 2;
    wl_transfer_t* transfer = nullptr;
    Error error;
    EXPECT_EQ(WL_RESOURCE, wl_transfer_create(comm, &config, 0, &transfer, &error));
    EXPECT_TRUE(contains(error.message, "staged box 0: ends at byte 9223372036854775807"));
    EXPECT_EQ(nullptr, transfer);
  });
}

// Row (r, t) of every rank's source goes to rank t, as a sum with the next rank's, in round r. The
// stages of two rounds take turns.
struct Rounds {
  int ranks;
  int64_t rounds;
  int64_t width;
  bool staged;
  wl_dtype sourceType = WL_F32;
  wl_dtype wire = WL_BF16;
  wl_dtype targetType = WL_F32;

  wl_transfer_t* create(wl_comm_t* comm, int rank, View* source, View* target) const {
    Words sources, targets, chunks, stages;
    source->describe(&sources);
    target->describe(&targets);
    uint64_t chunkCount = 0, stageCount = 0;
    const int64_t n = ranks;
    const auto sum = [&](int64_t phase, int64_t to, int64_t from, int64_t r, int64_t t,
                         std::initializer_list<int64_t> start) {
      chunks.insert(chunks.end(), {phase, to, wire, WL_SUM, 3, 2, 1, 1, width});
      chunks.insert(chunks.end(), start);
      for (const int64_t term : {from, (from + 1) % n}) {
        chunks.insert(chunks.end(), {term, 0, r, t, 0});
      }
      ++chunkCount;
    };
    const int64_t slot = (width * sizeOf(wire) + 63) / 64 * 64;
    for (int64_t r = 0; r < rounds; ++r) {
      for (int64_t peer = 0; peer < n; ++peer) {
        if (!staged) {
          sum(0, 0, peer, r, rank, {peer, r, 0});
          continue;
        }
        sum(r, -1 - static_cast<int64_t>(stageCount++), rank, r, peer, {0, 0, 0});
        stages.insert(stages.end(), {r, wire, 3, peer * slot, 1, 1, 1, width, peer});
        chunks.insert(chunks.end(), {0, 0, wire, WL_SUM, 3, 1, 1, 1, width, peer, r, 0, peer,
                                     -1 - r, 0, 0, 0});
        ++chunkCount;
      }
    }
    wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, chunkCount);
    config.stages = stages.data();
    config.stage_words = stages.size();
    config.stage_count = stageCount;
    Error error;
    wl_transfer_t* transfer = nullptr;
    EXPECT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
    const auto halves = static_cast<uint64_t>(rounds > 1 ? 2 : 1);
    EXPECT_EQ(staged ? halves * static_cast<uint64_t>(n * slot) : 0u,
              wl_transfer_staging_bytes(transfer));
    return transfer;
  }

  static int64_t sizeOf(wl_dtype dtype) {
    return static_cast<int64_t>(windlass::sizeOf(static_cast<windlass::DType>(dtype)));
  }
  View source() const {
    return {sourceType,
            {rounds, ranks, width},
            {ranks * width, width, 1},
            std::vector<uint8_t>(static_cast<size_t>(ranks * rounds * width * sizeOf(sourceType)))};
  }
  View target() const {
    return {targetType,
            {ranks, rounds, width},
            {rounds * width, width, 1},
            std::vector<uint8_t>(static_cast<size_t>(ranks * rounds * width * sizeOf(targetType)))};
  }
};

// Few rounds and more than one operation holds; small enough for one thread and shared.
TEST(Transfer, StagedRoundsGiveTheBitsOfTheDirectPass) {
  struct Size {
    int64_t rounds;
    int64_t width;
  };
  std::vector<wl_dtype> floats;
  for (const wl_dtype each : {WL_F64, WL_F32, WL_F16, WL_BF16, WL_F8E4M3, WL_F8E5M2})
    if (windlass::kTarget.limits.casts >> each & 1) floats.push_back(each);
  const auto types = static_cast<uint32_t>(floats.size());
  uint32_t trial = std::random_device{}();
  std::printf("seed %u\n", trial);
  for (const Size size : {Size{1, 5}, Size{3, 5}, Size{few() ? 65 : 260, 5},
                          Size{4, kSlow > 1 ? 2000 : 8000}, Size{few() ? 65 : 260, 200}}) {
    for (const int n : few() ? std::vector<int>{3} : std::vector<int>{1, 2, 5}) {
      for (const int cores : {1, 64}) {
        ++trial;
        const wl_dtype from = floats[trial % types], wire = floats[trial / types % types],
                       to = floats[trial / types / types % types];
        const Rounds staged{n, size.rounds, size.width, true, from, wire, to};
        const Rounds direct{n, size.rounds, size.width, false, from, wire, to};
        std::vector<View> sources(static_cast<size_t>(n), staged.source());
        std::vector<View> directs(static_cast<size_t>(n), direct.target());
        std::vector<View> stageds(static_cast<size_t>(n), staged.target());
        LocalRanks ranks(n, 60'000'000'000, 0xffffff00, cores);
        ranks.run([&](int rank, wl_comm_t* comm) {
          std::mt19937_64 random(trial + static_cast<uint32_t>(rank));
          View& source = sources[static_cast<size_t>(rank)];
          View& expected = directs[static_cast<size_t>(rank)];
          View& found = stageds[static_cast<size_t>(rank)];
          wl_transfer_t* one = staged.create(comm, rank, &source, &found);
          wl_transfer_t* other = direct.create(comm, rank, &source, &expected);
          ASSERT_TRUE(one != nullptr && other != nullptr);
          Error error;
          for (uint32_t version = 1; version <= 2; ++version) {
            for (size_t i = 0; i < source.memory.size(); i += 8) {
              const uint64_t word = random();
              std::memcpy(&source.memory[i], &word, std::min<size_t>(8, source.memory.size() - i));
            }
            const std::vector<uint8_t> before = source.memory;
            ASSERT_EQ(WL_OK, wl_transfer_run(one, version, 0, &error)) << error.message;
            uint64_t moved = 0;
            EXPECT_EQ(WL_OK, wl_transfer_progress(one, -1, &moved, 1, &error));
            EXPECT_EQ(static_cast<uint64_t>(n) * found.memory.size(), moved);
            ASSERT_EQ(WL_OK, wl_transfer_run(other, version, 0, &error)) << error.message;
            EXPECT_TRUE(expected.memory == found.memory)
                << n << " ranks, " << cores << " cores, " << size.rounds << " x " << size.width
                << ", dtypes " << from << " -> " << wire << " -> " << to;
            EXPECT_TRUE(before == source.memory) << "sources are never modified";
          }
          wl_transfer_free(one);
          wl_transfer_free(other);
        });
      }
    }
  }
}

TEST(Transfer, AStagedRunEndsWhenItsDeadlinePasses) {
  for (const int cores : {1, 64}) {
    const Rounds staged{2, 600, 5, true};
    std::vector<View> sources(2, staged.source()), targets(2, staged.target());
    LocalRanks ranks(2, 60'000'000'000, 1, cores);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const auto own = static_cast<size_t>(rank);
      wl_transfer_t* transfer = staged.create(comm, rank, &sources[own], &targets[own]);
      ASSERT_NE(nullptr, transfer);
      Error error;
      EXPECT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
      if (rank == 0) {
        const int64_t before = wl_clock_ns();
        EXPECT_EQ(WL_DEADLINE_EXCEEDED, wl_transfer_run(transfer, 2, 100'000'000, &error));
        EXPECT_NE(nullptr, std::strstr(error.message, "rank 1")) << error.message;
        EXPECT_LT(wl_clock_ns() - before, 30'000'000'000) << "half the communicator's deadline";
      }
      wl_transfer_free(transfer);
    });
  }
}

// A run of more operations than its deadline leaves time for.
TEST(Transfer, APassedDeadlineNamesTheDeadlineOfTheWholeRun) {
  const Rounds staged{2, kSlow > 1 ? 5'000 : 8'000, 5, true};
  std::vector<View> sources(2, staged.source()), targets(2, staged.target());
  LocalRanks ranks(2, 60'000'000'000, 1, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto own = static_cast<size_t>(rank);
    wl_transfer_t* transfer = staged.create(comm, rank, &sources[own], &targets[own]);
    ASSERT_NE(nullptr, transfer);
    Error error;
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, wl_transfer_run(transfer, 1, kMs, &error));
    EXPECT_TRUE(contains(error.message, " waited 0.001 s in transfer"));
    wl_transfer_free(transfer);
  });
}

TEST(Transfer, ARunThatIsRefusedLeavesTheProgressOfTheLastOne) {
  const Rounds rounds{2, 3, 5, false};
  std::vector<View> sources(2, rounds.source()), targets(2, rounds.target());
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto own = static_cast<size_t>(rank);
    wl_transfer_t* transfer = rounds.create(comm, rank, &sources[own], &targets[own]);
    ASSERT_NE(nullptr, transfer);
    Error error;
    EXPECT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
    callBarrier(comm, 0, &error);  // until both have run; a peer's abort may end it
    EXPECT_EQ(WL_OK, wl_comm_abort(comm, "the test says so", &error));
    EXPECT_EQ(WL_ABORTED, wl_transfer_run(transfer, 2, 0, &error));
    uint64_t moved = 0;
    EXPECT_EQ(WL_OK, wl_transfer_progress(transfer, rank, &moved, 1, &error));
    EXPECT_EQ(targets[own].memory.size(), moved);
    wl_transfer_free(transfer);
  });
}

// A rank leaves the communicator between two runs of hundreds of phases, or within one.
TEST(Transfer, AStagedRunEndsWhenItsCommunicatorIsAborted) {
  for (const int cores : {1, 64}) {
    const Rounds staged{3, kSlow > 1 ? 200 : 600, 100, true};
    std::vector<View> sources(3, staged.source()), targets(3, staged.target());
    LocalRanks ranks(3, 60'000'000'000, 1, cores);
    std::atomic<int> runs{0};
    ranks.run([&](int rank, wl_comm_t* comm) {
      const auto own = static_cast<size_t>(rank);
      wl_transfer_t* transfer = staged.create(comm, rank, &sources[own], &targets[own]);
      ASSERT_NE(nullptr, transfer);
      Error error;
      std::thread ender;
      if (rank == 0) {
        ender = std::thread([&] {
          while (runs.load() < 5) std::this_thread::yield();
          Error ignored;
          wl_comm_abort(comm, "the test says so", &ignored);
        });
      }
      int32_t code = WL_OK;
      for (uint64_t version = 1; code == WL_OK; ++version) {
        code = wl_transfer_run(transfer, version, 0, &error);
        ++runs;
      }
      EXPECT_EQ(WL_ABORTED, code) << error.message;
      if (ender.joinable()) ender.join();
      wl_transfer_free(transfer);
    });
  }
}

}  // namespace staged_test
}  // namespace windlass_test
