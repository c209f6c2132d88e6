// SPDX-License-Identifier: Apache-2.0
// Executor of a communicator that spans hosts. A rank runs only its own items, after all ranks have
// entered. Input of its peers arrived with their ENTER, or the rank pulls it
// (native/peer/pulling.h). A rank never names memory of another host. Bytes cross hosts through
// staging buffers on both, or go straight to a receive buffer (native/peer/landing.cpp).
#pragma once

#include "native/core/executor/executor.h"
#include "native/core/names.h"
#include "native/hosts/hosts.h"

namespace windlass {

template <class K, class = void>
struct MovesNothing : std::false_type {};
template <class K>
struct MovesNothing<K, std::void_t<decltype(K::kMovesNothing)>> : std::true_type {};

// True if all data that K moves is pulled, arrived with ENTER, or lies in its rank's process.
template <class K>
constexpr bool kSpansHosts =
    K::kEager || Pulls<K>::value || Asks<K>::value || MovesNothing<K>::value;

// Runs items whose data lies in this process or in the control block.
template <class K>
Code runHere(Comm& comm, Hosts& hosts, const Launch& launch, Deadline& deadline) {
  const uint32_t rank = comm.rank();
  Waits& waits = comm.waits();
  for (uint32_t phase = 0; phase < K::phases(launch); ++phase) {
    const Code code = runItems<K>(comm, launch, K::blocks(launch, rank), phase, deadline);
    if (code != WL_OK) return code;
    if (K::kEager) continue;
    comm.operation().finishPhase(rank, phase);
    hosts.tell(comm.group().lines(rank).done.word);
    waits.waiter().ring();
  }
  const uint32_t leave = K::kEager ? kNobody : K::leavesAfter(launch, rank);
  return K::phases(launch) == 0 ? WL_OK : waits.awaitNeed(leave, K::phases(launch), deadline);
}

// Runs K as the rank's next operation if ranks live on several hosts.
template <class K>
Code runOverHosts(Comm& comm, const Call& call) {
  if constexpr (!kSpansHosts<K>) {
    return fail(call.error, WL_UNSUPPORTED,
                "rank %u: %s does not run on a communicator that spans hosts", comm.rank(),
                operationName(call.descriptor.operation()));
  } else {
    return operate<K>(comm, call, [&](const Launch& launch, Deadline& deadline) {
      Hosts& hosts = *hostsOf(comm.group());
      Waits& waits = comm.waits();
      waits.showPhases(K::phases(launch));
      // Data that other ranks send after the operation ends is dropped.
      const auto endLanding = [](PeerReads* reads) { reads->endLanding(); };
      const std::unique_ptr<PeerReads, void (*)(PeerReads*)> ends(comm.peerReads(), endLanding);
      Code code = enter<K>(comm, call, deadline, [&] {
        HostMoves* const moves = comm.hostMoves();
        const Code flushed = moves == nullptr ? WL_OK : moves->flush(deadline);
        return flushed == WL_OK ? preparePull<K>(comm, launch) : flushed;
      });
      if (code != WL_OK) return code;
      hosts.tellEntry(call, comm.rank(), comm.operation().wholeSequence(), kRides<K>);
      waits.waiter().announce(-1);
      code = waits.awaitNeed(kEveryRank, 0, deadline);
      if (code != WL_OK) return code;
      bool runs;
      code = admitEntered<K>(comm, call, launch, deadline, &runs);
      if (code != WL_OK || !runs) return code;
      return runHere<K>(comm, hosts, launch, deadline);
    });
  }
}

}  // namespace windlass
