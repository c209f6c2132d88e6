// SPDX-License-Identifier: Apache-2.0
// What the code of native/isa/ascend is written over: the toolkit's instructions on cores of
// devices, their emulator elsewhere.
#pragma once

#if defined(WINDLASS_ON_CORES)
#include "native/isa/ascend/cores.h"
#else
#include "native/isa/checked/kernel_side.h"
#endif

namespace windlass {

using namespace pto;

}  // namespace windlass
