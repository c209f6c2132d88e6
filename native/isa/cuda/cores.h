// SPDX-License-Identifier: Apache-2.0
// What cores of GPUs compile. A core is a block of threads: its lead, thread 0, runs a kernel by
// itself, and states what moves data as jobs, which the warps behind its own share. Two jobs are
// under way at a time, each in its place in shared memory; the lead passes one on, and gets it
// back, by a barrier of that memory.
//
// Release: the jobs' data, each worker's arrival at the barrier, the lead's wait for it, then its
// release at system scope. Acquire: the lead's acquire at system scope, its arrival, the workers'
// wait, data. The order is transitive, so that the lead's accesses to signals are the core's.
#pragma once

// A library's kernels are asked by the host too, whose code nvcc reads and leaves out.
#if defined(WINDLASS_IN_KERNEL_LIBRARY)
#define WL_CORE __host__ __device__
#else
#define WL_CORE __device__
#endif
#define WL_CORE_APART __device__ __noinline__
#define WL_CORE_TABLE static __device__ const

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "native/isa/cuda/job.h"
#include "native/isa/element_types.h"
#include "native/isa/enums.h"
#include "native/isa/limits.h"
#include "windlass/kernel.h"

namespace windlass {

constexpr const Limits& kLimits = kCudaLimits;
constexpr int kGlobalDims = 5;

namespace cuda {

WL_CORE_INLINE int32_t loadAcquire(const int32_t* word) {
  int32_t seen;
  asm volatile("ld.acquire.sys.global.s32 %0, [%1];"
               : "=r"(seen)
               : "l"(__cvta_generic_to_global(word))
               : "memory");
  return seen;
}
WL_CORE_INLINE void storeRelease(int32_t* word, int32_t value) {
  asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)),
               "r"(value)
               : "memory");
}
WL_CORE_INLINE void addRelease(int32_t* word, int32_t value) {
  asm volatile("red.release.sys.global.add.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)),
               "r"(value)
               : "memory");
}
// The word as it lies in memory.
WL_CORE_INLINE uint32_t readWord(const uint32_t* word) {
  return *reinterpret_cast<const volatile uint32_t*>(word);
}
// Adds one to a word of this device's; whether that makes `count`. Whoever it does so for sees what
// the others did before.
WL_CORE_INLINE bool isLastOf(uint32_t* word, uint32_t count) {
  __threadfence();
  const bool isLast = atomicAdd(word, 1) + 1 == count;
  __threadfence();
  return isLast;
}
// Nanoseconds, of a clock of the device's own.
WL_CORE_INLINE uint64_t clockNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// A barrier in shared memory, whose uses are numbered from 0.
struct Barrier64 {
  uint64_t word;

  WL_CORE_INLINE uint32_t address() {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&word));
  }
  WL_CORE_INLINE void begin(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  // Releases to this block's threads.
  WL_CORE_INLINE void arrive() {
    asm volatile(
        "{\n\t.reg .b64 state;\n\t"
        "mbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(address())
        : "memory");
  }
  // Until all have arrived for that use; acquires. No later use is over; the one before the first
  // is.
  WL_CORE_INLINE void await(uint32_t use) {
    uint32_t over;
    do {
      asm volatile(
          "{\n\t.reg .pred over;\n\t"
          "mbarrier.test_wait.parity.shared.b64 over, [%1], %2;\n\t"
          "selp.u32 %0, 1, 0, over;\n\t}"
          : "=r"(over)
          : "r"(address()), "r"(use & 1)
          : "memory");
    } while (over == 0);
  }
};

// The jobs of a core, in shared memory. Job n has place n % kPlaces, and is its use n / kPlaces.
struct Jobs {
  static constexpr uint32_t kPlaces = 2;

  Job job[kPlaces];
  Barrier64 given[kPlaces];
  Barrier64 done[kPlaces];
  // The lead's: jobs given so far, and words that each adds to once it is done.
  uint32_t count;
  uint32_t words[kPlaces];
  int32_t* word[kPlaces][kMostViews];

