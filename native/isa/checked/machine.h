// SPDX-License-Identifier: Apache-2.0
// The machine: the cores of all ranks while they run one kernel, modelled on one architecture. It
// collects breaches, counters and a trace. The caller adds the memory that a kernel touches before
// the kernel runs. Each core runs on its own thread or takes turns with others.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "native/base/profile.h"
#include "native/isa/checked/architecture.h"
#include "native/isa/checked/breach.h"
#include "native/isa/checked/global_memory.h"

namespace windlass::checked {

// Counters of finished cores.
struct Counters : KernelCounters {
  uint64_t cycles = 0;  // time until the last engine ends; maximum of all cores

  const Engine& of(Pipe pipe) const { return engines[static_cast<size_t>(pipe)]; }
};

// One instruction on its engine, with times in estimated cycles.
struct Span {
  Origin origin;
  Pipe pipe;
  uint64_t start;
  uint64_t cycles;
  uint64_t bytes;
};

struct MachineConfig {
  const Architecture& architecture;
  std::string kernel;
  uint32_t ranks = 1;
  uint32_t blocks = 1;  // cores of each rank
  uint64_t seed = 0;    // selects the order in which pipes run
  bool traces = false;
};

class Machine {
 public:
  explicit Machine(const MachineConfig& config);

  const MachineConfig& config() const { return config_; }
  const Architecture& architecture() const { return config_.architecture; }
  size_t pipes() const { return size_t{config_.ranks} * config_.blocks * kPipes; }
  GlobalMemory& memory() { return memory_; }

  void report(Rule rule, const Origin& origin, const std::string& what);
  void add(const Counters& counters, std::vector<Span> spans);

  // Number of all breaches, and the first ones. A correct kernel has none.
  uint64_t breachCount() const { return locked(breachCount_); }
  std::vector<Breach> breaches() const { return locked(breaches_); }
  // Returns "" without breaches. Otherwise returns the first breach of each rule, the number of
  // others, and the seed, in at most kMostReport bytes. It names the rules of breaches that don't
  // fit.
  std::string report() const;
  // Counters and spans of the finished cores.
  Counters counters() const { return locked(counters_); }
  std::vector<Span> spans() const { return locked(spans_); }

 private:
  static constexpr size_t kKept = 32;
  static constexpr size_t kMostReport = 1700;  // fits into an error message

  template <typename T>
  T locked(const T& value) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value;
  }

  const MachineConfig config_;
  GlobalMemory memory_;
  mutable std::mutex mutex_;
  uint64_t breachCount_ = 0;
  uint64_t breachesOf_[kRules] = {};
  std::vector<Breach> breaches_;  // the first ones, and the first one of each rule
  Counters counters_;
  std::vector<Span> spans_;
};

}  // namespace windlass::checked
