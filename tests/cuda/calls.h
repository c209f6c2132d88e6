// SPDX-License-Identifier: Apache-2.0
// What the calls of the stand-in for NVIDIA's driver share: how they begin, and what they know of
// the process.
#pragma once

#include <mutex>
#include <vector>

#include "native/device/cuda/cuda.h"

namespace stand_in {

using windlass::cuda::CuResult;

constexpr CuResult kInvalidValue = 1;
constexpr CuResult kInvalidDevice = 101;
constexpr CuResult kInvalidImage = 200;
constexpr CuResult kInvalidContext = 201;
constexpr CuResult kInvalidHandle = 400;
constexpr CuResult kNotFound = 500;
constexpr CuResult kGridTooLarge = 720;

extern std::mutex mutex;                       // guards all that there is
extern thread_local std::vector<int> current;  // devices whose contexts are

// Records the call, and stays in one that is held, without the lock; what it shall return, 0 for
// what it does.
__attribute__((format(printf, 2, 3))) int record(std::unique_lock<std::mutex>& lock,
                                                 const char* format, ...);

// Whether a call that is told to fail does what it is for all the same, as one may that tells of
// what failed before it.
extern bool isDone;
// Counts a call on what is not there, which returns `result`.
CuResult refuse(CuResult result);

}  // namespace stand_in

#define CALL __attribute__((visibility("default")))
#define BEGIN(...)                                    \
  std::unique_lock<std::mutex> lock(stand_in::mutex); \
  if (const int told = stand_in::record(lock, __VA_ARGS__); told != 0) return told;
#define BEGIN_IN_CONTEXT(...) \
  BEGIN(__VA_ARGS__)          \
  if (stand_in::current.empty()) return stand_in::kInvalidContext;
// Of a call that gives something back, and returns `told` once it has.
#define BEGIN_GIVING(...)                               \
  std::unique_lock<std::mutex> lock(stand_in::mutex);   \
  const int told = stand_in::record(lock, __VA_ARGS__); \
  if (told != 0 && !stand_in::isDone) return told;
#define BEGIN_GIVING_IN_CONTEXT(...) \
  BEGIN_GIVING(__VA_ARGS__)          \
  if (stand_in::current.empty()) return stand_in::kInvalidContext;
