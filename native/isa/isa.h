// SPDX-License-Identifier: Apache-2.0
// The tile vocabulary that kernels are written in: the tile ISA's own names, in its namespace pto,
// and beside them TMOVE_CVT, TMOVE_ADD and TFOLD in windlass. One implementation is chosen here, at
// compile time; WINDLASS_TARGET_<NAME> names the target, and sim is the one that is meant when none
// does. A target also says what it has, kLimits, and what the cores of a rank share in an
// operation, CoreSession. Of a2a3, a5 and cuda this is the host's half, which runs on memory of the
// host what devices don't; cores of theirs have native/isa/ascend/cores.h and native/isa/cuda.
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
