// SPDX-License-Identifier: Apache-2.0
#include "native/device/device_moves.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "native/base/extent.h"
#include "native/core/launch/rank_moves.h"

namespace windlass {
namespace {

using Lies = RankDevice::Lies;

// True if the elements are contiguous in row-major order.
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

// Part of a view, and the same elements packed elsewhere.
struct Piece {
  int64_t shape[kMaxDims];
  int64_t packed[kMaxDims];    // strides
  uint64_t skipped[kMaxDims];  // elements of each dimension before the piece
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

// Calls visit(piece) for pieces of at most `most` bytes, in row-major order, until one fails.
template <class Visit>
Code forEachPiece(const StridedView& view, uint64_t most, Visit&& visit) {
  Piece piece = {};
  uint64_t inner = sizeOf(view.dtype);
  uint32_t whole = view.ndim;  // from here on dimensions are whole
  while (whole > 0 && inner * static_cast<uint64_t>(view.shape[whole - 1]) <= most)
    inner *= static_cast<uint64_t>(view.shape[--whole]);
  // Number of indices of dimension `whole - 1` in a piece. A piece has one index of each earlier
  // dimension.
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

FarBox boxOf(const StridedView& view) {
  return {reinterpret_cast<uint64_t>(view.data), static_cast<uint32_t>(sizeOf(view.dtype)),
          view.ndim, view.shape, view.strides, FarBox::Gaps::kNone};
}

// Moves a piece of a view on devices to or from packed host memory.
class Passage {
 public:
  Passage(RankDevice& device, const MoveSide& side, const Piece& piece, unsigned char* packed)
      : device_(device), piece_(piece), part_(piece.of(side.view)), packed_(packed) {
    std::copy_n(piece.packed, part_.ndim, strides_);
    // Kernels don't reach another device, but copies of rows do.
    isByRows_ = side.lies == Lies::kOtherDevice && !isOneRun(part_);
    if (isByRows_) boxOf(part_).copyStrides(strides_);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  // View of the elements in host memory.
  StridedView onHost() const {
    return {packed_, part_.dtype, part_.ndim, part_.shape, strides_};
  }
  Code fromDevice(wl_error_t* error) {
    if (isOneRun(part_)) return device_.fromDevice(packed_, part_.data, piece_.bytes, error);
    void* stage = nullptr;
    Code code = device_.stage(&stage, error);
    if (code == WL_OK && isByRows_) code = device_.copyRows(rows(stage, true), error);
    if (code == WL_OK && !isByRows_)
      code = device_.move(deviceMove(piece_.at(stage, part_), part_, false), error);
    return code == WL_OK ? device_.fromDevice(packed_, stage, piece_.bytes, error) : code;
  }
  Code toDevice(bool adds, wl_error_t* error) {
    if (isOneRun(part_) && !adds)
      return device_.toDevice(part_.data, packed_, piece_.bytes, error);
    void* stage = nullptr;
    Code code = device_.stage(&stage, error);
    if (code == WL_OK) code = device_.toDevice(stage, packed_, piece_.bytes, error);
    if (code == WL_OK && isByRows_) return device_.copyRows(rows(stage, false), error);
    return code == WL_OK ? device_.move(deviceMove(part_, piece_.at(stage, part_), adds), error)
                         : code;
  }

 private:
  std::vector<RankDevice::Rows> rows(void* stage, bool isToStage) const {
    std::vector<RankDevice::Rows> rows;
    appendRows(boxOf(part_), reinterpret_cast<uint64_t>(stage), isToStage, &rows);
    return rows;
  }

  RankDevice& device_;
  const Piece& piece_;
  const StridedView part_;
  unsigned char* const packed_;
  int64_t strides_[kMaxDims];
  bool isByRows_;
};

Code toHost(RankDevice& device, const StridedView& to, const MoveSide& from, bool adds,
            wl_error_t* error) {
  std::vector<unsigned char> packed(std::min(kDeviceStageBytes, bytesOf(to)));
  return forEachPiece(to, kDeviceStageBytes, [&](const Piece& piece) {
    Passage passage(device, from, piece, packed.data());
    const Code code = passage.fromDevice(error);
    if (code != WL_OK) return code;
    (adds ? kRankMoves.accumulate : kRankMoves.get)(piece.of(to), passage.onHost());
    return WL_OK;
  });
}

Code toDevice(RankDevice& device, const MoveSide& to, const StridedView& from, bool adds,
              wl_error_t* error) {
  std::vector<unsigned char> packed(std::min(kDeviceStageBytes, bytesOf(from)));
  return forEachPiece(from, kDeviceStageBytes, [&](const Piece& piece) {
    Passage passage(device, to, piece, packed.data());
    kRankMoves.get(passage.onHost(), piece.of(from));
    return passage.toDevice(adds, error);
  });
}

}  // namespace

Code findView(RankDevice& device, const char* name, const StridedView& view, Lies* lies,
              wl_error_t* error) {
  int64_t bytes = 0;
  extentOf(view.ndim, view.shape, view.strides, sizeOf(view.dtype), &bytes);
  return device.find({name, view.data, static_cast<uint64_t>(bytes)}, lies, error);
}

void appendRows(const FarBox& box, uint64_t copy, bool isToCopy,
                std::vector<RankDevice::Rows>* rows) {
  box.forEachRows([&](const FarBox::Rows& each) {
    const uint64_t at = copy + each.at;
    rows->push_back(isToCopy ? RankDevice::Rows{at, each.address, each.bytes, each.count,
                                                each.copyStep, each.step}
                             : RankDevice::Rows{each.address, at, each.bytes, each.count,
                                                each.step, each.copyStep});
  });
}

Code moveByDevice(RankDevice& device, const MoveSide& to, const MoveSide& from, bool adds,
                  wl_error_t* error) {
  const uint64_t bytes = bytesOf(to.view);
  if (bytes == 0) return WL_OK;
  const bool copies = !adds && isOneRun(to.view) && isOneRun(from.view);
  if (to.lies == Lies::kHost) {
    return copies ? device.fromDevice(to.view.data, from.view.data, bytes, error)
                  : toHost(device, to.view, from, adds, error);
  }
  const bool isApart = to.lies == Lies::kOtherDevice || from.lies == Lies::kOtherDevice;
  if (isApart && (adds || (!copies && from.lies != Lies::kHost))) {
    return fail(error, WL_UNSUPPORTED,
                "between devices a tensor on another one than the rank's, outside of a window, "
                "moves as one run of elements side by side, to such a run, and is added to "
                "nothing: copy it to the rank's own device first");
  }
  if (from.lies == Lies::kHost) {
    return copies ? device.toDevice(to.view.data, from.view.data, bytes, error)
                  : toDevice(device, to, from.view, adds, error);
  }
  if (copies) return device.onDevices(to.view.data, from.view.data, bytes, error);
  return device.move(deviceMove(to.view, from.view, adds), error);
}

Code readByDevice(RankDevice& device, const std::vector<MoveSide>& from,
                  const std::function<void(const StridedView* views)>& visit, wl_error_t* error) {
  const uint64_t bytes = bytesOf(from[0].view);
  if (bytes == 0) return WL_OK;
  const uint64_t most = std::min(bytes, kDeviceStageBytes / from.size());
  std::vector<unsigned char> packed(from.size() * most);
  std::vector<StridedView> views(from.size());
  return forEachPiece(from[0].view, most, [&](const Piece& piece) -> Code {
    std::deque<Passage> passages;  // own the strides of `views`
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i].lies == Lies::kHost) {
        views[i] = piece.of(from[i].view);
        continue;
      }
      passages.emplace_back(device, from[i], piece, packed.data() + i * most);
      if (Code code = passages.back().fromDevice(error); code != WL_OK) return code;
      views[i] = passages.back().onHost();
    }
    visit(views.data());
    return WL_OK;
  });
}

Code clearByDevice(RankDevice& device, const StridedView& view, wl_error_t* error) {
  const uint64_t zeroed = std::min(bytesOf(view), kDeviceStageBytes);
  if (zeroed == 0) return WL_OK;
  void* stage = nullptr;
  Code code = device.stage(&stage, error);
  const auto clear = [](unsigned char* buffer, uint64_t, uint64_t length) {
    std::memset(buffer, 0, length);
  };
  if (code == WL_OK) code = device.fillDevice(stage, zeroed, clear, error);
  if (code != WL_OK) return code;
  const auto zeros = reinterpret_cast<uint64_t>(stage);
  std::vector<RankDevice::Rows> all;
  boxOf(view).forEachRows([&](const FarBox::Rows& rows) {
    for (uint64_t at = 0; at < rows.bytes; at += zeroed) {
      const uint64_t length = std::min(zeroed, rows.bytes - at);
      const uint64_t most = zeroed / length;
      for (uint64_t row = 0; row < rows.count; row += most) {
        all.push_back({rows.address + row * rows.step + at, zeros, length,
                       std::min(most, rows.count - row), rows.step, length});
      }
    }
  });
  return device.copyRows(all, error);
}

}  // namespace windlass
