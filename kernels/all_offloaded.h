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

// The host names MoveAlone by an index that further kernels don't change.
template <class... K>
KernelList<Barrier, MoveAlone, K...> withMove(KernelList<Barrier, K...>);
using AllOffloadedKernels =
    decltype(withMove(OffloadedKernels::And<Redistribute, ExpertDispatch, ExpertCombine>()));
static_assert(AllOffloadedKernels::indexOf<Barrier>() == kBarrierKernel, "its cores wait in it");
static_assert(AllOffloadedKernels::indexOf<MoveAlone>() == kMoveKernel, "the host names it so");

}  // namespace windlass
