// SPDX-License-Identifier: Apache-2.0
#include "native/abi/handles.h"
#include "native/base/cores.h"
#include "native/base/target.h"

namespace windlass {

static_assert(WL_MAX_DEVICE_RANKS == kMostDeviceRanks, "the C ABI names the same");

Code readGroupConfig(const wl_group_config_t* config, GroupConfig* out, wl_error_t* error) {
  if (Code code = checkNotNull(config, "config", error); code != WL_OK) return code;
  if (config->struct_size < sizeof(wl_group_config_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "config->struct_size is %u, not %zu",
                config->struct_size, sizeof(wl_group_config_t));
  }
  if (config->ranks < 1 || config->ranks > WL_MAX_RANKS) {
    return fail(error, WL_INVALID_ARGUMENT, "ranks is %d, not 1 to %d", config->ranks,
                WL_MAX_RANKS);
  }
  if (config->cores < 0)
    return fail(error, WL_INVALID_ARGUMENT, "cores is %d; 0 means those allowed", config->cores);
  if (config->blocks < 0 || config->blocks > WL_MAX_BLOCKS) {
    return fail(error, WL_INVALID_ARGUMENT, "blocks is %d, not 0 to %d", config->blocks,
                WL_MAX_BLOCKS);
  }
  if (config->adjust_threads < 0 || config->adjust_threads > 1) {
    return fail(error, WL_INVALID_ARGUMENT, "adjust_threads is %d, not 0 or 1",
                config->adjust_threads);
  }
  if (config->device_cores < 0 || config->device_cores > WL_MAX_DEVICE_CORES) {
    return fail(error, WL_INVALID_ARGUMENT, "device_cores is %d, not 0 to %d",
                config->device_cores, WL_MAX_DEVICE_CORES);
  }
  if (config->device_cores > 0 && config->ranks > WL_MAX_DEVICE_RANKS) {
    return fail(error, WL_UNSUPPORTED, "the device executor takes %d ranks at most, not %d",
                WL_MAX_DEVICE_RANKS, config->ranks);
  }
  if (static_cast<uint32_t>(config->ranks) > kTarget.limits.mostRanks) {
    return fail(error, WL_UNSUPPORTED, "%s takes %u ranks at most, not %d", kTarget.limits.name,
                kTarget.limits.mostRanks, config->ranks);
  }
  if (Code code = checkDeadline(config->deadline_ns, error); code != WL_OK) return code;
  if (const char* why = kTarget.refusal()) return fail(error, WL_INVALID_ARGUMENT, "%s", why);
  GroupConfig& own = *out;
  own.ranks = static_cast<uint32_t>(config->ranks);
  // Only the low 32 bits are reported: 2^32 is reported as 0, which follows 2^32 - 1.
  own.firstSequence =
      config->first_sequence == 0 ? uint64_t{1} << 32 : uint64_t{config->first_sequence};
  own.cores = static_cast<uint32_t>(config->cores == 0 ? allowedCores() : config->cores);
  own.blocks = static_cast<uint32_t>(config->blocks);
  own.deviceCores = static_cast<uint32_t>(config->device_cores);
  own.adjustsThreads = config->adjust_threads != 0;
  if (config->deadline_ns > 0) own.deadlineNs = config->deadline_ns;
  return WL_OK;
}

}  // namespace windlass
