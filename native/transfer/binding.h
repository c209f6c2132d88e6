// SPDX-License-Identifier: Apache-2.0
// Local views as a plan names them, read from the words of wl_transfer_config and checked.
#pragma once

#include <cstdint>
#include <vector>

#include "native/base/error.h"
#include "windlass/kernel.h"

namespace windlass {

struct Binding {
  DType dtype;
  uint32_t ndim;
  unsigned char* data;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
};

// Reads words in order and refuses to read past their end.
class Words {
 public:
  Words(const int64_t* words, uint64_t count) : words_(words), count_(count) {}
  bool has(uint64_t wanted) const { return count_ - at_ >= wanted; }
  int64_t take() { return words_[at_++]; }
  const int64_t* take(uint64_t n) {
    const int64_t* first = words_ + at_;
    at_ += n;
    return first;
  }
  bool ended() const { return at_ == count_; }

 private:
  const int64_t* words_;
  uint64_t count_;
  uint64_t at_ = 0;
};

// `role` is "source" or "target". Checks dtype, dimensions, alignment, and that every element lies
// inside [low, low + bytes). Targets may not have stride 0 over more than one element.
Code readBindings(const int64_t* words, uint64_t wordCount, uint32_t count, const char* role,
                  std::vector<Binding>* bindings, wl_error_t* error);

}  // namespace windlass
