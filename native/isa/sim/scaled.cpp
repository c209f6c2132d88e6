// SPDX-License-Identifier: Apache-2.0
// TFOLD_WEIGHTED and TQUANT. They process rows in pieces that fit into the first-level cache.
#include <cassert>

#include "native/base/cpu.h"
#include "native/base/dtype.h"
#include "native/isa/sim/float_mode.h"
#include "native/isa/sim/phase_scope.h"
#include "native/isa/sim/row_list.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

constexpr int64_t kFoldElements = 1024;
constexpr int64_t kQuantElements = 4096;
static_assert(kQuantElements % kQuantBlock == 0, "a block is not cut");

size_t lesser(int64_t left, int64_t most) {
  return static_cast<size_t>(left < most ? left : most);
}

}  // namespace

void TFOLD_WEIGHTED(const Rows& dst, const Rows& src, const Weights& weights, int64_t elements,
                    DType dtype, Stores stores, const VectorTable& table) noexcept {
  if (!isFloat(dtype)) __builtin_unreachable();
  const int from = floatIndex(dtype);
  const size_t bytes = sizeOf(dtype);
  const bool past = detail::streams(stores);
  const DefaultFloatMode mode;
  RowList targets(dst);
  RowList sources(src);
  const bool straight = dst.count == 1;
  const auto& casts = past && straight ? table.castStreaming : table.cast;
  const CastLoop finish = casts[floatIndex(accumulatorOf(dtype))][from];
  alignas(64) unsigned char accumulator[kFoldElements * sizeof(double)];
  alignas(64) unsigned char result[kFoldElements * sizeof(double)];
  if (src.count == 0) __builtin_memset(accumulator, 0, sizeof accumulator);
  for (int64_t start = 0; start < elements; start += kFoldElements) {
    const size_t count = lesser(elements - start, kFoldElements);
    const size_t offset = static_cast<size_t>(start) * bytes;
    for (uint32_t s = 0; s < src.count; ++s) {
      const WeighLoop loop = s == 0 ? table.weigh[from] : table.addWeighed[from];
      loop(accumulator, sources[s] + offset, weights[s], count);
    }
    finish(straight ? targets[0] + offset : result, accumulator, count);
    for (uint32_t d = 0; !straight && d < dst.count; ++d)
      copyOrStream(table, targets[d] + offset, result, count * bytes, past);
  }
  if (past) orderStreamed();
}

void TQUANT(const Rows& dst, const Rows& scales, const void* src, int64_t elements, DType dtype,
            Stores stores, const VectorTable& table) noexcept {
  if (!isFloat(dtype)) __builtin_unreachable();
  const QuantiseLoop loop = table.quantise[floatIndex(dtype)];
  assert(loop != nullptr && dst.count == scales.count);
  const size_t bytes = sizeOf(dtype);
  const bool past = detail::streams(stores);
  const DefaultFloatMode mode;
  RowList targets(dst);
  RowList targetScales(scales);
  alignas(64) unsigned char values[kQuantElements];
  float scale[kQuantElements / kQuantBlock];
  const auto* from = static_cast<const unsigned char*>(src);
  for (int64_t start = 0; start < elements; start += kQuantElements) {
    const size_t count = lesser(elements - start, kQuantElements);
    for (size_t at = 0; at < count; at += kQuantBlock) {
      const size_t block = lesser(static_cast<int64_t>(count - at), kQuantBlock);
      scale[at / kQuantBlock] =
          loop(values + at, from + (static_cast<size_t>(start) + at) * bytes, block);
    }
    const size_t firstBlock = static_cast<size_t>(start) / kQuantBlock;
    const size_t blocks = quantBlocks(count);
    for (uint32_t d = 0; d < dst.count; ++d) {
      copyOrStream(table, targets[d] + start, values, count, past);
      copyBytes(targetScales[d] + firstBlock * sizeof(float), scale, blocks * sizeof(float));
    }
  }
  if (past) orderStreamed();
}

}  // namespace windlass
