// SPDX-License-Identifier: Apache-2.0
// Transfers of the target cuda: what devices get of hosts' memory, what they name instead of it,
// and that hosts get back those elements alone that items wrote.
#include <cstring>
#include <string>
#include <vector>

#include "native/comm/offloaded_transfer.h"
#include "tests/native/comm/local_ranks.h"
#include "tests/native/cuda/stand_in.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace {

using windlass::ChunkItem;
using windlass::ChunkTable;
using windlass::OffloadedTransfer;
using windlass::Place;

constexpr int64_t kRows = 301, kRanks = 3;

class GpusTransfers : public testing::Test {
 protected:
  GpusTransfers() { gpus::reset(); }
  ~GpusTransfers() override { gpus::reset(); }
};

// Rank r takes column r of each rank's [kRows, kRanks] columns, one after the other.
struct Columns {
  int32_t* source;  // of which the first column lies there
  int32_t* target;
  int64_t sourceStep;  // from row to row
  int64_t targetStep;

  int32_t create(int rank, wl_comm_t* comm, wl_transfer_t** transfer, Error* error) const {
    Words sources, targets, chunks;
    const auto bytes = [](int64_t step) {
      return static_cast<uint64_t>(((kRows - 1) * step + kRanks) * 4);
    };
    addBinding(WL_I32, source, bytes(sourceStep), {kRows, kRanks}, {sourceStep, 1}, &sources);
    addBinding(WL_I32, target, bytes(targetStep), {kRows, kRanks}, {targetStep, 1}, &targets);
    for (int64_t from = 0; from < kRanks; ++from)
      chunks.insert(chunks.end(),
                    {0, 0, WL_I32, WL_SUM, 2, 1, kRows, 1, 0, from, from, 0, 0, rank});
    const wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, kRanks);
    return wl_transfer_create(comm, &config, 0, transfer, error);
  }
  static int32_t value(int64_t rank, int64_t row, int64_t column, int64_t version) {
    return static_cast<int32_t>(1'000'000 * version + 100'000 * rank + 10 * row + column);
  }
  void fill(int rank, int64_t version) const {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = 0; column < kRanks; ++column)
        source[row * sourceStep + column] = value(rank, row, column, version);
  }
  void check(int rank, int64_t version) const {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t from = 0; from < kRanks; ++from)
        ASSERT_EQ(target[row * targetStep + from], value(from, row, rank, version))
            << "rank " << rank << ", row " << row << ", of " << from;
  }
  void moveTwice(int rank, wl_comm_t* comm) const {
    Error error;
    wl_transfer_t* transfer = nullptr;
    ASSERT_EQ(create(rank, comm, &transfer, &error), WL_OK) << error.message;
    for (int64_t version = 1; version <= 2; ++version) {
      fill(rank, version);
      ASSERT_EQ(wl_transfer_run(transfer, static_cast<uint64_t>(version), 0, &error), WL_OK)
          << error.message;
      check(rank, version);
      uint64_t moved = 0;
      EXPECT_EQ(wl_transfer_progress(transfer, rank, &moved, 1, &error), WL_OK);
      EXPECT_EQ(moved, static_cast<uint64_t>(kRows * kRanks * 4));
    }
    wl_transfer_free(transfer);
  }
};

// All ranks' targets, and rank 0's source, are columns of one matrix, which has others between.
TEST_F(GpusTransfers, LeaveWhatLiesBetweenTheirElements) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    constexpr int64_t kWide = (kRanks + 1) * (kRanks + 2);
    std::vector<int32_t> matrix(kRows * kWide, -7);
    {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> own(kRows * kRanks);
        const int64_t first = rank * (kRanks + 2);
        Columns columns = {own.data(), matrix.data() + first, kRanks, kWide};
        if (rank == 0) {
          columns.source = matrix.data() + kRanks * (kRanks + 2);
          columns.sourceStep = kWide;
        }
        columns.moveTwice(rank, comm);
      });
    }
    for (int64_t i = 0; i < kRows * kWide; ++i) {
      if (i % (kRanks + 2) < kRanks) continue;
      ASSERT_EQ(matrix[static_cast<size_t>(i)], -7) << i;
    }
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 2 * devices);
    EXPECT_EQ(gpus::held(), "");
  }
}

