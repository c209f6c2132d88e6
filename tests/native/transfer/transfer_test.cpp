// SPDX-License-Identifier: Apache-2.0
// Transfers over random boxes, strides, dtypes and Partial groups, against an element-by-element
// reference; chunk prepare and finalize against the direct pass; and configurations that must be
// refused.
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/chunk.h"
#include "tests/native/comm/local_ranks.h"

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
  for (const int n : {1, 2, 3, 8}) {
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
          chunks.insert(chunks.end(), {0, WL_F32, WL_SUM, 2, 1, mine, wide, from * mine, 0, from, 0,
                                       0, rank * wide});
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
        EXPECT_EQ(static_cast<uint64_t>(rows * columns * 4), wl_transfer_progress(transfer));
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
      chunks = {0, WL_F32, WL_SUM, 2, n, 64, kColumns, 0, 0};
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

// Each change makes one good configuration bad; every rank gets the error, and the communicator
// lives on.
TEST(Transfer, BadConfigurationsAreRefusedOnEveryRank) {
  alignas(64) static float memory[64];
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  const Word goodBinding = {WL_F32, 2, address, address, 256, 4, 8, 8, 1};
  alignas(64) static float output[64];
  const auto outAddress = static_cast<int64_t>(reinterpret_cast<uintptr_t>(output));
  const Word goodTarget = {WL_F32, 2, outAddress, outAddress, 256, 4, 8, 8, 1};
  const Word goodChunk = {0, WL_F32, WL_SUM, 2, 1, 2, 3, 1, 2, 0, 0, 0, 0};
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
      {"target binding", 2, 0, 1, WL_INVALID_ARGUMENT},
      {"target binding", 2, 0, -1, WL_INVALID_ARGUMENT},
      {"wire", 2, 1, 40, WL_INVALID_ARGUMENT},
      {"wire", 2, 1, WL_I32, WL_UNSUPPORTED},
      {"op", 2, 2, 5, WL_INVALID_ARGUMENT},
      {"dimensions", 2, 3, 3, WL_INVALID_ARGUMENT},
      {"sources", 2, 4, 0, WL_INVALID_ARGUMENT},
      {"sources", 2, 4, 2, WL_INVALID_ARGUMENT},
      {"sources", 2, 4, int64_t{1} << 40, WL_INVALID_ARGUMENT},
      {"length", 2, 5, -1, WL_INVALID_ARGUMENT},
      {"length", 2, 6, 9, WL_INVALID_ARGUMENT},
      {"target start", 2, 7, 3, WL_INVALID_ARGUMENT},
      {"target start", 2, 8, -1, WL_INVALID_ARGUMENT},
      {"rank", 2, 9, 2, WL_INVALID_ARGUMENT},
      {"rank", 2, 9, -1, WL_INVALID_ARGUMENT},
      {"binding", 2, 10, 1, WL_INVALID_ARGUMENT},
      {"source start", 2, 12, 6, WL_INVALID_ARGUMENT},
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

uint32_t nextSeed() {
  const char* given = std::getenv("WINDLASS_TEST_SEED");
  const uint32_t seed = given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10))
                                         : std::random_device{}();
  std::printf("seed %u (WINDLASS_TEST_SEED repeats it)\n", seed);
  return seed;
}

TEST(Chunk, PrepareThenFinalizeGivesTheBitsOfTheDirectPass) {
  std::mt19937 random(nextSeed());
  const windlass::DType floats[] = {windlass::DType::kF64,    windlass::DType::kF32,
                                    windlass::DType::kF16,    windlass::DType::kBF16,
                                    windlass::DType::kF8E4M3, windlass::DType::kF8E5M2};
  for (int round = 0; round < 500; ++round) {
    const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    const uint32_t ndim = pick(5);
    std::vector<int64_t> shape(ndim), targetStrides(ndim), sourceStrides(ndim);
    int64_t elements = 1;
    for (int64_t& size : shape) elements *= size = 1 + pick(9);
    // Row-major on one side, column-major with a gap on the other.
    int64_t step = 1;
    for (uint32_t d = ndim; d-- > 0; step *= shape[d]) targetStrides[d] = step;
    step = 1 + pick(2);
    const int64_t gap = step;
    for (uint32_t d = 0; d < ndim; step *= shape[d++]) sourceStrides[d] = step;
    const windlass::DType from = floats[pick(6)], wire = floats[pick(6)], to = floats[pick(6)];
    const uint32_t sourceCount = 1 + pick(4);
    std::vector<std::vector<uint64_t>> memory(sourceCount);
    std::vector<windlass::StridedView> sources;
    for (auto& one : memory) {
      one.resize(static_cast<size_t>(elements * gap + 1));
      for (uint64_t& word : one) word = uint64_t{random()} << 32 | random();
      sources.push_back({one.data(), from, ndim, shape.data(), sourceStrides.data()});
    }
    const auto before = memory;
    std::vector<uint64_t> direct(static_cast<size_t>(elements), 0), staged(direct), buffer(direct);
    windlass::ChunkItem item = {};
    item.sources = sources.data();
    item.sourceCount = sourceCount;
    item.op = static_cast<windlass::ReduceOp>(pick(windlass::kReduceOpCount));
    item.wire = wire;
    item.target = {direct.data(), to, ndim, shape.data(), targetStrides.data()};
    windlass::chunkDirect(item);
    item.target.data = staged.data();
    windlass::chunkPrepare(item, buffer.data());
    windlass::chunkFinalize(item, buffer.data());
    ASSERT_EQ(direct, staged) << "round " << round << ": " << static_cast<int>(from) << " -> "
                              << static_cast<int>(wire) << " -> " << static_cast<int>(to) << ", "
                              << sourceCount << " sources, op " << static_cast<int>(item.op);
    ASSERT_EQ(before, memory) << "sources are never modified";
  }
}

}  // namespace
}  // namespace windlass_test
