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

std::string Machine::trace() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string events;
  const auto event = [&](const std::string& fields) {
    events += (events.empty() ? "\n{" : ",\n{") + fields + "}";
  };
  const auto rowOf = [](uint32_t block, Pipe pipe) {
    return block * kPipes + static_cast<size_t>(pipe);
  };
  const auto row = [](uint32_t rank, size_t thread) {
    return ",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(thread);
  };
  for (uint32_t rank = 0; rank < config_.ranks; ++rank) {
    event("\"name\":\"process_name\",\"ph\":\"M\"" + row(rank, 0) + ",\"args\":{\"name\":\"rank " +
          std::to_string(rank) + "\"}");
    for (uint32_t block = 0; block < config_.blocks; ++block) {
      for (const Pipe pipe : kEveryPipe) {
        event("\"name\":\"thread_name\",\"ph\":\"M\"" + row(rank, rowOf(block, pipe)) +
              ",\"args\":{\"name\":\"block " + std::to_string(block) + " " + nameOf(pipe) + "\"}");
      }
    }
  }
  for (const Span& span : spans_) {
    event(std::string("\"name\":\"") + span.origin.instruction + "\",\"ph\":\"X\"" +
          row(span.origin.rank, rowOf(span.origin.block, span.pipe)) +
          ",\"ts\":" + std::to_string(span.start) + ",\"dur\":" + std::to_string(span.cycles) +
          ",\"args\":{\"number\":" + std::to_string(span.origin.number) +
          ",\"bytes\":" + std::to_string(span.bytes) + "}");
  }
  return "{\"traceEvents\":[" + events + "\n]}\n";
}

}  // namespace windlass::checked
