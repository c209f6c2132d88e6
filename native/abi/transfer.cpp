// SPDX-License-Identifier: Apache-2.0
// C ABI: transfers.
#include <new>

#include "native/abi/handles.h"

using namespace windlass;

extern "C" {

int32_t wl_transfer_create(wl_comm_t* comm, const wl_transfer_config_t* config, int64_t deadline_ns,
                           wl_transfer_t** transfer, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkNotNull(config, "config", error); code != WL_OK) return code;
  if (Code code = checkNotNull(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  *transfer = nullptr;
  if (config->struct_size < sizeof(wl_transfer_config_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "config->struct_size is %u, not %zu",
                config->struct_size, sizeof(wl_transfer_config_t));
  }
  std::unique_ptr<wl_transfer> made(new (std::nothrow) wl_transfer(comm->comm));
  const Code code = Transfer::create(comm->comm, *config, deadline_ns,
                                     made == nullptr ? nullptr : &made->transfer, error);
  if (code == WL_OK) *transfer = made.release();
  return code;
}

int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                        wl_error_t* error) {
  if (Code code = checkNotNull(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  return transfer->transfer.run(version, deadline_ns, error);
}

static_assert(Named::kAny == WL_ANY_VERSION && Named::kNone == WL_NO_VERSION);

int32_t wl_transfer_move(wl_transfer_t* transfer, uint64_t number, int64_t* version,
                         int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkNotNull(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkNotNull(version, "version", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  if (*version < WL_NO_VERSION) {
    return fail(error, WL_INVALID_ARGUMENT, "version is %lld; it must be 0 or more",
                static_cast<long long>(*version));
  }
  return transfer->transfer.move(number, version, deadline_ns, error);
}

uint64_t wl_transfer_begun(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer.begun();
}

int32_t wl_transfer_progress(const wl_transfer_t* transfer, int32_t rank, uint64_t* moved,
                             uint32_t count, wl_error_t* error) {
  if (Code code = checkNotNull(transfer, "transfer", error); code != WL_OK) return code;
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

int32_t wl_transfer_source(const wl_transfer_t* transfer, int32_t rank, uint32_t binding,
                           const int64_t* start, const int64_t* length, wl_tensor_t* view,
                           wl_error_t* error) {
  if (Code code = checkNotNull(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkNotNull(start, "start", error); code != WL_OK) return code;
  if (Code code = checkNotNull(length, "length", error); code != WL_OK) return code;
  if (Code code = checkNotNull(view, "view", error); code != WL_OK) return code;
  if (view->struct_size < sizeof(wl_tensor_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "view->struct_size is %u, not %zu", view->struct_size,
                sizeof(wl_tensor_t));
  }
  PeerView source = {};
  if (!transfer->transfer.source(rank, binding, &source))
    return fail(error, WL_INVALID_ARGUMENT, "no source binding %u on rank %d", binding, rank);
  int64_t offset = 0;
  for (uint32_t d = 0; d < source.ndim; ++d) {
    if (start[d] < 0 || length[d] < 1 || start[d] > source.shape[d] - length[d]) {
      return fail(error, WL_INVALID_ARGUMENT, "dimension %u, [%lld, +%lld), is outside 0 to %lld",
                  d, static_cast<long long>(start[d]), static_cast<long long>(length[d]),
                  static_cast<long long>(source.shape[d]));
    }
    offset += start[d] * source.strides[d];
  }
  auto* data = static_cast<unsigned char*>(transfer->transfer.addressOf(rank, source.place));
  if (data == nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "source binding %u of rank %d, of another process, lies outside every window",
                binding, rank);
  }
  view->dtype = static_cast<int32_t>(source.dtype);
  view->ndim = source.ndim;
  view->data = data + offset * static_cast<int64_t>(sizeOf(source.dtype));
  view->shape = length;
  view->strides = source.strides;
  return WL_OK;
}

uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer.stagingBytes();
}

void wl_transfer_free(wl_transfer_t* transfer) {
  delete transfer;
}

}  // extern "C"
