// SPDX-License-Identifier: Apache-2.0
// The new communicator as a round of a shrink proposes it, and as this process holds it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "native/core/shared/shared_group.h"

namespace windlass {

class Proposal {
 public:
  // By the rank that proposes it, or over hosts by the one that makes it on this host. Throws
  // std::bad_alloc.
  Code make(const Group& whole, const std::vector<uint32_t>& members, wl_error_t* error);
  int32_t file() { return shared_.mapping().file(); }

  // By any rank: what `maker` made on this host. WL_PEER_LOST: it is gone.
  Code open(const Group& whole, uint32_t maker, int32_t file, wl_error_t* error);

  // Once that was done.
  uint32_t size() const { return block_.shared().config.ranks; }
  uint32_t former(uint32_t rank) const { return block_.member(rank).former; }
  std::atomic<uint32_t>& holding() const { return block_.shared().holding; }
  // kNobody where that rank of the whole is no member.
  uint32_t rankOf(uint32_t of) const;
  // Throws std::bad_alloc, std::system_error.
  Code join(Group& whole, uint32_t rank, wl_error_t* error);
  // Once a rank of this process did; nullptr else.
  Group* group() { return local_ == nullptr ? shared_.group() : local_.get(); }
  // The wire that this process opened for it; nullptr: its ranks live on one host.
  Hosts* hosts() { return group()->hosts(); }
  // Of a process that has one, once. Throws as join().
  Code connect(Group& whole, const std::vector<std::vector<unsigned char>>& names,
               wl_error_t* error);

 private:
  std::mutex mutex_;  // guards how the rest comes to be
  SharedGroup shared_;
  std::shared_ptr<Group> local_;  // where all ranks live in this process
  ControlBlock block_;
};

}  // namespace windlass
