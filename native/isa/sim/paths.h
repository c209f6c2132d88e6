// SPDX-License-Identifier: Apache-2.0
// The table of each vector path. Call a function only on a CPU that has the path.
#pragma once

#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {

const VectorTable& portableTable() noexcept;
#if defined(__x86_64__)
const VectorTable& avx2Table() noexcept;
const VectorTable& avx512Table() noexcept;
const VectorTable& avx512Bf16Table() noexcept;
const VectorTable& avx512Fp16Table() noexcept;
#endif

}  // namespace windlass
