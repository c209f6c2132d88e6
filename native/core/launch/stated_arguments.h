// SPDX-License-Identifier: Apache-2.0
// What ranks state of the arguments of a launch with their ENTER, and what is said where two state
// different things.
#pragma once

#include <cstdint>

#include "native/base/text.h"
#include "native/core/launch/kernel_library.h"
#include "windlass/windlass.h"

namespace windlass {

// Words: a fingerprint of each argument, of a scalar its bits. Then for each tensor how many words
// follow of it: dtype, ndim, shape, and of a distributed one where its window lies, if that holds
// anything, and the offset there. None follow once there is no room.
class StatedArguments {
 public:
  explicit StatedArguments(const LoadedKernel& kernel)
      : count_(kernel.entry->argumentCount), size_(count_) {}

  // Of argument `number`; arguments come in order, and the words of a tensor one by one.
  void scalar(uint32_t number, uint64_t bits) { words_[number] = bits; }
  void beginTensor(uint32_t number);
  void add(uint64_t word);

  // Of what is the same on every rank.
  uint64_t fingerprint() const;
  const uint64_t* words() const { return words_; }
  uint64_t bytes() const { return size_ * sizeof *words_; }

 private:
  static constexpr uint32_t kMostWords = 512;
  // Of one tensor, with their number.
  static constexpr uint32_t kMostOfTensor = 1 + 2 + WL_MAX_DIMS + 2;

  const uint32_t count_;
  uint32_t size_;
  uint32_t number_ = 0;  // of the tensor whose words come
  uint32_t head_ = 0;    // where their number stands; 0: there was no room
  uint64_t words_[kMostWords];
};

// "; argument 0, in, is f32[8] on rank 0 and f32[9] on rank 1": the first argument of which ranks a
// and b state different words.
void addDifference(Text& out, const LoadedKernel& kernel, uint32_t a, const uint64_t* ofA,
                   uint32_t b, const uint64_t* ofB);

}  // namespace windlass
