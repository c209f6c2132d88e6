// SPDX-License-Identifier: Apache-2.0
// The physical floor of an operation: threads pinned one to a core move just the bytes that must
// move, with the work split before the clock starts and no protocol around it. Timed as the
// benchmark times the operation.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "native/base/clock.h"
#include "native/base/cores.h"
#include "native/base/error.h"
#include "native/isa/isa.h"
#include "native/window/memory.h"
#include "windlass/kernel.h"
#include "windlass/windlass.h"

namespace windlass {
namespace {

constexpr uint64_t kLine = 64;
// A broadcast reads a block once and writes it to every output while it is in the first-level
// cache.
constexpr uint64_t kBlock = 16 * 1024;
constexpr int kPauses = 1000;

// A wl_code other than Internal on its way to the ABI.
struct Refused : std::runtime_error {
  Refused(wl_code refusal, const std::string& message)
      : std::runtime_error(message), code(refusal) {}
  wl_code code;
};

// Where threads meet before a sample: one counter, one sense word, neither next to anything else.
class LineUp {
 public:
  explicit LineUp(uint32_t threads) : threads_(threads) {}

  void meet() {
    const uint32_t sense = sense_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      sense_.store(sense + 1, std::memory_order_release);
      return;
    }
    for (int looks = 0; sense_.load(std::memory_order_acquire) == sense; ++looks) {
      if (looks < kPauses) {
        __builtin_ia32_pause();
      } else {
        sched_yield();
      }
    }
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

struct Move {
  std::byte* dst;
  const std::byte* src;
  uint64_t bytes;  // of source
};

// What one thread does in each iteration: rewrite its inputs, then, timed, move.
struct alignas(2 * kLine) Job {
  std::vector<Span> inputs;
  std::vector<Move> moves;
  std::vector<int64_t> ready;
  std::vector<int64_t> leave;
};

// Memory as windows have it, a segment for each rank.
std::unique_ptr<Segments> segments(uint64_t bytes, uint64_t ranks) {
  Segments* made = nullptr;
  wl_error_t error{};
  error.struct_size = sizeof error;
  if (Segments::map(bytes, static_cast<uint32_t>(ranks), &made, &error) != WL_OK) {
    throw Refused(WL_RESOURCE, error.message);
  }
  return std::unique_ptr<Segments>(made);
}

std::byte* bytesOf(const Segments& segments, uint64_t rank) {
  return static_cast<std::byte*>(segments.address(static_cast<uint32_t>(rank)));
}

// Bits that a rewritten word may vary, around a base, so that a float stays a normal number near
// one: a cast meets no rare path.
struct Pattern {
  uint64_t base;
  uint64_t vary;
};

constexpr uint64_t repeat16(uint64_t half) { return half * 0x0001000100010001u; }
constexpr uint64_t repeat8(uint64_t byte) { return byte * 0x0101010101010101u; }

Pattern patternOf(DType dtype) {
  switch (dtype) {
    case DType::kF64: return {0x3ff0000000000000u, 0xffffffffu};
    case DType::kF32: return {0x3f8000003f800000u, 0x0000ffff0000ffffu};
    case DType::kF16: return {repeat16(0x3c00), repeat16(0x03ff)};
    case DType::kBF16: return {repeat16(0x3f80), repeat16(0x007f)};
    case DType::kF8E5M2: return {repeat8(0x3c), repeat8(0x03)};
    case DType::kF8E4M3: return {repeat8(0x38), repeat8(0x07)};
    default: return {0, ~uint64_t{0}};
  }
}

void rewrite(const Span& input, uint64_t stamp, Pattern pattern) {
  const uint64_t words = input.bytes / sizeof(uint64_t);
  for (uint64_t i = 0; i < words; ++i) {
    const uint64_t word = pattern.base | ((stamp + i * 0x9e3779b97f4a7c15u) & pattern.vary);
    std::memcpy(input.data + i * sizeof word, &word, sizeof word);
  }
  const uint64_t rest = pattern.base | (stamp & pattern.vary);
  std::memcpy(input.data + words * sizeof rest, &rest, input.bytes % sizeof rest);
}

// The cores that this thread may use, as many of them as the process may keep busy.
std::vector<int> coresToUse() {
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

bool pinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

// Runs the jobs side by side, one pinned thread each, and returns the median over `iterations` of
// max(leave) - max(ready) in microseconds. `move` is called for each Move.
template <class MoveBytes>
double measure(std::vector<Job>& jobs, const std::vector<int>& cores, int32_t iterations,
               Pattern pattern, const MoveBytes& move) {
  const auto count = static_cast<std::size_t>(iterations);
  const std::size_t warmUp = std::max<std::size_t>(3, count / 10);
  for (Job& job : jobs) {
    job.ready.resize(warmUp + count);
    job.leave.resize(warmUp + count);
  }
  LineUp lineUp(static_cast<uint32_t>(jobs.size()));
  std::atomic<bool> pinned{true};
  std::vector<std::future<void>> threads;
  // Declared after the threads: when one cannot be started, those that wait for `start` see it
  // break and end.
  std::promise<void> start;
  const std::shared_future<void> started(start.get_future());
  for (std::size_t t = 0; t < jobs.size(); ++t) {
    threads.push_back(std::async(std::launch::async, [&, started, t] {
      Job& job = jobs[t];
      if (!pinTo(cores[t])) {
        pinned.store(false);
      }
      started.get();
      for (std::size_t i = 0; i < warmUp + count; ++i) {
        for (const Span& input : job.inputs) {
          rewrite(input, i + 1, pattern);
        }
        job.ready[i] = clockNs();
        lineUp.meet();
        for (const Move& each : job.moves) {
          move(each);
        }
        job.leave[i] = clockNs();
        // Nobody rewrites what another thread still reads.
        lineUp.meet();
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
    for (const Job& job : jobs) {
      ready = std::max(ready, job.ready[warmUp + i]);
      leave = std::max(leave, job.leave[warmUp + i]);
    }
    samples[i] = leave - ready;
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return static_cast<double>(*middle) / 1000.0;
}

constexpr uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Start of part `part` of `parts` of `bytes`, on a cache line; the first parts are the larger ones.
uint64_t cut(uint64_t bytes, std::size_t part, std::size_t parts) {
  const uint64_t each = roundUp(roundUp(bytes, kLine) / kLine, parts) / parts;
  return std::min(bytes, part * each * kLine);
}

void copy(const Move& move) { copyBytes(move.dst, move.src, move.bytes); }

void checkCopied(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    for (const Move& move : job.moves) {
      if (std::memcmp(move.dst, move.src, move.bytes) != 0) {
        throw std::logic_error("the floor copied wrong bytes");
      }
    }
  }
}

// The inputs of all ranks, one after another, are one sequence; every thread rewrites and sends its
// part of it.
double measureAllToAll(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const std::vector<int> cores = coresToUse();
  const uint64_t outAt = roundUp(ranks * bytes, kLine);
  const auto memory = segments(2 * outAt, ranks);
  std::vector<Job> jobs(cores.size());
  const uint64_t linesOfRow = roundUp(bytes, kLine) / kLine;
  const uint64_t lines = ranks * ranks * linesOfRow;
  for (uint64_t t = 0; t < jobs.size(); ++t) {
    const uint64_t end = lines * (t + 1) / jobs.size();
    for (uint64_t at = lines * t / jobs.size(); at < end;) {
      const uint64_t row = at / linesOfRow;
      const uint64_t source = row / ranks;
      const uint64_t target = row % ranks;
      const uint64_t next = std::min(end, (row + 1) * linesOfRow);
      const uint64_t offset = at % linesOfRow * kLine;
      const uint64_t length = std::min(bytes, (next - row * linesOfRow) * kLine) - offset;
      std::byte* in = bytesOf(*memory, source) + target * bytes + offset;
      std::byte* out = bytesOf(*memory, target) + outAt + source * bytes + offset;
      jobs[t].inputs.push_back({in, length});
      jobs[t].moves.push_back({out, in, length});
      at = next;
    }
  }
  const double median = measure(jobs, cores, iterations, patternOf(DType::kU8), copy);
  checkCopied(jobs);
  return median;
}

// In place on the root, whose thread rewrites the buffer; every thread carries its part of it to
// the other ranks.
double measureBroadcast(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const std::vector<int> cores = coresToUse();
  const auto memory = segments(bytes, ranks);
  std::vector<Job> jobs(cores.size());
  std::byte* in = bytesOf(*memory, 0);
  jobs[0].inputs.push_back({in, bytes});
  const uint64_t block = ranks > 2 ? kBlock : bytes;
  for (std::size_t t = 0; t < jobs.size(); ++t) {
    const uint64_t end = cut(bytes, t + 1, jobs.size());
    for (uint64_t at = cut(bytes, t, jobs.size()); at < end; at += block) {
      for (uint64_t target = 1; target < ranks; ++target) {
        std::byte* out = bytesOf(*memory, target);
        jobs[t].moves.push_back({out + at, in + at, std::min(block, end - at)});
      }
    }
  }
  const double median = measure(jobs, cores, iterations, patternOf(DType::kU8), copy);
  checkCopied(jobs);
  return median;
}

double measureCopy(uint64_t bytes, DType from, DType to, int32_t iterations) {
  const std::vector<int> cores = coresToUse();
  const uint64_t count = bytes / sizeOf(from);
  const uint64_t outAt = roundUp(bytes, kLine);
  const auto memory = segments(outAt + count * sizeOf(to), 1);
  std::byte* in = bytesOf(*memory, 0);
  std::byte* out = in + outAt;
  std::vector<Job> jobs(cores.size());
  for (std::size_t t = 0; t < jobs.size(); ++t) {
    const uint64_t start = cut(bytes, t, jobs.size());
    const uint64_t length = cut(bytes, t + 1, jobs.size()) - start;
    jobs[t].inputs.push_back({in + start, length});
    jobs[t].moves.push_back({out + start / sizeOf(from) * sizeOf(to), in + start, length});
  }
  if (from == to) {
    const double median = measure(jobs, cores, iterations, patternOf(from), copy);
    checkCopied(jobs);
    return median;
  }
  return measure(jobs, cores, iterations, patternOf(from), [&](const Move& move) {
    const auto shape = static_cast<int64_t>(move.bytes / sizeOf(from));
    const int64_t stride = 1;
    TMOVE_CVT({move.dst, to, 1, &shape, &stride},
              {const_cast<std::byte*>(move.src), from, 1, &shape, &stride});
  });
}

// Runs `work` and turns what it throws into a code.
template <class Work>
int32_t guarded(wl_error_t* error, const Work& work) {
  try {
    work();
    return WL_OK;
  } catch (const Refused& e) {
    return fail(error, e.code, "%s", e.what());
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "no memory to measure the floor: measure a smaller size");
  } catch (const std::exception& e) {
    return fail(error, WL_INTERNAL, "%s", e.what());
  }
}

void require(bool holds, const char* message) {
  if (!holds) {
    throw Refused(WL_INVALID_ARGUMENT, message);
  }
}

bool isDType(int32_t dtype) { return dtype >= 0 && dtype < WL_DTYPE_COUNT; }

}  // namespace
}  // namespace windlass

using namespace windlass;

int32_t wl_floor_measure(const wl_floor_config_t* config, double* median_us, wl_error_t* error) {
  return guarded(error, [&] {
    require(config != nullptr && median_us != nullptr, "config, median_us: NULL");
    require(config->struct_size >= sizeof *config, "config.struct_size: too small");
    require(config->operation == WL_OP_ALL_TO_ALL || config->operation == WL_OP_BROADCAST,
            "config.operation: neither all-to-all nor broadcast");
    require(config->ranks >= 1 && config->ranks <= WL_MAX_RANKS,
            "config.ranks: not in 1 to WL_MAX_RANKS");
    require(config->iterations >= 1, "config.iterations: less than 1");
    require(config->bytes >= 1, "config.bytes: 0");
    const auto ranks = static_cast<uint64_t>(config->ranks);
    require(config->bytes <= (uint64_t{1} << 40) / (ranks * ranks),
            "config.bytes: more than 1 TiB in all");
    *median_us = config->operation == WL_OP_ALL_TO_ALL
                     ? measureAllToAll(ranks, config->bytes, config->iterations)
                     : measureBroadcast(ranks, config->bytes, config->iterations);
  });
}

int32_t wl_floor_copy(uint64_t bytes, int32_t from_dtype, int32_t to_dtype, int32_t iterations,
                      double* median_us, wl_error_t* error) {
  return guarded(error, [&] {
    require(median_us != nullptr, "median_us: NULL");
    require(isDType(from_dtype) && isDType(to_dtype), "from_dtype, to_dtype: no such dtype");
    const auto from = static_cast<DType>(from_dtype);
    const auto to = static_cast<DType>(to_dtype);
    require(canCast(from, to), "from_dtype, to_dtype: no cast between them");
    require(bytes >= 1 && bytes <= uint64_t{1} << 40, "bytes: not in 1 to 1 TiB");
    require(bytes % sizeOf(from) == 0, "bytes: not a multiple of the element's size");
    require(iterations >= 1, "iterations: less than 1");
    *median_us = measureCopy(bytes, from, to, iterations);
  });
}
