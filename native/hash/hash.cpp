// SPDX-License-Identifier: Apache-2.0
#include "native/hash/hash.h"

#include <algorithm>
#include <vector>

#include "native/base/target.h"

namespace windlass {
namespace {

// Bytes of the buffer for elements that are computed or not contiguous.
constexpr uint64_t kTileBytes = uint64_t{16} << 10;
// Contiguous runs of at least this many bytes are hashed in place.
constexpr uint64_t kRunBytes = 512;

// Calls `visit(index)` for the first index of each box, in row-major order. The outer `dims`
// dimensions are visited; the last of them advances by `step`.
template <typename Visit>
void forEachBox(const int64_t* shape, uint32_t dims, int64_t step, Visit visit) {
  int64_t index[kMaxDims] = {};
  for (;;) {
    visit(index);
    uint32_t d = dims;
    for (; d > 0; --d) {
      index[d - 1] += d == dims ? step : 1;
      if (index[d - 1] < shape[d - 1]) break;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

unsigned char* at(const StridedView& view, const int64_t* index, uint32_t dims) {
  int64_t offset = 0;
  for (uint32_t d = 0; d < dims; ++d) offset += index[d] * view.strides[d];
  return static_cast<unsigned char*>(view.data) + offset * static_cast<int64_t>(sizeOf(view.dtype));
}

// Returns false if the runs are too short, or if elements must be cast or folded first.
bool hashInPlace(const Hashed& what, Xxh64* hash) {
  const StridedView& view = what.views[0];
  if (what.count > 1 || view.dtype != what.wire || view.dtype != what.dtype) return false;
  int64_t run = 1;
  uint32_t dims = view.ndim;
  while (dims > 0 && (view.shape[dims - 1] == 1 || view.strides[dims - 1] == run))
    run *= view.shape[--dims];
  const uint64_t bytes = static_cast<uint64_t>(run) * sizeOf(view.dtype);
  if (dims > 0 && bytes < kRunBytes) return false;
  forEachBox(view.shape, dims, 1,
             [&](const int64_t* index) { hash->update(at(view, index, dims), bytes); });
  return true;
}

void hashInTiles(const Hashed& what, Xxh64* hash) {
  const StridedView& first = what.views[0];
  uint64_t inner = sizeOf(what.dtype);
  uint32_t dims = first.ndim;
  while (dims > 0 && inner * static_cast<uint64_t>(first.shape[dims - 1]) <= kTileBytes)
    inner *= static_cast<uint64_t>(first.shape[--dims]);
  const auto step = static_cast<int64_t>(kTileBytes / inner);

  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
  for (uint32_t d = 0; d < first.ndim; ++d) shape[d] = d < dims ? 1 : first.shape[d];
  int64_t next = 1;
  for (uint32_t d = first.ndim; d-- > 0; next *= shape[d]) strides[d] = next;
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::vector<Line> lines(kTileBytes / sizeof(Line));
  unsigned char* tile = lines.front().bytes;
  const StridedView packed = {tile, what.dtype, first.ndim, shape, strides};
  std::vector<StridedView> views(what.count);
  forEachBox(first.shape, dims, step, [&](const int64_t* index) {
    if (dims > 0) shape[dims - 1] = std::min(step, first.shape[dims - 1] - index[dims - 1]);
    for (uint32_t i = 0; i < what.count; ++i) {
      views[i] = what.views[i];
      views[i].data = at(views[i], index, dims);
      views[i].shape = shape;
    }
    if (what.count == 1) {
      kTarget.move(&packed, 1, views[0], what.wire, Stores::kCached);
    } else {
      kTarget.fold(&packed, 1, views.data(), what.count, what.op, what.wire, Stores::kCached);
    }
    hash->update(tile, inner * static_cast<uint64_t>(dims > 0 ? shape[dims - 1] : 1));
  });
}

}  // namespace

uint64_t hashOf(const Hashed& what, uint64_t seed) {
  Xxh64 hash(seed);
  addTo(what, &hash);
  return hash.value();
}

void addTo(const Hashed& what, Xxh64* hash) {
  const StridedView& first = what.views[0];
  const bool empty = std::count(first.shape, first.shape + first.ndim, 0) > 0;
  if (!empty && !hashInPlace(what, hash)) hashInTiles(what, hash);
}

}  // namespace windlass