TEST_F(GpusTransfers, TakeTensorsOfTheOneDeviceWhereTheyLie) {
  for (const bool isTargetThere : {false, true}) {
    gpus::reset();
    {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> own(kRows * kRanks, -1);
        int32_t* there = gpus::tensor<int32_t>(0, kRows * kRanks);
        Columns columns = {there, own.data(), kRanks, kRanks};
        if (isTargetThere) std::swap(columns.source, columns.target);
        columns.moveTwice(rank, comm);
      });
    }
    // No image of what lies there: only counts and a table besides what the host has.
    for (const std::string& line : gpus::log()) {
      if (line.rfind(isTargetThere ? "cuMemcpyDtoHAsync " : "cuMemcpyAsync ", 0) != 0) continue;
      EXPECT_LT(std::stoull(line.substr(line.find(' '))), uint64_t{kRows * kRanks * 4}) << line;
    }
  }
}

TEST_F(GpusTransfers, RefuseTensorsOfADeviceThatNotAllRanksHave) {
  gpus::reset();
  gpus::devices(2);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    std::vector<int32_t> in(kRows * kRanks), out(kRows * kRanks, -1);
    Columns columns = {in.data(), out.data(), kRanks, kRanks};
    if (rank == 1) columns.source = gpus::tensor<int32_t>(1, kRows * kRanks);
    Error error;
    wl_transfer_t* transfer = nullptr;
    ASSERT_EQ(columns.create(rank, comm, &transfer, &error), WL_OK) << error.message;
    EXPECT_EQ(wl_transfer_run(transfer, 1, 0, &error), WL_UNSUPPORTED);
    EXPECT_NE(std::strstr(error.message, "rank 1"), nullptr) << error.message;
    EXPECT_NE(std::strstr(error.message, "from the host's memory alone"), nullptr) << error.message;
    for (const int32_t element : out) ASSERT_EQ(element, -1);
    wl_transfer_free(transfer);
  });
}

// Has everything on the host, and nothing else to say.
class NoDevice final : public windlass::RankDevice {
 public:
  using Code = windlass::Code;
  Code open(uint32_t, wl_error_t*) override { return WL_OK; }
  Code close(wl_error_t*) override { return WL_OK; }
  Code makeWindow(windlass::AllRanks&, uint64_t, wl_error_t*) override { return WL_OK; }
  uint32_t culprit() const override { return windlass::kNobody; }
  Code closeWindow(wl_error_t*) override { return WL_OK; }
  void* part(uint32_t) const override { return nullptr; }
  uint64_t partBytes() const override { return 0; }
  Code find(const void*, Lies* lies, wl_error_t*) override {
    *lies = Lies::kHost;
    return WL_OK;
  }
  Code onDevices(void*, const void*, uint64_t, wl_error_t*) override { return WL_OK; }
  Code toDevice(void*, const void*, uint64_t, wl_error_t*) override { return WL_OK; }
  Code fromDevice(void*, const void*, uint64_t, wl_error_t*) override { return WL_OK; }
  uint32_t coresAtOnce(uint32_t most) const override { return most; }
  uint64_t stopWord(uint64_t line) const override { return line; }
  Code writeStop(uint64_t, uint32_t, wl_error_t*) override { return WL_OK; }
  Code start(const char*, const windlass::OffloadedOperation&, wl_error_t*) override {
    return WL_OK;
  }
  Code await(const char*, int64_t, wl_error_t*) override { return WL_OK; }
  void giveUp() override {}
};

