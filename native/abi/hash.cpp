// SPDX-License-Identifier: Apache-2.0
// C ABI: the hash of a tensor's elements.
#include "native/abi/hashes.h"
#include "native/abi/tensors.h"
#include "native/base/dtype.h"
#include "native/base/target.h"
#include "native/device/device_one_sided.h"

namespace windlass {

Code checkHashed(const wl_tensor_t* const* sources, uint32_t count, int32_t op, int32_t wire,
                 int32_t dtype, std::vector<StridedView>* views, Hashed* what, wl_error_t* error) {
  if (Code code = checkFold(sources, count, op, error); code != WL_OK) return code;
  if (Code code = checkDType(wire, error); code != WL_OK) return code;
  if (Code code = checkDType(dtype, error); code != WL_OK) return code;
  if (Code code = readSources(sources, count, sources[0], "the first source", views, error);
      code != WL_OK)
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

Code hashByDevice(RankDevice& device, const Hashed& what, uint64_t seed, uint64_t* hash,
                  wl_error_t* error) {
  std::vector<MoveSide> sides;
  for (uint32_t i = 0; i < what.count; ++i) {
    MoveSide side = {what.views[i], RankDevice::Lies::kHost};
    const Code code = findView(device, "a source", side.view, &side.lies, error);
    if (code != WL_OK) return code;
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

}  // namespace windlass

using namespace windlass;

extern "C" {

int32_t wl_tensor_hash(const wl_tensor_t* const* sources, uint32_t count, int32_t op, int32_t wire,
                       int32_t dtype, uint64_t seed, uint64_t* hash, wl_error_t* error) {
  if (Code code = checkNotNull(hash, "hash", error); code != WL_OK) return code;
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
  if (Code code = checkHandle(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkNotNull(hash, "hash", error); code != WL_OK) return code;
  if (Code code = checkTensor(tensor, "tensor", false, error); code != WL_OK) return code;
  if (Code code = checkGpus("hash", error); code != WL_OK) return code;
  const StridedView view = viewOf(*tensor);
  const Hashed what = {&view, 1, ReduceOp::kSum, view.dtype, view.dtype};
  return haveDevice(
      comm->comm, WL_OP_GET, view,
      [&](RankDevice& device, wl_error_t* own) {
        return hashByDevice(device, what, seed, hash, own);
      },
      error);
}

}  // extern "C"
