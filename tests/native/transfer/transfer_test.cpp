// SPDX-License-Identifier: Apache-2.0
// Transfers of sharded and partial tensors against an element-by-element reference, and
// configurations that must be refused.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/transfer/views.h"
#include "windlass/kernel.h"

namespace windlass_test {
namespace transfer_test {

// Rows of a [rows, columns] f32 matrix are spread over the ranks; the target is its transpose,
// columns spread.
TEST(Transfer, TransposesAShardedMatrixAgainAndAgain) {
  const uint32_t versions = isChecked() ? 5 : longForm() ? 50 : 15;
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
        Words sources, targets, chunks;
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
        for (uint32_t version = 1; version <= versions; ++version) {
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

        // The hash of a box of a peer's source, by its binding.
        const int32_t peer = (rank + 1) % n;
        const int64_t start[2] = {3, 5}, length[2] = {7, 11}, wideStart[2] = {mine - 6, 0};
        const int64_t dense[2] = {11, 1};
        std::vector<float> box;
        for (int64_t i = 0; i < 77; ++i) {
          const auto at = static_cast<uint64_t>((3 + i / 11) * columns + 5 + i % 11);
          box.push_back(
              static_cast<float>(stamp(versions, static_cast<uint32_t>(peer), 0, at) >> 8));
        }
        const wl_tensor_t view = {sizeof view, WL_F32, 2, 0, box.data(), length, dense};
        const wl_tensor_t* boxes = &view;
        uint64_t expected = 0;
        ASSERT_EQ(WL_OK, wl_tensor_hash(&boxes, 1, WL_SUM, WL_F32, WL_BF16, 9, &expected, &error));
        const auto hashOf = [&](uint32_t binding, int32_t of, const int64_t* first,
                                uint64_t* hash) {
          return wl_transfer_hash(transfer, binding, &of, 1, first, length, WL_SUM, WL_F32, WL_BF16,
                                  9, hash, &error);
        };
        uint64_t hash = 0;
        ASSERT_EQ(WL_OK, hashOf(0, peer, start, &hash)) << error.message;
        EXPECT_EQ(expected, hash);
        EXPECT_EQ(WL_INVALID_ARGUMENT, hashOf(0, n, start, &hash));
        EXPECT_EQ(WL_INVALID_ARGUMENT, hashOf(1, peer, start, &hash));
        EXPECT_EQ(WL_INVALID_ARGUMENT, hashOf(0, peer, wideStart, &hash));
        EXPECT_EQ(WL_INVALID_ARGUMENT, hashOf(0, peer, start, nullptr));
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error));
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
      Words sources, targets, chunks;
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
        Words sources, targets, chunks;
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
        for (uint32_t version = 1; version <= (longForm() ? 8 : 3); ++version) {
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
      Words sources, targets, chunks;
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

// The words of all bindings, and those of the boxes that ranks ask one another about, fill many
// rounds of their exchange.
TEST(Transfer, RegistersMoreBindingsAndChunksThanOneRoundTellsOf) {
  static constexpr int64_t kBindings = kSlow > 1 ? 700 : 1500, kLength = 6;
  for (const int n : {1, 3, 4}) {
    for (const int cores : {1, 64}) {
      LocalRanks ranks(n, 20'000'000'000, 1, cores);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> in, out(static_cast<size_t>(2 * kBindings * kLength));
        for (int64_t i = 0; i < kBindings * kLength; ++i)
          in.push_back(static_cast<int32_t>(i + rank * 100'000));
        Words sources, targets, chunks;
        const auto at = [](const std::vector<int32_t>& memory, int64_t index) {
          return reinterpret_cast<int64_t>(memory.data() + index * kLength);
        };
        for (int64_t i = 0; i < kBindings; ++i) {
          const int64_t address = at(in, i);
          sources.insert(sources.end(),
                         {WL_I32, 1, address, address, kLength * 4, kLength, 1});
        }
        // One from each rank in turn, which its peers take from another, and one that all take.
        uint64_t count = 0;
        for (int64_t i = 0; i < 2 * kBindings; ++i) {
          const int64_t address = at(out, i);
          targets.insert(targets.end(),
                         {WL_I32, 1, address, address, kLength * 4, kLength, 1});
          const int64_t from = i % 2 == 0 ? (i / 2 + rank) % n : i / 2 % n;
          chunks.insert(chunks.end(),
                        {0, i, WL_I32, WL_SUM, 1, 1, kLength, 0, from, i / 2, 0});
          ++count;
        }
        const wl_transfer_config_t config = configOf(
            sources, kBindings, targets, static_cast<uint32_t>(2 * kBindings), chunks, count);
        Error error;
        wl_transfer_t* transfer = nullptr;
        ASSERT_EQ(WL_OK, wl_transfer_create(comm, &config, 0, &transfer, &error)) << error.message;
        ASSERT_EQ(WL_OK, wl_transfer_run(transfer, 1, 0, &error)) << error.message;
        uint64_t wrong = 0;
        for (int64_t i = 0; i < 2 * kBindings; ++i) {
          const int64_t from = i % 2 == 0 ? (i / 2 + rank) % n : i / 2 % n;
          for (int64_t k = 0; k < kLength; ++k) {
            wrong += out[static_cast<size_t>(i * kLength + k)] !=
                     i / 2 * kLength + k + from * 100'000;
          }
        }
        EXPECT_EQ(0u, wrong) << n << " ranks, " << cores << " cores";
        wl_transfer_free(transfer);
      });
    }
  }
}

TEST(Transfer, VersionsMustAgree) {
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
}

TEST(Transfer, FingerprintsMustAgree) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_transfer_t* transfer = nullptr;
    wl_transfer_config_t config = configOf({}, 0, {}, 0, {}, 0);
    config.fingerprint = rank == 0 ? 1 : 2;
    EXPECT_EQ(WL_MISMATCH, wl_transfer_create(comm, &config, 0, &transfer, &error));
    EXPECT_EQ(nullptr, transfer);
  });
}

// Fills the memory in which the frames of a call before lay, and looks whether another writes
// there.
[[gnu::noinline]] bool ownsItsStack() {
  volatile uint8_t stack[16384];
  for (volatile uint8_t& byte : stack) byte = 0xa5;
  usleep(500);
  return std::all_of(stack, stack + sizeof stack, [](uint8_t byte) { return byte == 0xa5; });
}

// Rank 1 reads `count` chunks between two operations. Meanwhile rank 0, which has none, gets the
// order to leave. Returns true if it left while rank 1 still had work.
bool leavesMeanwhile(int64_t count) {
  LocalRanks ranks(2, 20'000'000'000, 1, 1);
  std::atomic<bool> begun{false};
  std::atomic<bool> over{false};
  bool left = false;
  std::vector<uint8_t> memory(static_cast<size_t>(4 * count));
  std::thread aborter([&] {
    while (!begun) usleep(100);
    // Waits until rank 1 is in a registration and has entered no operation for some time.
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    uint64_t before = 0;
    do {
      before = state.sequence;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      wl_comm_state(ranks.comms[0], 1, &state);
    } while (state.operation != WL_OP_REGISTER || state.sequence != before);
    Error error;
    EXPECT_EQ(WL_OK, wl_comm_abort(ranks.comms[0], "enough", &error)) << error.message;
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory.data()));
    const int64_t in = address + 2 * rank * count, out = in + count;
    const Words source = {WL_U8, 1, in, in, count, count, 1};
    const Words target = {WL_U8, 1, out, out, count, count, 1};
    Words chunks;
    chunks.reserve(static_cast<size_t>(rank == 1 ? 11 * count : 0));
    for (int64_t at = 0; rank == 1 && at < count; ++at)
      chunks.insert(chunks.end(), {0, 0, WL_U8, WL_SUM, 1, 1, 1, at, 1, 0, at});
    const wl_transfer_config_t config =
        configOf(source, 1, target, 1, chunks, static_cast<uint64_t>(rank == 1 ? count : 0));
    Error error;
    wl_transfer_t* transfer = nullptr;
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    if (rank == 0) {
      begun = true;
      const int32_t code = wl_transfer_create(comm, &config, 0, &transfer, &error);
      left = code == WL_ABORTED && !over;
      EXPECT_TRUE(code == WL_ABORTED || code == WL_OK) << error.message;
      while (!over) ASSERT_TRUE(ownsItsStack());
    } else {
      wl_transfer_create(comm, &config, 0, &transfer, &error);
      over = true;
    }
    wl_transfer_free(transfer);
  });
  aborter.join();
  return left;
}

