// SPDX-License-Identifier: Apache-2.0
// C ABI: groups whose ranks all live in this process.
#include <new>

#include "native/abi/handles.h"
#include "native/device/grids.h"

using namespace windlass;

extern "C" {

int32_t wl_group_create(const wl_group_config_t* config, wl_group_t** group, wl_error_t* error) {
  if (Code code = checkOut(group, "group", error)) return code;
  GroupConfig own;
  if (Code code = readGroupConfig(config, &own, error)) return code;
  if (config->hosts != nullptr) {
    return fail(error, WL_INVALID_ARGUMENT,
                "config->hosts is set: ranks on several hosts live in several processes, which "
                "wl_group_share and wl_group_attach are for");
  }
  if (Code code = checkDevicesAndGrids(error)) return code;
  const auto create = [&] {
    auto made = std::make_unique<wl_group>();
    made->group = Group::create(own);
    *group = made.release();
    return WL_OK;
  };
  return withMemory(error, create, "out of memory for a communicator of %d ranks", config->ranks);
}

int32_t wl_group_join(wl_group_t* group, int32_t rank, wl_comm_t** comm, wl_error_t* error) {
  if (Code code = checkHandle(group, "group", error)) return code;
  if (Code code = checkOut(comm, "comm", error)) return code;
  if (rank < 0) {
    return fail(error, WL_INVALID_ARGUMENT, "rank %d is not in 0 to %u", rank,
                group->group->ranks() - 1);
  }
  const OtherHosts* const hosts = group->group->hosts();
  if (group->group->config().hosts > 1 && (hosts == nullptr || !hosts->isConnected())) {
    return fail(error, WL_INVALID_ARGUMENT,
                "rank %d joins a group of %u hosts that this process has not connected to: "
                "wl_group_connect comes first",
                rank, group->group->config().hosts);
  }
  if (Code code = group->group->claim(static_cast<uint32_t>(rank), error)) return code;
  *comm = new (std::nothrow) wl_comm(group->group, static_cast<uint32_t>(rank));
  if (*comm != nullptr) return WL_OK;
  group->group->unclaim(static_cast<uint32_t>(rank));
  return fail(error, WL_RESOURCE, "out of memory");
}

void wl_group_release(wl_group_t* group) {
  if (isOwn(group)) delete group;
}

}  // extern "C"
