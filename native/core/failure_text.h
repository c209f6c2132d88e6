// SPDX-License-Identifier: Apache-2.0
// Texts of failure records.
#pragma once

#include <cstddef>
#include <functional>

#include "native/base/text.h"
#include "native/core/group.h"

namespace windlass {

struct OffloadProgress;  // native/core/offload_line.h

// Example: "all-to-all(1024 x f32, push)".
void describe(const Descriptor& descriptor, char* text, size_t room);

struct Described {
  explicit Described(const Descriptor& descriptor) { describe(descriptor, text, sizeof text); }

  char text[256];
};

// Example: "barrier #7", or "put after #7" for an operation that takes no sequence.
struct OperationText {
  explicit OperationText(const State& state);

  char text[48];
};

// A text names up to kNamedRanks faulty ranks. If there are at most kDescribedRanks of them, it
// also says what their operations move.
constexpr uint32_t kNamedRanks = 8;
constexpr uint32_t kDescribedRanks = 3;

// Adds the current or last call of `peer`, and its process. `described`: also adds what the call
// moves.
void addWhereabouts(Text& out, const Group& group, uint32_t peer, bool described);
// Adds the phases of the operation that the devices of the record's faulty ranks have ended.
void writeProgress(Text& out, const OffloadProgress& progress, const wl_error_t& record);
// Returns the record for a process `pid` that is gone or silent. `why` is the verb of the text,
// such as "has ended". The text names the ranks of the process, for which isOwn(rank) is true,
// unless they have left. It also names their operations, and the operations of ranks of other
// processes.
wl_error_t lostOf(const Group& group, int32_t pid, const char* why,
                  const std::function<bool(uint32_t rank)>& isOwn);
// Returns the record for the process of rank `peer`, which has ended.
wl_error_t endedOf(const Group& group, uint32_t peer);
// Returns the record that `rank` gets if the others have continued without it.
wl_error_t leftOutOf(const Group& group, uint32_t rank);
// Returns the record for a rank whose host was suspended for about silenceNs or longer.
wl_error_t stoodStillOf(const Group& group, uint32_t rank, int64_t silenceNs);
// Writes that ranks a and b, which have entered `sequence`, called different operations.
void writeMismatch(Text& out, const Group& group, uint32_t a, uint32_t b, uint64_t sequence);

}  // namespace windlass
