// SPDX-License-Identifier: Apache-2.0
// The loops for AVX-512 (F, BW, DQ, VL). The F part converts between f16 and f32.
#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#include "native/isa/sim/vector_table.h"

#define WINDLASS_PATH_F16C 1
#define WINDLASS_PATH_WIDTH 64

// Ignores warnings about undefined registers inside the intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c,prefer-vector-width=512")

namespace windlass {
namespace {
using Register = __m512i;
Register load(const void* from) {
  return _mm512_loadu_si512(static_cast<const Register*>(from));
}
void storeAligned(void* to, Register block) {
  _mm512_store_si512(static_cast<Register*>(to), block);
}
void storeAnywhere(void* to, Register block) {
  _mm512_storeu_si512(static_cast<Register*>(to), block);
}
void stream(void* to, Register block) {
  _mm512_stream_si512(static_cast<Register*>(to), block);
}
#include "native/isa/sim/vector_loops.inl"

constexpr VectorTable kTable = makeTable();
}  // namespace

const VectorTable& avx512Table() noexcept {
  return kTable;
}

}  // namespace windlass

#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
