// SPDX-License-Identifier: Apache-2.0
#include "native/core/executor/in_line_executor.h"

#include <algorithm>

#include "native/core/launch/rank_moves.h"

namespace windlass {
namespace {

// Checks of a signal before a core reports that it waits.
constexpr uint32_t kLooksInLine = 16;

}  // namespace

InLine inLineOf(Comm& comm, uint32_t core) {
  const Group& group = comm.group();
  return {comm.rank(),
          core,
          group.config().inLineCores,
          comm.operation().sequence(),
          group.oversubscribed(),
          kLooksInLine,
          group.block().coreLines(),
          group.config().coreLineBytes()};
}

Code skipInLine(Comm& comm, Code code, uint32_t phases) {
  const Group& group = comm.group();
  if (group.failure() != nullptr) return code;
  return comm.orNoMemory([&] {
    for (uint32_t core = 0; core < group.config().inLineCores; ++core) {
      const InLine own = inLineOf(comm, core);
      for (uint32_t peer = 0; peer < group.ranks(); ++peer)
        kRankMoves.notify(own.line(peer, comm.rank(), core, group.ranks()), own.word(phases));
    }
    return code;
  });
}

uint32_t CoreSteps::over(uint32_t rank) const {
  const InLine own = inLineOf(comm_, 0);
  uint32_t fewest = kMostPhases;
  for (uint32_t core = 0; core < own.cores; ++core) {
    const int32_t* const line = own.line(comm_.rank(), rank, core, comm_.group().ranks());
    const uint32_t told = lookAt(reinterpret_cast<const uint32_t*>(line));
    fewest = std::min(fewest, reached(told, own.word(0)) ? told - own.word(0) : 0);
  }
  return fewest;
}

}  // namespace windlass
