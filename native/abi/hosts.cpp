// SPDX-License-Identifier: Apache-2.0
// C ABI: groups whose ranks live on several hosts.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "native/abi/handles.h"
#include "native/hosts/hosts.h"

using namespace windlass;

namespace {

Code requireHosts(const wl_group_t* group, wl_error_t* error) {
  if (Code code = checkHandle(group, "group", error)) return code;
  if (group->group->config().hosts > 1) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "the ranks of this group live on one host: wl_group_config_t.hosts was NULL");
}

Code requireWire(const wl_group_t* group, wl_error_t* error) {
  if (Code code = requireHosts(group, error)) return code;
  if (group->group->hosts() != nullptr) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "wl_group_open_wire comes first");
}

}  // namespace

extern "C" {

int32_t wl_ucx_find(const char* path, wl_error_t* error) {
  return withMemory(error, [&] { return findWires(path, error); }, "out of memory");
}

int32_t wl_ucx_describe(char* text, uint64_t room, uint64_t* bytes, wl_error_t* error) {
  if (Code code = checkNotNull(bytes, "bytes", error)) return code;
  const auto describe = [&] {
    std::string said;
    if (Code code = describeWires(WireSettings::ofEnvironment(), &said, error)) return code;
    *bytes = said.size() + 1;
    if (text != nullptr && room >= *bytes) std::memcpy(text, said.c_str(), *bytes);
    return WL_OK;
  };
  return withMemory(error, describe, "out of memory");
}

int32_t wl_group_open_wire(wl_group_t* group, const int32_t* ranks, uint32_t count,
                           wl_error_t* error) {
  if (Code code = requireHosts(group, error)) return code;
  if (Code code = checkRanks(ranks, count, group->group->ranks(), "ranks", error)) return code;
  if (group->group->hosts() != nullptr)
    return fail(error, WL_INVALID_ARGUMENT, "this group's wire is open");
  const auto open = [&] {
    std::vector<uint32_t> own(ranks, ranks + count);
    std::sort(own.begin(), own.end());
    std::unique_ptr<OtherHosts> hosts;
    const Code code = OtherHosts::open(*group->group, std::move(own), &hosts, error);
    if (code == WL_OK) group->group->setHosts(std::move(hosts));
    return code;
  };
  return withMemory(error, open, "out of memory");
}

int32_t wl_group_wire_name(const wl_group_t* group, uint8_t* name, uint64_t room, uint64_t* bytes,
                           wl_error_t* error) {
  if (Code code = requireWire(group, error)) return code;
  if (Code code = checkNotNull(bytes, "bytes", error)) return code;
  const std::vector<unsigned char>& own = group->group->hosts()->name();
  *bytes = own.size();
  if (name != nullptr && room >= own.size()) std::memcpy(name, own.data(), own.size());
  return WL_OK;
}

int32_t wl_group_connect(wl_group_t* group, const uint8_t* names, const uint64_t* bytes,
                         uint32_t count, int64_t silence_ns, wl_error_t* error) {
  if (Code code = requireWire(group, error)) return code;
  if (Code code = checkNotNull(names, "names", error)) return code;
  if (Code code = checkNotNull(bytes, "bytes", error)) return code;
  if (group->group->hosts()->isConnected())
    return fail(error, WL_INVALID_ARGUMENT, "this group's wire is connected");
  if (Code code = checkSilence(silence_ns, "a host", error)) return code;
  const auto connect = [&] {
    std::vector<std::vector<unsigned char>> all;
    for (uint32_t i = 0; i < count; ++i) {
      all.emplace_back(names, names + bytes[i]);
      names += bytes[i];
    }
    return group->group->hosts()->connect(all, silence_ns, error);
  };
  return withMemory(error, connect, "no memory, or no thread, for the wire");
}

}  // extern "C"
