// SPDX-License-Identifier: Apache-2.0
// A program whose ranks have tensors and streams on the devices of the stand-in for NVIDIA's
// driver, and enqueue collectives there.
#pragma once

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/native/cuda/stand_in.h"
#include "tests/native/device/enqueued.h"

namespace windlass_test {

struct Outcome {
  int32_t code = WL_OK;
  Error error;
};

// Tensors of each rank on its device, and a stream there. Element i of a rank is rank + i.
struct Program : RankStreams {
  Program(int ranks, int devices, size_t elements) : RankStreams(ranks, devices), count(elements) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (auto* tensors : {&source, &in, &out, &kept})
        tensors->push_back(gpus::tensor<int32_t>(rank % devices, count));
      std::iota(source.back(), source.back() + count, rank);
    }
  }
  int32_t sumAt(size_t i) const {
    return ranks() * (ranks() - 1) / 2 + ranks() * static_cast<int32_t>(i);
  }
  int32_t sum(wl_comm_t* comm, int rank, uint64_t* ticket, Error* error, int64_t deadlineNs = 0) {
    const auto at = static_cast<size_t>(rank);
    return windlass_test::sum(comm, stream(rank).handle(), source[at], out[at], count, ticket,
                              error, deadlineNs);
  }

  const size_t count;
  std::vector<int32_t*> source, in, out, kept;
};

class GpusStreams : public testing::Test {
 protected:
  GpusStreams() { gpus::reset(); }
  ~GpusStreams() override { gpus::reset(); }
};

}  // namespace windlass_test
