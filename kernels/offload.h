// SPDX-License-Identifier: Apache-2.0
// The kernels that a device runs without its host.
#pragma once

#include "kernels/all_gather.h"
#include "kernels/all_gather_columns.h"
#include "kernels/all_gather_v.h"
#include "kernels/all_reduce.h"
#include "kernels/all_to_all.h"
#include "kernels/all_to_all_v.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/reduce_scatter_columns.h"
#include "kernels/reduce_scatter_v.h"
#include "kernels/scan.h"
#include "kernels/scatter.h"
#include "windlass/kernel_list.h"

namespace windlass {

using OffloadedKernels =
    KernelList<Barrier, AllToAllPush, AllToAllPull, Broadcast, AllGather, AllGatherColumns,
               ReduceScatter, AllReduceTwoPhase, AllReduceOnePhase, AllReduceRing,
               AllReduceBidirectionalRing, Scatter, Gather, Reduce, AllToAllV, AllToAllVPacked,
               AllGatherV, ReduceScatterV, Scan, ExclusiveScan, ReduceScatterColumns>;
static_assert(OffloadedKernels::indexOf<Barrier>() == kBarrierKernel, "its cores wait in it");

}  // namespace windlass
