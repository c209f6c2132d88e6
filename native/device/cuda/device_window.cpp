// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/device_window.h"

#include <algorithm>
#include <memory>
#include <new>

#include "native/device/cuda/by_name.h"
#include "native/device/cuda/reach.h"

namespace windlass::cuda {
namespace {

ByName<std::vector<PeerPart>> peerParts;

// Runs a step. Lack of memory becomes a result that is reported to the other ranks.
template <class Step>
Code attempt(const Step& step, wl_error_t* error) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for a window of devices");
  }
}

}  // namespace

Code DeviceWindow::make(Gpu& gpu, Copies& copies, AllRanks& exchange, uint64_t bytes,
                        wl_error_t* error) {
  if (gpu_ != nullptr) return fail(error, WL_INVALID_ARGUMENT, "the window is made already");
  if (Code code = begin(exchange, bytes, error); code != WL_OK) return code;
  const uint32_t ranks = exchange.ranks();
  parts_.assign(ranks, 0);
  devices_.assign(ranks, kNobody);
  beside_.clear();
  otherProcesses_ = 0;
  gpu_ = &gpu;
  copies_ = &copies;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    beside_.push_back(exchange.firstBeside(rank));
    otherProcesses_ += rank > 0 && beside_[rank] == rank ? 1 : 0;
  }
  own_.device = gpu.number();
  // States the result of each step to all ranks, so that nobody waits for a rank whose step failed.
  Code code = state(exchange, WL_OK, error);
  if (code == WL_OK)
    code = state(exchange, attempt([&] { return makeOwn(bytes, error); }, error), error);
  if (code == WL_OK && otherProcesses_ > 0) {
    code = stateUnlessLost(exchange, attempt([&] { return ask(exchange, error); }, error), error);
    if (code == WL_OK) {
      code =
          stateUnlessLost(exchange, attempt([&] { return share(exchange, error); }, error), error);
    }
  }
  if (code == WL_OK) code = state(exchange, attempt([&] { return reach(error); }, error), error);
  // If the exchange itself ended, a peer may still access this part, which stays until close().
  if (code != WL_OK && isWhole_ && isQuiet()) close(nullptr);
  return code;
}

Code DeviceWindow::state(AllRanks& exchange, Code code, wl_error_t* error) {
  own_.keeps = copies_->isStuck() ? 1 : 0;
  return StatedWindow::state(exchange, code, error);
}

// Errors of other ranks say more than the loss of a peer.
Code DeviceWindow::stateUnlessLost(AllRanks& exchange, Code code, wl_error_t* error) {
  if (code != WL_PEER_LOST) return state(exchange, code, error);
  wl_error_t said = blankError();
  const Code told = state(exchange, WL_OK, &said);
  if (told == WL_OK) return state(exchange, code, error);
  if (error != nullptr) copyError(error, said, nullptr);
  return told;
}

bool DeviceWindow::isQuiet() const {
  return std::none_of(statements_.begin(), statements_.end(),
                      [](const DeviceStatement& each) { return each.keeps != 0; });
}

Code DeviceWindow::makeOwn(uint64_t bytes, wl_error_t* error) {
  const auto ranks = static_cast<uint32_t>(statements_.size());
  uint32_t sharers = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (!isHere(rank)) continue;
    devices_[rank] = statements_[rank].device;
    if (rank == rank_) slot_ = sharers;
    sharers += devices_[rank] == own_.device ? 1 : 0;
  }
  if (gpu_->own().blocksAtOnce < sharers) {
    return fail(error, WL_UNSUPPORTED,
                "%u ranks share device %u, which runs %u blocks of Windlass' kernel at a time, and "
                "each takes one: have fewer ranks, or more devices",
                sharers, own_.device, gpu_->own().blocksAtOnce);
  }
  const Reach reach = otherProcesses_ > 0 ? Reach::kAllProcesses : Reach::kThisProcess;
  size_t page = 0;
  Code code = gpu_->check(OwnPart::pageOf(gpu_->cuda(), gpu_->device(), reach, &page), error);
  if (code == WL_OK) code = roundUp(bytes, page, "cuMemGetAllocationGranularity", &bytes_, error);
  if (code != WL_OK) return code;
  own_.bytes = bytes_;
  code =
      part_.make(rank_, *gpu_, *copies_, reach, 0, bytes_, eachOnce(own_.device, devices_), error);
  own_.offer = part_.offerName();
  own_.address = part_.address();
  if (code != WL_OK || slot_ > 0) return code;
  code = Grid::make(*gpu_, sharers, ranks, &grid_, error);
  if (code == WL_OK) own_.grid = grid_->name();
  return code;
}

