// SPDX-License-Identifier: Apache-2.0
// Words of any number that the ranks of a registration tell one another: rounds of operations whose
// inputs the control block stages, so that nobody reads another's memory.
#pragma once

#include <vector>

#include "native/comm/comm.h"
#include "native/transfer/words.h"

namespace windlass {

// Every call is collective and states the same on every rank: the registration's fingerprint. One
// that finds no memory takes part to its end, with words missing; outcome() tells the others.
class Exchange {
 public:
  Exchange(Comm& comm, uint64_t fingerprint, int64_t deadlineNs, wl_error_t* error)
      : comm_(comm), fingerprint_(fingerprint), deadlineNs_(deadlineNs), error_(error) {}
  // Before any other call but outcome(). Throws std::bad_alloc.
  void reserve();

  // Ok where every rank is; else what the first failing one states, told as of its part of the
  // transfer.
  Code outcome(const wl_error_t& own);
  // (*all)[rank] = its words, unless `all` is nullptr.
  Code gather(const WordList& own, std::vector<WordList>* all);
  // words[rank], one list a rank, which are for that rank, become those that it had for this one.
  Code exchange(std::vector<WordList>* words);
  // Each value becomes the reduction of all ranks' by `op`.
  Code reduce(uint64_t* values, uint64_t count, wl_reduce_op op);
  // Whether this rank found no memory, and whether no rank did so far in exchange().
  bool outOfMemory() const { return outOfMemory_; }
  bool isWhole() const { return isWhole_; }

 private:
  Call call(wl_reduce_op op, const void* in, void* out, uint64_t bytes, uint64_t inBytes) const;
  uint64_t stagedWords() const;
  // Whether there is memory for so many words of each rank.
  bool makeRoom(const int64_t* totals, std::vector<WordList>* all);

  Comm& comm_;
  const uint64_t fingerprint_;
  const int64_t deadlineNs_;
  wl_error_t* const error_;
  bool outOfMemory_ = false;
  bool isWhole_ = true;
  std::vector<int64_t> counts_;  // of a round, and of all words: one a rank
  WordList in_;
  WordList out_;
};

}  // namespace windlass
