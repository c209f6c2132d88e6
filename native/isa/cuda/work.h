// SPDX-License-Identifier: Apache-2.0
// One thread's part of a job. Most jobs run in inline loops in one function that makes no calls, so
// that it saves no registers. Single elements, and dtypes that are rarely folded, use calls.
#pragma once

#include <cstdint>

#include "native/isa/cuda/adds.h"
#include "native/isa/cuda/folds.h"
#include "native/isa/cuda/moves.h"
#include "native/isa/cuda/scaled.h"

namespace windlass::cuda {

// Calls visit(Element<dtype>()) for a dtype whose groups have inline loops.
template <class Visit>
WL_CORE_INLINE void withCommonFloat(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(Element<DType::kF32>());
    case DType::kF16:
      return visit(Element<DType::kF16>());
    case DType::kBF16:
      return visit(Element<DType::kBF16>());
    default:
      return;
  }
}
WL_CORE_INLINE bool isCommonFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// Out-of-line work, called through a table. If ptxas knows the target of a call, it inlines it, and
// the caller then runs out of registers.
template <Work kWork>
WL_CORE_APART void apart(const Job& job, uint32_t thread) {
  kWork(job, thread);
}

// Kinds of out-of-line work. The table's index is the kind, then the source dtype.
enum class Apart : uint32_t { kFoldVectors, kFoldEdges, kWeighVectors, kWeighEdges, kAdd };
WL_CORE_TABLE Work kApart[] = {
    // clang-format off
    // kFoldVectors
    apart<foldVectors<Element<DType::kBool>>>, apart<foldVectors<Element<DType::kU8>>>,
    apart<foldVectors<Element<DType::kI8>>>, apart<foldVectors<Element<DType::kF8E5M2>>>,
    apart<foldVectors<Element<DType::kF8E4M3>>>, nullptr, apart<foldVectors<Element<DType::kI16>>>,
    apart<foldVectors<Element<DType::kU16>>>, nullptr, nullptr,
    apart<foldVectors<Element<DType::kI32>>>, apart<foldVectors<Element<DType::kU32>>>, nullptr,
    apart<foldVectors<Element<DType::kF64>>>, apart<foldVectors<Element<DType::kI64>>>,
    apart<foldVectors<Element<DType::kU64>>>, nullptr, nullptr, nullptr,
    // kFoldEdges
    apart<foldEdges<Element<DType::kBool>>>, apart<foldEdges<Element<DType::kU8>>>,
    apart<foldEdges<Element<DType::kI8>>>, apart<foldEdges<Element<DType::kF8E5M2>>>,
    apart<foldEdges<Element<DType::kF8E4M3>>>, nullptr, apart<foldEdges<Element<DType::kI16>>>,
    apart<foldEdges<Element<DType::kU16>>>, apart<foldEdges<Element<DType::kF16>>>,
    apart<foldEdges<Element<DType::kBF16>>>, apart<foldEdges<Element<DType::kI32>>>,
    apart<foldEdges<Element<DType::kU32>>>, apart<foldEdges<Element<DType::kF32>>>,
    apart<foldEdges<Element<DType::kF64>>>, apart<foldEdges<Element<DType::kI64>>>,
    apart<foldEdges<Element<DType::kU64>>>, nullptr, nullptr, nullptr,
    // kWeighVectors
    nullptr, nullptr, nullptr, apart<weighVectors<Element<DType::kF8E5M2>>>,
    apart<weighVectors<Element<DType::kF8E4M3>>>, nullptr, nullptr, nullptr, nullptr, nullptr,
    nullptr, nullptr, nullptr, apart<weighVectors<Element<DType::kF64>>>, nullptr, nullptr, nullptr,
    nullptr, nullptr,
    // kWeighEdges
    nullptr, nullptr, nullptr, apart<weighEdges<Element<DType::kF8E5M2>>>,
    apart<weighEdges<Element<DType::kF8E4M3>>>, nullptr, nullptr, nullptr,
    apart<weighEdges<Element<DType::kF16>>>, apart<weighEdges<Element<DType::kBF16>>>, nullptr,
    nullptr, apart<weighEdges<Element<DType::kF32>>>, apart<weighEdges<Element<DType::kF64>>>,
    nullptr, nullptr, nullptr, nullptr, nullptr,
    // kAdd
    nullptr, nullptr, apart<addElements<Element<DType::kI8>>>, nullptr, nullptr, nullptr,
    apart<addElements<Element<DType::kI16>>>, nullptr, apart<addElements<Element<DType::kF16>>>,
    apart<addElements<Element<DType::kBF16>>>, apart<addElements<Element<DType::kI32>>>, nullptr,
    apart<addElements<Element<DType::kF32>>>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    apart<moveEdges>,
    // clang-format on
};
constexpr uint32_t kMovesEdges = 5 * kDTypeCount;
static_assert(sizeof kApart / sizeof kApart[0] == kMovesEdges + 1, "all dtypes, in their order");

WL_CORE_INLINE void workApart(Apart what, const Job& job, uint32_t thread) {
  kApart[static_cast<uint32_t>(what) * kDTypeCount + static_cast<uint32_t>(job.from)](job, thread);
}

// Runs the inline loops of a job. Returns true if they cover the whole job, not only its groups.
WL_CORE_INLINE bool workInLine(const Job& job, uint32_t thread) {
  if (job.kind == JobKind::kCopy) {
    copyBytes(job, thread);
    return true;
  }
  if (job.kind == JobKind::kQuantise) {
    withCommonFloat(job.from, [&](auto element) {
      quantiseBlocks<decltype(element)>(job, thread);
    });
    return true;
  }
  if (job.groups > 0) {
    if (job.kind == JobKind::kMove) {
      moveGroups(job, thread);
    } else if (job.kind == JobKind::kFold) {
      withCommonFloat(job.from,
                      [&](auto element) { foldVectors<decltype(element)>(job, thread); });
    } else {
      withCommonFloat(job.from,
                      [&](auto element) { weighVectors<decltype(element)>(job, thread); });
    }
  }
  return job.edges == 0 && (job.kind == JobKind::kMove || isCommonFloat(job.from));
}

// Runs the part of a job that workInLine() leaves.
WL_CORE_INLINE void workByCalls(const Job& job, uint32_t thread) {
  const bool folds = job.kind == JobKind::kFold;
  if (job.groups > 0 && job.kind != JobKind::kMove && !isCommonFloat(job.from))
    workApart(folds ? Apart::kFoldVectors : Apart::kWeighVectors, job, thread);
  if (job.edges == 0) return;
  if (job.kind == JobKind::kMove) return kApart[kMovesEdges](job, thread);
  const bool weighs = job.kind == JobKind::kWeigh;
  workApart(folds ? Apart::kFoldEdges : weighs ? Apart::kWeighEdges : Apart::kAdd, job, thread);
}

}  // namespace windlass::cuda