TEST(Transfer, ARegistrationGoesOnWhenARankHasLeftIt) {
  // Other work on the machine may delay the abort until rank 1 is done.
  int64_t count = 200'000;
  while (!leavesMeanwhile(count) && !HasFailure()) {
    ASSERT_LT(count, 1'600'000) << "rank 1 had no work left each time";
    count *= 2;
  }
}

// Each change makes one good configuration bad; every rank gets the error, and the communicator
// lives on.
TEST(Transfer, BadConfigurationsAreRefusedOnEveryRank) {
  alignas(64) static float memory[64];
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  const Words goodBinding = {WL_F32, 2, address, address, 256, 4, 8, 8, 1};
  alignas(64) static float output[64];
  const auto outAddress = static_cast<int64_t>(reinterpret_cast<uintptr_t>(output));
  const Words goodTarget = {WL_F32, 2, outAddress, outAddress, 256, 4, 8, 8, 1};
  const Words goodChunk = {0, 0, WL_F32, WL_SUM, 2, 1, 2, 3, 1, 2, 0, 0, 0, 0};
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
      {"op", 2, 3, WL_REDUCE_OP_COUNT, WL_INVALID_ARGUMENT},
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
        Words source = goodBinding, target = goodTarget, chunk = goodChunk;
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
        EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
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

// A count says nothing of how much memory its words take.
TEST(Transfer, MoreBindingsThanWordsAreAnArgumentAtFault) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const wl_transfer_config_t config = configOf({}, rank == 0 ? 0xffffffff : 0, {}, 0, {}, 0);
    Error error;
    wl_transfer_t* transfer = nullptr;
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_transfer_create(comm, &config, 0, &transfer, &error));
    EXPECT_NE(nullptr, std::strstr(error.message, "source_bindings end within binding 0"))
        << error.message;
  });
}

}  // namespace transfer_test
}  // namespace windlass_test
