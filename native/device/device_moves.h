// SPDX-License-Identifier: Apache-2.0
// One-sided moves of a rank's device: between views of which one lies on devices that it reaches,
// and the other there or on the host. What is one run of bytes on both sides is copied; between
// devices a kernel moves the rest, and to and from the host goes what is packed on both sides of
// the way, piece by piece.
#pragma once

#include <functional>
#include <vector>

#include "native/hosts/far.h"
#include "native/memory/device.h"

namespace windlass {

// A side of a move, and where it lies: kHere is wherever the device's kernels reach it.
struct MoveSide {
  StridedView view;
  RankDevice::Lies lies;
};

// Where a view of that name lies, as the device finds it.
Code findView(RankDevice& device, const char* name, const StridedView& view, RankDevice::Lies* lies,
              wl_error_t* error);

// Adds rows from the box to its copy at that address, or back.
void appendRows(const FarBox& box, uint64_t copy, bool isToCopy,
                std::vector<RankDevice::Rows>* rows);

// to = from, or to += from, atomically for each element. One side lies on devices, and both have
// one dtype and shape. Over once it returns. WL_UNSUPPORTED, with nothing moved, where a kernel
// would have to reach memory of another device that is no window's. Throws std::bad_alloc.
Code moveByDevice(RankDevice& device, const MoveSide& to, const MoveSide& from, bool adds,
                  wl_error_t* error);

// Brings views of one dtype and shape, wherever they lie, to where the processor reads them, piece
// by piece in row-major order: visit(views) gets such a piece of each, in their order. No more than
// kDeviceStageBytes are brought at a time. Throws std::bad_alloc.
Code readByDevice(RankDevice& device, const std::vector<MoveSide>& from,
                  const std::function<void(const StridedView* views)>& visit, wl_error_t* error);

// Every bit of the elements becomes 0, which lie on any device of the process.
Code clearByDevice(RankDevice& device, const StridedView& view, wl_error_t* error);

}  // namespace windlass
