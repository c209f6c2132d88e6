// SPDX-License-Identifier: Apache-2.0
#include "native/isa/sim/traversal.h"

#include <algorithm>
#include <utility>

namespace windlass {
namespace {

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
  const auto take = [&](uint32_t d, int64_t most) {
    boxExtent[d] = std::min(t.extent[d], most);
    room /= boxExtent[d];
    return boxExtent[d];
  };
  // If a view is contiguous along another dimension than the first one, the box has a run of
  // either: kRunBytes of the first view, and as many elements of the other as fit.
  const bool isTransposed = !ofAll(dst, src, [&](const StridedView& view) {
    const auto contiguous = [&](uint32_t d) { return strideOf(t, view, d) == 1; };
    uint32_t other = 0;
    while (other < t.ndim && !contiguous(other)) ++other;
    if (other >= inner) return true;
    int64_t run = kRunBytes / static_cast<int64_t>(sizeOf(dst[0].dtype));
    for (uint32_t d = inner; run > 1 && d != other; --d) run /= take(d, run);
    while (other < t.ndim && room > 1) {
      take(other, room);
      const int64_t last = strideOf(t, view, other);
      other = t.ndim;
      for (uint32_t d = 0; d < inner; ++d) {
        if (boxExtent[d] > 1 || strideOf(t, view, d) <= last) continue;
        if (other == t.ndim || strideOf(t, view, d) < strideOf(t, view, other)) other = d;
      }
    }
    return false;
  });
  if (isTransposed) return;
  // Adds whole dimensions from the innermost outwards, then part of one.
  for (uint32_t d = t.ndim; d-- > 0;) {
    if (take(d, room) < t.extent[d]) return;
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