  // On one thread, before any other looks.
  WL_CORE_INLINE void begin() {
    count = 0;
    for (uint32_t place = 0; place < kPlaces; ++place) {
      given[place].begin(1);
      done[place].begin(kWorkers);
      words[place] = 0;
    }
  }
  // Until job n, one of the last kPlaces, is done, and counted.
  WL_CORE_INLINE void awaitDone(uint32_t n) {
    const uint32_t place = n % kPlaces;
    done[place].await(n / kPlaces);
    for (uint32_t i = 0; i < words[place]; ++i) addRelease(word[place][i], 1);
    words[place] = 0;
  }
};

WL_CORE_INLINE Jobs& jobs() {
  __shared__ Jobs shared;
  return shared;
}

// The lead's: a job that nobody works on.
WL_CORE_INLINE Job& nextJob() {
  Jobs& own = jobs();
  if (own.count >= Jobs::kPlaces) own.awaitDone(own.count - Jobs::kPlaces);
  return own.job[own.count % Jobs::kPlaces];
}
WL_CORE_INLINE void submit() {
  Jobs& own = jobs();
  own.given[own.count % Jobs::kPlaces].arrive();
  ++own.count;
}
// Until all jobs are done.
WL_CORE_INLINE void finish() {
  Jobs& own = jobs();
  for (uint32_t back = Jobs::kPlaces; back > 0; --back) {
    if (own.count >= back) own.awaitDone(own.count - back);
  }
}

}  // namespace cuda
}  // namespace windlass

#include "native/isa/cuda/fused.h"

namespace windlass {

// Threads of a core that look at signals, and set them, side by side.
struct CoreThreads {
  static constexpr uint32_t kCount = cuda::kWorkers;
  static constexpr bool kMoveApart = true;

  // Adds one to each word(0), word(1), ... once all moves so far are over, and before any signal
  // that follows. kMostViews words at most.
  template <class Word>
  WL_CORE static void countMoves(uint32_t count, const Word& word) {
    cuda::Jobs& own = cuda::jobs();
    const uint32_t place = (own.count + cuda::Jobs::kPlaces - 1) % cuda::Jobs::kPlaces;
    if (own.count == 0 || own.words[place] != 0) {
      cuda::finish();
      for (uint32_t i = 0; i < count; ++i) cuda::addRelease(word(i), 1);
      return;
    }
    for (uint32_t i = 0; i < count; ++i) own.word[place][i] = word(i);
    own.words[place] = count;
  }

  // Whether `count` words, `step` apart from `first` on, have come to `want`: words that only move
  // forward, by less than 2^30 at a time.
  WL_CORE static bool haveReached(int32_t* first, uint32_t step, uint32_t count, uint32_t want) {
    if (count == 0) return true;
    cuda::Job& job = cuda::nextJob();
    job.kind = cuda::JobKind::kLook;
    job.data[0] = reinterpret_cast<unsigned char*>(first);
    job.skip = step;
    job.edges = count;
    job.value = want;
    job.answer = 1;
    cuda::submit();
    cuda::finish();
    return *reinterpret_cast<volatile uint32_t*>(&job.answer) != 0;
  }
  // Releases what the core did, by the word at each of line(0), line(1), ...
  template <class Line>
  WL_CORE static void notifyEach(uint32_t count, uint32_t value, const Line& line) {
    cuda::finish();
    cuda::Job& job = cuda::nextJob();
    job.kind = cuda::JobKind::kNotify;
    job.targets = count;
    job.value = value;
    for (uint32_t i = 0; i < count; ++i)
      job.data[i] = reinterpret_cast<unsigned char*>(line(i));
    cuda::submit();
  }
};

// A lead has nobody else to run.
WL_CORE_INLINE void relax(bool) {}

// Stores are alike in all phases.
class PhaseScope {
 public:
  WL_CORE explicit PhaseScope(const Launch&) {}
};

}  // namespace windlass

