// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/session.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "native/base/extent.h"

namespace windlass::checked {
namespace {

// Machines of operations in progress, by the communicator's signals and the operation's sequence
// number.
struct Machines {
  using Key = std::pair<const unsigned char*, uint32_t>;
  std::mutex mutex;
  std::map<Key, std::weak_ptr<Machine>> machines;

  static Machines& all() {
    static Machines* const machines = new Machines;  // never deleted: threads may outlast main()
    return *machines;
  }

  std::shared_ptr<Machine> join(const Architecture& architecture, const char* kernel,
                                uint32_t ranks, const InLine& line,
                                const RunRecorder& recorder) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (auto entry = machines.begin(); entry != machines.end();)
      entry = entry->second.expired() ? machines.erase(entry) : std::next(entry);
    std::weak_ptr<Machine>& held = machines[{line.lines, line.sequence}];
    std::shared_ptr<Machine> machine = held.lock();
    if (machine == nullptr) {
      const MachineConfig config = {architecture,          kernel,     ranks, line.cores,
                                    seedOf(line.sequence), recorder.isTracing()};
      // The machine is recorded when the last rank releases it.
      machine = std::shared_ptr<Machine>(new Machine(config), [&recorder](Machine* over) {
        try {
          record(recorder, *over);
        } catch (const std::bad_alloc&) {
          // A rank leaves its operation here, so nothing is thrown. The profile lacks a run.
        }
        delete over;
      });
      held = machine;
    }
    return machine;
  }
};

// Returns this process's choice of a seed.
const SeedChoice& chosenSeed() noexcept {
  static const SeedChoice choice = chooseSeed(std::getenv("WINDLASS_PIPE_SEED"));
  return choice;
}

}  // namespace

Session::Session(const Architecture& architecture, const char* kernel, uint32_t ranks,
                 const InLine& line, const std::vector<Reach>& reach, const RunRecorder& recorder)
    : machine_(Machines::all().join(architecture, kernel, ranks, line, recorder)) {
  for (const Reach& each : reach) {
    if (!each.isWindow) own_.push_back(each);
    machine_->memory().add(each);
  }
  for (uint32_t core = 0; core < line.cores; ++core)
    cores_.push_back(std::make_unique<Core>(*machine_, line.rank, core, line.patience));
}

Session::~Session() {
  for (const Region& each : own_) machine_->memory().drop(each);
}

Verdict Session::verdict(bool over) {
  if (over) {
    for (const std::unique_ptr<Core>& core : cores_) core->finish();
  }
  Verdict verdict = {machine_->report()};
  if (!verdict.broken.empty()) verdict.faultyRank = machine_->breaches().front().origin.rank;
  return verdict;
}

Reach reachOf(uint32_t rank, const StridedView& view) {
  int64_t bytes = 0;
  extentOf(view.ndim, view.shape, view.strides, sizeOf(view.dtype), &bytes);
  return {rank, view.data, static_cast<uint64_t>(bytes), false};
}

SeedChoice chooseSeed(const char* request) noexcept {
  SeedChoice choice = {};
  if (request == nullptr || *request == 0) return choice;
  const char* const end = request + std::strlen(request);
  const std::from_chars_result read = std::from_chars(request, end, choice.seed);
  choice.isGiven = read.ec == std::errc() && read.ptr == end;
  if (choice.isGiven) return choice;
  std::snprintf(choice.error, sizeof choice.error,
                "WINDLASS_PIPE_SEED is '%.40s', and a seed is a number from 0 to 2^64 - 1",
                request);
  return choice;
}

uint64_t seedOf(uint32_t sequence) {
  return chosenSeed().isGiven ? chosenSeed().seed : sequence;
}

const char* seedError() noexcept {
  const char* error = chosenSeed().error;
  return *error == 0 ? nullptr : error;
}

}  // namespace windlass::checked
