// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/machine.h"

#include <algorithm>

namespace windlass::checked {

void Counters::add(const Counters& other) {
  for (size_t pipe = 0; pipe < kPipes; ++pipe) {
    engines[pipe].instructions += other.engines[pipe].instructions;
    engines[pipe].bytes += other.engines[pipe].bytes;
    engines[pipe].busyCycles += other.engines[pipe].busyCycles;
  }
  flags += other.flags;
  barriers += other.barriers;
  notifies += other.notifies;
  bufferBytes = std::max(bufferBytes, other.bufferBytes);
  cycles = std::max(cycles, other.cycles);
  coreCycles += other.coreCycles;
  overlapCycles += other.overlapCycles;
  cores += other.cores;
}

Machine::Machine(const MachineConfig& config) : config_(config) {
  if (config.ranks > kMostDeviceRanks) {
    report(Rule::kRanks, {"launch", 0, 0, 0}, std::to_string(config.ranks) + " ranks");
  }
}

void Machine::report(Rule rule, const Origin& origin, const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (++breachCount_ <= kKept) breaches_.push_back({rule, config_.kernel, origin, what});
}

void Machine::add(const Counters& counters, std::vector<Span> spans) {
  const std::lock_guard<std::mutex> lock(mutex_);
  counters_.add(counters);
  spans_.insert(spans_.end(), spans.begin(), spans.end());
}

uint64_t Machine::breachCount() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return breachCount_;
}

std::vector<Breach> Machine::breaches() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return breaches_;
}

std::string Machine::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (breachCount_ == 0) return "";
  std::string text;
  for (const Breach& breach : breaches_) text += breach.text() + "\n";
  if (breachCount_ > breaches_.size()) {
    text += "and " + std::to_string(breachCount_ - breaches_.size()) + " more\n";
  }
  return text + "on " + config_.architecture.name + ", seed of the pipes' order " +
         std::to_string(config_.seed);
}

Counters Machine::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

std::vector<Span> Machine::spans() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return spans_;
}

}  // namespace windlass::checked
