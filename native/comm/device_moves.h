// SPDX-License-Identifier: Apache-2.0
// One-sided moves of a rank's device: between views of which one lies on devices that it reaches,
// and the other there or on the host. What is one run of bytes on both sides is copied; between
// devices a kernel moves the rest, and to and from the host goes what is packed on both sides of
// the way, piece by piece.
#pragma once

#include "native/window/device.h"

namespace windlass {

// A side of a move, and where it lies: kHere is wherever the device's kernels reach it.
struct MoveSide {
  StridedView view;
  RankDevice::Lies lies;
};

// to = from; or to += from, of which `from` is what the caller has and `to` lies on devices. Both
// have one dtype and shape. Over once it returns. WL_UNSUPPORTED, with nothing moved, where a
// kernel would have to reach memory of another device that is no window's. Throws std::bad_alloc.
Code moveByDevice(RankDevice& device, const MoveSide& to, const MoveSide& from, bool adds,
                  wl_error_t* error);

}  // namespace windlass
