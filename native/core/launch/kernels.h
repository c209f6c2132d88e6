// SPDX-License-Identifier: Apache-2.0
// The kernels of the target that this library is built for, as the runtime calls them: made once,
// by kernels/entry.cpp, so that nothing else knows which target it is.
#pragma once

#include <cstddef>

#include "native/core/comm.h"
#include "windlass/chunk.h"

namespace windlass {

class FarBox;  // native/hosts/far.h

enum class Executor : uint32_t { kCpu, kDevice };

// A kernel, run as its rank's next operation, by each executor.
struct Kernel {
  Code (*run[2])(Comm&, const Call&);

  constexpr explicit operator bool() const { return run[0] != nullptr; }
};

// What a buffer of a collective holds, and whose it is.
enum class Holds : uint8_t {
  kNothing,
  kPart,         // one part, on every rank
  kParts,        // a part for each rank, of one size, on every rank
  kUnequalParts,  // a part for each rank, on every rank; lists of counts say their sizes
  kRootsPart,    // one part, on the root; ignored elsewhere
  kRootsParts,   // a part for each rank, of one size, on the root; ignored elsewhere
};
constexpr bool isRoots(Holds holds) {
  return holds == Holds::kRootsPart || holds == Holds::kRootsParts;
}
constexpr bool isOnePart(Holds holds) {
  return holds == Holds::kPart || holds == Holds::kRootsPart;
}

// What comes out is what went in, or the reduction of what all ranks put in.
enum class Result : uint8_t { kMoved, kReduced };
// A part is a run of elements, or a matrix, of which the caller says how many rows it has.
enum class PartShape : uint8_t { kRun, kRows };
// In place: two buffers of one part are one; a buffer of one part is the rank's own of the other's.
enum class Buffers : uint8_t { kApart, kApartOrInPlace };

// One way to run a collective.
struct Algorithm {
  uint8_t name;        // wl_algorithm; WL_AUTO where the collective has this one alone
  bool eager;          // the collective's eager kernel runs small inputs instead
  bool inPlace;        // it does what the collective allows
  uint32_t mostRanks;  // that its phases suffice for
  Kernel kernel;       // none: the list of algorithms ends before
};

// One collective: what it does with its buffers, and which kernels run it. What an operation looks
// at as a rule comes first.
struct alignas(kLine) Collective {
  static constexpr uint32_t kMostAlgorithms = 4;

  const char* name;  // nullptr: none has this number
  Holds in;
  Holds out;
  Result result;
  Buffers buffers;
  PartShape shape;
  uint8_t passes;        // times that its elements move
  uint32_t eagerBytes;   // of in, up to which its copy pays
  Kernel eager;          // each rank's input rides with its ENTER; none: never
  Algorithm algorithms[kMostAlgorithms];  // the first is what WL_AUTO takes

  constexpr bool hasRoot() const { return isRoots(in) || isRoots(out); }
  constexpr bool hasEqualParts() const {
    return in != Holds::kNothing && in != Holds::kUnequalParts && out != Holds::kUnequalParts;
  }
  constexpr bool hasAlgorithms() const { return static_cast<bool>(algorithms[1].kernel); }
  // nullptr: it has none of that name.
  const Algorithm* algorithm(int32_t named) const {
    if (named == WL_AUTO) return algorithms;
    for (const Algorithm& each : algorithms)
      if (each.kernel && each.name == named) return &each;
    return nullptr;
  }
};
static_assert(offsetof(Collective, algorithms) + sizeof(Algorithm) == kLine,
              "what a call reads that chooses no algorithm is one line");

struct Kernels {
  // By operation.
  Collective collectives[WL_OP_COUNT];
  Kernel allToAllVPacked;
  Kernel redistribute;
  Kernel expertDispatch;
  Kernel expertCombine;

  // One-sided; kernels/one_sided.h.
  // nullptr, or what the target doesn't allow of it, until the thread's next.
  const char* (*put)(const StridedView& remote, const StridedView& local);
  const char* (*accumulate)(const StridedView& remote, const StridedView& local);
  const char* (*get)(const StridedView& local, const StridedView& remote);
  const char* (*notify)(int32_t* signal, uint32_t value);

  // What a rank does by itself where memory goes through stages: dst = src, of bytes that don't
  // overlap or are the same; dst = bytes [from, from + count) of the copy of a box; an item of a
  // transfer; form.lead(); and dst = the left fold of rows of `elements` elements, where avg
  // divides by `terms`: `count`, or more where src[0] is a sum.
  const char* (*copy)(void* dst, const void* src, size_t bytes, bool streams);
  const char* (*copyBox)(void* dst, const FarBox& box, uint64_t from, uint64_t count);
  const char* (*moveItem)(const Launch& launch, const ChunkItem& item);
  const char* (*lead)(const PullForm& form, const Launch& launch, uint32_t rank);
  const char* (*fold)(void* dst, const void* const* src, uint32_t count, int64_t elements,
                      DType dtype, ReduceOp op, uint32_t terms);
};

extern const Kernels kKernels;

// nullptr: the operation is no collective of its own.
inline const Collective* collectiveOf(int32_t operation) {
  if (operation < 0 || operation >= WL_OP_COUNT) return nullptr;
  const Collective& collective = kKernels.collectives[operation];
  return collective.name == nullptr ? nullptr : &collective;
}

inline Code Comm::run(const Kernel& kernel, const Call& call) {
  return kernel.run[static_cast<uint32_t>(executor_)](*this, call);
}

}  // namespace windlass
