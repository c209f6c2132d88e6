// SPDX-License-Identifier: Apache-2.0
#include "native/device/watched_thread.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "native/base/makes_threads.h"
#include "native/device/watched_calls.h"

namespace windlass {
namespace {

struct Running {
  std::function<void()> body;
  WatchedCalls calls;
  std::mutex mutex;  // guards isOver
  std::condition_variable changed;
  bool isOver = false;
};

}  // namespace

const char* runWatched(std::function<void()> body, int64_t limitNs) {
  const auto running = std::make_shared<Running>();
  running->body = std::move(body);
  std::thread thread;
  {
    const MakesThreads making;
    thread = std::thread([running] {
      running->calls.watchThisThread();
      running->body();
      const std::lock_guard<std::mutex> lock(running->mutex);
      running->isOver = true;
      running->changed.notify_all();
    });
  }
  const int64_t endNs = clockNs() + limitNs;
  std::unique_lock<std::mutex> lock(running->mutex);
  while (!running->changed.wait_for(lock, std::chrono::milliseconds(20),
                                    [&] { return running->isOver; })) {
    const int64_t now = clockNs();
    const char* const call = now < endNs ? nullptr : running->calls.giveUp(now);
    if (call == nullptr) continue;
    thread.detach();
    return call;
  }
  lock.unlock();
  thread.join();
  return nullptr;
}

}  // namespace windlass
