// SPDX-License-Identifier: Apache-2.0
// Timing of a floor. Each thread is pinned to a core of its own. Threads rewrite their inputs, wait
// for one another at a barrier, and run parts that were cut before the clock started. No protocol
// runs around the parts. The benchmark times the operation in the same way.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/cores.h"
#include "native/base/cpu.h"
#include "native/base/error.h"
#include "native/memory/window.h"
#include "windlass/kernel.h"
#include "windlass/windlass.h"

namespace windlass::floor {

constexpr uint64_t kLine = 64;
constexpr int64_t kSpinNs = 2'000;  // spin time before a waiting thread yields

// An exception that carries a wl_code other than Internal to the ABI.
struct Refused : std::runtime_error {
  Refused(wl_code refusal, const std::string& message)
      : std::runtime_error(message), code(refusal) {}
  wl_code code;
};

// Barrier that the threads pass before and after a sample. The counter and the sense word each have
// cache lines of their own.
class LineUp {
 public:
  explicit LineUp(uint32_t threads) : threads_(threads) {}

  void arriveAndWait() {
    const uint32_t sense = sense_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      sense_.store(sense + 1, std::memory_order_release);
      return;
    }
    const auto isOpen = [&] { return sense_.load(std::memory_order_acquire) != sense; };
    for (const int64_t start = clockNs(); clockNs() - start < kSpinNs; cpuPause())
      if (isOpen()) return;
    while (!isOpen()) sched_yield();
  }

 private:
  alignas(2 * kLine) std::atomic<uint32_t> arrived_{0};
  alignas(2 * kLine) std::atomic<uint32_t> sense_{0};
  alignas(2 * kLine) const uint32_t threads_;
};

struct Span {
  std::byte* data;
  uint64_t bytes;
};

// The work of one thread in each iteration: rewrite its inputs, then run its parts, which are
// timed.
template <class Part>
struct alignas(2 * kLine) Job {
  std::vector<Span> inputs;
  std::vector<Part> parts;
  std::vector<int64_t> ready;
  std::vector<int64_t> leave;
};

// Window memory with a segment for each rank.
inline std::unique_ptr<Window> segments(uint64_t bytes, uint64_t ranks) {
  Window* made = nullptr;
  wl_error_t error = blankError();
  if (Window::map(bytes, static_cast<uint32_t>(ranks), &made, &error) != WL_OK) {
    throw Refused(WL_RESOURCE, error.message);
  }
  return std::unique_ptr<Window>(made);
}

inline std::byte* bytesOf(const Window& segments, uint64_t rank) {
  return static_cast<std::byte*>(segments.address(static_cast<uint32_t>(rank)));
}

// Fixed and variable bits of a rewritten word. A float stays a normal number near one, so that a
// cast takes no rare path.
struct Pattern {
  uint64_t base;
  uint64_t vary;
};

inline Pattern patternOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {0x3ff0000000000000u, 0xffffffffu};
    case DType::kF32:
      return {0x3f8000003f800000u, 0x0000ffff0000ffffu};
    case DType::kF16:
      return {0x3c003c003c003c00u, 0x03ff03ff03ff03ffu};
    case DType::kBF16:
      return {0x3f803f803f803f80u, 0x007f007f007f007fu};
    case DType::kF8E5M2:
      return {0x3c3c3c3c3c3c3c3cu, 0x0303030303030303u};
    case DType::kF8E4M3:
      return {0x3838383838383838u, 0x0707070707070707u};
    default:
      return {0, ~uint64_t{0}};
  }
}

inline void rewrite(const Span& input, uint64_t stamp, Pattern pattern) {
  const uint64_t words = input.bytes / sizeof(uint64_t);
  for (uint64_t i = 0; i < words; ++i) {
    const uint64_t word = pattern.base | ((stamp + i * 0x9e3779b97f4a7c15u) & pattern.vary);
    std::memcpy(input.data + i * sizeof word, &word, sizeof word);
  }
  const uint64_t rest = pattern.base | (stamp & pattern.vary);
  std::memcpy(input.data + words * sizeof rest, &rest, input.bytes % sizeof rest);
}

// Cores that this thread may use, limited to the number that the process may keep busy.
inline std::vector<int> coresToUse() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::runtime_error("the floor cannot read the cores it may use");
  }
  const auto limit = static_cast<std::size_t>(allowedCores());
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < limit; ++core) {
    if (CPU_ISSET(core, &allowed)) {
      cores.push_back(core);
    }
  }
  return cores;
}

inline bool pinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

// Runs the jobs in parallel, one pinned thread each. Returns the median over `iterations` of
// max(leave) - max(ready) in microseconds. In each iteration, calls `write` for each input of a job
// with a stamp of the iteration, then `run` for each part.
template <class Part, class Run, class Write>
double measure(std::vector<Job<Part>>& jobs, const std::vector<int>& cores, int32_t iterations,
               const Run& run, const Write& write) {
  const auto count = static_cast<std::size_t>(iterations);
  const std::size_t warmUp = std::max<std::size_t>(3, count / 10);
  for (Job<Part>& job : jobs) {
    job.ready.resize(warmUp + count);
    job.leave.resize(warmUp + count);
  }
  LineUp lineUp(static_cast<uint32_t>(jobs.size()));
  std::atomic<bool> pinned{true};
  std::vector<std::future<void>> threads;
  // Declared after the threads: if one cannot start, the threads that wait for `start` see a broken
  // promise and end.
  std::promise<void> start;
  const std::shared_future<void> started(start.get_future());
  for (std::size_t t = 0; t < jobs.size(); ++t) {
    threads.push_back(std::async(std::launch::async, [&, started, t] {
      Job<Part>& job = jobs[t];
      if (!pinTo(cores[t])) {
        pinned.store(false);
      }
      started.get();
      for (std::size_t i = 0; i < warmUp + count; ++i) {
        for (const Span& input : job.inputs) {
          write(input, i + 1);
        }
        job.ready[i] = clockNs();
        lineUp.arriveAndWait();
        for (const Part& part : job.parts) {
          run(part);
        }
        job.leave[i] = clockNs();
        // No thread rewrites an input that another thread still reads.
        lineUp.arriveAndWait();
      }
    }));
  }
  start.set_value();
  for (std::future<void>& thread : threads) {
    thread.get();
  }
  if (!pinned.load()) {
    throw std::runtime_error("the floor cannot pin its threads to the cores it may use");
  }
  std::vector<int64_t> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    int64_t ready = jobs[0].ready[warmUp + i];
    int64_t leave = jobs[0].leave[warmUp + i];
    for (const Job<Part>& job : jobs) {
      ready = std::max(ready, job.ready[warmUp + i]);
      leave = std::max(leave, job.leave[warmUp + i]);
    }
    samples[i] = leave - ready;
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return static_cast<double>(*middle) / 1000.0;
}

template <class Part, class Run>
double measure(std::vector<Job<Part>>& jobs, const std::vector<int>& cores, int32_t iterations,
               Pattern pattern, const Run& run) {
  return measure(jobs, cores, iterations, run, [pattern](const Span& input, uint64_t stamp) {
    rewrite(input, stamp, pattern);
  });
}

}  // namespace windlass::floor
