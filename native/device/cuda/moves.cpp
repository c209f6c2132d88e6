// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/moves.h"

#include <algorithm>
#include <cstddef>

#include "native/base/extent.h"
#include "native/device/cuda/polling.h"

namespace windlass::cuda {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
constexpr uint32_t kMostBlocks = 256;
// Number of polls of a signal. A move waits for no signal.
constexpr uint32_t kLooks = 1;

// Arguments of the kernel, in device memory.
struct Given {
  OffloadedOperation operation;
  MoveViews views;
  alignas(64) unsigned char stop[kCoreLineBytes];
  unsigned char lines[kMostBlocks][kCoreLineBytes];
};

}  // namespace

Code Moves::open(const Gpu& gpu, wl_error_t* error) {
  if (gpu_ != nullptr) return WL_OK;
  gpu_ = &gpu;
  Code code = gpu.makeStream(&stream_, error);
  if (code == WL_OK) code = gpu.makeMemory(&given_, sizeof(Given), error);
  if (code != WL_OK) close(nullptr);
  return code;
}

Code Moves::stage(const Gpu& gpu, void** memory, wl_error_t* error) {
  if (Code code = open(gpu, error); code != WL_OK) return code;
  if (stage_ == 0) {
    if (Code code = gpu.makeMemory(&stage_, kDeviceStageBytes, error); code != WL_OK) return code;
  }
  *memory = reinterpret_cast<void*>(stage_);
  return WL_OK;
}

Code Moves::close(wl_error_t* error) {
  if (gpu_ == nullptr) return WL_OK;
  GivesBack undo(*gpu_, error);
  undo.stream(stream_);
  undo.memory(given_);
  undo.memory(stage_);
  *this = Moves();
  return undo.code;
}

Code Moves::run(const Gpu& gpu, Copies& copies, const DeviceMove& move, wl_error_t* error) {
  if (Code code = open(gpu, error); code != WL_OK) return code;
  if (isStuck_) {
    return fail(error, WL_DEVICE, "device %u did not end a move: it takes no others", gpu.number());
  }
  const MoveViews& views = move.views;
  const uint64_t bytes =
      bytesOf({nullptr, move.dtype, views.ndim, views.shape, views.toStrides});
  if (bytes == 0) return WL_OK;
  const uint32_t pieces = pieceCount(bytes, kPieceBytes, kMostBlocks);
  uint32_t cores = std::min(pieces, gpu.own().blocksAtOnce);
  Given given = {};
  OffloadedOperation& operation = given.operation;
  operation.kernel = kMoveKernel;
  operation.launch.ranks = 1;
  operation.launch.dtype = move.dtype;
  operation.launch.bytes = bytes;
  operation.launch.pieces = pieces;
  operation.line = {0, 0, cores, 1, false, kLooks, nullptr, 0};
  operation.entries[0].aux = Place::of(kAddressSpace, given_ + offsetof(Given, views));
  operation.windows[0] = given_;
  operation.windowBytes = sizeof given;
  operation.lines[0] = given_ + offsetof(Given, lines);
  operation.stop = given_ + offsetof(Given, stop);
  operation.stopValue = 1;
  given.views = views;
  if (Code code = copies.toDevice(given_, &given, offsetof(Given, lines), error); code != WL_OK)
    return code;
  OffloadedRanks ranks = {};
  ranks.operation[0] =
      reinterpret_cast<const OffloadedOperation*>(given_ + offsetof(Given, operation));
  void* arguments[] = {&ranks, &cores};
  Code code = gpu.check(gpu.cuda().cuLaunchKernel(gpu.own().function, cores, 1, 1, kCudaThreads, 1,
                                                  1, 0, stream_, arguments, nullptr),
                        error);
  if (code != WL_OK) return code;
  code = awaitStream(gpu, stream_, copyLimitNs, error);
  isStuck_ = code == WL_DEADLINE_EXCEEDED || (code != WL_OK && mayRunOn(gpu, stream_, copyLimitNs));
  if (code != WL_DEADLINE_EXCEEDED) return code;
  return fail(error, WL_DEVICE, "device %u did not end a move within %lld ms", gpu.number(),
              static_cast<long long>(copyLimitNs / 1'000'000));
}

}  // namespace windlass::cuda
