// SPDX-License-Identifier: Apache-2.0
// Transfers of sharded and partial tensors against an element-by-element reference; staged ones
// against direct ones, over many phases; their failures; and configurations that must be refused.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "tests/native/comm/local_ranks.h"
#include "windlass/kernel.h"

namespace windlass_test {
namespace {

using Word = std::vector<int64_t>;

struct View {
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<uint8_t> memory;

  void describe(Word* words) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()));
    words->insert(words->end(), {dtype, static_cast<int64_t>(shape.size()), address, address,
                                 static_cast<int64_t>(memory.size())});
    words->insert(words->end(), shape.begin(), shape.end());
    words->insert(words->end(), strides.begin(), strides.end());
  }
};

wl_transfer_config_t configOf(const Word& sources, uint32_t sourceCount, const Word& targets,
                              uint32_t targetCount, const Word& chunks, uint64_t chunkCount) {
  wl_transfer_config_t config = {};
  config.struct_size = sizeof config;
  config.fingerprint = 0x1234;
  config.source_bindings = sources.data();
  config.source_binding_words = sources.size();
  config.source_binding_count = sourceCount;
  config.target_bindings = targets.data();
  config.target_binding_words = targets.size();
  config.target_binding_count = targetCount;
  config.chunks = chunks.data();
  config.chunk_words = chunks.size();
  config.chunk_count = chunkCount;
  return config;
}

