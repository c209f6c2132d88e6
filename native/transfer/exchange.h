// SPDX-License-Identifier: Apache-2.0
// Exchanges word lists of any length between the ranks of a registration. Each round is one eager
// operation, whose input travels with ENTER, so no rank reads another's memory.
#pragma once

#include <functional>
#include <new>
#include <vector>

#include "native/core/shared/object_operations.h"
#include "native/transfer/words.h"

namespace windlass {

// Every call is collective and carries the registration's fingerprint. All calls share one
// deadline, which starts with the constructor. A rank that fails or lacks memory records the reason
// in failure() and still makes the next call. That call then fails on all ranks with the first
// failing rank's error, whose message begins "rank N's part of the transfer: ".
class Exchange {
 public:
  Exchange(Comm& comm, uint64_t fingerprint, int64_t deadlineNs, wl_error_t* error);
  // Allocates buffers. Call before gather(), the first call, which reports a failure of reserve()
  // to the other ranks. Throws std::bad_alloc.
  void reserve();

  wl_error_t* failure() { return &failure_; }
  bool failed() const { return failure_.code != WL_OK; }
  // Runs this rank's next step, body(failure()), unless an earlier one has failed. `doing` ends the
  // message if the step runs out of memory. The next call reports a failure to the other ranks.
  template <class Body>
  void step(const char* doing, Body&& body) {
    if (failed()) return;
    try {
      body(failure());
    } catch (const std::bad_alloc&) {
      fail(failure(), WL_RESOURCE, "out of memory %s", doing);
    }
  }

  // One round of a gather: words [at, end) of each rank's totals[rank] words.
  struct Round {
    uint64_t at;
    uint64_t end;
    const uint64_t* totals;
    const uint64_t* first;  // words of rank 0
    uint64_t stride;        // words from one rank to the next

    const uint64_t* words(uint32_t rank) const { return first + rank * stride; }
    uint64_t count(uint32_t rank) const {
      const uint64_t last = totals[rank] < end ? totals[rank] : end;
      return last > at ? last - at : 0;
    }
  };
  // Calls take(round) for each round, in order. `take` may throw std::bad_alloc.
  Code gather(const WordList& own, const std::function<void(const Round&)>& take);
  // All-to-all: replaces words[rank], the list for each rank, with the list received from that
  // rank.
  Code exchange(std::vector<WordList>* words);
  // Replaces each value with its sum over all ranks.
  Code sum(uint64_t* values, uint64_t count);

 private:
  // Most words that travel with one rank's ENTER.
  uint64_t eagerWords() const;
  // Gathers the first `slot` words of in_ of each rank in out_.
  Code gatherSlots(uint64_t slot);
  // Shares the error after a rank has reported a failure.
  Code tell();

  Comm& comm_;
  const HostOperation of_;
  wl_error_t failure_ = blankError();
  WordList totals_;  // of a gather, per rank
  WordList in_;
  WordList out_;
};

}  // namespace windlass
