// SPDX-License-Identifier: Apache-2.0
// Wait of a rank's thread for the thread that makes its device's calls. It ends at the deadline or
// with the communicator. It publishes long driver calls to the other ranks.
#pragma once

#include "native/base/clock.h"
#include "native/core/group.h"
#include "native/memory/file_offer.h"

namespace windlass {

class DeviceWait final : public Liveness {
 public:
  DeviceWait(const Group& group, uint32_t rank, int64_t endNs)
      : group_(group), rank_(rank), endNs_(endNs) {}
  // The wait may last as long as an operation, from now on.
  DeviceWait(const Group& group, uint32_t rank)
      : DeviceWait(group, rank, clockNs() + group.config().deadlineNs) {}

  bool goesOn() override {
    return group_.failure() == nullptr &&
           group_.lines(rank_).state.closing.load(std::memory_order_seq_cst) == 0 &&
           clockNs() < endNs_;
  }
  // Publishes the driver call from which the other thread has not returned; nullptr: none.
  void tell(const char* call) { group_.block().offloadLine(rank_).call.set(call); }

 private:
  const Group& group_;
  const uint32_t rank_;
  const int64_t endNs_;
};

}  // namespace windlass
