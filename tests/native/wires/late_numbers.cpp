// SPDX-License-Identifier: Apache-2.0
// The library of wires, in whose place it is loaded. A wire has connected to itself eight times
// before its caller has it, as one has that was refused so often: its numbers are past what a
// communicator has processes.
#include <dlfcn.h>

#include "native/hosts/ucx/wire.h"

// Number by which a test recognizes this library.
extern "C" __attribute__((visibility("default"))) const int windlass_late_numbers = 8;

extern "C" __attribute__((visibility("default"))) windlass::Code windlass_open_wire_7(
    const windlass::WireSettings& settings, windlass::WireEnds& ends, windlass::Wire** wire,
    wl_error_t* error) {
  void* const library = dlopen(WINDLASS_WIRES, RTLD_NOW | RTLD_LOCAL);
  void* const open = library == nullptr ? nullptr : dlsym(library, windlass::kOpenWire);
  if (open == nullptr) return windlass::fail(error, WL_INTERNAL, "%s", dlerror());
  windlass::Code code = reinterpret_cast<windlass::OpenWire>(open)(settings, ends, wire, error);
  std::vector<unsigned char> own;
  if (code == WL_OK) code = (*wire)->address(&own, error);
  for (int i = 0; i < windlass_late_numbers && code == WL_OK; ++i) {
    uint32_t peer = 0;
    code = (*wire)->connect(own.data(), own.size(), &peer, error);
  }
  return code;
}