// Rows of a [rows, columns] f32 matrix are spread over the ranks; the target is its transpose,
// columns spread.
TEST(Transfer, TransposesAShardedMatrixAgainAndAgain) {
  for (const int n : kSlow > 1 ? std::vector<int>{2, 3} : std::vector<int>{1, 2, 3, 8}) {
    for (const int cores : {1, 64}) {
      LocalRanks ranks(n, 20'000'000'000, 1, cores);
      const int64_t rows = 37 * n, columns = 53 * n, mine = 37, wide = 53;
      std::atomic<uint64_t> wrong{0};
      ranks.run([&](int rank, wl_comm_t* comm) {
        View source{WL_F32,
                    {mine, columns},
                    {columns, 1},
                    std::vector<uint8_t>(static_cast<size_t>(mine * columns * 4))};
        View target{WL_F32,
                    {wide, rows},
                    {rows, 1},
                    std::vector<uint8_t>(static_cast<size_t>(wide * rows * 4))};
        // The same memory seen as [rows, columns of this rank].
        View seen = {WL_F32, {rows, wide}, {1, rows}, {}};
        Word sources, targets, chunks;
        source.describe(&sources);
        const auto address =
            static_cast<int64_t>(reinterpret_cast<uintptr_t>(target.memory.data()));
        targets = {WL_F32, 2,    address, address, static_cast<int64_t>(target.memory.size()),
                   rows,   wide, 1,       rows};
        for (int from = 0; from < n; ++from) {
          chunks.insert(chunks.end(), {0, 0, WL_F32, WL_SUM, 2, 1, mine, wide, from * mine, 0,
                                       from, 0, 0, rank * wide});
        }
        const wl_transfer_config_t config =
            configOf(sources, 1, targets, 1, chunks, static_cast<uint64_t>(n));
        Error error;
        wl_transfer_t* transfer = nullptr;
        ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
        auto* in = reinterpret_cast<float*>(source.memory.data());
        const auto* out = reinterpret_cast<const float*>(target.memory.data());
        for (uint32_t version = 1; version <= 50; ++version) {
          for (int64_t i = 0; i < mine * columns; ++i) {
            in[i] = static_cast<float>(
                stamp(version, static_cast<uint32_t>(rank), 0, static_cast<uint64_t>(i)) >> 8);
          }
          ASSERT_EQ(WL_OK, wl_transfer_run(transfer, version, 0, &error)) << error.message;
          for (int64_t c = 0; c < wide; ++c) {
            for (int64_t r = 0; r < rows; ++r) {
              const auto i = static_cast<uint64_t>(r % mine * columns + rank * wide + c);
              wrong +=
                  out[c * rows + r] !=
                  static_cast<float>(stamp(version, static_cast<uint32_t>(r / mine), 0, i) >> 8);
            }
          }
        }
        uint64_t moved[2] = {};
        EXPECT_EQ(WL_OK, wl_transfer_progress(transfer, -1, moved, 2, &error));
        EXPECT_EQ(static_cast<uint64_t>(rows * columns * 4), moved[0]);
        EXPECT_EQ(0u, moved[1]);
        EXPECT_EQ(WL_OK, wl_transfer_progress(transfer, rank, moved, 1, &error));
        EXPECT_EQ(static_cast<uint64_t>(rows * wide * 4), moved[0]);
        EXPECT_EQ(WL_INVALID_ARGUMENT, wl_transfer_progress(transfer, n, moved, 1, &error));

        // A peer's source, by its binding.
        const int peer = (rank + 1) % n;
        const int64_t start[2] = {3, 5}, length[2] = {7, 11}, wideStart[2] = {mine - 6, 0};
        wl_tensor_t view = {};
        view.struct_size = sizeof view;
        ASSERT_EQ(WL_OK, wl_transfer_source(transfer, peer, 0, start, length, &view, &error));
        EXPECT_EQ(
            static_cast<float>(stamp(50, static_cast<uint32_t>(peer), 0, 3 * columns + 5) >> 8),
            *static_cast<const float*>(view.data));
        EXPECT_EQ(length, view.shape);
        EXPECT_EQ(columns, view.strides[0]);
        EXPECT_EQ(WL_INVALID_ARGUMENT,
                  wl_transfer_source(transfer, n, 0, start, length, &view, &error));
        EXPECT_EQ(WL_INVALID_ARGUMENT,
                  wl_transfer_source(transfer, peer, 1, start, length, &view, &error));
        EXPECT_EQ(WL_INVALID_ARGUMENT,
                  wl_transfer_source(transfer, peer, 0, wideStart, length, &view, &error));
        ASSERT_EQ(WL_OK, wl_barrier(comm, 0, &error));
        wl_transfer_free(transfer);
      });
      EXPECT_EQ(0u, wrong) << n << " ranks, " << cores << " cores";
    }
  }
}

// Every rank holds a partial sum of the whole; each rank takes its rows of the total, cast to bf16,
// in pieces large enough to be cut into several items.
TEST(Transfer, ReducesPartialsBeforeItCasts) {
  constexpr int64_t kColumns = 3001;
  for (const int n : {2, 4}) {
    LocalRanks ranks(n);
    const int64_t rows = 64 * n;
    ranks.run([&](int rank, wl_comm_t* comm) {
      View source{WL_F32,
                  {rows, kColumns},
                  {kColumns, 1},
                  std::vector<uint8_t>(static_cast<size_t>(rows * kColumns * 4))};
      View target{WL_BF16,
                  {64, kColumns},
                  {kColumns, 1},
                  std::vector<uint8_t>(static_cast<size_t>(64 * kColumns * 2))};
      auto* in = reinterpret_cast<float*>(source.memory.data());
      for (int64_t i = 0; i < rows * kColumns; ++i)
        in[i] = static_cast<float>(i % 1000) + static_cast<float>(rank) / 8;
      Word sources, targets, chunks;
      source.describe(&sources);
      target.describe(&targets);
      chunks = {0, 0, WL_F32, WL_SUM, 2, n, 64, kColumns, 0, 0};
      for (int from = 0; from < n; ++from) chunks.insert(chunks.end(), {from, 0, rank * 64, 0});
      const wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, 1);
      Error error;
      wl_transfer_t* transfer = nullptr;
      ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
      ASSERT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
      uint64_t wrong = 0;
      for (int64_t i = 0; i < 64 * kColumns; ++i) {
        const int64_t global = rank * 64 * kColumns + i;
        float sum = static_cast<float>(global % 1000);
        for (int from = 1; from < n; ++from)
          sum += static_cast<float>(global % 1000) + static_cast<float>(from) / 8;
        uint32_t bits;
        std::memcpy(&bits, &sum, 4);
        const auto rounded = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        uint16_t got;
        std::memcpy(&got, target.memory.data() + 2 * i, 2);
        wrong += got != rounded;
      }
      EXPECT_EQ(0u, wrong);
      wl_transfer_free(transfer);
    });
  }
}

