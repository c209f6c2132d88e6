// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/device_window.h"

#include <algorithm>
#include <new>

namespace windlass::cuda {
namespace {

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
  const uint32_t ranks = exchange.ranks();
  culprit_ = exchange.rank();
  if (ranks > kMostDeviceRanks) {
    return fail(error, WL_UNSUPPORTED, "%u ranks: a group on devices has %u at most", ranks,
                kMostDeviceRanks);
  }
  if (bytes == 0 || bytes > kMostWindowBytes)
    return fail(error, WL_INVALID_ARGUMENT, "a window of %llu bytes",
                static_cast<unsigned long long>(bytes));
  statements_.assign(ranks, Statement());
  parts_.assign(ranks, 0);
  beside_.clear();
  for (uint32_t rank = 0; rank < ranks; ++rank) beside_.push_back(exchange.firstBeside(rank));
  gpu_ = &gpu;
  copies_ = &copies;
  rank_ = exchange.rank();
  own_ = {};
  own_.device = gpu.number();
  // States the result of each step to all ranks, so that nobody waits for a rank whose step failed.
  Code code = state(exchange, WL_OK, error);
  if (code == WL_OK)
    code = state(exchange, attempt([&] { return makeOwn(bytes, error); }, error), error);
  if (code == WL_OK && spansProcesses()) {
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
  own_.code = code;
  own_.keeps = copies_->isStuck() ? 1 : 0;
  return stateToAll(exchange, own_, statements_, &culprit_, &isWhole_, error);
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

std::vector<uint32_t> DeviceWindow::devices() const {
  std::vector<uint32_t> all = {own_.device};
  for (uint32_t rank = 0; rank < statements_.size(); ++rank) {
    const uint32_t device = statements_[rank].device;
    if (isHere(rank) && std::find(all.begin(), all.end(), device) == all.end())
      all.push_back(device);
  }
  return all;
}

bool DeviceWindow::spansProcesses() const {
  return std::any_of(beside_.begin(), beside_.end(), [](uint32_t first) { return first != 0; });
}

bool DeviceWindow::isQuiet() const {
  return std::none_of(statements_.begin(), statements_.end(),
                      [](const Statement& each) { return each.keeps != 0; });
}

uint32_t DeviceWindow::firstOnDevice() const {
  uint32_t first = 0;
  while (!sharesDevice(first)) ++first;
  return first;
}

Code DeviceWindow::makeOwn(uint64_t bytes, wl_error_t* error) {
  uint32_t sharers = 0;
  slot_ = 0;
  for (uint32_t rank = 0; rank < statements_.size(); ++rank) {
    if (!sharesDevice(rank)) continue;
    ++sharers;
    slot_ += rank < rank_ ? 1 : 0;
  }
  if (gpu_->own().blocksAtOnce < sharers) {
    return fail(error, WL_UNSUPPORTED,
                "%u ranks share device %u, which runs %u blocks of Windlass' kernel at a time, and "
                "each takes one: have fewer ranks, or more devices",
                sharers, own_.device, gpu_->own().blocksAtOnce);
  }
  if (Code code = checkReach(*gpu_, rank_, devices(), error); code != WL_OK) return code;
  const Reach reach = spansProcesses() ? Reach::kAllProcesses : Reach::kThisProcess;
  size_t page = 0;
  Code code = gpu_->check(OwnPart::pageOf(gpu_->cuda(), gpu_->device(), reach, &page), error);
  if (code != WL_OK) return code;
  if (page == 0) {
    return fail(error, WL_DEVICE,
                "device %u has pages of 0 bytes, says cuMemGetAllocationGranularity", own_.device);
  }
  own_.bytes = bytes_ = (bytes + page - 1) / page * page;
  code = part_.make(*gpu_, *copies_, reach, 0, bytes_, devices(), error);
  if (code == WL_OK && spansProcesses()) code = part_.offer(*gpu_, error);
  own_.offer = part_.offerName();
  own_.address = part_.address();
  if (code == WL_OK && firstOnDevice() == rank_) code = makeGrid(error);
  return code;
}

Code DeviceWindow::ask(AllRanks& exchange, wl_error_t* error) {
  if (Code code = checkBytes(error); code != WL_OK || beside_[rank_] != rank_) return code;
  const auto ranks = static_cast<uint32_t>(statements_.size());
  peers_ = PeerParts::make(*gpu_, devices(), ranks, bytes_);
  own_.peers = peers_->name();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (isHere(rank)) continue;
    const Code code = peers_->ask(rank, statements_[rank].offer, exchange, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

Code DeviceWindow::share(AllRanks& exchange, wl_error_t* error) {
  uint32_t processes = 0;
  for (uint32_t rank = 0; rank < statements_.size(); ++rank)
    processes += beside_[rank] == rank && !isHere(rank) ? 1 : 0;
  // Each rank gives its part before it waits for others.
  Code code = part_.give(processes, exchange, error);
  if (beside_[rank_] != rank_) return code;
  for (uint32_t rank = 0; code == WL_OK && rank < statements_.size(); ++rank)
    if (!isHere(rank)) code = peers_->map(rank, exchange, error);
  return code;
}

Code DeviceWindow::makeGrid(wl_error_t* error) {
  const auto ranks = static_cast<uint32_t>(statements_.size());
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) count += sharesDevice(rank) ? 1 : 0;
  const Code code = Grid::make(*gpu_, count, ranks, &grid_, error);
  if (code == WL_OK) own_.grid = grid_->name();
  return code;
}

Code DeviceWindow::reach(wl_error_t* error) {
  const auto ranks = static_cast<uint32_t>(statements_.size());
  const auto gone = [&](uint32_t first) {
    return fail(error, WL_DEVICE, "rank %u, which shares device %u or its process, has given up",
                first, own_.device);
  };
  if (Code code = checkBytes(error); code != WL_OK) return code;
  const uint32_t onDevice = firstOnDevice();
  if (grid_ == nullptr) grid_ = Grid::hold(statements_[onDevice].grid);
  if (grid_ == nullptr) return gone(onDevice);
  const uint32_t inProcess = beside_[rank_];
  if (spansProcesses() && peers_ == nullptr) peers_ = PeerParts::hold(statements_[inProcess].peers);
  if (spansProcesses() && peers_ == nullptr) return gone(inProcess);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    parts_[rank] = isHere(rank) ? statements_[rank].address : peers_->part(rank);
  // All processes have mapped the part, and a mapping keeps it.
  Code code = part_.release(*gpu_, error);
  for (uint32_t step = 1; code == WL_OK && step < ranks; ++step) {
    const uint32_t peer = (rank_ + step) % ranks;
    if (!sharesDevice(peer)) code = tryPart(*copies_, placed(rank_), placed(peer), error);
  }
  return code;
}

Code DeviceWindow::checkBytes(wl_error_t* error) const {
  for (uint32_t peer = 0; peer < statements_.size(); ++peer) {
    if (statements_[peer].bytes == bytes_) continue;
    return fail(error, WL_MISMATCH, "a window of %llu bytes on rank %u and of %llu on rank %u",
                static_cast<unsigned long long>(bytes_), rank_,
                static_cast<unsigned long long>(statements_[peer].bytes), peer);
  }
  return WL_OK;
}

Code DeviceWindow::close(wl_error_t* error) {
  if (gpu_ == nullptr) return WL_OK;
  GivesBack undo(*gpu_, error);
  if (grid_ != nullptr) undo.by([&](wl_error_t* own) { return grid_->leave(own); });
  if (peers_ != nullptr) undo.by([&](wl_error_t* own) { return peers_->leave(own); });
  Undone undone;
  part_.close(gpu_->cuda(), &undone);
  undo(undone.first);
  gpu_ = nullptr;
  grid_ = nullptr;
  peers_ = nullptr;
  bytes_ = 0;
  return undo.code;
}

}  // namespace windlass::cuda
