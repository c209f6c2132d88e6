// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/copies.h"

#include <algorithm>
#include <cstring>

#include "native/device/cuda/polling.h"

namespace windlass::cuda {
namespace {

// Large enough to hide a copy's fixed cost, and small enough for the host's caches.
constexpr uint64_t kStageBytes = uint64_t{2} << 20;
// Largest pitch that the driver takes for any device: CU_DEVICE_ATTRIBUTE_MAX_PITCH.
constexpr uint64_t kMostPitch = (uint64_t{1} << 31) - 1;

}  // namespace

Code Copies::open(const Gpu& gpu, wl_error_t* error) {
  gpu_ = &gpu;
  Code code = gpu.makeStream(&stream_, error);
  for (Stage& stage : stages_) {
    if (code == WL_OK) code = gpu.makePinned(&stage.memory, kStageBytes, 0, error);
    if (code == WL_OK) code = gpu.makeEvent(&stage.event, error);
  }
  if (code != WL_OK) close(nullptr);
  return code;
}

Code Copies::close(wl_error_t* error) {
  if (gpu_ == nullptr) return WL_OK;
  GivesBack undo(*gpu_, error);
  undo.stream(stream_);
  for (Stage& stage : stages_) {
    undo.event(stage.event);
    undo.pinned(stage.memory);
    stage = Stage();
  }
  gpu_ = nullptr;
  stream_ = nullptr;
  isStuck_ = false;
  return undo.code;
}

Code Copies::checkUse(wl_error_t* error) const {
  if (!isStuck_) return WL_OK;
  return fail(error, WL_DEVICE, "device %u did not end a copy: it takes no others", gpu_->number());
}

Code Copies::ended(Code code, wl_error_t* error) {
  if (code != WL_DEADLINE_EXCEEDED) return code;
  isStuck_ = true;
  return fail(error, WL_DEVICE, "device %u did not end a copy within %lld ms", gpu_->number(),
              static_cast<long long>(copyLimitNs / 1'000'000));
}

Code Copies::begin(Stage& stage, const Called& copy, wl_error_t* error) {
  if (Code code = gpu_->check(copy, error); code != WL_OK) return code;
  stage.isBusy = true;
  return gpu_->check(gpu_->cuda().cuEventRecord(stage.event, stream_), error);
}

Code Copies::await(Stage& stage, wl_error_t* error) {
  if (!stage.isBusy) return WL_OK;
  const auto look = [&] { return gpu_->cuda().cuEventQuery(stage.event); };
  const Code code = ended(poll(*gpu_, look, copyLimitNs, error), error);
  stage.isBusy = code != WL_OK;
  return code;
}

Code Copies::finish(Code enqueued, wl_error_t* error) {
  if (enqueued != WL_OK) return settled(enqueued);
  return settled(ended(awaitStream(*gpu_, stream_, copyLimitNs, error), error));
}

Code Copies::settled(Code code) {
  if (code == WL_OK || isStuck_) return code;
  isStuck_ = mayRunOn(*gpu_, stream_, copyLimitNs);
  for (Stage& stage : stages_) stage.isBusy = isStuck_;
  return code;
}

Code Copies::toDevice(CuAddress to, const void* from, uint64_t bytes, wl_error_t* error) {
  const auto* first = static_cast<const unsigned char*>(from);
  const auto copy = [&](unsigned char* buffer, uint64_t at, uint64_t length) {
    std::memcpy(buffer, first + at, length);
  };
  return fill(to, bytes, copy, error);
}

Code Copies::fromDevice(void* to, CuAddress from, uint64_t bytes, wl_error_t* error) {
  auto* first = static_cast<unsigned char*>(to);
  const auto copy = [&](const unsigned char* buffer, uint64_t at, uint64_t length) {
    std::memcpy(first + at, buffer, length);
  };
  return take(from, bytes, copy, error);
}

Code Copies::fill(CuAddress to, uint64_t bytes, const RankDevice::Fill& fill, wl_error_t* error) {
  Code code = checkUse(error);
  for (uint64_t at = 0; code == WL_OK && at < bytes; at += kStageBytes) {
    Stage& stage = stages_[at / kStageBytes % 2];
    const uint64_t length = std::min(kStageBytes, bytes - at);
    code = await(stage, error);
    if (code != WL_OK) break;
    fill(stage.memory, at, length);
    code =
        begin(stage, gpu_->cuda().cuMemcpyHtoDAsync(to + at, stage.memory, length, stream_), error);
  }
  for (Stage& stage : stages_)
    if (code == WL_OK) code = await(stage, error);
  return settled(code);
}

Code Copies::take(CuAddress from, uint64_t bytes, const RankDevice::Take& take, wl_error_t* error) {
  Code code = checkUse(error);
  // Each round begins to copy a piece, and then passes the piece before it to take().
  for (uint64_t at = 0; code == WL_OK && at < bytes + kStageBytes; at += kStageBytes) {
    Stage& next = stages_[at / kStageBytes % 2];
    Stage& last = stages_[(at / kStageBytes + 1) % 2];
    if (at < bytes) {
      const uint64_t length = std::min(kStageBytes, bytes - at);
      code = begin(next, gpu_->cuda().cuMemcpyDtoHAsync(next.memory, from + at, length, stream_),
                   error);
    }
    if (code != WL_OK || at == 0) continue;
    code = await(last, error);
    const uint64_t before = at - kStageBytes;
    if (code == WL_OK) take(last.memory, before, std::min(kStageBytes, bytes - before));
  }
  return settled(code);
}

Code Copies::onDevices(CuAddress to, CuAddress from, uint64_t bytes, wl_error_t* error) {
  if (Code code = checkUse(error); code != WL_OK) return code;
  return finish(gpu_->check(gpu_->cuda().cuMemcpyAsync(to, from, bytes, stream_), error), error);
}

Code Copies::copyRows(const std::vector<RankDevice::Rows>& rows, wl_error_t* error) {
  if (Code code = checkUse(error); code != WL_OK || rows.empty()) return code;
  Code code = WL_OK;
  for (auto each = rows.begin(); code == WL_OK && each != rows.end(); ++each)
    code = enqueue(*each, error);
  return finish(code, error);
}

Code Copies::enqueue(const RankDevice::Rows& rows, wl_error_t* error) {
  const Cuda& cuda = gpu_->cuda();
  const bool isPitched = rows.count > 1 && rows.toStep >= rows.bytes &&
                         rows.fromStep >= rows.bytes && rows.toStep <= kMostPitch &&
                         rows.fromStep <= kMostPitch;
  if (isPitched) {
    const CuCopy2D copy = {{0, 0, kUnifiedMemory, nullptr, rows.from, nullptr, rows.fromStep},
                           {0, 0, kUnifiedMemory, nullptr, rows.to, nullptr, rows.toStep},
                           rows.bytes,
                           rows.count};
    return gpu_->check(cuda.cuMemcpy2DAsync(&copy, stream_), error);
  }
  Code code = WL_OK;
  for (uint64_t i = 0; code == WL_OK && i < rows.count; ++i) {
    code = gpu_->check(cuda.cuMemcpyAsync(rows.to + i * rows.toStep, rows.from + i * rows.fromStep,
                                          rows.bytes, stream_),
                       error);
  }
  return code;
}

Code Copies::zero(CuAddress to, uint64_t bytes, wl_error_t* error) {
  if (Code code = checkUse(error); code != WL_OK) return code;
  return finish(gpu_->check(gpu_->cuda().cuMemsetD8Async(to, 0, bytes, stream_), error), error);
}

}  // namespace windlass::cuda
