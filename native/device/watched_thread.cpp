// SPDX-License-Identifier: Apache-2.0
#include "native/device/watched_calls.h"

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "native/base/makes_threads.h"

namespace windlass {

const char* runWatched(std::function<void()> body, int64_t limitNs) {
  const auto calls = std::make_shared<WatchedCalls>();
  std::packaged_task<void()> task([calls, body = std::move(body)]() noexcept {
    calls->watchThisThread();
    body();
  });
  const std::future<void> over = task.get_future();
  std::thread thread;
  {
    const MakesThreads making;
    thread = std::thread(std::move(task));
  }
  const int64_t endNs = clockNs() + limitNs;
  while (over.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    const int64_t now = clockNs();
    const char* const call = now < endNs ? nullptr : calls->giveUp(now);
    if (call == nullptr) continue;
    thread.detach();
    return call;
  }
  thread.join();
  return nullptr;
}

}  // namespace windlass