// Of all that the core does.
WL_CORE_INLINE void pipe_barrier(pipe_t) {
  windlass::cuda::finish();
}
WL_CORE_INLINE void set_flag(pipe_t, pipe_t, event_t) {}
WL_CORE_INLINE void wait_flag(pipe_t, pipe_t, event_t) {
  windlass::cuda::finish();
}
// Releases are at system scope by themselves.
WL_CORE_INLINE void dsb(mem_dsb_t) {}

namespace pto {

// Five values: those given as DYNAMIC from `values`, which has one for each of them or all five, or
// none, where they are 1.
template <int64_t... N>
struct Extents {
  static_assert(sizeof...(N) == windlass::kGlobalDims, "five dimensions");
  static constexpr int kDynamic = ((N == DYNAMIC ? 1 : 0) + ...);

  template <typename... V>
  WL_CORE_INLINE static void fill(int64_t* to, V... values) {
    constexpr bool kAll = sizeof...(V) == windlass::kGlobalDims;
    static_assert(kAll || sizeof...(V) == 0 || sizeof...(V) == kDynamic,
                  "a value for each DYNAMIC");
    const int64_t given[] = {static_cast<int64_t>(values)..., 1};
    int d = 0;
    int next = 0;
    const auto take = [&] {
      if constexpr (sizeof...(V) == 0) return given[0];
      return given[kAll ? d : next++];
    };
    ((to[d] = N == DYNAMIC ? take() : N, ++d), ...);
  }
};
template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape {
  static constexpr bool kIsRow = N1 == 1 && N2 == 1 && N3 == 1 && N4 == 1;
  int64_t shape[windlass::kGlobalDims];

  template <typename... V>
  WL_CORE_INLINE explicit Shape(V... values) {
    Extents<N1, N2, N3, N4, N5>::fill(shape, values...);
  }
};
// In elements.
template <int64_t S1 = DYNAMIC, int64_t S2 = DYNAMIC, int64_t S3 = DYNAMIC, int64_t S4 = DYNAMIC,
          int64_t S5 = DYNAMIC>
struct Stride {
  static constexpr bool kIsDense = S5 == 1;
  int64_t stride[windlass::kGlobalDims];

  template <typename... V>
  WL_CORE_INLINE explicit Stride(V... values) {
    Extents<S1, S2, S3, S4, S5>::fill(stride, values...);
  }
};

// A 5-D view of memory: dimension 3 counts rows, dimension 4 columns.
template <typename Element, typename ShapeT, typename StrideT, Layout kLayout = Layout::ND>
class GlobalTensor {
 public:
  using RawDType = std::remove_const_t<Element>;
  using DType = Element;
  static constexpr Layout layout = kLayout;
  // Whether the type says that the elements stand side by side in one row.
  static constexpr bool kOneRow = ShapeT::kIsRow && StrideT::kIsDense;

  WL_CORE_INLINE explicit GlobalTensor(Element* data, const ShapeT& shape = ShapeT(),
                                       const StrideT& stride = StrideT())
      : data_(data), shape_(shape), stride_(stride) {}

  WL_CORE_INLINE Element* data() const { return data_; }
  WL_CORE_INLINE int64_t GetShape(int d) const { return shape_.shape[d]; }
  WL_CORE_INLINE int64_t GetStride(int d) const { return stride_.stride[d]; }
  // The shape and the strides are this tensor's.
  WL_CORE_INLINE windlass::StridedView view() const {
    return {const_cast<RawDType*>(data_), windlass::DTypeOf<RawDType>::value,
            windlass::kGlobalDims, shape_.shape, stride_.stride};
  }

