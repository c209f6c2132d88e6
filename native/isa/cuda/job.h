// SPDX-License-Identifier: Apache-2.0
// A job: one macro-instruction over views of one shape, which the threads of a core run for its
// lead. The lead orders the dimensions by the first target's strides and merges them where all
// views permit. It cuts the innermost dimension into whole vectors and a remainder. The description
// is in the core's shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/isa/cuda/memory.h"
#include "native/isa/enums.h"

namespace windlass::cuda {

constexpr uint32_t kWarpThreads = 32;
// Number of worker warps of a core.
constexpr uint32_t kWorkerWarps = kCudaThreads / kWarpThreads - 1;
constexpr uint32_t kWorkers = kWorkerWarps * kWarpThreads;

// Maximum number of targets, and of sources, of a job: one view for each rank, or for each expert
// of a token.
constexpr uint32_t kMostViews = kMostDeviceRanks;
// Maximum number of targets and sources together. Quantised rows have their scales as further
// targets.
constexpr uint32_t kAllViews = 2 * kMostViews + 1;
// Maximum number of groups of a job, in all rows.
constexpr uint64_t kMostGroups = uint64_t{1} << 31;

enum class JobKind : uint32_t {
  kCopy,
  kMove,
  kFold,
  kWeigh,
  kQuantise,
  kAdd,
  kLook,
  kNotify,
  kTile,
  kEnd,
};

struct Job;
// Function that runs a thread's part of a job.
using Work = void (*)(const Job&, uint32_t thread);

struct Job {
  JobKind kind;
  ReduceOp op;
  DType from;  // dtype of the sources
  DType to;    // dtype of the targets
  DType wire;
  uint32_t terms;  // divisor of an average
  uint32_t targets;
  uint32_t sources;
  uint32_t ndim;
  uint32_t value;   // value of the signals
  uint32_t answer;  // result of a look: 1, or 0 if any thread found a signal below `value`
  // For tile instructions other than moves and folds.
  pto::RoundMode mode;
  bool saturates;
  Work work;
  uint64_t scalar;  // bits of the scalar operand
  // The innermost dimension has `head` elements, `groups` whole groups, and the remaining elements.
  uint64_t head;
  uint64_t groups;
  uint64_t edges;  // elements before and behind the groups
  uint64_t skip;   // elements of all groups
  uint64_t rows;   // product of the extents except the innermost
  int64_t extent[kMaxDims];  // outermost first
  uint32_t axis[kMaxDims];
  double weights[kMostViews];       // of the sources
  unsigned char* data[kAllViews];   // of the targets, then the sources
  int64_t step[kAllViews][kMaxDims];  // in bytes, by axis

  WL_CORE_INLINE uint32_t views() const { return targets + sources; }
  WL_CORE_INLINE uint64_t bytesOf(uint32_t view) const {
    return sizeOf(view < targets ? to : from);
  }
  WL_CORE_INLINE uint64_t inner() const {
    return ndim == 0 ? 1 : static_cast<uint64_t>(extent[ndim - 1]);
  }
  WL_CORE_INLINE int64_t innerStep(uint32_t view) const {
    return ndim == 0 ? 0 : step[view][axis[ndim - 1]];
  }
  // Index of the nth edge element in the innermost dimension.
  WL_CORE_INLINE uint64_t edge(uint64_t n) const { return n < head ? n : n + skip; }
  // Address of a row of a view. Index can hold the number of rows.
  template <typename Index>
  WL_CORE_INLINE unsigned char* at(uint32_t view, Index row) const {
    unsigned char* address = data[view];
    WL_NO_UNROLL
    for (uint32_t d = ndim; row != 0 && d > 1; --d) {
      const auto size = static_cast<Index>(extent[d - 2]);
      // The outermost dimension takes the whole remaining index without a division.
      const Index above = d == 2 ? 0 : row / size;
      address += static_cast<int64_t>(row - above * size) * step[view][axis[d - 2]];
      row = above;
    }
    return address;
  }

  // Sets a view. View 0 defines the shape of all views.
  WL_CORE inline void put(uint32_t index, const StridedView& view) {
    const auto bytes = static_cast<int64_t>(sizeOf(view.dtype));
    data[index] = static_cast<unsigned char*>(view.data);
    for (uint32_t d = 0; d < view.ndim; ++d) step[index][d] = view.strides[d] * bytes;
    if (index > 0) return;
    ndim = view.ndim;
    for (uint32_t d = 0; d < view.ndim; ++d) extent[d] = view.shape[d];
  }
  // Sets a row of elements of `dtype` as a view.
  WL_CORE inline void putRow(uint32_t index, const void* row, DType dtype, int64_t elements) {
    const int64_t one = 1;
    put(index, {const_cast<void*>(row), dtype, 1, &elements, &one});
  }

  // Orders and merges the dimensions of all views. Returns false if they have no elements.
  WL_CORE inline bool arrange() {
    bool isEmpty = false;
    uint32_t kept = 0;
    for (uint32_t d = 0; d < ndim; ++d) {
      const int64_t size = extent[d];
      isEmpty = isEmpty || size <= 0;
      if (size == 1) continue;
      uint32_t place = kept++;
      for (; place > 0 && magnitude(axis[place - 1]) < magnitude(d); --place) {
        axis[place] = axis[place - 1];
        extent[place] = extent[place - 1];
      }
      axis[place] = d;
      extent[place] = size;
    }
    ndim = kept;
    for (uint32_t d = ndim; d > 1; --d) {
      if (merges(axis[d - 2], axis[d - 1], extent[d - 1])) merge(d - 1);
    }
    head = 0;
    groups = 0;
    edges = inner();
    skip = 0;
    rows = 1;
    for (uint32_t d = 0; d + 1 < ndim; ++d) rows *= static_cast<uint64_t>(extent[d]);
    return !isEmpty;
  }

