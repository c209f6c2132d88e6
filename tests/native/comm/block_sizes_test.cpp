// SPDX-License-Identifier: Apache-2.0
// What docs/operations.md says under "Several hosts" of the memory that each host takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "native/comm/control_block.h"

namespace windlass {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;

GroupConfig ofHosts(uint32_t ranks) {
  GroupConfig config;
  config.ranks = ranks;
  config.cores = ranks - 1;
  config.spansProcesses = true;
  config.hosts = 2;
  config.eagerShift = 4;
  return config;
}

double atStart(uint32_t ranks) {
  const GroupConfig config = ofHosts(ranks);
  return static_cast<double>(ControlBlock::bytes(config) - ControlBlock::stageBytes(config));
}

double ofStages(uint32_t ranks) {
  return static_cast<double>(ControlBlock::stageBytes(ofHosts(ranks)));
}

TEST(BlockSizes, AreWhatTheFormulasSay) {
  for (uint32_t ranks : {2u, 7u, 8u, 64u, 512u, 1024u, 1025u, 4096u}) {
    const double r = ranks;
    const double start = 22 * kKiB + r * (8.6 * kKiB + 2 * std::max(64 * kKiB, 32 * r) + 64 * r);
    EXPECT_NEAR(atStart(ranks) / start, 1, 0.02) << ranks;
    const double least = (ranks > 1024 ? 256 : 64) * kKiB;
    const double half = std::min(std::max(4 * kMiB / r, least), 512 * kKiB);
    EXPECT_NEAR(ofStages(ranks) / (r * (2 * half + 32 * r)), 1, 0.02) << ranks;
  }
}

TEST(BlockSizes, AreWhatTheTableSays) {
  EXPECT_NEAR(atStart(8) / kMiB, 1.1, 0.05);
  EXPECT_NEAR(atStart(64) / kMiB, 8.8, 0.05);
  EXPECT_NEAR(atStart(512) / kMiB, 84, 0.5);
  EXPECT_NEAR(ofStages(8) / kMiB, 8, 0.05);
  EXPECT_NEAR(ofStages(64) / kMiB, 8.25, 0.05);
  EXPECT_NEAR(ofStages(512) / kMiB, 72, 0.5);
}

}  // namespace
}  // namespace windlass
