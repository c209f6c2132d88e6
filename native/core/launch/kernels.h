// SPDX-License-Identifier: Apache-2.0
// The kernels of the target that this library is built for, as the runtime calls them. Only
// kernels/entry.cpp defines them, so that no other file knows the target.
#pragma once

#include <cstddef>

#include "native/core/comm.h"

namespace windlass {

// kCpu: any rank of the process may run an item. kOwnItems: a rank runs only its own items, in line
// on its cores, or over hosts.
enum class Executor : uint32_t { kCpu, kOwnItems };

// Functions that run a kernel as its rank's next operation, one per executor.
struct Kernel {
  Code (*run[2])(Comm&, const Call&);

  constexpr explicit operator bool() const { return run[0] != nullptr; }
};

// Content of a collective's buffer, and the ranks that have it.
enum class Holds : uint8_t {
  kNothing,
  kPart,         // one part, on every rank
  kParts,        // a part for each rank, of one size, on every rank
  kUnequalParts,  // a part for each rank, on every rank; lists of counts state their sizes
  kRootsPart,    // one part, on the root; ignored elsewhere
  kRootsParts,   // a part for each rank, of one size, on the root; ignored elsewhere
};
constexpr bool isRoots(Holds holds) {
  return holds == Holds::kRootsPart || holds == Holds::kRootsParts;
}
constexpr bool isOnePart(Holds holds) {
  return holds == Holds::kPart || holds == Holds::kRootsPart;
}

// The output consists of elements of ranks' inputs, or of their reduction.
enum class Result : uint8_t { kMoved, kReduced };
// A part is a run of elements, or a matrix whose number of rows the caller states.
enum class PartShape : uint8_t { kRun, kRows };
// For kApartOrInPlace, two one-part buffers may be the same. A one-part buffer may be the rank's
// own part of the other.
enum class Buffers : uint8_t { kApart, kApartOrInPlace };

// Largest inputs that travel with ENTER, in lines of 64 bytes, by the way in which ranks run.
struct EagerLimits {
  uint16_t lines[kWaysToRun];

  constexpr uint64_t bytes(RanksAre ranks) const { return lines[ranks] * kLine; }
};

// One way to run a collective.
struct Algorithm {
  uint8_t name;        // wl_algorithm; WL_AUTO if the collective has only this one
  bool eager;          // the collective's eager kernel runs small inputs instead
  bool inPlace;        // supports the in-place use that the collective allows
  uint32_t mostRanks;  // largest number of ranks that its phases support
  Kernel kernel;       // none: end of the list
};

// One collective: how it uses its buffers, and which kernels run it. Members that an operation
// usually reads come first.
struct alignas(kLine) Collective {
  static constexpr uint32_t kMostAlgorithms = 4;

  const char* name;  // nullptr: no collective has this number
  Holds in;
  Holds out;
  Result result;
  Buffers buffers;
  PartShape shape;
  uint8_t passes;        // times that its elements move
  EagerLimits limits;    // largest `in` for which the copy pays
  Kernel eager;          // each rank's input travels with its ENTER; none: never
  Algorithm algorithms[kMostAlgorithms];  // WL_AUTO selects the first

  constexpr bool hasRoot() const { return isRoots(in) || isRoots(out); }
  constexpr bool hasEqualParts() const {
    return in != Holds::kNothing && in != Holds::kUnequalParts && out != Holds::kUnequalParts;
  }
  constexpr bool hasAlgorithms() const { return static_cast<bool>(algorithms[1].kernel); }
  // nullptr: the collective has no algorithm of that name.
  const Algorithm* algorithm(int32_t named) const {
    if (named == WL_AUTO) return algorithms;
    for (const Algorithm& each : algorithms)
      if (each.kernel && each.name == named) return &each;
    return nullptr;
  }
};
static_assert(offsetof(Collective, algorithms) + sizeof(Algorithm) == kLine,
              "what a call reads that chooses no algorithm is one line");

// The operations that ranks run together. native/core/launch/rank_moves.h has what one rank runs.
struct Kernels {
  // Indexed by operation.
  Collective collectives[WL_OP_COUNT];
  Kernel allToAllVPacked;
  Kernel redistribute;
  Kernel expertDispatch;
  Kernel expertCombine;
};

extern const Kernels kKernels;

// nullptr: the operation is not a collective of its own.
inline const Collective* collectiveOf(int32_t operation) {
  if (operation < 0 || operation >= WL_OP_COUNT) return nullptr;
  const Collective& collective = kKernels.collectives[operation];
  return collective.name == nullptr ? nullptr : &collective;
}

inline Code Comm::run(const Kernel& kernel, const Call& call) {
  return kernel.run[static_cast<uint32_t>(executor_)](*this, call);
}

}  // namespace windlass
