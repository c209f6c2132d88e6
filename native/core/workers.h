// SPDX-License-Identifier: Apache-2.0
// Additional threads that run items of a rank's operation, for machines with more cores than ranks.
// They start with the first operation that is long enough, spin for a while between operations,
// then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace windlass {

class Workers {
 public:
  // Runs one item if any is ready. Returns true if it did.
  using Step = bool (*)(void* context);

  explicit Workers(uint32_t count) : count_(count) {}
  ~Workers();

  // Until close(), workers call step(context) repeatedly. If the system lacks threads, fewer
  // workers run, or none.
  void open(Step step, void* context);
  // Returns after the last worker has left step().
  void close();

 private:
  void work();
  void start();

  const uint32_t count_;
  std::vector<std::thread> threads_;
  Step step_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> opened_{
      0};  // counts jobs; the futex that idle workers sleep on
  std::atomic<uint32_t> sleeping_{0};
  std::atomic<bool> ending_{false};
  alignas(64) std::atomic<uint32_t> job_{0};  // the job that is open, or 0
  std::atomic<uint32_t> inside_{0};           // workers that may be inside step()
};

}  // namespace windlass
