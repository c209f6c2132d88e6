// SPDX-License-Identifier: Apache-2.0
// Base of the code in native/isa/ascend: the toolkit's instructions on device cores, their emulator
// elsewhere.
#pragma once

#if defined(WINDLASS_ON_CORES)
#include "native/isa/ascend/cores.h"
#else
#include "native/isa/checked/kernel_side.h"
#endif

namespace windlass {

using namespace pto;

}  // namespace windlass
