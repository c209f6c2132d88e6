// SPDX-License-Identifier: Apache-2.0
// One-sided moves by a rank's device between two views. At least one view lies on devices that the
// rank's device reaches. If both views are contiguous and the move does not add, the driver copies
// them. Otherwise a kernel moves data between devices. Data to or from the host is then packed and
// copied in pieces.
#pragma once

#include <functional>
#include <vector>

#include "native/base/far.h"
#include "native/memory/device.h"

namespace windlass {

// One side of a move and its location. kHere: any memory that the device's kernels reach.
struct MoveSide {
  StridedView view;
  RankDevice::Lies lies;
};

// Asks the device for the location of a view. `name` is for errors.
Code findView(RankDevice& device, const char* name, const StridedView& view, RankDevice::Lies* lies,
              wl_error_t* error);

// Appends the rows that copy the box to packed memory at `copy`, or back.
void appendRows(const FarBox& box, uint64_t copy, bool isToCopy,
                std::vector<RankDevice::Rows>* rows);

// to = from, or to += from, atomically for each element. One side lies on devices, and both have
// the same dtype and shape. Blocks until the move is complete. Returns WL_UNSUPPORTED, with nothing
// moved, if a kernel would have to reach another device's memory outside a window. Throws
// std::bad_alloc.
Code moveByDevice(RankDevice& device, const MoveSide& to, const MoveSide& from, bool adds,
                  wl_error_t* error);

// Copies views to host memory, and calls visit(views) for each piece in row-major order. All views
// have the same dtype and shape, and lie anywhere. `views` has the piece of each view, in the order
// of `from`. At most kDeviceStageBytes are copied at a time. Throws std::bad_alloc.
Code readByDevice(RankDevice& device, const std::vector<MoveSide>& from,
                  const std::function<void(const StridedView* views)>& visit, wl_error_t* error);

// Sets every bit of the view's elements to 0. The view lies on any device of the process.
Code clearByDevice(RankDevice& device, const StridedView& view, wl_error_t* error);

}  // namespace windlass
