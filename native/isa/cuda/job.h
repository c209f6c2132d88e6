// SPDX-License-Identifier: Apache-2.0
// What the threads of a core do for its lead: one macro-instruction, over views of one shape.
// The lead orders the dimensions by the first target's strides, merges them where all views permit,
// and cuts the innermost into whole vectors and what is left of it; all in one description, which
// lies in the core's shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/isa/cuda/memory.h"
#include "native/isa/enums.h"

namespace windlass::cuda {

constexpr uint32_t kWarpThreads = 32;
// Of a core, beside its lead's.
constexpr uint32_t kWorkerWarps = kCudaThreads / kWarpThreads - 1;
constexpr uint32_t kWorkers = kWorkerWarps * kWarpThreads;

// Of a job, targets and sources apart: a view for each rank, or for each expert of a token.
constexpr uint32_t kMostViews = kMostDeviceRanks;
// Of both together: rows that are quantised have their scales as targets too.
constexpr uint32_t kAllViews = 2 * kMostViews + 1;
// Of a job, in all rows.
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
// A thread's part of a job.
using Work = void (*)(const Job&, uint32_t thread);

struct Job {
  JobKind kind;
  ReduceOp op;
  DType from;  // of sources
  DType to;    // of targets
  DType wire;
  uint32_t terms;  // of an average
  uint32_t targets;
  uint32_t sources;
  uint32_t ndim;
  uint32_t value;   // of signals
  uint32_t answer;  // to a look: 1, or 0 once a thread says so
  // Of an instruction on tiles that is no move and no fold.
  pto::RoundMode mode;
  bool saturates;
  Work work;
  uint64_t scalar;  // its bits
  // Of the innermost dimension `head` elements, `groups` whole groups, and the rest.
  uint64_t head;
  uint64_t groups;
  uint64_t edges;  // elements before and behind the groups
  uint64_t skip;   // elements of all groups
  uint64_t rows;   // of all dimensions but the innermost
  int64_t extent[kMaxDims];  // outermost first
  uint32_t axis[kMaxDims];
  float weights[kMostViews];        // of sources
  unsigned char* data[kAllViews];   // of targets, then of sources
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
  // Of the nth of the edges.
  WL_CORE_INLINE uint64_t edge(uint64_t n) const { return n < head ? n : n + skip; }
  // Where a row of a view begins. Index is as wide as the number of rows.
  template <typename Index>
  WL_CORE_INLINE unsigned char* at(uint32_t view, Index row) const {
    unsigned char* address = data[view];
    WL_NO_UNROLL
    for (uint32_t d = ndim; row != 0 && d > 1; --d) {
      const auto size = static_cast<Index>(extent[d - 2]);
      // Of the outermost dimension no row is left, and nothing is divided.
      const Index above = d == 2 ? 0 : row / size;
      address += static_cast<int64_t>(row - above * size) * step[view][axis[d - 2]];
      row = above;
    }
    return address;
  }

  // Takes a view; the first of all says what shape they have.
  WL_CORE inline void put(uint32_t index, const StridedView& view) {
    const auto bytes = static_cast<int64_t>(sizeOf(view.dtype));
    data[index] = static_cast<unsigned char*>(view.data);
    for (uint32_t d = 0; d < view.ndim; ++d) step[index][d] = view.strides[d] * bytes;
    if (index > 0) return;
    ndim = view.ndim;
    for (uint32_t d = 0; d < view.ndim; ++d) extent[d] = view.shape[d];
  }
  // A row of elements of `dtype`.
  WL_CORE inline void putRow(uint32_t index, const void* row, DType dtype, int64_t elements) {
    const int64_t one = 1;
    put(index, {const_cast<void*>(row), dtype, 1, &elements, &one});
  }

  // Once all views are there: whether they have any element.
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

  // Cuts groups of `group` elements, a power of two up to 16, where all views' elements lie side by
  // side and every access to a group of any view is aligned: to a vector, or to a group that is
  // less. Else there are none.
  WL_CORE inline void cut(uint32_t group) {
    uint32_t heads = (1u << group) - 1u;
    for (uint32_t view = 0; view < views() && heads != 0; ++view) heads &= aligning(view, group);
    if (heads == 0) return;
    uint32_t first = 0;
    while ((heads >> first & 1u) == 0) ++first;
    if (inner() < first + group) return;
    // What shares them out counts in 32 bits.
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
  // Dimension d with the one around it; the inner one's axis stays.
  WL_CORE inline void merge(uint32_t d) {
    extent[d - 1] *= extent[d];
    axis[d - 1] = axis[d];
    for (; d + 1 < ndim; ++d) {
      extent[d] = extent[d + 1];
      axis[d] = axis[d + 1];
    }
    --ndim;
  }
  // Of each number of elements before the first group a bit, whether the view's groups are aligned.
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

// The same number, of which a compiler knows nothing: what loops have in common is not computed,
// and kept, ahead of the choice among them.
WL_CORE_INLINE uint32_t opaque(uint32_t thread) {
  __asm__ volatile("" : "+r"(thread) : : "memory");
  return thread;
}

// Calls body(row, first, across, count) for the thread's part of `inner` things in each of `rows`
// rows: first, first + across, ..., `count` of them, kUnroll at most. Threads that are neighbours
// have neighbouring things. Index counts all things.
template <uint32_t kUnroll, typename Index, class Body>
WL_CORE_INLINE void share(uint32_t thread, Index rows, Index inner, const Body& body) {
  thread = opaque(thread);
  const uint32_t lane = thread % kWarpThreads;
  // Of a row, side by side.
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
    // No branch: a count of 0 is of a thread that has nothing there.
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
