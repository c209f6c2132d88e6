// SPDX-License-Identifier: Apache-2.0
// Expert combine: each rank gathers the experts' results for its tokens, weights and adds them.
//
// args     in   the rows of the rank's experts, where the previous dispatch put them
//          out  the rank's tokens, one row each; only the rank writes them
//          aux  ExpertTable, as that dispatch left it
// phases   one: reads the rows of all experts of a token once each, in the order in which the
//          router named them; a token without experts becomes zeros
// signals  ENTER of every rank before rows are read; DONE of every rank before return, since they
//          read this rank's rows
// order    weight * row and its sum are f32, or f64 for f64, with each step rounded; the result is
//          rounded once to the dtype
#pragma once

#include "kernels/expert_dispatch.h"

namespace windlass {

struct ExpertCombine : ExpertItems {
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    ExpertTable& own = table(launch, rank);
    for (uint64_t t = own.firstToken(block); t < own.endToken(block); ++t)
      gather(launch, rank, own, t);
  }

  WL_CORE static void gather(const Launch& launch, uint32_t rank, ExpertTable& own,
                             uint64_t token) {
    const ExpertShape& shape = own.shape;
    const uint64_t bytes = shape.hidden * sizeOf(launch.dtype);
    const uint8_t* rows[kMostTopK];
    float weights[kMostTopK];
    uint32_t count = 0;
    for (uint64_t slot = token * shape.topK; slot < (token + 1) * shape.topK; ++slot) {
      const int32_t expert = own.expertOf()[slot];
      if (expert < 0) continue;
      const uint32_t from = static_cast<uint32_t>(expert) / shape.expertsOf();
      weights[count] = own.recordOf()[slot].weight;
      rows[count++] = launch.in(from) + static_cast<uint64_t>(own.rowOf()[slot]) * bytes;
    }
    FoldTile tile;
    TASSIGN(tile, 0);
    const auto row = [&](uint32_t i) { return rows[i]; };
    const auto weight = [&](uint32_t i) { return weights[i]; };
    const auto sum = [&](uint32_t) { return launch.out(rank) + token * bytes; };
    TFOLD_WEIGHTED(rowsAt(1, sum), rowsAt(count, row), weight, static_cast<int64_t>(shape.hidden),
                   launch.dtype, tile);
  }
};

}  // namespace windlass
