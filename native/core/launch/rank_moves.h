// SPDX-License-Identifier: Apache-2.0
// Moves that one rank makes by itself, on the target that this library is built for. Unlike the
// instructions in native/base/target.h, they keep the target's rules and report what breaks one.
// Only kernels/entry.cpp defines them.
#pragma once

#include <cstddef>

#include "windlass/chunk.h"

namespace windlass {

class FarBox;  // native/base/far.h

struct RankMoves {
  // One-sided operations; see kernels/one_sided.h. They return nullptr, or a text about what the
  // target does not allow, valid until the thread's next call.
  const char* (*put)(const StridedView& remote, const StridedView& local);
  const char* (*accumulate)(const StridedView& remote, const StridedView& local);
  const char* (*get)(const StridedView& local, const StridedView& remote);
  const char* (*notify)(int32_t* signal, uint32_t value);

  // Steps of operations whose data goes through staging buffers:
  //  - copy: dst = src, for bytes that do not overlap or are the same.
  //  - copyBox: dst = bytes [from, from + count) of the copy of a box.
  //  - moveItem: an item of a transfer.
  //  - lead: form.lead().
  //  - fold: dst = the left fold of rows of `elements` elements. avg divides by `terms`, which is
  //    `count`, or more if src[0] is a sum. A premultiplied sum has a factor for each row. Without
  //    rows, dst is the identity of `op`.
  const char* (*copy)(void* dst, const void* src, size_t bytes, bool streams);
  const char* (*copyBox)(void* dst, const FarBox& box, uint64_t from, uint64_t count);
  const char* (*moveItem)(const Launch& launch, const ChunkItem& item);
  const char* (*lead)(const PullForm& form, const Launch& launch, uint32_t rank);
  const char* (*fold)(void* dst, const void* const* src, uint32_t count, int64_t elements,
                      DType dtype, ReduceOp op, uint32_t terms, const double* factors);
};

extern const RankMoves kRankMoves;

}  // namespace windlass
