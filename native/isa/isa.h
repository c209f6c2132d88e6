// SPDX-License-Identifier: Apache-2.0
// The instructions that kernels use: the tile ISA under its own names in namespace pto, and
// TMOVE_CVT, TMOVE_ADD and TFOLD in windlass. This header selects an implementation at compile
// time. WINDLASS_TARGET_<NAME> names the target; the default is sim. A target also defines its
// limits, kLimits, and the state that a rank's cores share in an operation, CoreSession. For a2a3,
// a5 and cuda this is the host side, which runs work on host memory that devices don't run. Their
// cores use native/isa/ascend/cores.h and native/isa/cuda.
#pragma once

#if defined(WINDLASS_ON_CORES) && defined(WINDLASS_TARGET_CUDA)
#include "native/isa/cuda/cores.h"
#elif defined(WINDLASS_ON_CORES)
#include "native/isa/ascend/fused.h"
#elif defined(WINDLASS_TARGET_A2A3SIM) || defined(WINDLASS_TARGET_A5SIM)
#include "native/isa/ascend/fused.h"
#include "native/isa/checked/host_side.h"
#else
#include "native/isa/one_thread.h"
#include "native/isa/sim/fused.h"
#include "native/isa/sim/host_side.h"
#include "native/isa/sim/move.h"
#include "native/isa/sim/phase_scope.h"
#include "native/isa/sim/sync.h"
#include "native/isa/sim/types.h"
#include "native/isa/sim/vector.h"
#endif

namespace windlass {

using namespace pto;

}  // namespace windlass
