// SPDX-License-Identifier: Apache-2.0
// Macro-instructions for kernels, on the lead thread of a core. Each describes a job for the
// workers. The tile and the kind of stores matter only on other targets. Lists have at most
// kMostViews views. Results are those of native/isa/sim/loops.h.
//
// The including file defines WL_CORE_TABLE, which marks a table that cores read. It also declares
// Job& nextJob() and void submit() in windlass::cuda; the lead describes a job between these calls.
#pragma once

#include <cstdint>

#include "native/isa/cuda/work.h"

namespace windlass::cuda::instructions {

// The views at(0), at(1), ... `at` is called while the result is in use.
template <typename At>
struct Views {
  uint32_t count;
  const At& at;
};
template <typename At>
WL_CORE_INLINE Views<At> viewsAt(uint32_t count, const At& at) {
  return {count, at};
}
// Contiguous rows of one length and dtype. at(i) returns the address of the first element of row i.
template <typename At>
struct Rows {
  uint32_t count;
  const At& at;
};
template <typename At>
WL_CORE_INLINE Rows<At> rowsAt(uint32_t count, const At& at) {
  return {count, at};
}

// Arranges and submits a job that has all its views.
WL_CORE_APART inline void submitViews(Job* job) {
  if (!job->arrange()) return;
  if (job->kind == JobKind::kMove) cutMove(job);
  if (job->kind == JobKind::kFold) cutFold(job);
  if (job->kind == JobKind::kWeigh)
    job->cut(kVectorBytes / static_cast<uint32_t>(sizeOf(job->from)));
  submit();
}
WL_CORE_INLINE Job* beginJob(JobKind kind, uint32_t targets, uint32_t sources, DType from,
                             DType to) {
  Job& job = nextJob();
  job.kind = kind;
  job.targets = targets;
  job.sources = sources;
  job.from = from;
  job.to = to;
  return &job;
}

// Copies `bytes` bytes.
WL_CORE_INLINE void copyBytes(void* dst, const void* src, uint64_t bytes) {
  if (bytes == 0) return;
  Job* job = beginJob(JobKind::kCopy, 1, 1, DType::kU8, DType::kU8);
  job->data[0] = static_cast<unsigned char*>(dst);
  job->data[1] = static_cast<unsigned char*>(const_cast<void*>(src));
  job->edges = bytes;
  submit();
}

// Every dst = cast(cast(src to wire) to dst.dtype), rounded at each step. src is read once.
template <typename At, typename TileT>
WL_CORE inline void TMOVE_CVT(const Views<At>& dst, const StridedView& src, DType wire, TileT&,
                              Stores = Stores::kByOperation) {
  const StridedView first = dst.at(0);
  Job* job = beginJob(JobKind::kMove, dst.count, 1, src.dtype, first.dtype);
  job->wire = wire;
  for (uint32_t t = 0; t < dst.count; ++t) job->put(t, dst.at(t));
  job->put(dst.count, src);
  submitViews(job);
}
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, DType wire,
                              TileT& tile, Stores stores = Stores::kByOperation) {
  const auto to = [&](uint32_t) -> const StridedView& { return dst; };
  TMOVE_CVT(viewsAt(1, to), src, wire, tile, stores);
}
// dst = cast(src).
template <typename TileT>
WL_CORE inline void TMOVE_CVT(const StridedView& dst, const StridedView& src, TileT& tile) {
  TMOVE_CVT(dst, src, src.dtype, tile);
}
// dst += src, atomically for each element. Both have the same dtype.
template <typename TileT>
WL_CORE inline void TMOVE_ADD(const StridedView& dst, const StridedView& src, TileT&) {
  Job* job = beginJob(JobKind::kAdd, 1, 1, src.dtype, dst.dtype);
  job->put(0, dst);
  job->put(1, src);
  submitViews(job);
}
// Every dst = cast(cast(left fold of src in array order, to wire) to dst.dtype).
template <typename To, typename From, typename TileT>
WL_CORE inline void TFOLD(const Views<To>& dst, const Views<From>& src, ReduceOp op, DType wire,
                          TileT&, Stores = Stores::kByOperation) {
  const StridedView first = dst.at(0);
  const StridedView term = src.at(0);
  Job* job = beginJob(JobKind::kFold, dst.count, src.count, term.dtype, first.dtype);
  job->op = op;
  job->wire = wire;
  job->terms = src.count;
  for (uint32_t t = 0; t < dst.count; ++t) job->put(t, dst.at(t));
  for (uint32_t s = 0; s < src.count; ++s) job->put(dst.count + s, src.at(s));
  submitViews(job);
}
// Every dst = the left fold of src in ascending order. Rows have `elements` elements of `dtype`.
// avg divides by `terms`. Without sources, dst is the identity of `op`.
template <typename To, typename From, typename TileT>
WL_CORE inline void TFOLD(const Rows<To>& dst, const Rows<From>& src, int64_t elements, DType dtype,
                          ReduceOp op, uint32_t terms, TileT&,
                          Stores = Stores::kByOperation) {
  Job* job = beginJob(JobKind::kFold, dst.count, src.count, dtype, dtype);
  job->op = op;
  job->wire = dtype;
  job->terms = terms;
  for (uint32_t t = 0; t < dst.count; ++t) job->putRow(t, dst.at(t), dtype, elements);
  for (uint32_t s = 0; s < src.count; ++s)
    job->putRow(dst.count + s, src.at(s), dtype, elements);
  submitViews(job);
}

// Every dst = the sum of weight(s) * src[s] in ascending order. Rows have `elements` elements of
// `dtype`. Without sources, dst is zero.
template <typename To, typename From, typename Weight, typename TileT>
WL_CORE inline void TFOLD_WEIGHTED(const Rows<To>& dst, const Rows<From>& src, const Weight& weight,
                                   int64_t elements, DType dtype, TileT&,
                                   Stores = Stores::kByOperation) {
  Job* job = beginJob(JobKind::kWeigh, dst.count, src.count, dtype, dtype);
  for (uint32_t t = 0; t < dst.count; ++t) job->putRow(t, dst.at(t), dtype, elements);
  for (uint32_t s = 0; s < src.count; ++s) {
    job->putRow(dst.count + s, src.at(s), dtype, elements);
    job->weights[s] = weight(s);
  }
  submitViews(job);
}
// Quantises the row at src by blocks: f8e4m3 elements to every dst, and f32 scales to every row of
// `scales`.
template <typename To, typename Scales, typename TileT>
WL_CORE inline void TQUANT(const Rows<To>& dst, const Rows<Scales>& scales, const void* src,
                           int64_t elements, DType dtype, TileT&,
                           Stores = Stores::kByOperation) {
  if (elements <= 0) return;
  Job* job = beginJob(JobKind::kQuantise, 2 * dst.count, 1, dtype, DType::kF8E4M3);
  for (uint32_t t = 0; t < dst.count; ++t) {
    job->putRow(t, dst.at(t), DType::kF8E4M3, elements);
    job->putRow(dst.count + t, scales.at(t), DType::kF32, elements);
  }
  job->putRow(2 * dst.count, src, dtype, elements);
  submit();
}

}  // namespace windlass::cuda::instructions