// Matrices of ranks 0 and 1, one of them transposed, go to two ranks in turn, to each twice, on odd
// ranks transposed: whoever does it for all writes to each, and counts there what it wrote.
TEST(Transfer, WritesEveryTargetThatTakesTheSame) {
  constexpr int64_t kRows = kSlow > 1 ? 101 : 301, kColumns = 257;
  for (const int n : kSlow > 1 ? std::vector<int>{2, 3} : std::vector<int>{1, 2, 3, 8}) {
    for (const int cores : {1, 64}) {
      LocalRanks ranks(n, 20'000'000'000, 1, cores);
      std::atomic<uint64_t> wrong{0};
      ranks.run([&](int rank, wl_comm_t* comm) {
        const bool turned = rank % 2 != 0;
        const auto strides =
            turned ? std::vector<int64_t>{1, kRows} : std::vector<int64_t>{kColumns, 1};
        View source{WL_F32, {kRows, kColumns}, strides, {}};
        if (rank < 2) source.memory.resize(static_cast<size_t>(kRows * kColumns * 4));
        const int64_t from = rank / 2 % std::min(n, 2);
        View target[2];
        Word sources, targets, chunks;
        if (rank < 2) source.describe(&sources);
        for (int64_t t = 0; t < 2; ++t) {
          target[t] = {WL_F32,
                       {kRows, kColumns},
                       strides,
                       std::vector<uint8_t>(static_cast<size_t>(kRows * kColumns * 4))};
          target[t].describe(&targets);
          chunks.insert(chunks.end(),
                        {0, t, WL_F32, WL_SUM, 2, 1, kRows, kColumns, 0, 0, from, 0, 0, 0});
        }
        const wl_transfer_config_t config =
            configOf(sources, rank < 2 ? 1 : 0, targets, 2, chunks, 2);
        Error error;
        wl_transfer_t* transfer = nullptr;
        ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
        const auto valueOf = [](uint32_t version, int64_t holder, int64_t i) {
          const auto of = static_cast<uint32_t>(holder);
          return static_cast<float>(stamp(version, of, 0, static_cast<uint64_t>(i)) >> 8);
        };
        for (uint32_t version = 1; version <= 8; ++version) {
          auto* in = reinterpret_cast<float*>(source.memory.data());
          for (int64_t i = 0; rank < 2 && i < kRows * kColumns; ++i)
            in[i / kColumns * strides[0] + i % kColumns * strides[1]] = valueOf(version, rank, i);
          ASSERT_EQ(WL_OK, wl_transfer_run(transfer, version, 0, &error)) << error.message;
          uint64_t moved[2] = {};
          EXPECT_EQ(WL_OK, wl_transfer_progress(transfer, rank, moved, 2, &error));
          for (size_t t = 0; t < 2; ++t) {
            EXPECT_EQ(static_cast<uint64_t>(kRows * kColumns * 4), moved[t]);
            const auto* out = reinterpret_cast<const float*>(target[t].memory.data());
            for (int64_t r = 0; r < kRows; ++r) {
              for (int64_t c = 0; c < kColumns; ++c) {
                wrong += out[r * strides[0] + c * strides[1]] !=
                         valueOf(version, from, r * kColumns + c);
              }
            }
          }
        }
        wl_transfer_free(transfer);
      });
      EXPECT_EQ(0u, wrong) << n << " ranks, " << cores << " cores";
    }
  }
}

// Each rank takes a row of the next one's in each of its phases: one, some in the second operation,
// and more there.
TEST(Transfer, RanksNeedNotHaveEquallyManyPhases) {
  constexpr int64_t kPhases[] = {1, windlass::kMostPhases + 2, windlass::kMostPhases + 9};
  constexpr int64_t kRows = kPhases[2], kColumns = 5;
  for (const int cores : {1, 64}) {
    LocalRanks ranks(3, 20'000'000'000, 1, cores);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const int64_t phases = kPhases[rank], peer = (rank + 1) % 3;
      View source{WL_U8, {kRows, kColumns}, {kColumns, 1}, {}};
      for (int64_t i = 0; i < kRows * kColumns; ++i)
        source.memory.push_back(static_cast<uint8_t>(7 * i + rank));
      View target = source;
      std::fill(target.memory.begin(), target.memory.end(), 0xee);
      Word sources, targets, chunks;
      source.describe(&sources);
      target.describe(&targets);
      for (int64_t phase = 0; phase < phases; ++phase) {
        chunks.insert(chunks.end(), {phase, 0, WL_U8, WL_SUM, 2, 1, 1, kColumns, phase, 0, peer,
                                     0, phase, 0});
      }
      const wl_transfer_config_t config =
          configOf(sources, 1, targets, 1, chunks, static_cast<uint64_t>(phases));
      Error error;
      wl_transfer_t* transfer = nullptr;
      ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
      ASSERT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
      std::vector<uint8_t> expected(target.memory.size(), 0xee);
      for (int64_t i = 0; i < phases * kColumns; ++i)
        expected[static_cast<size_t>(i)] = static_cast<uint8_t>(7 * i + peer);
      EXPECT_TRUE(expected == target.memory) << "rank " << rank << ", " << cores << " cores";
      wl_transfer_free(transfer);
    });
  }
}

