// SPDX-License-Identifier: Apache-2.0
#include "native/comm/device_moves.h"

#include <algorithm>
#include <vector>

#include "native/comm/kernels.h"

namespace windlass {
namespace {

using Lies = RankDevice::Lies;

uint64_t bytesOf(const StridedView& view) {
  uint64_t bytes = sizeOf(view.dtype);
  for (uint32_t d = 0; d < view.ndim; ++d) bytes *= static_cast<uint64_t>(view.shape[d]);
  return bytes;
}

// Whether the elements lie side by side in row-major order.
bool isOneRun(const StridedView& view) {
  int64_t behind = 1;
  for (uint32_t d = view.ndim; d-- > 0; behind *= view.shape[d])
    if (view.shape[d] != 1 && view.strides[d] != behind) return false;
  return true;
}

DeviceMove deviceMove(const StridedView& to, const StridedView& from, bool adds) {
  DeviceMove move = {to.dtype, {}};
  move.views.to = reinterpret_cast<uint64_t>(to.data);
  move.views.from = reinterpret_cast<uint64_t>(from.data);
  move.views.adds = adds ? 1 : 0;
  move.views.ndim = to.ndim;
  std::copy_n(to.shape, to.ndim, move.views.shape);
  std::copy_n(to.strides, to.ndim, move.views.toStrides);
  std::copy_n(from.strides, to.ndim, move.views.fromStrides);
  return move;
}

// Part of a view, and the same elements side by side elsewhere.
struct Piece {
  int64_t shape[kMaxDims];
  int64_t packed[kMaxDims];    // strides
  uint64_t skipped[kMaxDims];  // elements of each dimension before it
  uint64_t bytes;

  StridedView of(const StridedView& view) const {
    auto* data = static_cast<unsigned char*>(view.data);
    for (uint32_t d = 0; d < view.ndim; ++d)
      data += skipped[d] * static_cast<uint64_t>(view.strides[d]) * sizeOf(view.dtype);
    return {data, view.dtype, view.ndim, shape, view.strides};
  }
  StridedView at(void* memory, const StridedView& view) const {
    return {memory, view.dtype, view.ndim, shape, packed};
  }
};

// Calls visit(piece) for pieces of `most` bytes at most, in row-major order, until one fails.
template <class Visit>
Code forEachPiece(const StridedView& view, uint64_t most, Visit&& visit) {
  Piece piece = {};
  uint64_t inner = sizeOf(view.dtype);
  uint32_t whole = view.ndim;  // from here on dimensions are whole
  while (whole > 0 && inner * static_cast<uint64_t>(view.shape[whole - 1]) <= most)
    inner *= static_cast<uint64_t>(view.shape[--whole]);
  // Of the dimension before so many at a time, of those before that one.
  const auto cut = static_cast<int64_t>(most / inner);
  for (;;) {
    piece.bytes = inner;
    int64_t behind = 1;
    for (uint32_t d = view.ndim; d-- > 0;) {
      piece.shape[d] = d >= whole ? view.shape[d] : 1;
      if (d + 1 == whole) {
        piece.shape[d] = std::min(cut, view.shape[d] - static_cast<int64_t>(piece.skipped[d]));
        piece.bytes *= static_cast<uint64_t>(piece.shape[d]);
      }
      piece.packed[d] = behind;
      behind *= piece.shape[d];
    }
    if (Code code = visit(piece); code != WL_OK) return code;
    uint32_t d = whole;
    for (; d > 0; --d) {
      piece.skipped[d - 1] += static_cast<uint64_t>(piece.shape[d - 1]);
      if (piece.skipped[d - 1] < static_cast<uint64_t>(view.shape[d - 1])) break;
      piece.skipped[d - 1] = 0;
    }
    if (d == 0) return WL_OK;
  }
}

Code toHost(RankDevice& device, const StridedView& to, const StridedView& from, wl_error_t* error) {
  void* stage = nullptr;
  if (Code code = device.stage(&stage, error); code != WL_OK) return code;
  std::vector<unsigned char> packed(std::min(kDeviceStageBytes, bytesOf(to)));
  return forEachPiece(to, kDeviceStageBytes, [&](const Piece& piece) {
    Code code = device.move(deviceMove(piece.at(stage, from), piece.of(from), false), error);
    if (code == WL_OK) code = device.fromDevice(packed.data(), stage, piece.bytes, error);
    if (code == WL_OK) kKernels.get(piece.of(to), piece.at(packed.data(), to));
    return code;
  });
}

Code toDevice(RankDevice& device, const StridedView& to, const StridedView& from, bool adds,
              wl_error_t* error) {
  void* stage = nullptr;
  if (Code code = device.stage(&stage, error); code != WL_OK) return code;
  std::vector<unsigned char> packed(std::min(kDeviceStageBytes, bytesOf(to)));
  return forEachPiece(to, kDeviceStageBytes, [&](const Piece& piece) {
    kKernels.get(piece.at(packed.data(), from), piece.of(from));
    Code code = device.toDevice(stage, packed.data(), piece.bytes, error);
    if (code == WL_OK)
      code = device.move(deviceMove(piece.of(to), piece.at(stage, to), adds), error);
    return code;
  });
}

}  // namespace

Code moveByDevice(RankDevice& device, const MoveSide& to, const MoveSide& from, bool adds,
                  wl_error_t* error) {
  const uint64_t bytes = bytesOf(to.view);
  if (bytes == 0) return WL_OK;
  const bool copies = !adds && isOneRun(to.view) && isOneRun(from.view);
  const bool isApart = to.lies == Lies::kOtherDevice || from.lies == Lies::kOtherDevice;
  if (isApart && !copies) {
    return fail(error, WL_UNSUPPORTED,
                "a tensor on another device than the rank's, outside of a window, moves as one run "
                "of elements side by side, to such a run, and is added to nothing: copy it to the "
                "rank's own device first");
  }
  if (to.lies == Lies::kHost) {
    return copies ? device.fromDevice(to.view.data, from.view.data, bytes, error)
                  : toHost(device, to.view, from.view, error);
  }
  if (from.lies == Lies::kHost) {
    return copies ? device.toDevice(to.view.data, from.view.data, bytes, error)
                  : toDevice(device, to.view, from.view, adds, error);
  }
  if (copies) return device.onDevices(to.view.data, from.view.data, bytes, error);
  return device.move(deviceMove(to.view, from.view, adds), error);
}

}  // namespace windlass
