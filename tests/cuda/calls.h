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

// Records the call, and blocks in a call that the test holds, without the lock. Returns the result
// that the test set, or 0 if the call shall do its work.
__attribute__((format(printf, 2, 3))) int record(std::unique_lock<std::mutex>& lock,
                                                 const char* format, ...);

// True if a call that the test makes fail still does its work. A driver's call may do that when it
// reports an earlier error.
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
// Begins a call that frees something. The call returns `told` after the work.
#define BEGIN_GIVING(...)                               \
  std::unique_lock<std::mutex> lock(stand_in::mutex);   \
  const int told = stand_in::record(lock, __VA_ARGS__); \
  if (told != 0 && !stand_in::isDone) return told;
#define BEGIN_GIVING_IN_CONTEXT(...) \
  BEGIN_GIVING(__VA_ARGS__)          \
  if (stand_in::current.empty()) return stand_in::kInvalidContext;
