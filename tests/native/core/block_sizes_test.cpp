// SPDX-License-Identifier: Apache-2.0
// The memory that each host takes, which docs/reference/sizing.md states under "Across hosts", and
// the place of staging buffers in their pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "native/core/control_block.h"
#include "native/core/message/message_lane.h"
#include "native/memory/memory.h"

namespace windlass {
namespace block_sizes_test {

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr uint64_t kPage = 4096;

GroupConfig ofHosts(uint32_t ranks) {
  GroupConfig config;
  config.ranks = ranks;
  config.cores = ranks - 1;
  config.spansProcesses = true;
  config.hosts = 2;
  return config;
}

double inPages(double bytes) {
  return std::floor(bytes / kPage) * kPage;
}

double atStart(uint32_t ranks) {
  const GroupConfig config = ofHosts(ranks);
  return static_cast<double>(ControlBlock::bytes(config) - ControlBlock::laterBytes(config));
}

// Lanes for each two ranks, and a room for each.
double ofMessages(uint32_t ranks) {
  const GroupConfig config = ofHosts(ranks);
  const uint64_t lanes = MessageLane::bytes(config.messageSlots()) * ranks * ranks;
  return static_cast<double>(roundedUp(lanes, kPage) +
                             roundedUp(MessageRoom::bytes(config), kPage) * ranks);
}

double ofStages(uint32_t ranks) {
  return static_cast<double>(ControlBlock::laterBytes(ofHosts(ranks))) - ofMessages(ranks);
}

TEST(BlockSizes, AreWhatTheFormulasSay) {
  for (uint32_t ranks : {2u, 7u, 8u, 64u, 512u, 1024u, 1025u, 4096u}) {
    const double r = ranks;
    const double start = 28 * kKiB + r * (8.6 * kKiB + 2 * std::max(64 * kKiB, 32 * r) + 64 * r);
    EXPECT_NEAR(atStart(ranks) / start, 1, 0.02) << ranks;
    const double least = (ranks > 1024 ? 256 : 64) * kKiB;
    const double half = std::min(std::max(inPages(4 * kMiB / r), least), 512 * kKiB);
    const double pages = std::ceil((128 + 2 * half + 32 * r) / kPage);
    EXPECT_EQ(ofStages(ranks), r * pages * kPage) << ranks;
  }
}

TEST(BlockSizes, AreWhatTheTableSays) {
  EXPECT_NEAR(atStart(8) / kMiB, 1.1, 0.05);
  EXPECT_NEAR(atStart(64) / kMiB, 8.8, 0.05);
  EXPECT_NEAR(atStart(512) / kMiB, 84, 0.5);
  EXPECT_NEAR(ofStages(8) / kMiB, 8, 0.05);
  EXPECT_NEAR(ofStages(64) / kMiB, 8.25, 0.05);
  EXPECT_NEAR(ofStages(512) / kMiB, 74, 0.5);
}

// Each rank's is reserved and given back by whole pages, and is copied from and to as fast as may
// be.
TEST(BlockSizes, StagesBeginAPlaceIntoWholePages) {
  for (uint32_t ranks : {2u, 3u, 7u, 64u}) {
    const GroupConfig config = ofHosts(ranks);
    const uint64_t bytes = ControlBlock::bytes(config);
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kPage, bytes),
                                                             std::free);
    std::memset(memory.get(), 0, bytes);
    ControlBlock::make(memory.get(), config);
    const ControlBlock block(memory.get());
    const auto inPage = [](const void* at) { return reinterpret_cast<uint64_t>(at) % kPage; };
    EXPECT_EQ(0, block.stageAreaBytes() % kPage) << ranks;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const unsigned char* const area = block.stageArea(rank);
      EXPECT_EQ(0, inPage(area)) << rank << " of " << ranks;
      EXPECT_EQ(kInPage, inPage(block.stage(rank, 0))) << rank << " of " << ranks;
      EXPECT_EQ(kInPage, inPage(block.stage(rank, 1))) << rank << " of " << ranks;
      EXPECT_EQ(kInPage, inPage(block.eager(rank, 0))) << rank << " of " << ranks;
      const auto* const end = reinterpret_cast<unsigned char*>(&block.stagePair(rank, ranks));
      EXPECT_LE(end, area + block.stageAreaBytes()) << rank << " of " << ranks;
    }
  }
}

}  // namespace block_sizes_test
}  // namespace windlass