Code DeviceWindow::ask(AllRanks& exchange, wl_error_t* error) {
  if (Code code = checkBytes(error); code != WL_OK || beside_[rank_] != rank_) return code;
  auto made = std::make_unique<std::vector<PeerPart>>(statements_.size());
  own_.peers = peerParts.add(made.get());
  peers_ = made.release();
  for (uint32_t rank = 0; rank < statements_.size(); ++rank) {
    if (isHere(rank)) continue;
    const Code code = (*peers_)[rank].request.ask(statements_[rank].offer, rank, exchange, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

Code DeviceWindow::share(AllRanks& exchange, wl_error_t* error) {
  // Each rank gives its part before it waits for others.
  Code code = part_.give(otherProcesses_, exchange, error);
  if (beside_[rank_] != rank_) return code;
  const std::vector<uint32_t> devices = eachOnce(own_.device, devices_);
  for (uint32_t rank = 0; code == WL_OK && rank < statements_.size(); ++rank)
    if (!isHere(rank)) code = (*peers_)[rank].map(*gpu_, 0, bytes_, devices, exchange, error);
  return code;
}

Code DeviceWindow::reach(wl_error_t* error) {
  const auto ranks = static_cast<uint32_t>(statements_.size());
  const auto gone = [&](uint32_t first) {
    return fail(error, WL_DEVICE, "rank %u, which shares device %u or its process, has given up",
                first, own_.device);
  };
  if (Code code = checkBytes(error); code != WL_OK) return code;
  uint32_t onDevice = 0;
  while (devices_[onDevice] != own_.device) ++onDevice;
  if (grid_ == nullptr) grid_ = Grid::hold(statements_[onDevice].grid);
  if (grid_ == nullptr) return gone(onDevice);
  const uint32_t inProcess = beside_[rank_];
  if (otherProcesses_ > 0 && peers_ == nullptr) {
    own_.peers = statements_[inProcess].peers;
    peers_ = peerParts.hold(own_.peers);
    if (peers_ == nullptr) return gone(inProcess);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank)
    parts_[rank] = isHere(rank) ? statements_[rank].address : (*peers_)[rank].mapping.address();
  // All processes have mapped the part, and a mapping keeps it.
  Code code = part_.release(*gpu_, error);
  for (uint32_t step = 1; code == WL_OK && step < ranks; ++step) {
    const uint32_t peer = (rank_ + step) % ranks;
    if (devices_[peer] == own_.device) continue;
    const PlacedPart own = {rank_, own_.device, parts_[rank_]};
    code = tryPart(*copies_, own, {peer, statements_[peer].device, parts_[peer]}, error);
  }
  return code;
}

Code DeviceWindow::close(wl_error_t* error) {
  if (gpu_ == nullptr) return WL_OK;
  GivesBack undo(*gpu_, error);
  if (grid_ != nullptr) undo.by([&](wl_error_t* own) { return grid_->leave(own); });
  Undone undone;
  if (peers_ != nullptr && peerParts.leave(own_.peers)) {
    for (PeerPart& part : *peers_) part.mapping.close(gpu_->cuda(), &undone);
    delete peers_;
  }
  part_.close(gpu_->cuda(), &undone);
  undo(undone.first);
  gpu_ = nullptr;
  grid_ = nullptr;
  peers_ = nullptr;
  bytes_ = 0;
  return undo.code;
}

}  // namespace windlass::cuda
