// SPDX-License-Identifier: Apache-2.0
// Work on the streams of the stand-in for the Ascend runtime.
#pragma once

#include <memory>
#include <string>

#define WL_STAND_IN_CORES 64

namespace stand_in {

enum class Progress { kMoved, kWaits, kOver, kBroken };

class Work {
 public:
  virtual ~Work() = default;
  // As far as it comes; *error: what is wrong, where it is broken.
  virtual Progress goOn(std::string* error) = 0;
};

// How many cores of a kernel run at a time on the stream's device.
uint32_t coresOf(void* stream);

// It runs while the stream is waited for.
void enqueue(void* stream, std::unique_ptr<Work> work);

}  // namespace stand_in
