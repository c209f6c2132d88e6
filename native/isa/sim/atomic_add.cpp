// SPDX-License-Identifier: Apache-2.0
// dst += src by one atomic read-modify-write an element, with the arithmetic of TFOLD's sum.
#include <cassert>

#include "native/isa/sim/float_mode.h"
#include "native/isa/sim/move.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

template <typename Word>
void addElements(const VectorTable& table, DType dtype, unsigned char* dst, int64_t dstStep,
                 const unsigned char* src, int64_t srcStep, int64_t count) {
  const int from = floatIndex(dtype);
  const FoldLoop fold = table.fold[static_cast<int>(ReduceOp::kSum)][static_cast<int>(dtype)];
  const CastLoop widen = from < 0 ? nullptr : table.cast[from][floatIndex(DType::kF32)];
  const CastLoop finish = from < 0 ? nullptr : table.cast[floatIndex(DType::kF32)][from];
  for (int64_t i = 0; i < count; ++i) {
    auto* target = reinterpret_cast<Word*>(dst + i * dstStep);
    Word seen = __atomic_load_n(target, __ATOMIC_RELAXED);
    Word next;
    do {
      uint32_t accumulator = static_cast<uint32_t>(seen);
      if (widen != nullptr) {
        widen(&accumulator, &seen, 1);
      } else {
        __builtin_memcpy(&accumulator, &seen, sizeof seen);
      }
      fold(&accumulator, &accumulator, src + i * srcStep, 1);
      if (finish != nullptr) {
        finish(&next, &accumulator, 1);
      } else {
        __builtin_memcpy(&next, &accumulator, sizeof next);
      }
    } while (!__atomic_compare_exchange_n(target, &seen, next, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
  }
}

}  // namespace

void detail::atomicAdd(const StridedView& dst, const StridedView& src) noexcept {
  assert(dst.dtype == src.dtype && sizeOf(dst.dtype) <= 4);
  const Traversal t = makeTraversal(&dst, 1, &src, 1);
  if (t.empty) return;
  const DefaultFloatMode mode;
  const VectorTable& table = activeTable();
  const auto bytes = static_cast<int64_t>(sizeOf(dst.dtype));
  int64_t boxExtent[kMaxDims];
  for (uint32_t d = 0; d < t.ndim; ++d) boxExtent[d] = 1;
  if (t.ndim > 0) boxExtent[t.ndim - 1] = t.extent[t.ndim - 1];
  const int64_t dstStep = t.ndim > 0 ? strideOf(t, dst, t.ndim - 1) * bytes : 0;
  const int64_t srcStep = t.ndim > 0 ? strideOf(t, src, t.ndim - 1) * bytes : 0;
  forEachBox(t, boxExtent, [&](const Box& box) {
    unsigned char* to = addressOf(t, dst, box);
    const unsigned char* from = addressOf(t, src, box);
    switch (bytes) {
      case 1:
        return addElements<uint8_t>(table, dst.dtype, to, dstStep, from, srcStep, box.count);
      case 2:
        return addElements<uint16_t>(table, dst.dtype, to, dstStep, from, srcStep, box.count);
      default:
        return addElements<uint32_t>(table, dst.dtype, to, dstStep, from, srcStep, box.count);
    }
  });
}

}  // namespace windlass
