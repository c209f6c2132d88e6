// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/transfer.h"

#include <algorithm>
#include <iterator>

#include "native/isa/boxes.h"

namespace windlass::checked {
namespace {

// Moves chunks through the two tiles alternately, or through one tile.
class Chunks {
 public:
  Chunks(Core& core, const TransferKind& kind, TileRef* ping, TileRef* pong, bool adds)
      : core_(core), kind_(kind), tiles_{ping, pong}, adds_(adds) {}

  void move(const GlobalRef& dst, const GlobalRef& src) {
    const int id = static_cast<int>(next_);
    TileRef& tile = *tiles_[next_];
    if (used_[next_]) core_.waitFlag(PIPE_MTE3, PIPE_MTE2, id, kind_.waitFlag);
    core_.load(tile, src, kind_.load);
    core_.setFlag(PIPE_MTE2, PIPE_MTE3, id, kind_.setFlag);
    core_.waitFlag(PIPE_MTE2, PIPE_MTE3, id, kind_.waitFlag);
    core_.store(dst, tile, adds_, kind_.store);
    core_.setFlag(PIPE_MTE3, PIPE_MTE2, id, kind_.setFlag);
    used_[next_] = true;
    if (tiles_[1] != nullptr) next_ = 1 - next_;
  }
  void end() {
    for (int id = 0; id < 2; ++id) {
      if (used_[id]) core_.waitFlag(PIPE_MTE3, PIPE_MTE2, id, kind_.waitFlag);
    }
  }
  TileRef& tile() { return *tiles_[next_]; }

 private:
  Core& core_;
  const TransferKind& kind_;
  TileRef* const tiles_[2];
  const bool adds_;
  size_t next_ = 0;
  bool used_[2] = {false, false};
};

GlobalRef part(const GlobalRef& tensor, const Box& part) {
  GlobalRef box = tensor;
  int64_t elements = 0;
  for (int d = 0; d < kGlobalDims; ++d) {
    elements += part.start[d] * tensor.strides[d];
    box.shape[d] = part.extent[d];
  }
  box.data = static_cast<unsigned char*>(tensor.data) +
             elements * static_cast<int64_t>(sizeOf(tensor.dtype));
  return box;
}

// Returns true if the parts of both tiles that a chunk of this size uses do not overlap.
bool areApart(const TileRef& ping, const TileRef& pong, int64_t rows, int64_t columns) {
  const auto size = static_cast<int64_t>(sizeOf(ping.dtype));
  const int64_t bytes = (rows - 1) * ping.rowBytes() + columns * size;
  const int64_t from = ping.at.offset;
  const int64_t other = pong.at.offset;
  return from >= other + bytes || other >= from + bytes;
}

bool stridesFit(const GlobalRef& tensor) {
  return std::all_of(std::begin(tensor.strides), std::end(tensor.strides),
                     [](int64_t stride) { return stride <= INT32_MAX && stride >= INT32_MIN; });
}

}  // namespace

void transfer(Core& core, const TransferKind& kind, const GlobalRef& dst, const GlobalRef& src,
              TileRef* ping, TileRef* pong, bool adds) {
  const Origin origin = core.begin(kind.name);
  const auto tensors = [&] { return describe(src) + " to " + describe(dst); };
  const bool alike = std::equal(std::begin(src.shape), std::end(src.shape), dst.shape);
  if (!core.require(alike, Rule::kTransferShape, origin, tensors) ||
      !core.require(stridesFit(dst) && stridesFit(src), Rule::kTransferStride, origin, tensors)) {
    return;
  }
  if (src.rows() == 0 || src.shape[4] == 0) return;
  for (int id = 0; id < 2; ++id) {
    const bool isFree =
        !core.isPending(PIPE_MTE2, PIPE_MTE3, id) && !core.isPending(PIPE_MTE3, PIPE_MTE2, id);
    if (!core.require(isFree, Rule::kFlagTaken, origin,
                      [&] { return "a flag of EVENT_ID" + std::to_string(id) + " is set"; })) {
      return;
    }
  }
  Chunks chunks(core, kind, ping, pong, adds);
  if (src.rows() <= ping->rows && src.shape[4] <= ping->columns) {
    const bool exact = ping->validRows == src.rows() && ping->validColumns == src.shape[4];
    if (!core.require(exact, Rule::kTransferTile, origin, [&] {
          return describe(*ping) + " of " + std::to_string(ping->validRows) + "x" +
                 std::to_string(ping->validColumns) + " valid holds all of " + tensors();
        })) {
      return;
    }
    chunks.move(dst, src);
    chunks.end();
    return;
  }
  const int64_t mostRows = ping->validRows;
  const int64_t mostColumns = ping->validColumns;
  const bool divides = (ping->dynamicRows || src.shape[3] % mostRows == 0) &&
                       (ping->dynamicColumns || src.shape[4] % mostColumns == 0);
  if (!core.require(mostRows > 0 && mostColumns > 0 && divides, Rule::kTransferTile, origin, [&] {
        return describe(*ping) + " of " + std::to_string(mostRows) + "x" +
               std::to_string(mostColumns) + " valid, in chunks of which go " + tensors();
      })) {
    return;
  }
  const bool usable = pong != nullptr && ping->at.usable && pong->at.usable;
  if (!core.require(!usable || areApart(*ping, *pong, mostRows, mostColumns), Rule::kTileOverlap,
                    origin, [&] {
                      return describe(*ping) + " and " + describe(*pong) +
                             ", in chunks through which in turn go " + tensors();
                    })) {
    return;
  }
  Traversal all;
  all.ndim = kGlobalDims;
  std::copy(std::begin(src.shape), std::end(src.shape), all.extent);
  const int64_t most[] = {1, 1, 1, mostRows, mostColumns};
  forEachBox(all, most, [&](const Box& box) {
    TileRef& tile = chunks.tile();
    tile.validRows = box.extent[3];
    tile.validColumns = box.extent[4];
    chunks.move(part(dst, box), part(src, box));
  });
  chunks.end();
}

}  // namespace windlass::checked
