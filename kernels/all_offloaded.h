// SPDX-License-Identifier: Apache-2.0
// Device kernels, including those that move transfers and experts' tokens, and one rank's own
// moves.
#pragma once

#include "kernels/chunk.h"
#include "kernels/expert_combine.h"
#include "kernels/expert_dispatch.h"
#include "kernels/move_alone.h"
#include "kernels/offload.h"
#include "windlass/experts.h"

namespace windlass {

static_assert(kMostTopK <= kMostDeviceRanks, "what a core moves at a time has a view for each");

using AllOffloadedKernels =
    OffloadedKernels::And<Redistribute, ExpertDispatch, ExpertCombine, MoveAlone>;
static_assert(AllOffloadedKernels::indexOf<MoveAlone>() == kMoveKernel, "the host names it so");

}  // namespace windlass
