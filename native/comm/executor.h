// SPDX-License-Identifier: Apache-2.0
// What both executors share: the launch of an operation, its ENTER, and the fast part of a wait.
#pragma once

#include <type_traits>

#include "native/base/cpu.h"
#include "native/comm/comm.h"
#include "native/comm/kernels.h"

namespace windlass {

// Looks before a wait turns slow, where each rank has a core; and the one at which a rank that sits
// on the core of the one it waits for turns slow at once.
constexpr uint32_t kFastLooks = 256;
constexpr uint32_t kCoreLook = 8;

// As every rank sees the operation in progress, but for the kernel's own plan.
inline Launch Comm::launchOf(const Call& call) const {
  Launch launch = {};
  launch.ranks = group_->ranks();
  launch.root = static_cast<uint32_t>(call.descriptor.root());
  launch.dtype = static_cast<DType>(call.descriptor.dtype());
  launch.op = static_cast<ReduceOp>(call.descriptor.reduceOp());
  launch.bytes = call.bytes;
  launch.phases = call.phases;
  launch.streams = call.workBytes >= group_->config().streamingBytes;
  launch.entries =
      reinterpret_cast<const unsigned char*>(&group_->lines(0).entry[sequence_ & 1].args);
  launch.entryStride = sizeof(RankLines);
  launch.windows = group_->windows();
  return launch;
}

inline void Comm::publishEntry() {
  own_.entry[sequence_ & 1].sequence.store(sequence(), std::memory_order_release);
  recorder_.stampEntry();
}

// A rank that staged its input, or waited for the root alone, has left without a look at all peers:
// it looks now, before it enters again.
inline Code Comm::awaitPrevious(Deadline& deadline) {
  for (uint32_t peer = 0; allEntered_ != sequence_ - 1 && peer < group_->ranks(); ++peer) {
    const Code code = wait([&] { return group_->entered(peer, sequence_ - 1); }, peer, deadline);
    if (code != WL_OK) return code;
    if (!agree(rank_, peer, sequence_ - 1)) return publishMismatch(rank_, peer, sequence_ - 1);
  }
  allEntered_ = sequence_ - 1;
  return WL_OK;
}

template <class Ready>
Code Comm::wait(Ready&& ready, uint32_t awaited, Deadline& deadline) {
  const uint32_t looks = group_->oversubscribed() ? 1 : kFastLooks;
  for (uint32_t look = 0; look < looks; ++look) {
    if (ready()) return WL_OK;
    if (look == kCoreLook && sharesCore(awaited)) break;
    cpuPause();
  }
  using Callable = std::remove_reference_t<Ready>;
  const Look slow = {[](void* context) { return (*static_cast<Callable*>(context))(); },
                     const_cast<std::remove_const_t<Callable>*>(&ready)};
  return waitSlow(slow, awaited, deadline);
}

}  // namespace windlass
