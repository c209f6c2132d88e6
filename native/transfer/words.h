// SPDX-License-Identifier: Apache-2.0
// 64-bit words in which a caller passes a plan to native code, and in which ranks exchange it.
#pragma once

#include <cstdint>
#include <vector>

#include "native/base/error.h"
#include "native/base/text.h"

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

// Names in errors about a list of a caller's words: of the list, of one entry, of several entries,
// and of what an entry states.
struct WordsOf {
  const char* name;
  const char* entry;
  const char* entries;
  const char* stated;
};

// Calls read(in, error) for each of `count` entries, which begin with `head` words, and checks that
// no word is left. An error's message begins with the entry's number.
template <class Read>
Code readWords(const WordsOf& of, const int64_t* words, uint64_t wordCount, uint64_t count,
               uint64_t head, wl_error_t* error, const Read& read) {
  if (words == nullptr && wordCount != 0)
    return fail(error, WL_INVALID_ARGUMENT, "%s is NULL", of.name);
  Words in(words, wordCount);
  wl_error_t why = blankError();
  for (uint64_t i = 0; i < count; ++i) {
    if (!in.has(head)) {
      return fail(error, WL_INVALID_ARGUMENT, "%s end within %s %llu", of.name, of.entry, text(i));
    }
    if (read(in, &why) == WL_OK) continue;
    char prefix[64];
    Text(prefix, sizeof prefix).add("%s %llu: ", of.stated, text(i));
    return copyError(error, why, prefix);
  }
  if (in.ended()) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s hold more words than %llu %s need", of.name,
              text(count), of.entries);
}

// Calls visit(item) for each item from word `at` on.
template <class Item, class Visit>
void forEachIn(const WordList& words, uint64_t at, Visit&& visit) {
  const uint64_t* end = words.data() + words.size();
  Item item = {words.data() + at};
  for (; item.words != end; item.words += item.size()) visit(static_cast<const Item&>(item));
}

inline void append(WordList* words, const int64_t* more, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) words->push_back(static_cast<uint64_t>(more[i]));
}

}  // namespace windlass
