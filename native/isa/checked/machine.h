// SPDX-License-Identifier: Apache-2.0
// The machine: the cores of all ranks while they run one kernel, as an architecture has them, and
// what comes of it: breaches, counters and a trace. Memory that a kernel touches is named to it
// before; each core runs on a thread of its own or takes turns with others.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "native/isa/checked/architecture.h"
#include "native/isa/checked/breach.h"
#include "native/isa/checked/global_memory.h"

namespace windlass::checked {

struct Counters {
  struct Engine {
    uint64_t instructions = 0;
    uint64_t bytes = 0;
    uint64_t busyCycles = 0;
  };
  Engine engines[kPipes];
  uint64_t flags = 0;  // set
  uint64_t barriers = 0;
  uint64_t notifies = 0;
  uint64_t bufferBytes = 0;  // of the unified buffer, to the highest tile's end; most of any core
  uint64_t cycles = 0;       // until the last engine is done; most of any core
  uint64_t coreCycles = 0;     // the same of all cores together
  uint64_t overlapCycles = 0;  // in which MTE2 and MTE3 are both busy
  uint64_t cores = 0;          // that have finished

  const Engine& of(Pipe pipe) const { return engines[static_cast<size_t>(pipe)]; }
  void add(const Counters& other);
};

// An instruction on its engine, in estimated cycles.
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
  uint64_t seed = 0;    // of the order in which pipes run
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

  // All, and the first ones; none: the kernel is clean.
  uint64_t breachCount() const;
  std::vector<Breach> breaches() const;
  // Empty, or the first breach of each rule, a line each, how many more there are of it, and the
  // seed; at most kMostReport bytes, the last ones left out.
  std::string report() const;
  // Of the cores that have finished.
  Counters counters() const;
  std::vector<Span> spans() const;

 private:
  static constexpr size_t kKept = 32;
  static constexpr size_t kMostReport = 1700;  // messages of errors have room for it

  const MachineConfig config_;
  GlobalMemory memory_;
  mutable std::mutex mutex_;
  uint64_t breachCount_ = 0;
  uint64_t breachesOf_[kRules] = {};
  std::vector<Breach> breaches_;  // the first ones, and the first of each rule
  Counters counters_;
  std::vector<Span> spans_;
};

}  // namespace windlass::checked
