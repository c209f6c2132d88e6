// SPDX-License-Identifier: Apache-2.0
// How many cores of its device each rank of an operation takes: as the process's table of grids
// says, or as many as run at a time. Ranks state theirs, and all take the fewest of those.
#pragma once

#include <algorithm>
#include <memory>

#include "native/device/grid_table.h"
#include "native/device/offload.h"

namespace windlass {

class Grids {
 public:
  static constexpr const char* kVariable = "WINDLASS_CUDA_GRIDS";

  // Reads the file that the variable names, once. WL_INVALID_ARGUMENT, then and at every later
  // call: it holds no table. Throws std::bad_alloc.
  static Code check(wl_error_t* error);
  // Has this text in place of that file; nullptr: the file again. Throws std::bad_alloc.
  static Code use(const char* text, wl_error_t* error);
  // nullptr: there is none.
  static std::shared_ptr<const GridTable> table();

  // Of a rank of `operation`, whose ranks have all stated what they bring: of the `atOnce` that its
  // device runs at a time.
  template <class Statement>
  static uint32_t coresOf(const RankDevice& device, const Offload::Operation& operation,
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

// Why ranks can't have devices here: there are none, or no table that WINDLASS_CUDA_GRIDS names.
Code checkDevicesAndGrids(wl_error_t* error);

}  // namespace windlass
