// SPDX-License-Identifier: Apache-2.0
// C ABI: hashes of tensors: in local memory, on a rank's device, and of a transfer's sources.
#include <vector>

#include "native/abi/tensors.h"
#include "native/base/dtype.h"
#include "native/base/target.h"
#include "native/device/device_one_sided.h"
#include "native/hash/hash.h"

using namespace windlass;

namespace {

// Checks the arguments of wl_tensor_hash. *what points into *views. Throws std::bad_alloc.
Code checkHashed(const wl_tensor_t* const* sources, uint32_t count, int32_t op, int32_t wire,
                 int32_t dtype, std::vector<StridedView>* views, Hashed* what, wl_error_t* error) {
  if (Code code = checkFold(sources, count, op, error)) return code;
  if (Code code = checkDType(wire, error)) return code;
  if (Code code = checkDType(dtype, error)) return code;
  if (Code code = readSources(sources, count, sources[0], "the first source", views, error))
    return code;
  *what = {views->data(), count, static_cast<ReduceOp>(op), static_cast<DType>(wire),
           static_cast<DType>(dtype)};
  if (canCast((*views)[0].dtype, what->wire) && canCast(what->wire, what->dtype) &&
      (count == 1 || canReduce((*views)[0].dtype, what->op)))
    return WL_OK;
  return fail(error, WL_UNSUPPORTED, "dtypes %s -> wire %s -> %s with %s of %u sources",
              dtypeName(sources[0]->dtype), dtypeName(wire), dtypeName(dtype), reduceOpName(op),
              count);
}

// Like hashOf(), for views that may lie on devices. `device` copies them to the host in pieces.
// Throws std::bad_alloc.
Code hashByDevice(RankDevice& device, const Hashed& what, uint64_t seed, uint64_t* hash,
                  wl_error_t* error) {
  std::vector<MoveSide> sides;
  for (uint32_t i = 0; i < what.count; ++i) {
    MoveSide side = {what.views[i], RankDevice::Lies::kHost};
    if (Code code = findView(device, "a source", side.view, &side.lies, error)) return code;
    sides.push_back(side);
  }
  Xxh64 state(seed);
  Hashed piece = what;
  const auto add = [&](const StridedView* views) {
    piece.views = views;
    addTo(piece, &state);
  };
  const Code code = readByDevice(device, sides, add, error);
  if (code == WL_OK) *hash = state.value();
  return code;
}

// Sets *box to one box of source binding `binding` of `rank`. The box begins at `start` and has
// shape `length`. Its address is valid in this process.
Code sourceBox(const Transfer& transfer, int32_t rank, uint32_t binding, const int64_t* start,
               const int64_t* length, wl_tensor_t* box, wl_error_t* error) {
  PeerView source = {};
  if (!transfer.source(rank, binding, &source))
    return fail(error, WL_INVALID_ARGUMENT, "no source binding %u on rank %d", binding, rank);
  int64_t offset = 0;
  for (uint32_t d = 0; d < source.ndim; ++d) {
    if (start[d] < 0 || length[d] < 1 || start[d] > source.shape[d] - length[d]) {
      return fail(error, WL_INVALID_ARGUMENT, "dimension %u, [%lld, +%lld), is outside 0 to %lld",
                  d, text(start[d]), text(length[d]), text(source.shape[d]));
    }
    offset += start[d] * source.strides[d];
  }
  auto* data = static_cast<unsigned char*>(transfer.addressOf(rank, source.place));
  if (data == nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "source binding %u of rank %d, of another process, lies outside every window",
                binding, rank);
  }
  data += offset * static_cast<int64_t>(sizeOf(source.dtype));
  *box = {sizeof *box, static_cast<int32_t>(source.dtype), source.ndim, 0, data, length,
          source.strides};
  return WL_OK;
}

}  // namespace

extern "C" {

int32_t wl_tensor_hash(const wl_tensor_t* const* sources, uint32_t count, int32_t op, int32_t wire,
                       int32_t dtype, uint64_t seed, uint64_t* hash, wl_error_t* error) {
  if (Code code = checkNotNull(hash, "hash", error)) return code;
  const auto compute = [&] {
    std::vector<StridedView> views;
    Hashed what = {};
    const Code code = checkHashed(sources, count, op, wire, dtype, &views, &what, error);
    if (code == WL_OK) *hash = hashOf(what, seed);
    return code;
  };
  return withMemory(error, compute, "out of memory for %u views", count);
}

int32_t wl_device_hash(wl_comm_t* comm, const wl_tensor_t* tensor, uint64_t seed, uint64_t* hash,
                       wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  if (Code code = checkNotNull(hash, "hash", error)) return code;
  if (Code code = checkTensor(tensor, "tensor", false, error)) return code;
  if (Code code = checkGpus("hash", error)) return code;
  const StridedView view = viewOf(*tensor);
  const Hashed what = {&view, 1, ReduceOp::kSum, view.dtype, view.dtype};
  const auto body = [&](RankDevice& device, wl_error_t* own) {
    return hashByDevice(device, what, seed, hash, own);
  };
  return haveDevice(comm->comm, WL_OP_GET, view, body, error);
}

int32_t wl_transfer_hash(wl_transfer_t* transfer, uint32_t binding, const int32_t* ranks,
                         uint32_t count, const int64_t* start, const int64_t* length, int32_t op,
                         int32_t wire, int32_t dtype, uint64_t seed, uint64_t* hash,
                         wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error)) return code;
  if (Code code = checkNotNull(ranks, "ranks", error)) return code;
  if (Code code = checkNotNull(start, "start", error)) return code;
  if (Code code = checkNotNull(length, "length", error)) return code;
  if (Code code = checkNotNull(hash, "hash", error)) return code;
  if (Code code = checkSourceCount(count, error)) return code;
  Transfer& own = transfer->transfer;
  const auto hashBoxes = [&] {
    std::vector<wl_tensor_t> boxes(count);
    std::vector<const wl_tensor_t*> sources(count);
    for (uint32_t i = 0; i < count; ++i) {
      const Code code = sourceBox(own, ranks[i], binding, start, length, &boxes[i], error);
      if (code != WL_OK) return code;
      sources[i] = &boxes[i];
    }
    std::vector<StridedView> views;
    Hashed what = {};
    Code code = checkHashed(sources.data(), count, op, wire, dtype, &views, &what, error);
    if (code != WL_OK) return code;
    if (!kTarget.hasGpus()) {
      *hash = hashOf(what, seed);
      return WL_OK;
    }
    const auto body = [&](RankDevice& device, wl_error_t* failed) {
      return hashByDevice(device, what, seed, hash, failed);
    };
    return own.haveDevice(body, error);
  };
  return own.readSources(
      error, [&] { return withMemory(error, hashBoxes, "out of memory for %u sources", count); });
}

}  // extern "C"
