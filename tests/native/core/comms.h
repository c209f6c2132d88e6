// SPDX-License-Identifier: Apache-2.0
// The ranks of a group below the C ABI, where a test may set words of the control block or run a
// kernel of its own.
#pragma once

#include <memory>
#include <vector>

#include "native/core/collectives.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {

struct Comms {
  Comms(uint32_t ranks, uint32_t cores, uint64_t firstSequence = 1, int64_t deadlineNs = 0) {
    windlass::GroupConfig config;
    config.ranks = ranks;
    config.cores = cores;
    config.firstSequence = firstSequence;
    config.inLineCores = static_cast<uint32_t>(deviceCores());
    if (deadlineNs != 0) config.deadlineNs = deadlineNs;
    group = windlass::Group::create(config);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      comms.push_back(std::make_unique<windlass::Comm>(group, rank));
  }

  void run(const std::function<void(uint32_t rank, windlass::Comm& comm)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < comms.size(); ++rank)
      threads.emplace_back([&, rank] { body(rank, *comms[rank]); });
    for (std::thread& thread : threads) thread.join();
  }

  std::shared_ptr<windlass::Group> group;
  std::vector<std::unique_ptr<windlass::Comm>> comms;
};

// Rows of a part of `count` elements, where it is a matrix.
inline int32_t rowsOf(uint64_t count) {
  return count % 8 == 0 ? 8 : 1;
}

// A collective of equal parts, of `count` u32 a part.
inline windlass::Code runCollective(windlass::Comm& comm, wl_operation operation, const void* in,
                                    void* out, uint64_t count, int32_t algorithm, uint32_t root,
                                    wl_error_t* error) {
  const windlass::Collective& collective = *windlass::collectiveOf(operation);
  const bool isMatrix = collective.shape == windlass::PartShape::kRows;
  wl_call_t call = {};
  call.operation = operation;
  call.in = in;
  call.out = out;
  call.dtype = WL_U32;
  const int32_t rootOrRows = isMatrix ? rowsOf(count) : static_cast<int32_t>(root);
  return run(comm, collective, collective.in, collective.out,
             {count, 4 * count, collective.algorithm(algorithm), WL_SUM, rootOrRows},
             call, error, nullptr);
}

inline windlass::Code runBarrier(windlass::Comm& comm, int64_t deadlineNs, wl_error_t* error) {
  return windlass::barrier(comm, callOf(WL_OP_BARRIER, deadlineNs), error, nullptr);
}

}  // namespace windlass_test