// Both ranks take words of rank 1's; rank 1 those of which the last two are its target's first.
// What each names lies in images whose words are those of the host, each at its place in a line.
TEST_F(GpusTransfers, NameImagesInsteadOfTheHostsMemory) {
  alignas(64) uint32_t memory[2][24];
  int32_t counts[2] = {5, 8};
  for (uint32_t i = 0; i < 48; ++i) memory[i / 24][i % 24] = 100 + i;
  const auto address = [](const void* of) { return reinterpret_cast<uint64_t>(of); };
  const uint64_t dtype = uint64_t{WL_U32} << 32;
  const uint64_t head = WL_SUM | uint64_t{WL_U32} << 8 | 1 << 16;
  std::vector<uint64_t> tables[2];
  for (uint64_t rank = 0; rank < 2; ++rank) {
    const uint64_t item = ChunkItem::wordsOf(1, 1, 1);
    tables[rank] = {1 | uint64_t{1} << 32,
                    4,
                    0,
                    item,  //
                    head,
                    1 | uint64_t{1} << 32,
                    16,
                    4,
                    rank | dtype,
                    address(&memory[rank][rank == 0 ? 3 : 10]),
                    address(&counts[rank]),
                    1,
                    1 | dtype,
                    address(&memory[1][rank == 0 ? 2 : 8]),
                    1};
    ASSERT_EQ(tables[rank].size(), 4 + item);
  }
  windlass::RankArgs entries[2] = {};
  for (int rank = 0; rank < 2; ++rank) entries[rank].aux = {address(tables[rank].data())};
  windlass::Launch launch = {};
  launch.ranks = 2;
  launch.entries = reinterpret_cast<const unsigned char*>(entries);
  launch.entryStride = sizeof entries[0];
  OffloadedTransfer transfers[2] = {{0, false}, {1, false}};
  NoDevice device;
  std::vector<OffloadedTransfer::Images> images;
  for (uint64_t rank = 0; rank < 2; ++rank) {
    transfers[rank].find(launch);
    Error error;
    ASSERT_EQ(transfers[rank].gather(device, &error), WL_OK) << error.message;
    images.push_back({&transfers[rank], (2 * rank + 1) << 40, (2 * rank + 2) << 40});
  }
  // What a name of rank `rank`'s stands for, in the image that is written or in the other one.
  const auto wordAt = [&](uint64_t rank, Place place, bool isWritten) {
    const uint64_t base = isWritten ? images[rank].out : images[rank].in;
    const OffloadedTransfer& of = transfers[rank];
    const uint64_t bytes = isWritten ? of.outBytes() : of.inBytes();
    const bool isInside = place.offset() >= base && place.offset() + 4 <= base + bytes;
    EXPECT_TRUE(isInside) << std::hex << place.offset() << " is not of " << base << " + " << bytes;
    if (!isInside) return 0u;
    const auto* image = static_cast<const unsigned char*>(isWritten ? of.out() : of.in());
    uint32_t word;
    std::memcpy(&word, image + (place.offset() - base), sizeof word);
    return word;
  };
  for (uint64_t rank = 0; rank < 2; ++rank) {
    transfers[rank].name(images);
    ASSERT_EQ(transfers[rank].tableBytes(), tables[rank].size() * 8);
    const ChunkTable table = {static_cast<const uint64_t*>(transfers[rank].table())};
    const ChunkItem item = {table.start(0)};
    ASSERT_EQ(item.words + item.size(), table.start(1));
    const Place target = ChunkItem::placeOf(item.target(0));
    const Place source = ChunkItem::placeOf(item.source(0));
    const Place count = ChunkItem::signalOf(item.target(0));
    EXPECT_EQ(wordAt(rank, target, true), memory[rank][rank == 0 ? 3 : 10]);
    EXPECT_EQ(wordAt(rank, count, true), static_cast<uint32_t>(counts[rank]));
    // Words 2 to 5 of rank 1's are read alone, 8 to 13 are one range that is written too.
    EXPECT_EQ(wordAt(1, source, rank == 1), memory[1][rank == 0 ? 2 : 8]);
    EXPECT_EQ(target.offset() % 64, address(&memory[rank][rank == 0 ? 3 : 10]) % 64);
  }
  if (HasFailure()) return;
  // A kernel writes to the images.
  for (uint64_t rank = 0; rank < 2; ++rank) {
    auto* out = static_cast<unsigned char*>(transfers[rank].out());
    const ChunkItem item = {
        ChunkTable{static_cast<const uint64_t*>(transfers[rank].table())}.start(0)};
    const uint64_t at = ChunkItem::placeOf(item.target(0)).offset() - images[rank].out;
    for (uint32_t i = 0; i < 6; ++i) {
      const uint32_t word = 7 + i;  // beyond the target's elements too
      if (at + 4 * i + 4 <= transfers[rank].outBytes()) std::memcpy(out + at + 4 * i, &word, 4);
    }
    const int32_t done = 10 + static_cast<int32_t>(rank);
    std::memcpy(out + (ChunkItem::signalOf(item.target(0)).offset() - images[rank].out), &done, 4);
    transfers[rank].scatter();
  }
  for (uint32_t i = 0; i < 48; ++i) {
    const uint32_t rank = i / 24, at = i % 24, first = rank == 0 ? 3 : 10;
    EXPECT_EQ(memory[rank][at], at >= first && at < first + 4 ? 7 + at - first : 100 + i) << i;
  }
  EXPECT_EQ(counts[0], 10);
  EXPECT_EQ(counts[1], 11);
}

}  // namespace
}  // namespace windlass_test