TEST(Transfer, VersionsAndFingerprintsMustAgree) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_transfer_t* transfer = nullptr;
    wl_transfer_config_t config = configOf({}, 0, {}, 0, {}, 0);
    ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
    ASSERT_EQ(WL_OK, wl_transfer_run(transfer, 5, 0, &error)) << error.message;
    EXPECT_EQ(WL_MISMATCH, wl_transfer_run(transfer, rank == 0 ? 6 : 7, 0, &error));
    EXPECT_NE(nullptr, std::strstr(error.message, "version 6")) << error.message;
    EXPECT_NE(nullptr, std::strstr(error.message, "version 7")) << error.message;
    wl_transfer_free(transfer);
  });
  LocalRanks others(2);
  others.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_transfer_t* transfer = nullptr;
    wl_transfer_config_t config = configOf({}, 0, {}, 0, {}, 0);
    config.fingerprint = rank == 0 ? 1 : 2;
    EXPECT_EQ(WL_MISMATCH, wl_transfer_create(comm, &config, 0, &transfer, &error));
    EXPECT_EQ(nullptr, transfer);
  });
}

// Fills the memory in which the frames of a call before lay, and looks whether another writes there.
[[gnu::noinline]] bool ownsItsStack() {
  volatile uint8_t stack[16384];
  for (volatile uint8_t& byte : stack) byte = 0xa5;
  return std::all_of(stack, stack + sizeof stack, [](uint8_t byte) { return byte == 0xa5; });
}

// Ranks exceed cores, so the last to come works for both; the other is told meanwhile to leave.
TEST(Transfer, ARegistrationGoesOnWhenARankHasLeftIt) {
  constexpr int64_t kChunks = 400'000;
  LocalRanks ranks(2, 20'000'000'000, 1, 1);
  std::atomic<bool> begun{false};
  std::atomic<bool> over{false};
  std::vector<uint8_t> memory(4 * kChunks);
  std::thread aborter([&] {
    while (!begun) std::this_thread::yield();
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    do {
      wl_comm_state(ranks.comms[0], 1, &state);
    } while (state.operation != WL_OP_REGISTER);
    spinFor(5 * kMs);
    Error error;
    EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[0], "enough", &error)) << error.message;
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()));
    const int64_t in = address + 2 * rank * kChunks, out = in + kChunks;
    const Word source = {WL_U8, 1, in, in, kChunks, kChunks, 1};
    const Word target = {WL_U8, 1, out, out, kChunks, kChunks, 1};
    Word chunks;
    for (int64_t at = 0; rank == 1 && at < kChunks; ++at)
      chunks.insert(chunks.end(), {0, 0, WL_U8, WL_SUM, 1, 1, 1, at, 1, 0, at});
    const wl_transfer_config_t config =
        configOf(source, 1, target, 1, chunks, rank == 1 ? kChunks : 0);
    Error error;
    wl_transfer_t* transfer = nullptr;
    ASSERT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;
    if (rank == 0) {
      begun = true;
      EXPECT_EQ(WL_ABORTED, wl_transfer_create(comm, &config, 0, &transfer, &error));
      EXPECT_FALSE(over) << "rank 1 had no work left: the test is too small";
      while (!over) ASSERT_TRUE(ownsItsStack());
    } else {
      wl_transfer_create(comm, &config, 0, &transfer, &error);
      over = true;
    }
    wl_transfer_free(transfer);
  });
  aborter.join();
}

