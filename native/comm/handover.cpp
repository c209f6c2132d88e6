// SPDX-License-Identifier: Apache-2.0
// What ranks do together on the host while their devices run an operation.
#include <cstring>
#include <new>

#include "native/base/clock.h"
#include "native/comm/kernels.h"
#include "native/comm/names.h"
#include "native/comm/offload.h"

namespace windlass {

class Comm::Handover final : public OffloadPeers {
 public:
  Handover(Comm& comm, Deadline& deadline) : comm_(comm), deadline_(deadline) {}

  uint32_t rank() const override { return comm_.rank(); }
  uint32_t ranks() const override { return comm_.group().ranks(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    if (bytes > OffloadSeat::kMostBytes)
      return fail(error, WL_INVALID_ARGUMENT, "a rank states %llu bytes at most at a time",
                  static_cast<unsigned long long>(OffloadSeat::kMostBytes));
    OffloadSeat& seat = seatOf(rank());
    // What it held is two turns old: whoever is in the last one has read it.
    const uint64_t turn = seat.turn.load(std::memory_order_relaxed);
    std::memcpy(seat.said[turn & 1], own, bytes);
    seat.turn.store(turn + 1, std::memory_order_seq_cst);
    comm_.own_.done.word.fetch_add(0, std::memory_order_seq_cst);
    comm_.group_->wakeSleepers();
    for (uint32_t peer = 0; peer < ranks(); ++peer) {
      const OffloadSeat& other = seatOf(peer);
      const auto told = [&] { return other.turn.load(std::memory_order_acquire) > turn; };
      if (Code code = comm_.wait(told, peer, deadline_); code != WL_OK)
        return fail(error, code, "rank %u waited in vain for rank %u", rank(), peer);
      std::memcpy(static_cast<unsigned char*>(everyones) + peer * bytes, other.said[turn & 1],
                  bytes);
    }
    return WL_OK;
  }
  Code ended() override { return comm_.ended(deadline_, clockNs()); }

 private:
  OffloadSeat& seatOf(uint32_t rank) const { return comm_.group().offloadSeat(rank); }

  Comm& comm_;
  Deadline& deadline_;
};

Code Comm::offload(const Call& call, uint32_t kernel, const Launch& launch, Deadline& deadline) {
  // Of a step of something else there is none, and no root.
  const Collective* collective = collectiveOf(call.descriptor.operation());
  const auto brings = [&](Holds Collective::* which, const void* data) {
    return data != nullptr &&
           (collective == nullptr || !isRoots(collective->*which) || launch.root == rank_);
  };
  Offload::Operation operation = {
      operationName(call.descriptor.operation()), kernel, &launch, group_->config().offloadCores,
      {}};
  if (brings(&Collective::in, call.args.in)) {
    operation.buffers.in = call.args.in;
    operation.buffers.inBytes = inExtent(call);
  }
  if (brings(&Collective::out, call.args.out)) {
    operation.buffers.out = call.args.out;
    operation.buffers.outBytes = outExtent(call);
  }
  if (call.parts != nullptr) {
    operation.buffers.parts = &group_->block().parts(rank_, sequence_);
    operation.buffers.partBytes = PartTable::bytes(launch.ranks);
  }
  Handover peers(*this, deadline);
  wl_error_t error = blankError();
  uint32_t culprit = kNobody;
  const Code code = orNoMemory([&] {
    std::unique_ptr<Offload>& own = group_->offloadSeat(rank_).offload;
    if (own == nullptr) own.reset(new Offload(group_->offloadSeat(rank_).device));
    return own->run(operation, peers, &culprit, &error);
  });
  if (code == WL_OK || culprit == kNobody) return code;
  if (culprit == rank_) return publishDevice(error);
  // That rank says why.
  return wait([] { return false; }, culprit, deadline);
}

}  // namespace windlass
