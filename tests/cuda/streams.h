// SPDX-License-Identifier: Apache-2.0
// Work on the streams of the stand-in for NVIDIA's driver.
#pragma once

#include <cstdint>
#include <memory>

namespace stand_in {

enum class Progress { kMoved, kWaits, kOver };

class Work {
 public:
  virtual ~Work() = default;
  // As far as it comes.
  virtual Progress goOn() = 0;
};

// A grid of `blocks` blocks of windlass_run.
std::unique_ptr<Work> kernel(uint64_t operations, uint32_t coresOfRank, uint32_t blocks);

// What cores of that rank do: kWait looks whether they shall stop and nothing else, kHang nothing.
enum class Cores { kRun, kWait, kHang };
Cores coresOf(uint32_t rank);

}  // namespace stand_in
