// SPDX-License-Identifier: Apache-2.0
// C ABI: transfers.
#include <vector>

#include "native/abi/hashes.h"
#include "native/abi/tensors.h"
#include "native/base/target.h"

using namespace windlass;

namespace {

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
  box->struct_size = sizeof *box;
  box->dtype = static_cast<int32_t>(source.dtype);
  box->ndim = source.ndim;
  box->data = data + offset * static_cast<int64_t>(sizeOf(source.dtype));
  box->shape = length;
  box->strides = source.strides;
  return WL_OK;
}

}  // namespace

extern "C" {

int32_t wl_transfer_create(wl_comm_t* comm, const wl_transfer_config_t* config, int64_t deadline_ns,
                           wl_transfer_t** transfer, wl_error_t* error) {
  if (Code code = checkCreate(comm, transfer, "transfer", deadline_ns, error); code != WL_OK)
    return code;
  if (Code code = checkStruct(config, "config", error); code != WL_OK) return code;
  std::unique_ptr<wl_transfer> made(new (std::nothrow) wl_transfer(comm->comm));
  const Code code = Transfer::create(comm->comm, *config, deadline_ns,
                                     made == nullptr ? nullptr : &made->transfer, error);
  if (code == WL_OK) *transfer = made.release();
  return code;
}

int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                        wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  return transfer->transfer.run(version, deadline_ns, error);
}

static_assert(Named::kAny == WL_ANY_VERSION && Named::kNone == WL_NO_VERSION);

int32_t wl_transfer_move(wl_transfer_t* transfer, uint64_t number, int64_t* version,
                         int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkNotNull(version, "version", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  if (*version < WL_NO_VERSION) {
    return fail(error, WL_INVALID_ARGUMENT, "version is %lld; it must be 0 or more",
                text(*version));
  }
  return transfer->transfer.move(number, version, deadline_ns, error);
}

uint64_t wl_transfer_begun(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer.begun();
}

int32_t wl_transfer_progress(const wl_transfer_t* transfer, int32_t rank, uint64_t* moved,
                             uint32_t count, wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkNotNull(moved, "moved", error); code != WL_OK) return code;
  if (rank < -1 || rank >= transfer->transfer.ranks()) {
    return fail(error, WL_INVALID_ARGUMENT, "rank %d is not -1 to %d", rank,
                transfer->transfer.ranks() - 1);
  }
  if (rank >= 0 && !transfer->transfer.seesProgress(rank)) {
    return fail(error, WL_UNSUPPORTED, "rank %d lives in another process, which sees its progress",
                rank);
  }
  transfer->transfer.moved(rank, moved, count);
  return WL_OK;
}

int32_t wl_transfer_hash(wl_transfer_t* transfer, uint32_t binding, const int32_t* ranks,
                         uint32_t count, const int64_t* start, const int64_t* length, int32_t op,
                         int32_t wire, int32_t dtype, uint64_t seed, uint64_t* hash,
                         wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkNotNull(ranks, "ranks", error); code != WL_OK) return code;
  if (Code code = checkNotNull(start, "start", error); code != WL_OK) return code;
  if (Code code = checkNotNull(length, "length", error); code != WL_OK) return code;
  if (Code code = checkNotNull(hash, "hash", error); code != WL_OK) return code;
  if (Code code = checkSourceCount(count, error); code != WL_OK) return code;
  const Transfer& own = transfer->transfer;
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
    return transfer->transfer.haveDevice(
        [&](RankDevice& device, wl_error_t* failed) {
          return hashByDevice(device, what, seed, hash, failed);
        },
        error);
  };
  return transfer->transfer.readSources(
      error, [&] { return withMemory(error, hashBoxes, "out of memory for %u sources", count); });
}

uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer.stagingBytes();
}

void wl_transfer_free(wl_transfer_t* transfer) {
  if (isOwn(transfer)) delete transfer;
}

}  // extern "C"
