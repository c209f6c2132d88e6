// SPDX-License-Identifier: Apache-2.0
// Finds UCX's version, and this host's network devices through UCX's transport layer.
#include <ifaddrs.h>
#include <netinet/in.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "native/hosts/ucx/library/ucp_wire.h"

namespace windlass {
namespace {

void addDevices(uct_component_h component, std::set<std::string>* devices) {
  uct_component_attr_t count = {};
  count.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &count) != UCS_OK || count.md_resource_count == 0) return;
  std::vector<uct_md_resource_desc_t> domains(count.md_resource_count);
  uct_component_attr_t listed = {};
  listed.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  listed.md_resources = domains.data();
  if (uct_component_query(component, &listed) != UCS_OK) return;
  for (const uct_md_resource_desc_t& domain : domains) {
    uct_md_config_t* config = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) continue;
    uct_md_h opened = nullptr;
    const ucs_status_t status = uct_md_open(component, domain.md_name, config, &opened);
    uct_config_release(config);
    if (status != UCS_OK) continue;
    uct_tl_resource_desc_t* found = nullptr;
    unsigned resources = 0;
    if (uct_md_query_tl_resources(opened, &found, &resources) == UCS_OK) {
      for (unsigned i = 0; i < resources; ++i)
        if (found[i].dev_type == UCT_DEVICE_TYPE_NET) devices->insert(found[i].dev_name);
      uct_release_tl_resource_list(found);
    }
    uct_md_close(opened);
  }
}

std::set<std::string> networkDevices() {
  std::set<std::string> devices;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return devices;
  for (unsigned i = 0; i < count; ++i) addDevices(components[i], &devices);
  uct_release_component_list(components);
  return devices;
}

std::string listed(const std::set<std::string>& devices) {
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "" : " ") + device;
  return list;
}

// A device of several ports is named with or without its port, "mlx5_0:1".
bool names(const std::string& name, const std::string& device) {
  return device == name || device.compare(0, name.size() + 1, name + ":") == 0;
}

// True if all addresses of a device are link-local ones of IPv6. A peer can't use such an address
// without the device that it belongs to, and UCX does not send it that device.
bool isLinkLocalAlone(const std::string& device) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  bool isLocal = false;
  bool isReached = false;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || device != each->ifa_name) continue;
    isReached |= each->ifa_addr->sa_family == AF_INET;
    if (each->ifa_addr->sa_family != AF_INET6) continue;
    const auto& address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    (IN6_IS_ADDR_LINKLOCAL(&address) ? isLocal : isReached) = true;
  }
  freeifaddrs(first);
  return isLocal && !isReached;
}

}  // namespace

Code requireDevice(const char* given, wl_error_t* error) {
  const std::set<std::string> devices = networkDevices();
  const std::string all = given;
  // UCX checks anything that is not a plain list of names.
  if (all == "all" || all.find_first_of("^*?[") != std::string::npos) return WL_OK;
  std::string local;  // a device that has only link-local addresses
  for (size_t from = 0; from <= all.size();) {
    const size_t end = std::min(all.find(',', from), all.size());
    const std::string name = all.substr(from, end - from);
    if (isLinkLocalAlone(name)) local = name;
    for (const std::string& device : devices)
      if (names(name, device) && !isLinkLocalAlone(device)) return WL_OK;
    from = end + 1;
  }
  if (!local.empty()) {
    return fail(error, WL_UNSUPPORTED,
                "network device \"%s\" has link-local addresses of IPv6 alone (fe80::), by which "
                "UCX reaches no other host: give it another, or have WINDLASS_UCX_NET_DEVICES, "
                "\"%s\", name a device that has one; UCX finds: %s",
                local.c_str(), given, devices.empty() ? "none" : listed(devices).c_str());
  }
  return fail(error, WL_UNSUPPORTED,
              "UCX finds no network device \"%s\" here, but: %s; set WINDLASS_UCX_NET_DEVICES to "
              "the network by which the hosts reach one another, as `ip link` has it",
              given, listed(devices).c_str());
}

}  // namespace windlass

extern "C" __attribute__((visibility("default"))) windlass::Code windlass_describe_wires_1(
    std::string* text, wl_error_t* error) {
  windlass::UcxMutex mutex;
  const windlass::UcxCalls calls(mutex);
  if (!calls) return windlass::fail(error, WL_CLOSED, "%s", windlass::kUcxHasEnded);
  *text = std::string(ucp_get_version_string()) + ": " +
          windlass::listed(windlass::networkDevices());
  return WL_OK;
}
