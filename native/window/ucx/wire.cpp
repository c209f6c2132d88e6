// SPDX-License-Identifier: Apache-2.0
#include "native/window/ucx/wire.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace windlass {
namespace {

constexpr const char* kLibrary = "libwindlass-ucx.so";

// Beside the file that holds this code, else where the linker looks.
void* open() {
  Dl_info own = {};
  if (dladdr(reinterpret_cast<const void*>(&open), &own) != 0 && own.dli_fname != nullptr) {
    std::string beside(own.dli_fname);
    const size_t folder = beside.rfind('/');
    if (folder != std::string::npos) {
      beside.resize(folder + 1);
      if (void* opened = dlopen((beside + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
      // Where it is there, its own reason says more than that of a name.
      if (std::string(dlerror()).find(beside) == std::string::npos) return nullptr;
    }
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Code openWire(const WireSettings& settings, WireEnds& ends, std::unique_ptr<Wire>* wire,
              wl_error_t* error) {
  // Its handlers of signals, which come as it is loaded, would end a JVM at the first of its own.
  // What it logs, it says by its results.
  setenv("UCX_ERROR_SIGNALS", "", 0);
  setenv("UCX_LOG_LEVEL", "fatal", 0);
  dlerror();
  void* const library = open();
  const char* const said = library == nullptr ? dlerror() : nullptr;
  void* const found = library == nullptr ? nullptr : dlsym(library, kOpenWire);
  if (found == nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "ranks on several hosts need UCX, by %s: %s; install UCX (Debian: libucx0), and "
                "keep that library beside libwindlass.so",
                kLibrary, said == nullptr ? "it is not this version's" : said);
  }
  Wire* opened = nullptr;
  const Code code = reinterpret_cast<OpenWire>(found)(settings, ends, &opened, error);
  wire->reset(opened);
  return code;
}

}  // namespace windlass
