// SPDX-License-Identifier: Apache-2.0
#include "native/isa/sim/traversal.h"

#include <algorithm>
#include <utility>

namespace windlass {
namespace {

// Width of a square box in the first view's rows. Its depth is as large as fits.
constexpr int64_t kSquareRow = 64;

int64_t magnitude(int64_t value) {
  return value < 0 ? -value : value;
}

}  // namespace

Traversal makeTraversal(ViewList& dst, ViewList& src) noexcept {
  const StridedView lead = dst[0];
  return traversalOf(lead, [&](uint32_t outer, uint32_t inner, int64_t extent) {
    return ofAll(dst, src, [&](const StridedView& view) {
      return view.strides[outer] == view.strides[inner] * extent;
    });
  });
}

bool boxContiguous(const Traversal& t, const StridedView& view, const Box& box) noexcept {
  int64_t expected = 1;
  for (uint32_t d = t.ndim; d-- > 0;) {
    if (box.extent[d] == 1) continue;
    if (strideOf(t, view, d) != expected) return false;
    expected *= box.extent[d];
  }
  return true;
}

void chooseBox(const Traversal& t, ViewList& dst, ViewList& src, int64_t limit,
               int64_t* boxExtent) noexcept {
  int64_t room = limit;
  for (uint32_t d = 0; d < t.ndim; ++d) boxExtent[d] = 1;
  if (t.ndim == 0) return;
  const uint32_t inner = t.ndim - 1;
  ofAll(dst, src, [&](const StridedView& view) {
    for (uint32_t d = 0; strideOf(t, view, inner) != 1 && d < inner; ++d) {
      if (strideOf(t, view, d) != 1 || boxExtent[d] != 1) continue;
      if (boxExtent[inner] == 1) {
        boxExtent[inner] = t.extent[inner] < kSquareRow ? t.extent[inner] : kSquareRow;
        room /= boxExtent[inner];
      }
      boxExtent[d] = t.extent[d] < room ? t.extent[d] : room;
      room /= boxExtent[d];
    }
    return true;
  });
  if (boxExtent[inner] > 1 && boxExtent[inner] < t.extent[inner]) return;
  // Adds whole dimensions from the innermost outwards, then part of one.
  for (uint32_t d = t.ndim; d-- > 0;) {
    if (boxExtent[d] == t.extent[d]) continue;
    if (boxExtent[d] > 1) return;
    boxExtent[d] = t.extent[d] < room ? t.extent[d] : room;
    if (boxExtent[d] < t.extent[d]) return;
    room /= boxExtent[d];
  }
}

ByteStrides byteStrides(const Traversal& t, const StridedView& view) noexcept {
  const auto bytes = static_cast<int64_t>(sizeOf(view.dtype));
  ByteStrides result;
  for (uint32_t d = 0; d < t.ndim; ++d) result.step[d] = strideOf(t, view, d) * bytes;
  return result;
}

ByteStrides packedStrides(const Traversal& t, const Box& box, size_t elementBytes) noexcept {
  ByteStrides result;
  auto step = static_cast<int64_t>(elementBytes);
  for (uint32_t d = t.ndim; d-- > 0;) {
    result.step[d] = step;
    step *= box.extent[d];
  }
  return result;
}

void orderRows(Dimension* dims, uint32_t count) noexcept {
  if (count < 2) return;
  // Short runs would leave too few rows to prefetch.
  if (dims[count - 1].extent < kMostRowsAhead) {
    Dimension* most = std::max_element(
        dims, dims + count,
        [](const Dimension& a, const Dimension& b) { return a.extent < b.extent; });
    std::swap(*most, dims[count - 1]);
  }
  const auto step = [](const Dimension& d) { return std::min(magnitude(d.dst), magnitude(d.src)); };
  Dimension* closest =
      std::min_element(dims, dims + count - 1,
                       [&](const Dimension& a, const Dimension& b) { return step(a) < step(b); });
  std::swap(*closest, dims[count - 2]);
}

}  // namespace windlass
