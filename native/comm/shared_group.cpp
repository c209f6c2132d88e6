// SPDX-License-Identifier: Apache-2.0
#include "native/comm/shared_group.h"

namespace windlass {

Code checkPart(const SharedMapping& mapping, const Group& whole, wl_error_t* error) {
  GroupConfig config;
  ControlBlock block;
  Code code = ControlBlock::open(mapping.memory(), mapping.bytes(), &config, &block, error);
  if (code != WL_OK) return code;
  bool isPart = config.spansProcesses && block.shared().parent == whole.shared().id;
  for (uint32_t rank = 0; rank < config.ranks; ++rank)
    isPart = isPart && block.member(rank).former < whole.ranks();
  return isPart ? WL_OK
                : fail(error, WL_INVALID_ARGUMENT,
                       "the memory holds no part of this communicator, but another communicator");
}

Code SharedGroup::make(const Group& whole, const std::vector<uint32_t>& members,
                       wl_error_t* error) {
  GroupConfig config = whole.config();
  config.ranks = static_cast<uint32_t>(members.size());
  Group::decide(&config);
  std::lock_guard<std::mutex> lock(mutex_);
  if (mapping_.memory() != nullptr) return WL_OK;
  if (Code code = mapping_.make(ControlBlock::bytes(config), error,
                                ControlBlock::stageBytes(config));
      code != WL_OK) {
    return code;
  }
  ControlBlock::make(mapping_.memory(), config, members.data(), whole.shared().id);
  return WL_OK;
}

Code SharedGroup::attach(Group& whole, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (group_ != nullptr) return WL_OK;
  Code code = checkPart(mapping_, whole, error);
  if (code != WL_OK) return code;
  // Whoever has the group has this.
  std::shared_ptr<Group> made = Group::attach(mapping_.memory(), nullptr, whole.peerMemoryUse());
  made->keepDevices(whole);
  std::vector<bool> watched(made->ranks());
  for (uint32_t first = 0; first < made->ranks(); ++first) {
    if (watched[first] || whole.isHere(made->member(first).former)) continue;
    const uint32_t former = made->member(first).former;
    std::vector<uint32_t> ranks;
    for (uint32_t rank = first; rank < made->ranks(); ++rank) {
      if (!whole.shareProcess(former, made->member(rank).former)) continue;
      ranks.push_back(rank);
      watched[rank] = true;
    }
    code = made->watch(whole.processOf(former), std::move(ranks), 0, error);
    if (code != WL_OK) return code;
  }
  group_ = std::move(made);
  return WL_OK;
}

}  // namespace windlass
