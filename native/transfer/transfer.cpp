// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/transfer.h"

#include <algorithm>

#include "native/comm/kernels.h"

namespace windlass {

Transfer::~Transfer() {
  if (plan_ != nullptr) group_->retire(plan_);
}

Code Transfer::run(uint64_t version, int64_t deadlineNs, wl_error_t* error) {
  plan_->progress->reset();
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_TRANSFER, version, 0, 0, 0, static_cast<int32_t>(id_));
  call.bytes = targetBytes_;
  call.deadlineNs = deadlineNs;
  call.error = error;
  if (phases_ > kMostPhases) call.startNs = clockNs();
  for (uint32_t w = 0, left = phases_; left > 0; ++w, left -= call.phases) {
    call.phases = std::min(left, kMostPhases);
    call.args.aux = plan_->table.window(w);
    call.workBytes = workBytes_[w];
    if (Code code = comm_.run(kKernels.redistribute, call); code != WL_OK) return code;
  }
  return WL_OK;
}

void Transfer::moved(int32_t rank, uint64_t* moved, uint64_t count) const {
  std::fill(moved, moved + count, 0);
  for (int32_t r = 0; r < ranks(); ++r) {
    if ((rank < 0 || rank == r) && seesProgress(r))
      peers_->progress(static_cast<uint32_t>(r))->addMoved(moved, count);
  }
}

void* Transfer::addressOf(int32_t rank, Place place) const {
  const auto of = static_cast<uint32_t>(rank);
  if (place.window() == kAddressSpace && !peers_->shareProcess(of, comm_.rank())) return nullptr;
  const WindowBase& window = group_->windows()[place.window()];
  return reinterpret_cast<void*>(window.base + of * window.stride + place.offset());
}

}  // namespace windlass
