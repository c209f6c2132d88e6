// SPDX-License-Identifier: Apache-2.0
// UCX as the programs that use it alone have it: over TCP, with Windlass' segments.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace hosts_bench {

inline void check(ucs_status_t status, const char* call) {
  if (status == UCS_OK) return;
  std::fprintf(stderr, "%s: %s\n", call, ucs_status_string(status));
  std::_Exit(1);
}

// Opens the device that WINDLASS_UCX_NET_DEVICES names. Context and worker last as long as the
// process.
inline void makeWorker(uint64_t features, ucp_context_h* context, ucp_worker_h* worker) {
  ucp_config_t* config = nullptr;
  check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  const char* const devices = std::getenv("WINDLASS_UCX_NET_DEVICES");
  check(ucp_config_modify(config, "NET_DEVICES", devices == nullptr ? "lo" : devices), "devices");
  check(ucp_config_modify(config, "TLS", "tcp"), "TLS");  // else it shares the machine's memory
  check(ucp_config_modify(config, "TX_SEG_SIZE", "1M"), "TX_SEG_SIZE");
  check(ucp_config_modify(config, "RX_SEG_SIZE", "2M"), "RX_SEG_SIZE");
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = features;
  check(ucp_init(&params, config, context), "ucp_init");
  ucp_config_release(config);
  const ucp_worker_params_t any = {};
  check(ucp_worker_create(*context, &any, worker), "ucp_worker_create");
}

}  // namespace hosts_bench
