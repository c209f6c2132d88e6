// SPDX-License-Identifier: Apache-2.0
#include "native/core/shared/shared_group.h"

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
  // Hosts are numbered from 0 by their lowest ranks, as in any communicator.
  std::vector<uint32_t> hosts;
  std::vector<uint32_t> numbers(whole.config().hosts, kNobody);
  uint32_t count = 0;
  for (const uint32_t former : members) {
    uint32_t& number = numbers[whole.member(former).host];
    if (number == kNobody) number = count++;
    hosts.push_back(number);
  }
  GroupConfig config = whole.config();
  config.ranks = static_cast<uint32_t>(members.size());
  if (whole.config().hosts > 1) config.spread(count);
  Group::decide(&config);
  std::lock_guard<std::mutex> lock(mutex_);
  if (mapping_.memory() != nullptr) return WL_OK;
  if (Code code = mapping_.make(ControlBlock::bytes(config), error,
                                ControlBlock::laterBytes(config));
      code != WL_OK) {
    return code;
  }
  ControlBlock::make(mapping_.memory(), config, members.data(), whole.shared().id, hosts.data());
  return WL_OK;
}

Code SharedGroup::attach(Group& whole, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (group_ != nullptr) return WL_OK;
  Code code = checkPart(mapping_, whole, error);
  if (code != WL_OK) return code;
  // The group keeps no memory. Callers keep this object, which has the mapping, with the group.
  std::shared_ptr<Group> made = Group::attach(mapping_.memory(), nullptr, whole.peerMemoryUse());
  made->keepDevices(whole);
  if (made->config().hosts == 1) {
    code = watchOthers(whole, *made, error);
  } else {
    std::vector<uint32_t> own;
    for (uint32_t rank = 0; rank < made->ranks(); ++rank)
      if (whole.isHere(made->member(rank).former)) own.push_back(rank);
    std::unique_ptr<OtherHosts> hosts;
    code = OtherHosts::open(*made, std::move(own), &hosts, error);
    made->setHosts(std::move(hosts));
  }
  if (code == WL_OK) group_ = std::move(made);
  return code;
}

Code SharedGroup::connect(Group& whole, const std::vector<std::vector<unsigned char>>& names,
                          wl_error_t* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Code code = group_->hosts()->connect(names, whole.hosts()->silenceNs(), error);
  return code == WL_OK ? watchOthers(whole, *group_, error) : code;
}

Code SharedGroup::watchOthers(Group& whole, Group& made, wl_error_t* error) {
  std::vector<bool> watched(made.ranks());
  for (uint32_t first = 0; first < made.ranks(); ++first) {
    const uint32_t former = made.member(first).former;
    const bool isElsewhere = whole.hosts() != nullptr && !whole.hosts()->isBeside(former);
    if (watched[first] || isElsewhere || whole.isHere(former)) continue;
    std::vector<uint32_t> ranks;
    for (uint32_t rank = first; rank < made.ranks(); ++rank) {
      if (!whole.shareProcess(former, made.member(rank).former)) continue;
      ranks.push_back(rank);
      watched[rank] = true;
    }
    const Code code = made.watch(whole.processOf(former), std::move(ranks), 0, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

}  // namespace windlass
