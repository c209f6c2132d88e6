// SPDX-License-Identifier: Apache-2.0
// Texts of failure records.
#pragma once

#include <cstddef>

#include "native/base/text.h"
#include "native/core/group.h"

namespace windlass {

struct OffloadProgress;  // native/core/offload_line.h

// Example: "all-to-all(1024 x f32, push)".
void describe(const Descriptor& descriptor, char* text, size_t room);

// Example: "barrier #7", or "put after #7" for an operation that takes no sequence.
class OperationText {
 public:
  OperationText(int32_t operation, uint32_t sequence);
  explicit OperationText(const State& state);
  const char* text() const { return text_; }

 private:
  char text_[48];
};

void writeAborted(Text& out, uint32_t rank, const char* reason);
// `rank` closes in the operation that its state names.
void writeClosed(Text& out, uint32_t rank, const State& state);
// Why the operation that its state names failed on `rank`.
void writeWhy(Text& out, uint32_t rank, const State& state, const char* why);
// `peer` left without entering the operation in which `rank` waits, as its state names it.
void writeMissed(Text& out, uint32_t peer, uint32_t rank, const State& state);
// The peer of a one-sided operation of `rank` has left.
void writeLeft(Text& out, uint32_t rank, const Descriptor& called);
// A wait that has reached its deadline.
struct TimedOut {
  const Group& group;
  uint32_t rank;
  const Descriptor& called;
  int64_t limitNs;
};
// The rank waited for the peer's signal, whose value is `seen`.
void writeSignalTimeout(Text& out, const TimedOut& wait, uint32_t seen);
// `behind`: the culprits have not entered the operation. Otherwise they have not finished it.
void writeTimeout(Text& out, const TimedOut& wait, uint32_t sequence, const int32_t* culprits,
                  uint32_t count, bool behind);
// Phases of the operation that the culprits' devices have ended.
void writeProgress(Text& out, const OffloadProgress& progress, const int32_t* culprits,
                   uint32_t count);
// The process `pid` is gone or silent. `why` is the verb of the text, as "has ended". Names the
// operations of its `count` ranks, of which `ranks` are the first, and those of ranks of other
// processes.
wl_error_t lostOf(const Group& group, int32_t pid, const char* why, const int32_t* ranks,
                  uint32_t count);
// Names the ranks of the process: those for which isOwn(rank) is true and that have not left.
template <class IsOwn>
wl_error_t lostOf(const Group& group, int32_t pid, const char* why, IsOwn&& isOwn) {
  int32_t ranks[WL_ERROR_CULPRITS];
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < group.ranks(); ++rank) {
    if (group.lines(rank).state.left.load(std::memory_order_seq_cst) != 0 || !isOwn(rank)) continue;
    if (count < WL_ERROR_CULPRITS) ranks[count] = static_cast<int32_t>(rank);
    ++count;
  }
  return lostOf(group, pid, why, ranks, count);
}
// The process of rank `peer` has ended.
wl_error_t endedOf(const Group& group, uint32_t peer);
// `rank` cannot read the memory that `peer` names in the operation of its state; `reason` is the
// errno.
void writeUnread(Text& out, uint32_t rank, uint32_t peer, int32_t pid, const State& state,
                 int reason);
// Returned to `rank` if the others have continued without it.
wl_error_t leftOutOf(const Group& group, uint32_t rank);
// Returned to a rank of a host that was suspended for about silenceNs or longer.
wl_error_t stoodStillOf(const Group& group, uint32_t rank, int64_t silenceNs);
// Ranks a and b, which entered `sequence`, call different things.
void writeMismatch(Text& out, const Group& group, uint32_t a, uint32_t b, uint64_t sequence);
// `other` left without entering the operation that `caller` entered as `sequence`.
void writeUnmatched(Text& out, const Group& group, uint32_t caller, uint32_t other,
                    uint64_t sequence);

}  // namespace windlass
