// SPDX-License-Identifier: Apache-2.0
// Collectives on streams of their callers over the stand-in for NVIDIA's driver, in graphs too.
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/native/comm/local_ranks.h"
#include "tests/native/cuda/user_streams.h"

namespace windlass_test {
namespace {

constexpr int kRanks = 3;

int32_t enqueue(wl_comm_t* comm, uint64_t stream, int32_t operation, const int32_t* in,
                uint64_t inElements, int32_t* out, uint64_t outElements, uint64_t* ticket,
                Error* error, int64_t deadlineNs = 0, int32_t algorithm = WL_AUTO) {
  return wl_enqueue(comm, stream, operation, in, inElements, out, outElements, WL_I32, WL_SUM,
                    algorithm, 0, 0, deadlineNs, ticket, error);
}
int32_t sum(wl_comm_t* comm, uint64_t stream, const int32_t* in, int32_t* out, uint64_t count,
            uint64_t* ticket, Error* error, int64_t deadlineNs = 0) {
  return enqueue(comm, stream, WL_OP_ALL_REDUCE, in, count, out, count, ticket, error, deadlineNs,
                 WL_TWO_PHASE);
}

// Of each rank: tensors on its device, and a stream there.
struct Program {
  Program(int devices, size_t elements) : count(elements) {
    for (int rank = 0; rank < kRanks; ++rank) {
      streams.push_back(std::make_unique<UserStream>(rank % devices));
      for (auto* tensors : {&source, &in, &out, &kept})
        tensors->push_back(gpus::tensor<int32_t>(rank % devices, count));
      std::iota(source.back(), source.back() + count, rank);
    }
  }
  UserStream& stream(int rank) { return *streams[static_cast<size_t>(rank)]; }
  int32_t sumAt(size_t i) const {
    return kRanks * (kRanks - 1) / 2 + kRanks * static_cast<int32_t>(i);
  }

  const size_t count;
  std::vector<std::unique_ptr<UserStream>> streams;
  std::vector<int32_t*> source, in, out, kept;
};

class GpusStreams : public testing::Test {
 protected:
  GpusStreams() { gpus::reset(); }
  ~GpusStreams() override { gpus::reset(); }
};

struct Outcome {
  int32_t code = WL_OK;
  Error error;
};

// Each rank's stream fills its input, sums it, and keeps what comes of it.
std::vector<Outcome> sumOnStreams(int devices, int times) {
  constexpr size_t kCount = 1000;
  std::vector<Outcome> outcomes(kRanks);
  Program program(devices, kCount);
  {
    LocalRanks ranks(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<size_t>(rank);
      program.stream(rank).copy(program.in[at], program.source[at], 4 * kCount);
    }
    ranks.run([&](int rank, wl_comm_t* comm) {
      const auto at = static_cast<size_t>(rank);
      Outcome& own = outcomes[at];
      uint64_t ticket = 0;
      for (int i = 0; i < times && own.code == WL_OK; ++i) {
        own.code = sum(comm, program.stream(rank).handle(), program.in[at], program.out[at], kCount,
                       &ticket, &own.error);
      }
      int32_t over = 0;
      if (own.code == WL_OK)
        own.code = wl_enqueued_await(comm, ticket, 60'000 * kMs, &over, &own.error);
      if (own.code == WL_OK) {
        EXPECT_EQ(ticket, static_cast<uint64_t>(times));
        EXPECT_EQ(over, 1);
      }
    });
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<size_t>(rank);
      program.stream(rank).copy(program.kept[at], program.out[at], 4 * kCount);
      program.stream(rank).synchronize();
    }
  }
  for (size_t rank = 0; rank < kRanks; ++rank) {
    if (outcomes[rank].code != WL_OK) continue;
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(program.kept[rank][i], program.sumAt(i)) << i;
  }
  return outcomes;
}

TEST_F(GpusStreams, CarryOperationsInTheirOrder) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    // More of them than are in flight at a time.
    for (const Outcome& one : sumOnStreams(devices, 100))
      EXPECT_EQ(one.code, WL_OK) << one.error.message;
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 100 * devices);
    EXPECT_EQ(gpus::held(), std::to_string(4 * kRanks) + " allocations");
  }
}

}  // namespace
}  // namespace windlass_test
