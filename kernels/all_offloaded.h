// SPDX-License-Identifier: Apache-2.0
// The kernels of devices that move transfers and experts' tokens too.
#pragma once

#include "kernels/chunk.h"
#include "kernels/expert_combine.h"
#include "kernels/expert_dispatch.h"
#include "kernels/offload.h"

namespace windlass {

using AllOffloadedKernels = OffloadedKernels::And<Redistribute, ExpertDispatch, ExpertCombine>;

}  // namespace windlass