// Each change makes one good configuration bad; every rank gets the error, and the communicator
// lives on.
TEST(Transfer, BadConfigurationsAreRefusedOnEveryRank) {
  alignas(64) static float memory[64];
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  const Word goodBinding = {WL_F32, 2, address, address, 256, 4, 8, 8, 1};
  alignas(64) static float output[64];
  const auto outAddress = static_cast<int64_t>(reinterpret_cast<uintptr_t>(output));
  const Word goodTarget = {WL_F32, 2, outAddress, outAddress, 256, 4, 8, 8, 1};
  const Word goodChunk = {0, 0, WL_F32, WL_SUM, 2, 1, 2, 3, 1, 2, 0, 0, 0, 0};
  struct Change {
    const char* what;
    int which;  // 0 source, 1 target, 2 chunk
    size_t at;
    int64_t value;
    int code;
  };
  const Change changes[] = {
      {"dtype", 0, 0, 99, WL_INVALID_ARGUMENT},
      {"dtype", 1, 0, -1, WL_INVALID_ARGUMENT},
      {"dimensions", 0, 1, 17, WL_INVALID_ARGUMENT},
      {"dimensions", 0, 1, -1, WL_INVALID_ARGUMENT},
      {"dimensions", 0, 1, 1, WL_INVALID_ARGUMENT},
      {"address", 0, 2, address + 2, WL_INVALID_ARGUMENT},
      {"address", 0, 2, address - 4, WL_INVALID_ARGUMENT},
      {"address", 0, 2, 0, WL_INVALID_ARGUMENT},
      {"allocation", 0, 4, 100, WL_INVALID_ARGUMENT},
      {"size", 0, 5, -1, WL_INVALID_ARGUMENT},
      {"size", 1, 5, int64_t{1} << 62, WL_INVALID_ARGUMENT},
      {"stride", 0, 7, -8, WL_INVALID_ARGUMENT},
      {"stride", 1, 7, 0, WL_INVALID_ARGUMENT},
      {"stride", 0, 7, int64_t{1} << 62, WL_INVALID_ARGUMENT},
      {"phase", 2, 0, -1, WL_INVALID_ARGUMENT},
      {"phase", 2, 0, int64_t{1} << 20, WL_INVALID_ARGUMENT},
      {"target binding", 2, 1, 1, WL_INVALID_ARGUMENT},
      {"target binding", 2, 1, -1, WL_INVALID_ARGUMENT},
      {"wire", 2, 2, 40, WL_INVALID_ARGUMENT},
      {"wire", 2, 2, WL_I32, WL_UNSUPPORTED},
      {"op", 2, 3, 5, WL_INVALID_ARGUMENT},
      {"dimensions", 2, 4, 3, WL_INVALID_ARGUMENT},
      {"sources", 2, 5, 0, WL_INVALID_ARGUMENT},
      {"sources", 2, 5, 2, WL_INVALID_ARGUMENT},
      {"sources", 2, 5, int64_t{1} << 40, WL_INVALID_ARGUMENT},
      {"length", 2, 6, -1, WL_INVALID_ARGUMENT},
      {"length", 2, 7, 9, WL_INVALID_ARGUMENT},
      {"target start", 2, 8, 3, WL_INVALID_ARGUMENT},
      {"target start", 2, 9, -1, WL_INVALID_ARGUMENT},
      {"rank", 2, 10, 2, WL_INVALID_ARGUMENT},
      {"rank", 2, 10, -1, WL_INVALID_ARGUMENT},
      {"binding", 2, 11, 1, WL_INVALID_ARGUMENT},
      {"source start", 2, 13, 6, WL_INVALID_ARGUMENT},
  };
  for (const int cores : {1, 64}) {
    LocalRanks ranks(2, 20'000'000'000, 1, cores);
    for (const Change& change : changes) {
      ranks.run([&](int rank, wl_comm_t* comm) {
        Word source = goodBinding, target = goodTarget, chunk = goodChunk;
        if (rank == 1)
          (change.which == 0   ? source
           : change.which == 1 ? target
                               : chunk)[change.at] = change.value;
        // Rank 0 is no target: two ranks may not write one buffer.
        const wl_transfer_config_t config = rank == 0 ? configOf(source, 1, {}, 0, {}, 0)
                                                      : configOf(source, 1, target, 1, chunk, 1);
        Error error;
        wl_transfer_t* transfer = nullptr;
        EXPECT_EQ(change.code, wl_transfer_create(comm, &config, 0, &transfer, &error))
            << change.what << " = " << change.value << ": " << error.message;
        EXPECT_NE(nullptr, std::strstr(error.message, "rank 1")) << error.message;
        EXPECT_EQ(nullptr, transfer);
        EXPECT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;
      });
    }
    ranks.run([&](int rank, wl_comm_t* comm) {
      const wl_transfer_config_t config =
          rank == 0 ? configOf(goodBinding, 1, {}, 0, {}, 0)
                    : configOf(goodBinding, 1, goodTarget, 1, goodChunk, 1);
      Error error;
      wl_transfer_t* transfer = nullptr;
      ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
      EXPECT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
      wl_transfer_free(transfer);
    });
  }
}

// A box of 3 x 4 f32 values goes from rank 0 to rank 1 by way of a stage.
TEST(Transfer, BadStagesAreRefusedOnEveryRank) {
  alignas(64) static float memory[12];
  alignas(64) static float output[12];
  const auto binding = [](float* at) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(at));
    return Word{WL_F32, 2, address, address, 48, 3, 4, 4, 1};
  };
  const Word goodStage = {5, WL_BF16, 2, 64, 1, 3, 4, 1};
  const Word goodPrepare = {5, -1, WL_BF16, WL_SUM, 2, 1, 3, 4, 0, 0, 0, 0, 0, 0};
  const Word goodFinalize = {0, 0, WL_BF16, WL_SUM, 2, 1, 3, 4, 0, 0, 0, -1, 0, 0};
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
      Word stage = goodStage, prepare = goodPrepare, finalize = goodFinalize;
      (change.which == 0   ? stage
       : change.which == 1 ? prepare
                           : finalize)[change.at] = change.value;
      const Word source = binding(memory), target = binding(output);
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

