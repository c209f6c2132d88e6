// SPDX-License-Identifier: Apache-2.0
// Code for the cores of GPUs. A core is a block of threads. Its lead, thread 0, runs a kernel and
// describes data movement as jobs. The warps behind the lead's warp share each job. Two jobs are in
// progress at a time, each in its own slot in shared memory. An mbarrier in shared memory passes a
// slot to the workers, and another one returns it.
//
// Release: the jobs' data, each worker's arrival at the barrier, the lead's wait for it, then its
// release at system scope. Acquire: the lead's acquire at system scope, its arrival, the workers'
// wait, data. The order is transitive, so the lead's accesses to signals order the whole core.
#pragma once

// Host code also calls a library's kernels; nvcc parses that code and leaves it out.
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
#include "native/isa/shape.h"
#include "native/isa/signals.h"
#include "windlass/kernel.h"

namespace windlass {

constexpr const Limits& kLimits = kCudaLimits;

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
// Reads the word from memory.
WL_CORE_INLINE uint32_t readWord(const uint32_t* word) {
  return *reinterpret_cast<const volatile uint32_t*>(word);
}
// Adds one to a word of this device. Returns true if the result is `count`. That caller sees the
// earlier writes of the others.
WL_CORE_INLINE bool isLastOf(uint32_t* word, uint32_t count) {
  __threadfence();
  const bool isLast = atomicAdd(word, 1) + 1 == count;
  __threadfence();
  return isLast;
}
// Time of the device's own clock, in nanoseconds.
WL_CORE_INLINE uint64_t clockNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// An mbarrier in shared memory. Its uses (phases) are numbered from 0.
struct Barrier64 {
  uint64_t word;

  WL_CORE_INLINE uint32_t address() {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&word));
  }
  WL_CORE_INLINE void begin(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  // Releases prior writes to the threads of this block.
  WL_CORE_INLINE void arrive() {
    asm volatile(
        "{\n\t.reg .b64 state;\n\t"
        "mbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(address())
        : "memory");
  }
  // Blocks until all threads have arrived for that use, with acquire semantics. Only the current
  // use or the one before it may be awaited. The use before use 0 counts as complete.
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

// The jobs of a core, in shared memory. Job n uses slot n % kPlaces, and is use n / kPlaces of that
// slot.
struct Jobs {
  static constexpr uint32_t kPlaces = 2;

  Job job[kPlaces];
  Barrier64 given[kPlaces];
  Barrier64 done[kPlaces];
  // For the lead: number of jobs submitted so far, and the words that each job increments when it
  // is done.
  uint32_t count;
  uint32_t words[kPlaces];
  int32_t* word[kPlaces][kMostViews];

  // Initialises the slots. One thread calls this first.
  WL_CORE_INLINE void begin() {
    count = 0;
    for (uint32_t place = 0; place < kPlaces; ++place) {
      given[place].begin(1);
      done[place].begin(kWorkers);
      words[place] = 0;
    }
  }
  // Blocks until job n, one of the last kPlaces, is done. Then increments the job's words.
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

// For the lead: blocks until the next slot is free.
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
// Blocks until all jobs are done.
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

// The threads of a core that check and set signals in parallel.
struct CoreThreads {
  static constexpr uint32_t kCount = cuda::kWorkers;
  static constexpr bool kMoveApart = true;

  // Adds one to each word(0), word(1), ... when all moves so far are done. This happens before any
  // later signal. Takes at most kMostViews words.
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

  // Returns true if `count` words from `first` on, `step` apart, have reached `want`. The words
  // only increase, by less than 2^30 at a time.
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
  // Writes `value` to the words at line(0), line(1), ... This releases all earlier work of the
  // core.
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

// Does nothing: the lead has no other thread to run.
WL_CORE_INLINE void relax(bool) {}

// Does nothing: stores are the same in all phases.
class PhaseScope {
 public:
  WL_CORE explicit PhaseScope(const Launch&) {}
};

}  // namespace windlass

// Blocks until all of the core's jobs are done.
WL_CORE_INLINE void pipe_barrier(pipe_t) {
  windlass::cuda::finish();
}
WL_CORE_INLINE void set_flag(pipe_t, pipe_t, event_t) {}
WL_CORE_INLINE void wait_flag(pipe_t, pipe_t, event_t) {
  windlass::cuda::finish();
}
// Does nothing: every release is already at system scope.
WL_CORE_INLINE void dsb(mem_dsb_t) {}

namespace pto {

// A tile in on-core memory, at the offset that TASSIGN sets. The constructor takes DYNAMIC valid
// sizes; without it they are 0. The instruction that uses an invalid tile reports it.
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
  // Largest offset at which the tile fits.
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

WL_CORE_INLINE void TNOTIFY(Signal& signal, int32_t value, NotifyOp op) {
  windlass::cuda::finish();
  if (op == NotifyOp::Set) {
    windlass::cuda::storeRelease(signal.data(), value);
  } else {
    windlass::cuda::addRelease(signal.data(), value);
  }
}

// Compares the signal once.
WL_CORE_INLINE bool TTEST(Signal& signal, int32_t value, WaitCmp cmp) {
  return compare(windlass::cuda::loadAcquire(signal.data()), value, cmp);
}

// Polls until the signal satisfies the comparison (true) or stop() returns true.
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

// Runs a worker's part of a job on signals.
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

// Blocks until job n is submitted, and returns it. All threads of a warp call this. Each one waits
// and arrives separately, because racecheck requires it; a warp barrier would also be correct.
WL_CORE_INLINE Job& awaitJob(uint32_t n) {
  Jobs& own = jobs();
  own.given[n % Jobs::kPlaces].await(n / Jobs::kPlaces);
  __syncwarp();
  return own.job[n % Jobs::kPlaces];
}
WL_CORE_INLINE void endJob(uint32_t n) {
  jobs().done[n % Jobs::kPlaces].arrive();
}

// Runs jobs from job n on. Returns the number of the first job that it leaves to the caller.
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

// Runs the kCudaThreads threads of a block. The lead runs lead(), and the other threads run its
// jobs. work() runs what the inline loops leave.
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
