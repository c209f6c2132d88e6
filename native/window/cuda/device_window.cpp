// SPDX-License-Identifier: Apache-2.0
#include "native/window/cuda/device_window.h"

#include <algorithm>

namespace windlass::cuda {
namespace {

constexpr uint64_t kTriedBytes = 64;  // of a part, for each rank that tries to reach it

CuPhysicalProperties propertiesOn(CuDevice device) {
  CuPhysicalProperties properties = {};
  properties.type = kAllocationPinned;
  properties.handleTypes = kHandleNone;
  properties.location = {kLocationDevice, device};
  return properties;
}

}  // namespace

Code DeviceWindow::make(Gpu& gpu, Copies& copies, CuAddress operation, AllRanks& exchange,
                        uint64_t bytes, wl_error_t* error) {
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
  gpu_ = &gpu;
  copies_ = &copies;
  rank_ = exchange.rank();
  own_ = {};
  own_.device = gpu.number();
  own_.operation = operation;
  // Each step is stated to all, so that a rank whose step fails is waited for by nobody.
  Code code = state(exchange, WL_OK, error);
  if (code == WL_OK) code = state(exchange, makeOwn(bytes, error), error);
  if (code == WL_OK) code = state(exchange, reach(error), error);
  // All have tried their peers' parts.
  if (code == WL_OK && devices().size() > 1)
    code = state(exchange, copies.zero(address_, ranks * kTriedBytes, error), error);
  // Where the exchange itself ended, a peer may still try this part: it stays until close().
  if (code != WL_OK && culprit_ != kNobody) close(nullptr);
  return code;
}

Code DeviceWindow::state(AllRanks& exchange, Code code, wl_error_t* error) {
  own_.code = code;
  return stateToAll(exchange, own_, statements_, &culprit_, error);
}

std::vector<uint32_t> DeviceWindow::devices() const {
  std::vector<uint32_t> all = {own_.device};
  for (const Statement& each : statements_)
    if (std::find(all.begin(), all.end(), each.device) == all.end()) all.push_back(each.device);
  return all;
}

uint32_t DeviceWindow::firstOnDevice() const {
  uint32_t first = 0;
  while (statements_[first].device != own_.device) ++first;
  return first;
}

Code DeviceWindow::checkReach(wl_error_t* error) const {
  const Cuda& cuda = gpu_->cuda();
  for (const uint32_t number : devices()) {
    if (number == own_.device) continue;
    CuDevice device = 0;
    int32_t can = 0;
    Code code =
        gpu_->check(cuda.cuDeviceGet(&device, static_cast<int32_t>(number)), "cuDeviceGet", error);
    if (code == WL_OK)
      code = gpu_->check(cuda.cuDeviceCanAccessPeer(&can, device, gpu_->device()),
                         "cuDeviceCanAccessPeer", error);
    if (code != WL_OK) return code;
    if (can != 1) {
      return fail(error, WL_UNSUPPORTED,
                  "device %u does not reach device %u of rank %u, says the driver: have ranks on "
                  "devices that reach one another, or all on one, by CUDA_VISIBLE_DEVICES",
                  number, own_.device, rank_);
    }
  }
  return WL_OK;
}

Code DeviceWindow::makeOwn(uint64_t bytes, wl_error_t* error) {
  const Cuda& cuda = gpu_->cuda();
  uint32_t sharers = 0;
  slot_ = 0;
  for (uint32_t rank = 0; rank < statements_.size(); ++rank) {
    if (statements_[rank].device != own_.device) continue;
    ++sharers;
    slot_ += rank < rank_ ? 1 : 0;
  }
  if (gpu_->blocksAtOnce() < sharers) {
    return fail(error, WL_UNSUPPORTED,
                "%u ranks share device %u, which runs %u blocks of Windlass' kernel at a time, and "
                "each takes one: have fewer ranks, or more devices",
                sharers, own_.device, gpu_->blocksAtOnce());
  }
  if (Code code = checkReach(error); code != WL_OK) return code;
  const CuPhysicalProperties properties = propertiesOn(gpu_->device());
  size_t page = 0;
  Code code =
      gpu_->check(cuda.cuMemGetAllocationGranularity(&page, &properties, kGranularityRecommended),
                  "cuMemGetAllocationGranularity", error);
  if (code != WL_OK) return code;
  if (page == 0) {
    return fail(error, WL_DEVICE,
                "device %u has pages of 0 bytes, says cuMemGetAllocationGranularity", own_.device);
  }
  own_.bytes = bytes_ = (bytes + page - 1) / page * page;
  code = gpu_->checkMemory(cuda.cuMemCreate(&physical_, bytes_, &properties, 0), "cuMemCreate",
                           bytes_, error);
  hasPhysical_ = code == WL_OK;
  if (code == WL_OK) code = map(error);
  // Before anybody learns of it.
  if (code == WL_OK) code = copies_->zero(address_, bytes_, error);
  own_.address = address_;
  if (code == WL_OK && firstOnDevice() == rank_) code = makeGrid(error);
  return code;
}

Code DeviceWindow::map(wl_error_t* error) {
  const Cuda& cuda = gpu_->cuda();
  Code code = gpu_->check(cuda.cuMemAddressReserve(&address_, bytes_, 0, 0, 0),
                          "cuMemAddressReserve", error);
  isReserved_ = code == WL_OK;
  if (code != WL_OK) return code;
  code = gpu_->check(cuda.cuMemMap(address_, bytes_, 0, physical_, 0), "cuMemMap", error);
  isMapped_ = code == WL_OK;
  if (code != WL_OK) return code;
  CuAccess accesses[kMostDeviceRanks] = {};
  uint32_t count = 0;
  for (const uint32_t number : devices()) {
    CuDevice device = gpu_->device();
    if (number != own_.device)
      code = gpu_->check(cuda.cuDeviceGet(&device, static_cast<int32_t>(number)), "cuDeviceGet",
                         error);
    if (code != WL_OK) return code;
    accesses[count++] = {{kLocationDevice, device}, kAccessReadWrite};
  }
  return gpu_->check(cuda.cuMemSetAccess(address_, bytes_, accesses, count), "cuMemSetAccess",
                     error);
}

Code DeviceWindow::makeGrid(wl_error_t* error) {
  CuAddress operations[kMostDeviceRanks] = {};
  uint32_t count = 0;
  for (const Statement& each : statements_)
    if (each.device == own_.device) operations[count++] = each.operation;
  const Code code = Grid::make(*gpu_, operations, count, &grid_, error);
  if (code == WL_OK) own_.grid = grid_->name();
  return code;
}

Code DeviceWindow::reach(wl_error_t* error) {
  if (grid_ == nullptr) {
    const uint32_t first = firstOnDevice();
    grid_ = Grid::hold(statements_[first].grid);
    if (grid_ == nullptr)
      return fail(error, WL_DEVICE, "rank %u, which shares device %u, has given up", first,
                  own_.device);
  }
  for (uint32_t step = 1; step < statements_.size(); ++step) {
    const uint32_t peer = (rank_ + step) % static_cast<uint32_t>(statements_.size());
    const Statement& theirs = statements_[peer];
    if (theirs.bytes != bytes_) {
      return fail(error, WL_MISMATCH, "a window of %llu bytes on rank %u and of %llu on rank %u",
                  static_cast<unsigned long long>(bytes_), rank_,
                  static_cast<unsigned long long>(theirs.bytes), peer);
    }
    if (theirs.device == own_.device) continue;
    if (Code code = tryPeer(peer, error); code != WL_OK) return code;
  }
  return WL_OK;
}

// The driver's word is not enough: machines are known whose copies between GPUs come to nothing.
Code DeviceWindow::tryPeer(uint32_t peer, wl_error_t* error) {
  uint64_t sent[kTriedBytes / sizeof(uint64_t)];
  uint64_t come[kTriedBytes / sizeof(uint64_t)] = {};
  for (uint64_t i = 0; i < std::size(sent); ++i)
    sent[i] = (i + 1) * 0x9e3779b97f4a7c15u + (uint64_t{rank_} << 32 | peer);
  const CuAddress here = address_ + rank_ * kTriedBytes;
  const CuAddress there = statements_[peer].address + rank_ * kTriedBytes;
  Code code = copies_->toDevice(here, sent, sizeof sent, error);
  if (code == WL_OK) code = copies_->onDevices(there, here, sizeof sent, error);
  if (code == WL_OK) code = copies_->zero(here, sizeof sent, error);
  if (code == WL_OK) code = copies_->onDevices(here, there, sizeof sent, error);
  if (code == WL_OK) code = copies_->fromDevice(come, here, sizeof come, error);
  if (code != WL_OK || std::equal(std::begin(sent), std::end(sent), std::begin(come))) return code;
  return fail(error, WL_UNSUPPORTED,
              "device %u of rank %u does not reach device %u of rank %u: what it copied there and "
              "back has changed, whatever the driver says. Have all ranks on one device, by "
              "CUDA_VISIBLE_DEVICES, and look for an IOMMU or ACS that stands between them",
              own_.device, rank_, statements_[peer].device, peer);
}

Code DeviceWindow::close(wl_error_t* error) {
  if (gpu_ == nullptr) return WL_OK;
  const Cuda& cuda = gpu_->cuda();
  Code code = WL_OK;
  const auto undo = [&](CuResult result, const char* call) {
    const Code undone = gpu_->check(result, call, code == WL_OK ? error : nullptr);
    if (code == WL_OK) code = undone;
  };
  if (grid_ != nullptr) code = grid_->leave(error);
  if (isMapped_) undo(cuda.cuMemUnmap(address_, bytes_), "cuMemUnmap");
  if (isReserved_) undo(cuda.cuMemAddressFree(address_, bytes_), "cuMemAddressFree");
  if (hasPhysical_) undo(cuda.cuMemRelease(physical_), "cuMemRelease");
  gpu_ = nullptr;
  grid_ = nullptr;
  bytes_ = 0;
  isReserved_ = hasPhysical_ = isMapped_ = false;
  return code;
}

}  // namespace windlass::cuda
