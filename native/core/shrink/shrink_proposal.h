// SPDX-License-Identifier: Apache-2.0
// The new communicator that a round of a shrink proposes, as this process holds it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "native/core/shared/shared_group.h"

namespace windlass {

class Proposal {
 public:
  // Called by the proposing rank, or on several hosts by the rank that makes the memory on this
  // host. Throws std::bad_alloc.
  Code make(const Group& whole, const std::vector<uint32_t>& members, wl_error_t* error);
  int32_t file() { return shared_.mapping().file(); }

  // Called by any rank. Opens the memory that `maker` made on this host. WL_PEER_LOST: `maker` or
  // its proposal is gone.
  Code open(const Group& whole, uint32_t maker, int32_t file, wl_error_t* error);

  // Call only after make() or open().
  uint32_t size() const { return block_.shared().config.ranks; }
  uint32_t former(uint32_t rank) const { return block_.member(rank).former; }
  std::atomic<uint32_t>& holding() const { return block_.shared().holding; }
  // Converts rank `of` of the parent group to its number in the new group. kNobody: it is no
  // member.
  uint32_t rankOf(uint32_t of) const;
  // Throws std::bad_alloc, std::system_error.
  Code join(Group& whole, uint32_t rank, wl_error_t* error);
  // nullptr until a rank of this process has joined.
  Group* group() { return local_ == nullptr ? shared_.group() : local_.get(); }
  // The wire that this process opened for the group. nullptr: its ranks live on one host.
  OtherHosts* hosts() { return group()->hosts(); }
  SharedGroup& shared() { return shared_; }

 private:
  std::mutex mutex_;  // guards how the members below are made
  SharedGroup shared_;
  std::shared_ptr<Group> local_;  // if all ranks live in this process
  ControlBlock block_;
};

}  // namespace windlass
