// SPDX-License-Identifier: Apache-2.0
// A redistribution from rows to columns, whose sources and targets lie wherever a test has them.
#pragma once

#include "tests/native/core/local_ranks.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {

constexpr int64_t kRows = 301, kRanks = 3;

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

}  // namespace windlass_test
