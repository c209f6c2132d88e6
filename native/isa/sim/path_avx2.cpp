// SPDX-License-Identifier: Apache-2.0
// The loops for AVX2 with F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#include "native/isa/sim/vector_table.h"

#define WINDLASS_PATH_F16C 1
#define WINDLASS_PATH_WIDTH 32

#pragma GCC push_options
#pragma GCC target("avx2,f16c")

namespace windlass {
namespace {
using Register = __m256i;
Register load(const void* from) {
  return _mm256_loadu_si256(static_cast<const Register*>(from));
}
void storeAligned(void* to, Register block) {
  _mm256_store_si256(static_cast<Register*>(to), block);
}
void storeAnywhere(void* to, Register block) {
  _mm256_storeu_si256(static_cast<Register*>(to), block);
}
void stream(void* to, Register block) {
  _mm256_stream_si256(static_cast<Register*>(to), block);
}
#include "native/isa/sim/vector_loops.inl"

constexpr VectorTable kTable = makeTable();
}  // namespace

const VectorTable& avx2Table() noexcept {
  return kTable;
}

}  // namespace windlass

#pragma GCC pop_options
#endif
