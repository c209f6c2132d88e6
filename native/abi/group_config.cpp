// SPDX-License-Identifier: Apache-2.0
#include "native/abi/handles.h"
#include "native/base/cores.h"
#include "native/base/target.h"

namespace windlass {

static_assert(WL_MAX_DEVICE_RANKS == kMostDeviceRanks, "the C ABI names the same");

Code readGroupConfig(const wl_group_config_t* config, GroupConfig* out, wl_error_t* error) {
  if (Code code = checkStruct(config, "config", error)) return code;
  const struct {
    const char* name;
    int32_t value, least, most;
  } ranges[] = {
      {"ranks", config->ranks, 1, WL_MAX_RANKS},
      {"cores", config->cores, 0, INT32_MAX},
      {"blocks", config->blocks, 0, WL_MAX_BLOCKS},
      {"adjust_threads", config->adjust_threads, 0, 1},
      {"device_cores", config->device_cores, 0, WL_MAX_DEVICE_CORES},
  };
  for (const auto& [name, value, least, most] : ranges) {
    if (value < least || value > most)
      return fail(error, WL_INVALID_ARGUMENT, "%s is %d, not %d to %d", name, value, least, most);
  }
  if (config->device_cores > 0 && config->ranks > WL_MAX_DEVICE_RANKS) {
    return fail(error, WL_UNSUPPORTED,
                "device_cores is %d, which at most %d ranks may have, not %d",
                config->device_cores, WL_MAX_DEVICE_RANKS, config->ranks);
  }
  if (static_cast<uint32_t>(config->ranks) > kTarget.limits.mostRanks) {
    return fail(error, WL_UNSUPPORTED, "%s takes %u ranks at most, not %d", kTarget.limits.name,
                kTarget.limits.mostRanks, config->ranks);
  }
  if (Code code = checkDeadline(config->deadline_ns, error)) return code;
  if (const char* why = kTarget.refusal()) return fail(error, WL_INVALID_ARGUMENT, "%s", why);
  GroupConfig& own = *out;
  own.ranks = static_cast<uint32_t>(config->ranks);
  // Only the low 32 bits are reported: 2^32 is reported as 0, which follows 2^32 - 1.
  own.firstSequence =
      config->first_sequence == 0 ? uint64_t{1} << 32 : uint64_t{config->first_sequence};
  own.cores = static_cast<uint32_t>(config->cores == 0 ? allowedCores() : config->cores);
  own.blocks = static_cast<uint32_t>(config->blocks);
  own.inLineCores = static_cast<uint32_t>(config->device_cores);
  own.adjustsThreads = config->adjust_threads != 0;
  if (config->deadline_ns > 0) own.deadlineNs = config->deadline_ns;
  return WL_OK;
}

}  // namespace windlass
