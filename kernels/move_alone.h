// SPDX-License-Identifier: Apache-2.0
// A move by one rank's device: a one-sided operation on memory that the device reaches.
//
// args     aux  a MoveViews, in the device's memory
// phases   one. TMOVE_CVT, or TMOVE_ADD, of a slice of both views
// signals  none: it waits for no rank
// order    the host sees the kernel end
#pragma once

#include "kernels/items.h"
#include "kernels/one_sided.h"
#include "native/isa/isa.h"
#include "windlass/kernel.h"
#include "windlass/offload.h"

namespace windlass {

struct MoveAlone : Items {
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) { return launch.pieces; }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kNobody; }
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
  // Divides the longest dimension.
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t) {
    const MoveViews& views = *launch.at<const MoveViews>(rank, launch.of(rank).aux);
    int64_t shape[kMaxDims];
    uint32_t longest = 0;
    for (uint32_t d = 0; d < views.ndim; ++d) {
      shape[d] = views.shape[d];
      if (shape[d] > shape[longest]) longest = d;
    }
    int64_t first = 0;
    if (views.ndim > 0) {
      const int64_t each = (shape[longest] + launch.pieces - 1) / launch.pieces;
      first = block * each;
      const int64_t left = shape[longest] - first;
      if (left <= 0) return;
      shape[longest] = left < each ? left : each;
    }
    const auto slice = [&](uint64_t data, const int64_t* strides) {
      const int64_t skipped = views.ndim == 0 ? 0 : first * strides[longest];
      auto* at = reinterpret_cast<unsigned char*>(data) +
                 skipped * static_cast<int64_t>(sizeOf(launch.dtype));
      return StridedView{at, launch.dtype, views.ndim, shape, strides};
    };
    const StridedView to = slice(views.to, views.toStrides);
    const StridedView from = slice(views.from, views.fromStrides);
    if (views.adds != 0) {
      oneSidedAccumulate(to, from);
    } else {
      oneSidedMove(to, from);
    }
  }
};

}  // namespace windlass
