// SPDX-License-Identifier: Apache-2.0
// Number of device cores that each rank of an operation uses. It is the number in the process's
// grid table, or as many as run at a time. Ranks exchange their numbers, and all use the smallest.
#pragma once

#include <algorithm>
#include <memory>

#include "native/device/grid_table.h"
#include "native/device/offload.h"

namespace windlass {

class Grids {
 public:
  static constexpr const char* kVariable = "WINDLASS_CUDA_GRIDS";

  // Reads the file that WINDLASS_CUDA_GRIDS names, once. Returns WL_INVALID_ARGUMENT, also on every
  // later call, if the file holds no table. Throws std::bad_alloc.
  static Code check(wl_error_t* error);
  // Uses `text` in place of that file; nullptr: uses the file again. Throws std::bad_alloc.
  static Code use(const char* text, wl_error_t* error);
  // Returns the current table; nullptr if there is none.
  static std::shared_ptr<const GridTable> table();

  // Returns the number of cores of this rank for `operation`: at most `atOnce`, the number that its
  // device runs at a time. All ranks have exchanged their statements.
  static uint32_t coresOf(const RankDevice& device, const DeviceOperation& operation,
                          const AllRanks& ranks, const std::vector<Statement>& stated,
                          uint32_t atOnce) {
    const std::shared_ptr<const GridTable> own = table();
    if (own == nullptr) return atOnce;
    GridTable::Case of = {device.kind(), operation.operation, ranks.ranks(), 0, 0};
    const uint32_t beside = ranks.firstBeside(ranks.rank());
    for (uint32_t rank = 0; rank < of.ranks; ++rank) {
      const Statement& each = stated[rank];
      of.bytes = std::max({of.bytes, each.in, each.out});
      const bool shares =
          each.device == stated[ranks.rank()].device && ranks.firstBeside(rank) == beside;
      of.sharers += shares ? 1 : 0;
    }
    const uint32_t cores = own->cores(of);
    return cores == 0 ? atOnce : std::min(cores, atOnce);
  }
};

// Returns an error if ranks can't have devices here: there are none, or WINDLASS_CUDA_GRIDS names
// no valid table.
Code checkDevicesAndGrids(wl_error_t* error);

}  // namespace windlass
