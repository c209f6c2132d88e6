// SPDX-License-Identifier: Apache-2.0
// A rank's thread while another one makes calls of the rank's device for it: it goes on until its
// time is over or its communicator ends, and tells the other ranks of a call that lasts.
#pragma once

#include "native/base/clock.h"
#include "native/core/group.h"
#include "native/device/offload.h"

namespace windlass {

class RankWaits final : public DeviceWait {
 public:
  RankWaits(const Group& group, uint32_t rank, int64_t endNs)
      : group_(group), rank_(rank), endNs_(endNs) {}
  // For as long as an operation has, from now on.
  RankWaits(const Group& group, uint32_t rank)
      : RankWaits(group, rank, clockNs() + group.config().deadlineNs) {}

  bool goesOn() override {
    return group_.failure() == nullptr &&
           group_.lines(rank_).state.closing.load(std::memory_order_seq_cst) == 0 &&
           clockNs() < endNs_;
  }
  void tell(const char* call) override { group_.block().offloadLine(rank_).call.set(call); }

 private:
  const Group& group_;
  const uint32_t rank_;
  const int64_t endNs_;
};

}  // namespace windlass
