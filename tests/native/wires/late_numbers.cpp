// SPDX-License-Identifier: Apache-2.0
// The library of wires, in whose place it is loaded. A wire has connected to itself eight times
// before its caller has it, as one has that was refused so often: its numbers are past what a
// communicator has processes.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "native/window/ucx/wire.h"

extern "C" __attribute__((visibility("default"))) windlass::Code windlass_open_wire_6(
    const windlass::WireSettings& settings, windlass::WireEnds& ends, windlass::Wire** wire,
    wl_error_t* error) {
  void* const library = dlopen(WINDLASS_WIRES, RTLD_NOW | RTLD_LOCAL);
  void* const open = library == nullptr ? nullptr : dlsym(library, windlass::kOpenWire);
  if (open == nullptr) return windlass::fail(error, WL_INTERNAL, "%s", dlerror());
  // So that the test knows that this was used.
  if (const char* const sign = std::getenv("WINDLASS_TEST_SIGN"))
    if (std::FILE* const file = std::fopen(sign, "w")) std::fclose(file);
  windlass::Code code = reinterpret_cast<windlass::OpenWire>(open)(settings, ends, wire, error);
  std::vector<unsigned char> own;
  if (code == WL_OK) code = (*wire)->address(&own, error);
  for (uint32_t i = 0, peer = 0; i < 8 && code == WL_OK; ++i)
    code = (*wire)->connect(own.data(), own.size(), &peer, error);
  return code;
}
