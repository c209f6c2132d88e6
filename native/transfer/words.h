// SPDX-License-Identifier: Apache-2.0
// 64-bit words in which a caller passes a plan to native code, and in which ranks exchange it.
#pragma once

#include <cstdint>
#include <vector>

namespace windlass {

using WordList = std::vector<uint64_t>;

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

inline void append(WordList* words, const int64_t* more, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) words->push_back(static_cast<uint64_t>(more[i]));
}

}  // namespace windlass
