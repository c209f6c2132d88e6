// SPDX-License-Identifier: Apache-2.0
// Collectives that ranks enqueue on streams of a program's, on any GPUs.
#pragma once

#include <memory>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/cuda/user_streams.h"

namespace windlass_test {

inline int32_t enqueue(wl_comm_t* comm, uint64_t stream, int32_t operation, const void* in,
                       uint64_t inElements, void* out, uint64_t outElements, int32_t dtype,
                       int32_t algorithm, int64_t deadlineNs, uint64_t* ticket, Error* error) {
  return enqueueCollective(comm, stream, operation, in, inElements, out, outElements, dtype, WL_SUM,
                           algorithm, 0, 0, deadlineNs, ticket, error);
}
inline int32_t sum(wl_comm_t* comm, uint64_t stream, const int32_t* in, int32_t* out,
                   uint64_t count, uint64_t* ticket, Error* error, int64_t deadlineNs = 0) {
  return enqueue(comm, stream, WL_OP_ALL_REDUCE, in, count, out, count, WL_I32, WL_TWO_PHASE,
                 deadlineNs, ticket, error);
}

// Until the operation is over, or its communicator.
inline int32_t awaitEnqueued(wl_comm_t* comm, uint64_t ticket, Error* error) {
  int32_t over = 0;
  const int32_t code = wl_enqueued_await(comm, ticket, 60'000 * kMs, &over, error);
  if (code == WL_OK) {
    EXPECT_EQ(over, 1);
  }
  return code;
}

// One stream for each rank, on its device.
struct RankStreams {
  RankStreams(int ranks, int devices) {
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back(std::make_unique<UserStream>(rank % devices));
  }
  int ranks() const { return static_cast<int>(all.size()); }
  UserStream& stream(int rank) const { return *all[static_cast<size_t>(rank)]; }
  // All are part of what the first one captures.
  void beginCapture() const {
    stream(0).beginCapture();
    for (int rank = 1; rank < ranks(); ++rank) stream(rank).follow(stream(0));
  }
  void* endCapture() const {
    for (int rank = 1; rank < ranks(); ++rank) stream(0).follow(stream(rank));
    return stream(0).endCapture();
  }

  std::vector<std::unique_ptr<UserStream>> all;
};

}  // namespace windlass_test
