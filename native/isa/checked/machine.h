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

struct Counters {
  using Engine = KernelProfile::Engine;
  Engine engines[kPipes] = {};
  uint64_t flags = 0;  // number of set_flag instructions
  uint64_t barriers = 0;
  uint64_t notifies = 0;
  uint64_t bufferBytes = 0;  // highest end of a tile in the unified buffer of any core
  uint64_t cycles = 0;       // time until the last engine ends; maximum of all cores
  uint64_t coreCycles = 0;     // sum of `cycles` of all cores
  uint64_t overlapCycles = 0;  // time in which MTE2 and MTE3 are both busy
  uint64_t cores = 0;          // number of finished cores

  const Engine& of(Pipe pipe) const { return engines[static_cast<size_t>(pipe)]; }
  void add(const Counters& other);
};
// Adds the counters of every pipe.
void addEngines(Counters::Engine* to, const Counters::Engine* from);

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
  uint64_t breachCount() const;
  std::vector<Breach> breaches() const;
  // Returns "" without breaches. Otherwise returns the first breach of each rule, the number of
  // others, and the seed, in at most kMostReport bytes. It names the rules of breaches that don't
  // fit.
  std::string report() const;
  // Counters and spans of the finished cores.
  Counters counters() const;
  std::vector<Span> spans() const;

 private:
  static constexpr size_t kKept = 32;
  static constexpr size_t kMostReport = 1700;  // fits into an error message

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
