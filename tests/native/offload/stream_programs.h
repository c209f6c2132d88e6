// SPDX-License-Identifier: Apache-2.0
// A program whose ranks have tensors and streams on the devices of the stand-in for NVIDIA's
// driver, and enqueue collectives there.
#pragma once

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/native/comm/local_ranks.h"
#include "tests/native/cuda/user_streams.h"

namespace windlass_test {

inline int32_t enqueue(wl_comm_t* comm, uint64_t stream, int32_t operation, const void* in,
                       uint64_t inElements, void* out, uint64_t outElements, int32_t dtype,
                       int32_t algorithm, int64_t deadlineNs, uint64_t* ticket, Error* error) {
  return wl_enqueue(comm, stream, operation, in, inElements, out, outElements, dtype, WL_SUM,
                    algorithm, 0, 0, deadlineNs, ticket, error);
}
inline int32_t sum(wl_comm_t* comm, uint64_t stream, const int32_t* in, int32_t* out,
                   uint64_t count, uint64_t* ticket, Error* error, int64_t deadlineNs = 0) {
  return enqueue(comm, stream, WL_OP_ALL_REDUCE, in, count, out, count, WL_I32, WL_TWO_PHASE,
                 deadlineNs, ticket, error);
}

struct Outcome {
  int32_t code = WL_OK;
  Error error;
};

// Of each rank: tensors on its device, and a stream there. A rank's i-th element is rank + i.
struct Program {
  Program(int ranks, int devices, size_t elements) : count(elements) {
    for (int rank = 0; rank < ranks; ++rank) {
      streams.push_back(std::make_unique<UserStream>(rank % devices));
      for (auto* tensors : {&source, &in, &out, &kept})
        tensors->push_back(gpus::tensor<int32_t>(rank % devices, count));
      std::iota(source.back(), source.back() + count, rank);
    }
  }
  int ranks() const { return static_cast<int>(streams.size()); }
  UserStream& stream(int rank) { return *streams[static_cast<size_t>(rank)]; }
  int32_t sumAt(size_t i) const {
    return ranks() * (ranks() - 1) / 2 + ranks() * static_cast<int32_t>(i);
  }
  int32_t sum(wl_comm_t* comm, int rank, uint64_t* ticket, Error* error, int64_t deadlineNs = 0) {
    const auto at = static_cast<size_t>(rank);
    return windlass_test::sum(comm, stream(rank).handle(), source[at], out[at], count, ticket,
                              error, deadlineNs);
  }
  // All ranks' streams are part of what the first one's captures.
  void beginCapture() {
    stream(0).beginCapture();
    for (int rank = 1; rank < ranks(); ++rank) stream(rank).follow(stream(0));
  }
  void* endCapture() {
    for (int rank = 1; rank < ranks(); ++rank) stream(0).follow(stream(rank));
    return stream(0).endCapture();
  }

  const size_t count;
  std::vector<std::unique_ptr<UserStream>> streams;
  std::vector<int32_t*> source, in, out, kept;
};

// Until the operation is over, or its communicator.
inline int32_t awaitEnqueued(wl_comm_t* comm, uint64_t ticket, Error* error) {
  int32_t over = 0;
  const int32_t code = wl_enqueued_await(comm, ticket, 60'000 * kMs, &over, error);
  if (code == WL_OK) {
    EXPECT_EQ(over, 1);
  }
  return code;
}

class GpusStreams : public testing::Test {
 protected:
  GpusStreams() { gpus::reset(); }
  ~GpusStreams() override { gpus::reset(); }
};

}  // namespace windlass_test
