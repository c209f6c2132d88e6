// SPDX-License-Identifier: Apache-2.0
// Detects bytes that two strided views have in common.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// True if an element of `a` and one of `b` share a byte. Strides are not negative. Also returns
// true for views of 2^61 bytes or more, and if the search exceeds its step limit.
bool shareBytes(const StridedView& a, const StridedView& b);

}  // namespace windlass
