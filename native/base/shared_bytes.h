// SPDX-License-Identifier: Apache-2.0
// The search for bytes that two strided views have in common.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// Whether an element of `a` and one of `b` share a byte. Strides are not negative. True as well for
// views of 2^61 bytes and more, and where a long search has settled nothing.
bool shareBytes(const StridedView& a, const StridedView& b);

}  // namespace windlass
