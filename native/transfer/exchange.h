// SPDX-License-Identifier: Apache-2.0
// Words of any number that the ranks of a registration tell one another: rounds of operations whose
// inputs ride with ENTER, so that nobody reads another's memory.
#pragma once

#include <functional>
#include <vector>

#include "native/core/shared/object_operations.h"
#include "native/transfer/words.h"

namespace windlass {

// Every call is collective and states the same on every rank: the registration's fingerprint. All
// of them have one deadline, from when the rank's Exchange is made. A rank that can't go on says
// why by failure(), and takes part in the next call, whatever it has for it: that one returns on
// all ranks what the first such rank states, told as of its part of the transfer. A call that finds
// no memory sets it.
class Exchange {
 public:
  Exchange(Comm& comm, uint64_t fingerprint, int64_t deadlineNs, wl_error_t* error);
  // Before gather(), the first call, which tells the others where it could not: it throws
  // std::bad_alloc.
  void reserve();

  wl_error_t* failure() { return &failure_; }
  bool failed() const { return failure_.code != WL_OK; }

  // A gather's round: words [at, end) of each rank, of which it has totals[rank] in all.
  struct Round {
    uint64_t at;
    uint64_t end;
    const uint64_t* totals;
    const uint64_t* first;  // rank 0's
    uint64_t stride;        // words from one rank's to the next's

    const uint64_t* words(uint32_t rank) const { return first + rank * stride; }
    uint64_t count(uint32_t rank) const {
      const uint64_t last = totals[rank] < end ? totals[rank] : end;
      return last > at ? last - at : 0;
    }
  };
  // Calls take(round) for each, in order; it may throw std::bad_alloc.
  Code gather(const WordList& own, const std::function<void(const Round&)>& take);
  // words[rank], one list a rank, which are for that rank, become those that it had for this one.
  Code exchange(std::vector<WordList>* words);
  // Each value becomes the sum of all ranks'.
  Code sum(uint64_t* values, uint64_t count);

 private:
  Call call(wl_reduce_op op, const void* in, void* out, uint64_t bytes, uint64_t inBytes) const;
  uint64_t eagerWords() const;
  // out = max or sum of all ranks' words.
  Code reduce(wl_reduce_op op, const uint64_t* in, uint64_t* out, uint64_t count);
  // Once a rank has said that it can't go on.
  Code tell();
  void outOfMemory();

  Comm& comm_;
  const uint64_t fingerprint_;
  const TimeLimit limit_;
  wl_error_t* const error_;
  wl_error_t failure_ = blankError();
  WordList totals_;  // of a gather: one a rank
  WordList in_;
  WordList out_;
  // Where the target doesn't reduce words: those of all ranks, and one of each before reserve().
  static constexpr uint32_t kMostIsolated = 64;
  WordList gathered_;
  uint64_t oneEach_[kMostIsolated];
};

}  // namespace windlass
