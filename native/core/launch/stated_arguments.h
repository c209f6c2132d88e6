// SPDX-License-Identifier: Apache-2.0
// The words with which a rank states a launch's arguments in its ENTER, and the text about two
// ranks whose words differ.
#pragma once

#include <cstdint>

#include "native/base/text.h"
#include "native/core/launch/kernel_library.h"

namespace windlass {

// Words of one launch. First comes one word for each argument: a scalar's bits, or a tensor's
// fingerprint. Each tensor adds the number of its words, then its dtype, ndim and shape. A
// distributed tensor also adds a word that identifies its window, unless the window is empty, and
// its offset there. A tensor without room adds only the number 0.
class StatedArguments {
 public:
  explicit StatedArguments(const LoadedKernel& kernel)
      : count_(kernel.entry->argumentCount), size_(count_) {}

  // Words of argument `number`. Arguments are added in order, and the words of a tensor one by one.
  void scalar(uint32_t number, uint64_t bits) { words_[number] = bits; }
  void beginTensor(uint32_t number);
  void add(uint64_t word);

  // Fingerprint of the values that must match on every rank.
  uint64_t fingerprint() const;
  const uint64_t* words() const { return words_; }
  uint64_t bytes() const { return size_ * sizeof *words_; }

 private:
  static constexpr uint32_t kMostWords = 512;
  // Most words of one tensor, with their count.
  static constexpr uint32_t kMostOfTensor = 1 + 2 + WL_MAX_DIMS + 2;

  const uint32_t count_;
  uint32_t size_;
  uint32_t number_ = 0;  // number of the tensor whose words are being added
  uint32_t head_ = 0;    // index of the tensor's number of words; 0: there is no room
  uint64_t words_[kMostWords];
};

// Example: "; argument 0, in, is f32[8] on rank 0 and f32[9] on rank 1". Names the first argument
// for which ranks a and b state different words.
void addDifference(Text& out, const LoadedKernel& kernel, uint32_t a, const uint64_t* ofA,
                   uint32_t b, const uint64_t* ofB);

}  // namespace windlass
