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
  try {
    auto made = std::make_unique<wl_transfer>();
    const Code code = Transfer::create(comm->comm, *config, deadline_ns, &made->transfer, error);
    if (code == WL_OK) *transfer = made.release();
    return code;
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for a transfer");
  }
}

int32_t wl_transfer_run(wl_transfer_t* transfer, uint64_t version, int64_t deadline_ns,
                        wl_error_t* error) {
  if (Code code = checkNotNull(transfer, "transfer", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  return transfer->transfer->run(version, deadline_ns, error);
}

uint64_t wl_transfer_progress(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer->progress();
}

uint64_t wl_transfer_staging_bytes(const wl_transfer_t* transfer) {
  return transfer == nullptr ? 0 : transfer->transfer->stagingBytes();
}

void wl_transfer_free(wl_transfer_t* transfer) {
  delete transfer;
}

}  // extern "C"
