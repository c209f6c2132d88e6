// SPDX-License-Identifier: Apache-2.0
// Waits for work on a GPU by looks, so that each has a deadline: the driver's own have none.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>

#include "native/base/clock.h"
#include "native/device/cuda/errors.h"
#include "native/device/cuda/gpu.h"

namespace windlass::cuda {

// Of copies, which nothing but the device's own faults holds up.
constexpr int64_t kCopyLimitNs = 30'000'000'000;
// The same of those of ranks and of moves; tests have less.
inline std::atomic<int64_t> copyLimitNs{kCopyLimitNs};

// A wait gives its core up between looks for so long; then it sleeps, which takes some 70 us each
// time, and is little beside what it has waited.
constexpr int64_t kYieldsNs = 4'000'000;

// Looks until look() returns another result than kCuNotReady; that one after limitNs, and one look
// at least.
template <class Look>
CuResult lookUntil(const Look& look, int64_t limitNs) {
  constexpr uint32_t kPauseUs = 20;
  const int64_t startNs = clockNs();
  for (;;) {
    const CuResult result = look();
    const int64_t now = clockNs();
    if (result != kCuNotReady || now >= startNs + limitNs) return result;
    if (now < startNs + kYieldsNs) {
      sched_yield();
    } else {
      usleep(kPauseUs);
    }
  }
}

// What `call` comes to, which is looked at so; WL_TIMEOUT after limitNs.
template <class Look>
Code poll(const Gpu& gpu, const char* call, const Look& look, int64_t limitNs, wl_error_t* error) {
  const CuResult result = lookUntil(look, limitNs);
  if (result != kCuNotReady) return gpu.check(result, call, error);
  return fail(error, WL_TIMEOUT, "device %u did not end what it was given within %lld ms",
              gpu.number(), static_cast<long long>(limitNs / 1'000'000));
}

inline Code awaitStream(const Gpu& gpu, CuStream stream, int64_t limitNs, wl_error_t* error) {
  return poll(
      gpu, "cuStreamQuery", [&] { return gpu.cuda().cuStreamQuery(stream); }, limitNs, error);
}

// True if `result` means that the device has failed and runs nothing. False for results that the
// table of errors doesn't list.
inline bool isFailedDevice(CuResult result) {
  const Meaning& meaning = meaningOf(result);
  return meaning.result == result && meaning.code == WL_DEVICE;
}

// After a query of `stream` failed, or a launch: whether its work may still run. It has until
// limitNs to end. A device that has failed says so then too.
inline bool mayRunOn(const Gpu& gpu, CuStream stream, int64_t limitNs) {
  const CuResult result =
      lookUntil([&] { return gpu.cuda().cuStreamQuery(stream); }, limitNs);
  return result != kCuOk && !isFailedDevice(result);
}

inline Code awaitEvent(const Gpu& gpu, CuEvent event, int64_t limitNs, wl_error_t* error) {
  return poll(
      gpu, "cuEventQuery", [&] { return gpu.cuda().cuEventQuery(event); }, limitNs, error);
}

}  // namespace windlass::cuda