// Row (r, t) of every rank's source goes to rank t, as a sum with the next rank's, in round r. The
// stages of two rounds take turns.
struct Rounds {
  int ranks;
  int64_t rounds;
  int64_t width;
  bool staged;
  wl_dtype sourceType = WL_F32;
  wl_dtype wire = WL_BF16;
  wl_dtype targetType = WL_F64;

  wl_transfer_t* create(wl_comm_t* comm, int rank, View* source, View* target) const {
    Word sources, targets, chunks, stages;
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
  const wl_dtype floats[] = {WL_F64, WL_F32, WL_F16, WL_BF16, WL_F8E4M3, WL_F8E5M2};
  uint32_t trial = std::random_device{}();
  std::printf("seed %u\n", trial);
  for (const Size size : {Size{1, 5}, Size{3, 5}, Size{260, 5}, Size{4, kSlow > 1 ? 2000 : 8000},
                          Size{kSlow > 1 ? 65 : 260, 200}}) {
    for (const int n : {1, 2, 5}) {
      for (const int cores : {1, 64}) {
        ++trial;
        const wl_dtype from = floats[trial % 6], wire = floats[trial / 6 % 6],
                       to = floats[trial / 36 % 6];
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
        EXPECT_EQ(WL_TIMEOUT, wl_transfer_run(transfer, 2, 100'000'000, &error));
        EXPECT_NE(nullptr, std::strstr(error.message, "rank 1")) << error.message;
        EXPECT_LT(wl_clock_ns() - before, 10'000'000'000);
      }
      wl_transfer_free(transfer);
    });
  }
}

// A run of more operations than its deadline leaves time for.
TEST(Transfer, ATimeoutNamesTheDeadlineOfTheWholeRun) {
  const Rounds staged{2, 20'000, 5, true};
  std::vector<View> sources(2, staged.source()), targets(2, staged.target());
  LocalRanks ranks(2, 60'000'000'000, 1, 1);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto own = static_cast<size_t>(rank);
    wl_transfer_t* transfer = staged.create(comm, rank, &sources[own], &targets[own]);
    ASSERT_NE(nullptr, transfer);
    Error error;
    EXPECT_EQ(WL_TIMEOUT, wl_transfer_run(transfer, 1, kMs, &error));
    EXPECT_TRUE(contains(error.message, " waited 0.001 s in transfer"));
    wl_transfer_free(transfer);
  });
}

// A rank leaves the communicator between two runs of hundreds of phases, or within one.
TEST(Transfer, AStagedRunEndsWhenItsCommunicatorIsAborted) {
  for (const int cores : {1, 64}) {
    const Rounds staged{3, 600, 100, true};
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

}  // namespace
}  // namespace windlass_test
