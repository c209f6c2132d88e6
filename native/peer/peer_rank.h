// SPDX-License-Identifier: Apache-2.0
// The rank that the parts of PeerReads run for, with the types of its communicator and hosts.
#pragma once

#include "native/core/comm.h"
#include "native/hosts/hosts.h"

namespace windlass {

class PeerRank {
 protected:
  explicit PeerRank(Comm& comm)
      : comm_(comm),
        hosts_(hostsOf(comm.group())),
        rank_(comm.rank()),
        ranks_(comm.group().ranks()) {}
  PeerRank(const PeerRank&) = delete;
  PeerRank& operator=(const PeerRank&) = delete;

  const ControlBlock& block() const { return comm_.group().block(); }
  StageLine& line(uint32_t rank) const { return block().stageLine(rank); }

  Comm& comm_;
  Hosts* const hosts_;  // nullptr: all ranks are on one host
  const uint32_t rank_;
  const uint32_t ranks_;
};

}  // namespace windlass
