// SPDX-License-Identifier: Apache-2.0
// The loops for any CPU. The compiler uses SSE2 on x86-64 and NEON on aarch64. aarch64 has no other
// path.
#include <cstring>
#include <utility>

#include "native/isa/sim/vector_table.h"

#define WINDLASS_PATH_F16C 0
#define WINDLASS_PATH_WIDTH 16

namespace windlass {
namespace {
void copyLoop(void* dst, const void* src, size_t bytes) {
  std::memcpy(dst, src, bytes);
}

// The C library streams copies that it considers large.
void streamLoop(void* dst, const void* src, size_t bytes) {
  copyLoop(dst, src, bytes);
}

#include "native/isa/sim/vector_loops.inl"

constexpr VectorTable kTable = makeTable();
}  // namespace

const VectorTable& portableTable() noexcept {
  return kTable;
}

}  // namespace windlass
