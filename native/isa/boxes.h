// SPDX-License-Identifier: Apache-2.0
// Common traversal of views of one shape. Dimensions are ordered by strides, merged where all views
// permit, and cut into boxes.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

struct Traversal {
  uint32_t ndim = 0;         // dimensions of extent 1 are left out
  int64_t extent[kMaxDims];  // outermost first
  uint32_t axis[kMaxDims];   // dimension of the views whose strides apply
  bool isEmpty = false;      // some extent is 0
};

// A box of a traversal.
struct Box {
  int64_t start[kMaxDims];
  int64_t extent[kMaxDims];
  int64_t count;  // elements
};

// Makes a traversal in the order of the strides of `lead`. merges(outer, inner, extent) returns
// true if in all views a step along axis `outer` is `extent` steps along axis `inner`.
template <typename Merges>
WL_CORE Traversal traversalOf(const StridedView& lead, const Merges& merges) {
  const auto magnitude = [&](uint32_t axis) {
    return lead.strides[axis] < 0 ? -lead.strides[axis] : lead.strides[axis];
  };
  Traversal t;
  for (uint32_t d = 0; d < lead.ndim; ++d) {
    if (lead.shape[d] <= 0) {
      t.isEmpty = true;
      return t;
    }
    if (lead.shape[d] == 1) continue;
    uint32_t at = t.ndim++;
    for (; at > 0 && magnitude(t.axis[at - 1]) < magnitude(d); --at) {
      t.axis[at] = t.axis[at - 1];
      t.extent[at] = t.extent[at - 1];
    }
    t.axis[at] = d;
    t.extent[at] = lead.shape[d];
  }
  // Merges from the innermost dimension outwards. A merged dimension keeps the inner one's axis.
  uint32_t kept = t.ndim;
  for (uint32_t d = t.ndim; d-- > 0;) {
    if (kept < t.ndim && merges(t.axis[d], t.axis[kept], t.extent[kept])) {
      t.extent[kept] *= t.extent[d];
    } else {
      --kept;
      t.axis[kept] = t.axis[d];
      t.extent[kept] = t.extent[d];
    }
  }
  for (uint32_t d = kept; d < t.ndim; ++d) {
    t.axis[d - kept] = t.axis[d];
    t.extent[d - kept] = t.extent[d];
  }
  t.ndim -= kept;
  return t;
}

// Calls visit(const Box&) in order for boxes that cover the traversal. A box has at most the
// extents `boxExtent`.
template <typename Visit>
WL_CORE void forEachBox(const Traversal& t, const int64_t* boxExtent, Visit&& visit) {
  Box box;
  for (uint32_t d = 0; d < t.ndim; ++d) box.start[d] = 0;
  for (;;) {
    box.count = 1;
    for (uint32_t d = 0; d < t.ndim; ++d) {
      const int64_t left = t.extent[d] - box.start[d];
      box.extent[d] = left < boxExtent[d] ? left : boxExtent[d];
      box.count *= box.extent[d];
    }
    visit(static_cast<const Box&>(box));
    uint32_t d = t.ndim;
    for (;;) {
      if (d == 0) return;
      --d;
      box.start[d] += boxExtent[d];
      if (box.start[d] < t.extent[d]) break;
      box.start[d] = 0;
    }
  }
}

}  // namespace windlass
