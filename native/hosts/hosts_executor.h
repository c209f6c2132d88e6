// SPDX-License-Identifier: Apache-2.0
// Executor of a communicator that spans hosts. A rank runs only its own items, after all ranks have
// entered. Input of its peers arrived with their ENTER, or the rank pulls it
// (native/peer/pulling.h). A rank never names memory of another host. Bytes cross hosts through
// staging buffers on both, or go straight to a receive buffer (native/peer/landing.h).
#pragma once

#include "native/core/executor.h"
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

template <class K>
Code Comm::runOverHosts(const Call& call) {
  if constexpr (!kSpansHosts<K>) {
    return fail(call.error, WL_UNSUPPORTED,
                "rank %u: %s does not run on a communicator that spans hosts", rank_,
                operationName(call.descriptor.operation()));
  } else {
    return operate<K>(call, [&](const Launch& launch, Deadline& deadline) {
      Hosts& hosts = *group_->hosts();
      shownPhases_ = K::phases(launch);
      claims_ = false;
      // Data that other ranks send after the operation ends is dropped.
      struct Landed {
        Pulling* pulling;
        ~Landed() {
          if (pulling != nullptr) pulling->endLanding();
        }
      } const ends = {pulling_.get()};
      Code code = enter<K>(call, deadline, [&] {
        const Code flushed = hostMoves_ == nullptr ? WL_OK : hostMoves_->flush(deadline);
        return flushed == WL_OK ? preparePull<K>(launch) : flushed;
      });
      if (code != WL_OK) return code;
      tellEntry(hosts, call, kRides<K>);
      waiter_.announce(-1);
      code = awaitNeed(kEveryRank, 0, deadline);
      if (code != WL_OK) return code;
      if constexpr (Asks<K>::value) {
        bool runs = false;
        if (Code asked = ask<K>(launch, &runs); asked != WL_OK || !runs) return asked;
        if (call.far != nullptr) return pullItems(call, launch, deadline);
      }
      if constexpr (Pulls<K>::value) {
        return pull(K::kPull, call, launch, deadline);
      } else {
        return runHere<K>(hosts, launch, deadline);
      }
    });
  }
}

// Runs items whose data lies in this process or in the control block.
template <class K>
Code Comm::runHere(Hosts& hosts, const Launch& launch, Deadline& deadline) {
  for (uint32_t phase = 0; phase < K::phases(launch); ++phase) {
    for (uint32_t block = 0; block < K::blocks(launch, rank_); ++block) {
      const Code code = awaitNeed(K::needs(launch, rank_, block, phase), phase, deadline);
      if (code != WL_OK) return code;
      K::phase(launch, rank_, block, phase);
    }
    if (K::kEager) continue;
    finishPhase(rank_, phase);
    hosts.tell(own_.done.word);
    waiter_.ring();
  }
  const uint32_t leave = K::kEager ? kNobody : K::leavesAfter(launch, rank_);
  return K::phases(launch) == 0 ? WL_OK : awaitNeed(leave, K::phases(launch), deadline);
}

inline void Comm::tellEntry(Hosts& hosts, const Call& call, bool eager) const {
  const ControlBlock& block = group_->block();
  for (uint32_t host = 0; host < hosts.count(); ++host) {
    if (host == hosts.own()) continue;
    Hosts::Riding riding[Hosts::kMostRiding];
    uint32_t count = 0;
    if (call.parts != nullptr)
      riding[count++] = {&block.parts(rank_, sequence_), PartTable::bytes(group_->ranks())};
    // The longest is last: the wire may send it without a copy.
    if (eager && call.inBytes > kInlineBytes) {
      const Part part = call.inParts ? hosts.partsOf(host, call.bytes) : Part{0, call.inBytes};
      riding[count++] = {block.eager(rank_, sequence_) + part.start, part.bytes};
    }
    hosts.tellEntry(host, rank_, sequence_, riding, count);
  }
}

}  // namespace windlass
