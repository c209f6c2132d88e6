// SPDX-License-Identifier: Apache-2.0
// How a peer is sampled, by the method of `windlass bench`: in an iteration every rank rewrites its
// input, takes `ready`, lines up, calls, and takes `leave`; a sample is max(leave) - max(ready).
// Ranks are threads or processes: what they share lies in one zeroed block that all of them map.
// A line is printed for each size: bytes, then median, p99, min, stream, empty and floor (NaN: a
// peer has none), in microseconds.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace peers {

// Time that a rank with its own core spins before it yields, as in Windlass's benchmark.
constexpr int64_t kSpinNs = 2'000;
constexpr uint32_t kMostRanks = 64;
constexpr uint32_t kMostIterations = 30000;
constexpr uint32_t kFewestIterations = 3;
constexpr int kBatches = 5;
constexpr double kWarmUpShare = 0.5;
constexpr double kEmptyShare = 0.2;
constexpr double kStreamShare = 0.2;
constexpr int kRoot = 0;

inline int64_t clockNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

[[noreturn]] inline void stop(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

// Memory that ranks share. Each word that several ranks write has two cache lines of its own, and
// so have the stamps of each rank.
struct Shared {
  struct alignas(128) Word {
    std::atomic<uint32_t> value;
  };
  struct alignas(128) Stamps {
    int64_t ready[kMostIterations];
    int64_t leave[kMostIterations];
  };
  struct alignas(128) Post {
    std::atomic<uint64_t> entered;
  };
  Word arrived;
  Word sense;
  Word count;  // iterations of the batch to come; 0: no further batch
  Post posts[kMostRanks];
  Stamps stamps[kMostRanks];
};

inline uint32_t allowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0
             ? static_cast<uint32_t>(CPU_COUNT(&allowed))
             : 1;
}

// A barrier of the ranks before a sample: one atomic counter, one sense word.
class LineUp {
 public:
  LineUp(Shared& shared, uint32_t ranks, uint32_t cores)
      : shared_(shared), ranks_(ranks), spinNs_(ranks <= cores ? kSpinNs : 0) {}

  void arriveAndWait() {
    const uint32_t sense = shared_.sense.value.load(std::memory_order_relaxed);
    if (shared_.arrived.value.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
      shared_.arrived.value.store(0, std::memory_order_relaxed);
      shared_.sense.value.store(sense + 1, std::memory_order_release);
      return;
    }
    const auto isOpen = [&] {
      return shared_.sense.value.load(std::memory_order_acquire) != sense;
    };
    const int64_t start = spinNs_ > 0 ? clockNs() : 0;
    while (spinNs_ > 0 && clockNs() - start < spinNs_) {
      if (isOpen()) return;
      __builtin_ia32_pause();
    }
    while (!isOpen()) sched_yield();
  }

 private:
  Shared& shared_;
  const uint32_t ranks_;
  const int64_t spinNs_;
};

// The work of one rank in a sample.
struct Work {
  uint64_t bytes;                                   // the size, as the line names it
  std::function<void(uint64_t iteration)> rewrite;  // writes this rank's input, if it has one
  std::function<void(int root)> run;
  std::function<void(uint64_t iteration)> verify;  // stops unless the output is the iteration's
};

// Samples one rank's work; all ranks run it side by side.
class Sampler {
 public:
  Sampler(Shared& shared, const Work& work, uint32_t rank, uint32_t ranks, uint32_t cores,
          double seconds)
      : shared_(shared),
        work_(work),
        rank_(rank),
        ranks_(ranks),
        lineUp_(shared, ranks, cores),
        seconds_(seconds) {}

  // Rank 0 prints the line.
  void run() {
    sample(1);
    verify();
    const auto samples = [&](uint32_t count) { return sample(count); };
    collect(seconds_ * kWarmUpShare, 1, samples);
    const Taken timed = collect(seconds_, kFewestIterations, samples);
    verify();
    const Taken empty =
        warmed(seconds_ * kEmptyShare, [&](uint32_t count) { return sampleEmpty(count); });
    const Taken streamed =
        warmed(seconds_ * kStreamShare, [&](uint32_t count) { return stream(count); });
    sample(1);
    verify();
    if (rank_ == 0) {
      const double streamNs =
          std::accumulate(streamed.samples.begin(), streamed.samples.end(), 0.0);
      std::printf("%llu %.3f %.3f %.3f %.3f %.3f NaN %.3f\n",
                  static_cast<unsigned long long>(work_.bytes), micros(timed, 0.5),
                  micros(timed, 0.99), micros(timed, 0),
                  streamNs / 1e3 / static_cast<double>(streamed.iterations), micros(empty, 0.5),
                  micros(empty, 0.99));
      std::fflush(stdout);
    }
  }

