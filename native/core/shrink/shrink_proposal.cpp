// SPDX-License-Identifier: Apache-2.0
#include "native/core/shrink/shrink_proposal.h"

namespace windlass {

Code Proposal::make(const Group& whole, const std::vector<uint32_t>& members, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (whole.config().spansProcesses) {
    if (Code code = shared_.make(whole, members, error); code != WL_OK) return code;
    block_ = ControlBlock(shared_.mapping().memory());
    return WL_OK;
  }
  GroupConfig config = whole.config();
  config.ranks = static_cast<uint32_t>(members.size());
  local_ = Group::create(config);
  local_->comeFrom(whole, members);
  block_ = local_->block();
  return WL_OK;
}

Code Proposal::open(const Group& whole, uint32_t maker, int32_t file, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (block_.base() != 0) return WL_OK;
  if (!whole.config().spansProcesses)
    return fail(error, WL_PEER_LOST, "rank %u proposes nothing any more", maker);
  SharedMapping& mapping = shared_.mapping();
  if (Code code = mapping.map(whole.processOf(maker), file, error); code != WL_OK) return code;
  if (Code code = checkPart(mapping, whole, error); code != WL_OK) return code;
  block_ = ControlBlock(mapping.memory());
  return WL_OK;
}

uint32_t Proposal::rankOf(uint32_t of) const {
  for (uint32_t rank = 0; rank < size(); ++rank)
    if (former(rank) == of) return rank;
  return kNobody;
}

Code Proposal::join(Group& whole, uint32_t rank, wl_error_t* error) {
  Code code = local_ == nullptr ? shared_.attach(whole, error) : WL_OK;
  return code == WL_OK ? group()->claim(rank, error) : code;
}

}  // namespace windlass
