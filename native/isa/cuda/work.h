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

// Out-of-line functions of one signature, called through a table. If ptxas knows the target of a
// call, it inlines it, and the caller then runs out of registers.
WL_CORE_APART inline void movesEdges(const Job& job, uint32_t thread) {
  moveEdges(job, thread);
}
template <class E>
WL_CORE_APART void foldsVectors(const Job& job, uint32_t thread) {
  foldVectors<E>(job, thread);
}
template <class E>
WL_CORE_APART void foldsEdges(const Job& job, uint32_t thread) {
  foldEdges<E>(job, thread);
}
template <class E>
WL_CORE_APART void weighsVectors(const Job& job, uint32_t thread) {
  weighVectors<E>(job, thread);
}
template <class E>
WL_CORE_APART void weighsEdges(const Job& job, uint32_t thread) {
  weighEdges<E>(job, thread);
}
template <class E>
WL_CORE_APART void addsElements(const Job& job, uint32_t thread) {
  addElements<E>(job, thread);
}

// Kinds of out-of-line work. The table's index is the kind, then the source dtype.
enum class Apart : uint32_t { kFoldVectors, kFoldEdges, kWeighVectors, kWeighEdges, kAdd };
WL_CORE_TABLE Work kApart[] = {
    // clang-format off
    // kFoldVectors
    foldsVectors<Element<DType::kBool>>, foldsVectors<Element<DType::kU8>>,
    foldsVectors<Element<DType::kI8>>, foldsVectors<Element<DType::kF8E5M2>>,
    foldsVectors<Element<DType::kF8E4M3>>, nullptr, foldsVectors<Element<DType::kI16>>,
    foldsVectors<Element<DType::kU16>>, nullptr, nullptr, foldsVectors<Element<DType::kI32>>,
    foldsVectors<Element<DType::kU32>>, nullptr, foldsVectors<Element<DType::kF64>>,
    foldsVectors<Element<DType::kI64>>, foldsVectors<Element<DType::kU64>>, nullptr,
    nullptr, nullptr,
    // kFoldEdges
    foldsEdges<Element<DType::kBool>>, foldsEdges<Element<DType::kU8>>,
    foldsEdges<Element<DType::kI8>>, foldsEdges<Element<DType::kF8E5M2>>,
    foldsEdges<Element<DType::kF8E4M3>>, nullptr, foldsEdges<Element<DType::kI16>>,
    foldsEdges<Element<DType::kU16>>, foldsEdges<Element<DType::kF16>>,
    foldsEdges<Element<DType::kBF16>>, foldsEdges<Element<DType::kI32>>,
    foldsEdges<Element<DType::kU32>>, foldsEdges<Element<DType::kF32>>,
    foldsEdges<Element<DType::kF64>>, foldsEdges<Element<DType::kI64>>,
    foldsEdges<Element<DType::kU64>>, nullptr, nullptr, nullptr,
    // kWeighVectors
    nullptr, nullptr, nullptr, weighsVectors<Element<DType::kF8E5M2>>,
    weighsVectors<Element<DType::kF8E4M3>>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    nullptr, nullptr, weighsVectors<Element<DType::kF64>>, nullptr, nullptr, nullptr,
    nullptr, nullptr,
    // kWeighEdges
    nullptr, nullptr, nullptr, weighsEdges<Element<DType::kF8E5M2>>,
    weighsEdges<Element<DType::kF8E4M3>>, nullptr, nullptr, nullptr,
    weighsEdges<Element<DType::kF16>>, weighsEdges<Element<DType::kBF16>>, nullptr, nullptr,
    weighsEdges<Element<DType::kF32>>, weighsEdges<Element<DType::kF64>>, nullptr, nullptr,
    nullptr, nullptr, nullptr,
    // kAdd
    nullptr, nullptr, addsElements<Element<DType::kI8>>, nullptr, nullptr, nullptr,
    addsElements<Element<DType::kI16>>, nullptr, addsElements<Element<DType::kF16>>,
    addsElements<Element<DType::kBF16>>, addsElements<Element<DType::kI32>>, nullptr,
    addsElements<Element<DType::kF32>>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    movesEdges,
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
