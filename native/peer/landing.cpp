// SPDX-License-Identifier: Apache-2.0
// Sends long data without a staging buffer if only one rank of another host needs it. The owner's
// process puts the data into the receive buffer of that rank. The receiver names the buffer before
// it enters the operation.
#include <algorithm>

#include "native/peer/pulling.h"

namespace windlass {

void Pulling::receive(const PullForm& form, const Launch& launch) {
  uint64_t end = 0;
  for (uint32_t k = 0; k < form.phases; ++k) {
    const Phase phase = {form, launch, k, true};
    for (uint32_t from = 0; from < ranks_; ++from) {
      if (!lands(phase, from, rank_)) continue;
      const Pulled pulled = phase.pulled(from, rank_);
      end = std::max(end, pulled.into + pulled.bytes);
    }
  }
  if (end == 0) return;
  hosts_->receive(rank_, comm_.operation().wholeSequence(), launch.out(rank_), end);
  receives_ = true;
}

Code Pulling::land(const Phase& phase, Deadline& deadline) {
  for (uint32_t step = 1; step < ranks_; ++step) {
    const uint32_t to = (rank_ + step) % ranks_;
    if (!lands(phase, rank_, to)) continue;
    const Pulled pulled = phase.pulled(rank_, to);
    const auto* from = phase.launch.at<const uint8_t>(rank_, phase.place(rank_));
    StagePair& pair = block().stagePair(rank_, to);
    const uint64_t turn = pair.filled.fetch_add(1, std::memory_order_release) + 1;
    wl_error_t error = blankError();
    if (Code code = hosts_->connectTo(to, &error); code != WL_OK)
      return code == WL_RESOURCE ? comm_.failures().publishResource(error.message) : code;
    if (unread_ == nullptr) unread_ = std::make_shared<std::atomic<uint32_t>>(0);
    landsAt_.push_back(to);
    hosts_->land(to, comm_.operation().wholeSequence(), pulled.into, from + pulled.from,
                 pulled.bytes, unread_, pair.filled, turn);
    if (Code code = comm_.waits().ended(deadline, clockNs())) return code;
  }
  return WL_OK;
}

Code Pulling::awaitLanded(const Phase& phase, Deadline& deadline) {
  for (uint32_t from = 0; from < ranks_; ++from) {
    if (!lands(phase, from, rank_)) continue;
    StagePair& pair = block().stagePair(from, rank_);
    const uint64_t turn = pair.taken.load(std::memory_order_relaxed);
    const auto hasCome = [&] { return pair.filled.load(std::memory_order_acquire) > turn; };
    if (Code code = comm_.waits().wait(hasCome, from, deadline)) return code;
    pair.taken.store(turn + 1, std::memory_order_release);
  }
  if (landsAt_.empty()) return WL_OK;
  const auto isRead = [&] { return unread_->load(std::memory_order_acquire) == 0; };
  const Code code = comm_.waits().wait(isRead, landsAt_.back(), deadline);
  if (code == WL_OK) landsAt_.clear();
  return code;
}

void Pulling::endLanding() {
  if (receives_) hosts_->receive(rank_, 0, nullptr, 0);
  receives_ = false;
  // landsAt_ is empty unless the operation failed.
  for (const uint32_t to : landsAt_) hosts_->forget(to, unread_);
  if (!landsAt_.empty()) unread_.reset();
  landsAt_.clear();
}

}  // namespace windlass