 private:
  Element* data_;
  ShapeT shape_;
  StrideT stride_;
};

// A tile of on-core memory; TASSIGN says where. Valid sizes of DYNAMIC are given to the constructor
// or are none. What can't be is told by the instruction that uses it.
template <TileType kType, typename Element, int kRows, int kCols,
          BLayout kLayout = BLayout::RowMajor, int kValidRow = kRows, int kValidCol = kCols>
struct Tile {
  static_assert(kType == TileType::Vec && kLayout == BLayout::RowMajor,
                "cuda has row-major Vec tiles");
  static_assert(kCols * sizeof(Element) % 32 == 0, "a row is a multiple of 32 bytes");
  static_assert(size_t{kRows} * kCols * sizeof(Element) <= windlass::kLimits.tileBytes,
                "a tile fits on-core memory");
  static_assert(kValidRow <= kRows && kValidCol <= kCols, "the valid part lies in the tile");

  using DType = Element;
  static constexpr int Rows = kRows;
  static constexpr int Cols = kCols;
  static constexpr int ValidRow = kValidRow;
  static constexpr int ValidCol = kValidCol;
  // The last byte where there is room for it.
  static constexpr int64_t kMost = static_cast<int64_t>(windlass::kLimits.tileBytes) -
                                   int64_t{kRows} * kCols * static_cast<int64_t>(sizeof(Element));

  WL_CORE_INLINE Tile() {}
  template <int R = kValidRow, int C = kValidCol,
            std::enable_if_t<R == DYNAMIC && C == DYNAMIC, int> = 0>
  WL_CORE_INLINE Tile(int64_t rows, int64_t columns) : validRows(rows), validColumns(columns) {}
  template <int R = kValidRow, int C = kValidCol,
            std::enable_if_t<(R == DYNAMIC) != (C == DYNAMIC), int> = 0>
  WL_CORE_INLINE explicit Tile(int64_t valid) {
    (kValidRow == DYNAMIC ? validRows : validColumns) = valid;
  }
  WL_CORE_INLINE unsigned GetValidRow() const { return static_cast<unsigned>(validRows); }
  WL_CORE_INLINE unsigned GetValidCol() const { return static_cast<unsigned>(validColumns); }

  int64_t offset = 0;
  int64_t validRows = kValidRow == DYNAMIC ? 0 : kValidRow;
  int64_t validColumns = kValidCol == DYNAMIC ? 0 : kValidCol;
};
template <typename TileT>
WL_CORE_INLINE void TASSIGN(TileT& tile, uint64_t offset) {
  tile.offset = static_cast<int64_t>(offset);
}
template <uint64_t kOffset, typename TileT>
WL_CORE_INLINE void TASSIGN(TileT& tile) {
  static_assert(kOffset % 32 == 0, "a tile's place is a multiple of 32 bytes");
  tile.offset = kOffset;
}

namespace comm {

// One 32-bit word, with one writer to its 64-byte line.
class Signal {
 public:
  WL_CORE_INLINE explicit Signal(int32_t* word) : word_(word) {}
  WL_CORE_INLINE int32_t* data() const { return word_; }

 private:
  int32_t* word_;
};

WL_CORE_INLINE bool compare(int32_t seen, int32_t want, WaitCmp cmp) {
  switch (cmp) {
    case WaitCmp::EQ:
      return seen == want;
    case WaitCmp::NE:
      return seen != want;
    case WaitCmp::GT:
      return seen > want;
    case WaitCmp::GE:
      return seen >= want;
    case WaitCmp::LT:
      return seen < want;
    default:
      return seen <= want;
  }
}

WL_CORE_INLINE void TNOTIFY(Signal& signal, int32_t value, NotifyOp op) {
  windlass::cuda::finish();
  if (op == NotifyOp::Set) {
    windlass::cuda::storeRelease(signal.data(), value);
  } else {
    windlass::cuda::addRelease(signal.data(), value);
  }
}

// One look.
WL_CORE_INLINE bool TTEST(Signal& signal, int32_t value, WaitCmp cmp) {
  return compare(windlass::cuda::loadAcquire(signal.data()), value, cmp);
}

// R x C words; rowStride counts words.
template <int R, int C>
class Signal2D {
 public:
  WL_CORE_INLINE explicit Signal2D(int32_t* words, int rowStride = C)
      : words_(words), rowStride_(rowStride) {}
  WL_CORE_INLINE Signal at(int row, int column) const {
    return Signal(words_ + static_cast<int64_t>(row) * rowStride_ + column);
  }

