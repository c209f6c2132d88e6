// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/device_window.h"

#include <algorithm>
#include <memory>
#include <new>

#include "native/device/cuda/by_name.h"
#include "native/device/cuda/rank_device.h"

namespace windlass::cuda {
namespace {

ByName<WindowParts> windowParts;

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

Code DeviceWindow::make(CudaRankDevice& device, AllRanks& exchange, uint64_t bytes,
                        wl_error_t* error) {
  if (device_ != nullptr) return fail(error, WL_INVALID_ARGUMENT, "the window is made already");
  if (Code code = begin(exchange, bytes, error); code != WL_OK) return code;
  const uint32_t ranks = exchange.ranks();
  devices_.assign(ranks, kNobody);
  beside_.clear();
  otherProcesses_ = 0;
  device_ = &device;
  std::vector<DeviceParts::Offer> offers(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    beside_.push_back(exchange.firstBeside(rank));
    otherProcesses_ += rank > 0 && beside_[rank] == rank ? 1 : 0;
  }
  own_.device = device.gpu().number();
  // States the result of each step to all ranks, so that nobody waits for a rank whose step failed.
  const auto run = [&](const auto& step) { return attempt(step, error); };
  Code code = state(exchange, WL_OK, error);
  if (code == WL_OK) code = state(exchange, run([&] { return reserve(bytes, error); }), error);
  if (code == WL_OK) code = state(exchange, run([&] { return makeOwn(error); }), error);
  if (code == WL_OK && otherProcesses_ > 0) {
    for (uint32_t rank = 0; rank < ranks; ++rank) offers[rank] = statements_[rank].offer;
    const auto asks = [&] {
      const Code same = checkBytes(error);
      return same == WL_OK ? parts_->ask(rank_, offers, exchange, error) : same;
    };
    const auto shares = [&] { return parts_->share(device, rank_, exchange, error); };
    code = stateUnlessLost(exchange, run(asks), error);
    if (code == WL_OK) code = stateUnlessLost(exchange, run(shares), error);
  }
  const auto tries = [&] {
    const Code same = checkBytes(error);
    return same == WL_OK ? parts_->tryPeers(device, rank_, error) : same;
  };
  if (code == WL_OK) code = state(exchange, run(tries), error);
  // If the exchange itself ended, a peer may still access this part, which stays until close().
  if (code != WL_OK && isWhole_ && isQuiet()) close(nullptr);
  return code;
}

Code DeviceWindow::state(AllRanks& exchange, Code code, wl_error_t* error) {
  own_.keeps = device_->copies().isStuck() ? 1 : 0;
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

Code DeviceWindow::reserve(uint64_t bytes, wl_error_t* error) {
  const auto ranks = static_cast<uint32_t>(statements_.size());
  Gpu& gpu = device_->gpu();
  uint32_t sharers = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (beside_[rank] != beside_[rank_]) continue;
    devices_[rank] = statements_[rank].device;
    if (rank == rank_) slot_ = sharers;
    sharers += devices_[rank] == own_.device ? 1 : 0;
  }
  if (gpu.own().blocksAtOnce < sharers) {
    return fail(error, WL_UNSUPPORTED,
                "%u ranks share device %u, which runs %u blocks of Windlass' kernel at a time, and "
                "each takes one: have fewer ranks, or more devices",
                sharers, own_.device, gpu.own().blocksAtOnce);
  }
  if (beside_[rank_] == rank_) {
    std::unique_ptr<DeviceParts> made;
    const Code code = WindowParts::reserve(devices_, otherProcesses_, bytes, &made, error);
    if (code != WL_OK) return code;
    auto* const parts = static_cast<WindowParts*>(made.get());
    own_.parts = windowParts.add(parts);
    parts_ = parts;
    made.release();
  }
  if (slot_ > 0) return WL_OK;
  const Code code = Grid::make(gpu, sharers, ranks, &grid_, error);
  if (code == WL_OK) own_.grid = grid_->name();
  return code;
}

Code DeviceWindow::makeOwn(wl_error_t* error) {
  const auto gone = [&](uint32_t first) {
    return fail(error, WL_DEVICE, "rank %u, which shares device %u or its process, has given up",
                first, own_.device);
  };
  uint32_t onDevice = 0;
  while (devices_[onDevice] != own_.device) ++onDevice;
  if (grid_ == nullptr) grid_ = Grid::hold(statements_[onDevice].grid);
  if (grid_ == nullptr) return gone(onDevice);
  own_.parts = statements_[beside_[rank_]].parts;
  if (parts_ == nullptr) parts_ = windowParts.hold(own_.parts);
  if (parts_ == nullptr) return gone(beside_[rank_]);
  own_.bytes = bytes_ = parts_->stride();
  const Code code = parts_->make(*device_, rank_, error);
  own_.offer = parts_->offerOf(rank_);
  return code;
}

Code DeviceWindow::close(wl_error_t* error) {
  if (device_ == nullptr) return WL_OK;
  GivesBack undo(device_->gpu(), error);
  if (grid_ != nullptr) undo.by([&](wl_error_t* own) { return grid_->leave(own); });
  if (parts_ != nullptr && windowParts.leave(own_.parts)) {
    undo(parts_->close());
    delete parts_;
  }
  device_ = nullptr;
  grid_ = nullptr;
  parts_ = nullptr;
  bytes_ = 0;
  return undo.code;
}

}  // namespace windlass::cuda
