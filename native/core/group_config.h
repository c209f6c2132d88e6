// SPDX-License-Identifier: Apache-2.0
// Settings of a communicator, and the sizes that follow from them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "windlass/kernel.h"
#include "windlass/windlass.h"

namespace windlass {

constexpr size_t kLine = 64;

// Minimum number of words per rank in an eager input that holds words for all ranks.
constexpr uint64_t kEagerWords = 4;

// How the ranks of a communicator run. Cores are shared if there are fewer than ranks.
enum RanksAre : uint32_t {
  kThreadsOnCores,
  kThreadsSharingCores,
  kProcessesOnCores,
  kProcessesSharingCores,
  kOnSeveralHosts,
  kWaysToRun,
};

// Settings that select the protocol of a communicator. Ranks agree on them as they start.
struct GroupConfig {
  uint32_t ranks = 1;
  uint32_t cores = 1;
  uint64_t firstSequence = 1;  // at least 1
  // Threads that run a rank's long operations, its own included. 0: as many as cores allow.
  uint32_t blocks = 0;
  // Cores of a rank on which host threads run kernels in line. 0: the cpu executor runs operations.
  uint32_t inLineCores = 0;
  // Cores of each rank's device, to which the host hands operations. 0: the host runs them.
  uint32_t offloadCores = 0;
  int64_t deadlineNs = 60'000'000'000;
  uint64_t streamingBytes = 0;  // bytes of all ranks from which an operation exceeds the caches
  // Waits may adjust threads that were not adopted, too.
  bool adjustsThreads = false;
  // Ranks live in several processes, each of which reaches only the windows of the others.
  bool spansProcesses = false;
  // Number of hosts, each of which has such a block. With more than one, ranks also span processes.
  uint32_t hosts = 1;

  // Sets the number of hosts. On several hosts, a waiting rank lets others run, because it does not
  // know how many of them have a core.
  void spread(uint32_t over) {
    hosts = over;
    if (over > 1 && cores >= ranks) cores = ranks - 1;
  }

  // True if there are more ranks than cores. Then waits yield the core at once, and the last
  // arriver opens an operation whose inputs are not eager.
  bool oversubscribed() const { return ranks > cores; }
  RanksAre ranksAre() const {
    if (hosts > 1) return kOnSeveralHosts;
    return static_cast<RanksAre>((spansProcesses ? kProcessesOnCores : kThreadsOnCores) +
                                 (oversubscribed() ? 1 : 0));
  }
  // Most bytes of an input that a rank copies on ENTER. A collective has its own limits up to this
  // one. If ranks exceed cores, a copy costs less than acknowledgements, because these take another
  // turn of all threads.
  uint64_t eagerBytes() const { return uint64_t{oversubscribed() ? 64u : 4u} << 10; }
  // Room for an eager input, and for some words to each rank.
  uint64_t eagerRoomBytes() const {
    const uint64_t words = ranks * kEagerWords * sizeof(uint64_t);
    return eagerBytes() < words ? words : eagerBytes();
  }
  // Bytes of one half of a rank's staging buffer, at least a line per rank. Up to 64 ranks, one
  // half of each rank takes at most 4 MiB in all. With up to 1024 ranks, a half takes 64 KiB. With
  // more, it has a line for each of WL_MAX_RANKS.
  uint64_t stageHalfBytes() const {
    if (!spansProcesses) return 0;
    constexpr uint64_t kMost = uint64_t{512} << 10;
    const uint64_t share = (uint64_t{4} << 20) / ranks / 4096 * 4096;
    const uint64_t least = ranks <= 1024 ? uint64_t{64} << 10 : uint64_t{WL_MAX_RANKS} * kLine;
    return share < least ? least : share > kMost ? kMost : share;
  }
  // Bytes of a half for each reader, if readers read different data.
  uint64_t stagePartBytes() const { return stageHalfBytes() / ranks / kLine * kLine; }
  // Messages from one rank to another that a lane holds before the receiver takes their heads.
  uint32_t messageSlots() const { return ranks <= 64 ? 14 : ranks <= 512 ? 6 : 2; }
  // Eager messages of a rank that their receivers have not read yet, of all lanes.
  uint32_t messageBlocks() const { return ranks <= 64 ? 32 : 8; }
  // Bytes of the in-line executor's signals to one rank: a line for each core of each rank.
  size_t coreLineBytes() const { return size_t{ranks} * inLineCores * kCoreLineBytes; }
};

}  // namespace windlass