 private:
  int32_t* words_;
  int rowStride_;
};
// One look at each word; true when all satisfy.
template <int R, int C>
WL_CORE_INLINE bool TTEST(Signal2D<R, C>& signals, int32_t value, WaitCmp cmp) {
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      Signal signal = signals.at(r, c);
      if (!TTEST(signal, value, cmp)) return false;
    }
  }
  return true;
}

// Looks until the signal satisfies (true) or stop() is true (false).
template <typename SignalT, typename Stop>
WL_CORE_INLINE bool TWAIT(SignalT& signal, int32_t value, WaitCmp cmp, const Stop& stop) {
  while (!TTEST(signal, value, cmp)) {
    if (stop()) return TTEST(signal, value, cmp);
  }
  return true;
}

}  // namespace comm
}  // namespace pto

namespace windlass {

using namespace pto;
using namespace cuda::instructions;

namespace cuda {

// What a worker does of a job that is about signals.
WL_CORE_INLINE void workOnSignals(Job& job, uint32_t thread) {
  if (job.kind == JobKind::kNotify) {
    for (uint32_t i = thread; i < job.targets; i += kWorkers)
      storeRelease(reinterpret_cast<int32_t*>(job.data[i]), static_cast<int32_t>(job.value));
    return;
  }
  const auto* first = reinterpret_cast<const int32_t*>(job.data[0]);
  for (uint64_t i = thread; i < job.edges; i += kWorkers) {
    const auto seen = static_cast<uint32_t>(loadAcquire(first + i * job.skip));
    if (static_cast<int32_t>(seen - job.value) < 0)
      *reinterpret_cast<volatile uint32_t*>(&job.answer) = 0;
  }
}

// Job n, once it is given; with all threads of the worker's warp, each of which waits and arrives
// by itself, as racecheck asks: a warp's own barrier would pass it on as well.
WL_CORE_INLINE Job& awaitJob(uint32_t n) {
  Jobs& own = jobs();
  own.given[n % Jobs::kPlaces].await(n / Jobs::kPlaces);
  __syncwarp();
  return own.job[n % Jobs::kPlaces];
}
WL_CORE_INLINE void endJob(uint32_t n) {
  jobs().done[n % Jobs::kPlaces].arrive();
}

// Works from job n on, up to one that it leaves to the caller, whose number it returns.
WL_CORE_APART inline uint32_t workInLineFrom(uint32_t n) {
  const uint32_t thread = threadIdx.x - kWarpThreads;
  for (;; ++n) {
    Job& job = awaitJob(n);
    if (job.kind == JobKind::kEnd) return n;
    if (job.kind == JobKind::kLook || job.kind == JobKind::kNotify) {
      workOnSignals(job, thread);
    } else if (!workInLine(job, thread)) {
      return n;
    }
    endJob(n);
  }
}
using WorkFrom = uint32_t (*)(uint32_t n);
WL_CORE_TABLE WorkFrom kWorkFrom[] = {workInLineFrom};

// All threads of a block, of kCudaThreads: its lead runs lead(), the others what that states, of
// which work() does what isn't done in line.
template <class Lead, class WorkApart>
WL_CORE_INLINE void runBlock(const Lead& lead, const WorkApart& work) {
  if (threadIdx.x == 0) jobs().begin();
  __syncthreads();
  if (threadIdx.x == 0) {
    lead();
    nextJob().kind = JobKind::kEnd;
    submit();
  }
  if (threadIdx.x < kWarpThreads) return;
  for (uint32_t n = 0;; ++n) {
    n = kWorkFrom[opaque(0)](n);
    const Job& job = awaitJob(n);
    if (job.kind == JobKind::kEnd) return;
    work(job, threadIdx.x - kWarpThreads);
    endJob(n);
  }
}

}  // namespace cuda
}  // namespace windlass

#include "native/isa/cuda/tiles.h"