 private:
  struct Taken {
    std::vector<int64_t> samples;
    uint64_t iterations = 0;
  };

  // The smallest sample that at least `share` of all do not exceed.
  static double micros(const Taken& taken, double share) {
    std::vector<int64_t> sorted = taken.samples;
    std::sort(sorted.begin(), sorted.end());
    const auto rank = static_cast<std::size_t>(std::ceil(share * sorted.size()));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1] / 1e3;
  }

  // Batches for `time` seconds, of `fewest` iterations or more in all, each as large as the one
  // before says; rank 0 decides and gets the samples. A batch returns how many stamps it took.
  template <class Batch>
  Taken collect(double time, uint32_t fewest, const Batch& batch) {
    Taken taken;
    const double limit = time * 1e9;
    const int64_t start = clockNs();
    double spent = 0;
    uint32_t count = 1;
    do {
      const uint32_t stamped = batch(count);
      lineUp_.arriveAndWait();
      if (rank_ == 0) {
        append(taken.samples, stamped);
        taken.iterations += count;
        const double before = spent;
        spent = static_cast<double>(clockNs() - start);
        const double left = std::min(limit - spent, limit / kBatches);
        double fits = left * count / (spent - before);
        const double need = static_cast<double>(fewest) - static_cast<double>(taken.iterations);
        const double most = kMostIterations - static_cast<double>(taken.iterations);
        fits = std::max(1.0, std::min(std::max(fits, need), most));
        const bool more = need > 0 || (spent < limit && most > 0);
        shared_.count.value.store(more ? static_cast<uint32_t>(fits) : 0);
      }
      lineUp_.arriveAndWait();
      count = shared_.count.value.load();
      lineUp_.arriveAndWait();
    } while (count != 0);
    return taken;
  }

  template <class Batch>
  Taken warmed(double time, const Batch& batch) {
    collect(time / 2, 1, batch);
    return collect(time / 2, 1, batch);
  }

  void append(std::vector<int64_t>& samples, uint32_t count) const {
    for (uint32_t i = 0; i < count; ++i) {
      int64_t ready = shared_.stamps[0].ready[i];
      int64_t leave = shared_.stamps[0].leave[i];
      for (uint32_t rank = 1; rank < ranks_; ++rank) {
        ready = std::max(ready, shared_.stamps[rank].ready[i]);
        leave = std::max(leave, shared_.stamps[rank].leave[i]);
      }
      samples.push_back(leave - ready);
    }
  }

  void rewrite() {
    ++iteration_;
    work_.rewrite(iteration_);
  }

  // One call that nobody times, since its memory and processes are cold, then `iterations`.
  uint32_t sample(uint32_t iterations) {
    Shared::Stamps& stamps = shared_.stamps[rank_];
    rewrite();
    lineUp_.arriveAndWait();
    work_.run(kRoot);
    for (uint32_t i = 0; i < iterations; ++i) {
      rewrite();
      stamps.ready[i] = clockNs();
      lineUp_.arriveAndWait();
      work_.run(kRoot);
      stamps.leave[i] = clockNs();
      // Nobody rewrites beside a rank that is still in the call.
      lineUp_.arriveAndWait();
    }
    return iterations;
  }

  uint32_t sampleEmpty(uint32_t iterations) {
    Shared::Stamps& stamps = shared_.stamps[rank_];
    rewrite();
    lineUp_.arriveAndWait();
    for (uint32_t i = 0; i < iterations; ++i) {
      rewrite();
      stamps.ready[i] = clockNs();
      lineUp_.arriveAndWait();
      stamps.leave[i] = clockNs();
      lineUp_.arriveAndWait();
    }
    return iterations;
  }

  // Calls back to back between two stamps, roots rotating.
  uint32_t stream(uint32_t calls) {
    Shared::Stamps& stamps = shared_.stamps[rank_];
    work_.run(kRoot);
    stamps.ready[0] = clockNs();
    lineUp_.arriveAndWait();
    for (uint32_t i = 1; i <= calls; ++i) {
      work_.run(static_cast<int>(i % ranks_));
    }
    stamps.leave[0] = clockNs();
    return 1;
  }

  // Checks what the last iteration of `sample` has left.
  void verify() {
    work_.verify(iteration_);
    lineUp_.arriveAndWait();
  }

  Shared& shared_;
  const Work& work_;
  const uint32_t rank_;
  const uint32_t ranks_;
  LineUp lineUp_;
  const double seconds_;
  uint64_t iteration_ = 0;
};

}  // namespace peers
