// SPDX-License-Identifier: Apache-2.0
// What the code of native/isa/ascend is written over: the emulator of the toolkit's instructions.
#pragma once

#include "native/isa/checked/kernel_side.h"

namespace windlass {

using namespace pto;

}  // namespace windlass
