// SPDX-License-Identifier: Apache-2.0
// Waits for work on a GPU by polling, so that each wait has a deadline. The driver's own waits have
// none.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>

#include "native/base/clock.h"
#include "native/device/cuda/gpu.h"

namespace windlass::cuda {

// Time limit for copies. Only faults of the device delay them.
constexpr int64_t kCopyLimitNs = 30'000'000'000;
// kCopyLimitNs for copies and moves of ranks. Tests set less.
inline std::atomic<int64_t> copyLimitNs{kCopyLimitNs};

// Time for which a wait yields between polls. After that it sleeps, which takes about 70 us each
// time. This is little compared with the time already waited.
constexpr int64_t kYieldsNs = 4'000'000;

// Polls look() until it returns another result than kCuNotReady. Returns kCuNotReady after limitNs.
// Polls at least once.
template <class Look>
auto lookUntil(const Look& look, int64_t limitNs) {
  constexpr uint32_t kPauseUs = 20;
  const int64_t startNs = clockNs();
  for (;;) {
    const auto result = look();
    const int64_t now = clockNs();
    if (result != kCuNotReady || now >= startNs + limitNs) return result;
    if (now < startNs + kYieldsNs) {
      sched_yield();
    } else {
      usleep(kPauseUs);
    }
  }
}

// Polls `look` and converts its result. WL_DEADLINE_EXCEEDED after limitNs: the caller describes
// that error.
template <class Look>
Code poll(const Gpu& gpu, const Look& look, int64_t limitNs, wl_error_t* error) {
  const Called called = lookUntil(look, limitNs);
  return called == kCuNotReady ? WL_DEADLINE_EXCEEDED : gpu.check(called, error);
}

inline Code awaitStream(const Gpu& gpu, CuStream stream, int64_t limitNs, wl_error_t* error) {
  return poll(gpu, [&] { return gpu.cuda().cuStreamQuery(stream); }, limitNs, error);
}

// True if `result` means that the device has failed and runs nothing. False for results that the
// table of errors doesn't list.
inline bool isFailedDevice(CuResult result) {
  const Meaning meaning = meaningOf(result);
  return meaning.first >= 0 && meaning.code == WL_DEVICE;
}

// Call after a query of `stream`, or a launch, has failed. Returns true if its work may still run:
// it does not end within limitNs, or the driver does not say. Returns false if the work ends or the
// device has failed.
inline bool mayRunOn(const Gpu& gpu, CuStream stream, int64_t limitNs) {
  const CuResult result =
      lookUntil([&] { return gpu.cuda().cuStreamQuery(stream); }, limitNs);
  return result != kCuOk && !isFailedDevice(result);
}

}  // namespace windlass::cuda
