// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/machine.h"

#include <algorithm>

namespace windlass::checked {

Machine::Machine(const MachineConfig& config) : config_(config) {
  if (config.ranks > kMostDeviceRanks) {
    report(Rule::kRanks, {"launch", 0, 0, 0}, std::to_string(config.ranks) + " ranks");
  }
}

void Machine::report(Rule rule, const Origin& origin, const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool isFirst = ++breachesOf_[static_cast<size_t>(rule)] == 1;
  if (++breachCount_ <= kKept || isFirst)
    breaches_.push_back({rule, config_.kernel, origin, what});
}

void Machine::add(const Counters& counters, std::vector<Span> spans) {
  const std::lock_guard<std::mutex> lock(mutex_);
  counters_.add(counters);
  counters_.cycles = std::max(counters_.cycles, counters.cycles);
  spans_.insert(spans_.end(), spans.begin(), spans.end());
}

std::string Machine::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (breachCount_ == 0) return "";
  const std::string seed = std::string("on ") + config_.architecture.name +
                           ", seed of the pipes' order " + std::to_string(config_.seed);
  std::string text;
  std::string others;
  bool told[kRules] = {};
  for (const Breach& breach : breaches_) {
    const auto rule = static_cast<size_t>(breach.rule);
    if (told[rule]) continue;
    told[rule] = true;
    const uint64_t more = breachesOf_[rule] - 1;
    std::string lines = breach.text() + "\n";
    if (more > 0)
      lines += "and " + std::to_string(more) + " more of " + nameOf(breach.rule) + "\n";
    if (others.empty() && text.size() + lines.size() + seed.size() <= kMostReport) {
      text += lines;
    } else {
      others += (others.empty() ? "and of " : ", ") + std::string(nameOf(breach.rule));
    }
  }
  if (!others.empty()) others += "\n";
  return text + others + seed;
}

}  // namespace windlass::checked