  // Cuts groups of `group` elements, a power of two up to 16. This requires that the elements of
  // all views are contiguous. It also requires that each group of each view is aligned to the
  // lesser of its size and a vector. Otherwise there are no groups.
  WL_CORE inline void cut(uint32_t group) {
    uint32_t heads = (1u << group) - 1u;
    for (uint32_t view = 0; view < views() && heads != 0; ++view) heads &= aligning(view, group);
    if (heads == 0) return;
    uint32_t first = 0;
    while ((heads >> first & 1u) == 0) ++first;
    if (inner() < first + group) return;
    // shareGroups() counts groups in 32 bits.
    const uint64_t inRow = (inner() - first) / group;
    if (rows > kMostGroups || inRow > kMostGroups / rows) return;
    head = first;
    groups = (inner() - first) / group;
    skip = groups * group;
    edges = inner() - skip;
  }

 private:
  WL_CORE inline int64_t magnitude(uint32_t of) const {
    return step[0][of] < 0 ? -step[0][of] : step[0][of];
  }
  WL_CORE inline bool merges(uint32_t outer, uint32_t inner, int64_t size) const {
    for (uint32_t view = 0; view < views(); ++view) {
      if (step[view][outer] != step[view][inner] * size) return false;
    }
    return true;
  }
  // Merges dimension d with the next outer one. The inner axis stays.
  WL_CORE inline void merge(uint32_t d) {
    extent[d - 1] *= extent[d];
    axis[d - 1] = axis[d];
    for (; d + 1 < ndim; ++d) {
      extent[d] = extent[d + 1];
      axis[d] = axis[d + 1];
    }
    --ndim;
  }
  // Returns a bit set. Bit n is set if the view's groups are aligned when n elements precede the
  // first group.
  WL_CORE inline uint32_t aligning(uint32_t view, uint32_t group) const {
    const uint64_t bytes = bytesOf(view);
    const uint64_t wanted = group * bytes < kVectorBytes ? group * bytes : kVectorBytes;
    if (ndim == 0 || innerStep(view) != static_cast<int64_t>(bytes)) return 0;
    for (uint32_t d = 0; d + 1 < ndim; ++d) {
      if ((static_cast<uint64_t>(step[view][axis[d]]) & (wanted - 1)) != 0) return 0;
    }
    uint32_t aligned = 0;
    for (uint32_t before = 0; before < group; ++before)
      aligned |= isAligned(data[view] + before * bytes, wanted) ? 1u << before : 0;
    return aligned;
  }
};

// Returns its argument, hidden from the compiler. Without this, the compiler computes common parts
// of the loops before it selects a loop, and keeps them in registers.
WL_CORE_INLINE uint32_t opaque(uint32_t thread) {
  __asm__ volatile("" : "+r"(thread) : : "memory");
  return thread;
}

// Calls body(row, first, across, count) for the thread's share of `inner` items in each of `rows`
// rows. The share is first, first + across, ...: `count` items, at most kUnroll. Neighbouring
// threads have neighbouring items. Index can hold the number of all items.
template <uint32_t kUnroll, typename Index, class Body>
WL_CORE_INLINE void share(uint32_t thread, Index rows, Index inner, const Body& body) {
  thread = opaque(thread);
  const uint32_t lane = thread % kWarpThreads;
  // log2 of the lanes that share a row.
  uint32_t shift = 5;
  while (shift > 0 && (1u << (shift - 1)) >= inner) --shift;
  const uint32_t across = 1u << shift;
  const uint32_t down = kWarpThreads >> shift;
  const uint32_t segment = kUnroll << shift;
  const Index segments = (inner + segment - 1) / segment;
  const Index tasks = (rows + down - 1) / down * segments;
  WL_NO_UNROLL
  for (Index task = thread / kWarpThreads; task < tasks; task += kWorkerWarps) {
    const Index block = segments == 1 ? task : task / segments;
    const Index row = block * down + (lane >> shift);
    const Index first = (task - block * segments) * segment + (lane & (across - 1));
    // Branch-free: a thread without items gets a count of 0.
    const Index behind = row < rows && first < inner ? inner - first : 0;
    const Index left = (behind + across - 1) >> shift;
    body(row, first, across, left < kUnroll ? static_cast<uint32_t>(left) : kUnroll);
  }
}
template <uint32_t kUnroll, class Body>
WL_CORE_INLINE void shareGroups(const Job& job, uint32_t thread, const Body& body) {
  share<kUnroll, uint32_t>(thread, static_cast<uint32_t>(job.rows),
                           static_cast<uint32_t>(job.groups), body);
}
template <class Body>
WL_CORE_INLINE void shareEdges(const Job& job, uint32_t thread, const Body& body) {
  share<1, uint64_t>(thread, job.rows, job.edges,
                     [&](uint64_t row, uint64_t n, uint32_t, uint32_t count) {
                       if (count > 0) body(row, n);
                     });
}

}  // namespace windlass::cuda
