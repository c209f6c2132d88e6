// SPDX-License-Identifier: Apache-2.0
// C ABI: transfers.
#include "native/abi/handles.h"

using namespace windlass;

extern "C" {

int32_t wl_transfer_create(wl_comm_t* comm, const wl_transfer_config_t* config, int64_t deadline_ns,
                           wl_transfer_t** transfer, wl_error_t* error) {
  if (Code code = checkCreate(comm, transfer, "transfer", deadline_ns, error)) return code;
  if (Code code = checkStruct(config, "config", error)) return code;
  std::unique_ptr<wl_transfer> made(new (std::nothrow) wl_transfer(comm->comm));
  const Code code = Transfer::create(comm->comm, *config, deadline_ns,
                                     made == nullptr ? nullptr : &made->transfer, error);
  if (code == WL_OK) *transfer = made.release();
  return code;
}

int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                        wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error)) return code;
  if (Code code = checkDeadline(deadline_ns, error)) return code;
  return transfer->transfer.run(version, deadline_ns, error);
}

static_assert(Named::kAny == WL_ANY_VERSION && Named::kNone == WL_NO_VERSION &&
              Named::kFinished == WL_FINISHED);

int32_t wl_transfer_move(wl_transfer_t* transfer, uint64_t number, int64_t* version,
                         int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkHandle(transfer, "transfer", error)) return code;
  if (Code code = checkNotNull(version, "version", error)) return code;
  if (Code code = checkDeadline(deadline_ns, error)) return code;
  if (*version < WL_FINISHED) {
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
  if (Code code = checkHandle(transfer, "transfer", error)) return code;
  if (Code code = checkNotNull(moved, "moved", error)) return code;
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

uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer.stagingBytes();
}

void wl_transfer_free(wl_transfer_t* transfer) {
  if (isOwn(transfer)) delete transfer;
}

}  // extern "C"
