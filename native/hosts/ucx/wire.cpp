// SPDX-License-Identifier: Apache-2.0
#include "native/hosts/ucx/wire.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

namespace windlass {
namespace {

constexpr const char* kLibrary = "libwindlass-ucx.so";

std::mutex opening;
void* opened = nullptr;  // loaded once a process; guarded by `opening`

// Opens the library in the folder of this code, or where the linker looks.
void* openBeside() {
  Dl_info own = {};
  if (dladdr(reinterpret_cast<const void*>(&openBeside), &own) != 0 && own.dli_fname != nullptr) {
    std::string beside(own.dli_fname);
    const size_t folder = beside.rfind('/');
    if (folder != std::string::npos) {
      beside.resize(folder + 1);
      beside += kLibrary;
      if (void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      // The library exists. Its own error says why it does not open.
      if (access(beside.c_str(), F_OK) == 0) return nullptr;
    }
  }
  return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

// Sets variables that are not set, for the life of the process. Other threads may be in getenv,
// which takes no lock, and setenv frees the list that they read. This function keeps that list and
// installs another. Does nothing if memory is short. Called once.
void setVariables(const char* const (&settings)[3]) {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  const size_t most = count + std::size(settings) + 1;
  auto* const list = static_cast<char**>(std::calloc(most, sizeof(char*)));
  if (list == nullptr) return;
  if (count > 0) std::copy_n(environ, count, list);
  for (const char* const setting : settings) {
    const std::string name(setting, std::strchr(setting, '='));
    // The text belongs to the list: both stay when this library is unloaded.
    if (std::getenv(name.c_str()) == nullptr && (list[count] = strdup(setting)) != nullptr) ++count;
  }
  __atomic_store_n(&environ, list, __ATOMIC_RELEASE);
}

// Finds a function that the library exports.
Code find(const char* path, const char* name, void** exported, wl_error_t* error) {
  const std::lock_guard<std::mutex> lock(opening);
  std::string why;
  if (opened == nullptr) {
    // UCX would handle signals once it is loaded, and end a JVM at the first signal that the JVM
    // uses itself. It would also patch libc's mmap and similar functions while other threads are in
    // them. Results carry its errors, so its log is off.
    static bool areSet = false;
    if (!areSet) setVariables({"UCX_ERROR_SIGNALS=", "UCX_MEM_EVENTS=no", "UCX_LOG_LEVEL=fatal"});
    areSet = true;
    dlerror();
    opened = path == nullptr ? openBeside() : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char* const said = opened == nullptr ? dlerror() : nullptr;
    if (opened == nullptr) why = said == nullptr ? "it does not open" : said;
  }
  *exported = opened == nullptr ? nullptr : dlsym(opened, name);
  if (*exported != nullptr) return WL_OK;
  if (opened != nullptr) why = "it is not this version's";
  if (why.find("version `GLIBC_") != std::string::npos) {
    return fail(error, WL_UNSUPPORTED,
                "ranks on several hosts need UCX, by %s, which takes a newer glibc than this "
                "system has: %s",
                kLibrary, why.c_str());
  }
  return fail(error, WL_UNSUPPORTED,
              "ranks on several hosts need UCX, by %s: %s; install UCX (Debian: libucx0); where "
              "that library itself is missing, build windlass where UCX's headers are (Debian: "
              "libucx-dev), in a checkout by mvn package, and keep it beside libwindlass.so",
              kLibrary, why.c_str());
}

const char* setting(const char* name) {
  const char* given = std::getenv(name);
  return given == nullptr || *given == 0 ? nullptr : given;
}

// Callbacks of a wire that is only opened as a test.
class NoEnds final : public WireEnds {
  void arrived(Run, Run) override {}
  void lost(uint32_t, const char*) override {}
  void lackMemory() override {}
};

}  // namespace

WireSettings WireSettings::ofEnvironment() {
  const char* devices = setting("WINDLASS_UCX_NET_DEVICES");
  return {devices == nullptr ? "lo" : devices, setting("WINDLASS_UCX_PORT_RANGE"),
          setting("WINDLASS_UCX_TLS")};
}

Code findWires(const char* path, wl_error_t* error) {
  void* exported = nullptr;
  return find(path, kOpenWire, &exported, error);
}

Code openWire(const WireSettings& settings, WireEnds& ends, std::unique_ptr<Wire>* wire,
              wl_error_t* error) {
  void* open = nullptr;
  if (Code code = find(nullptr, kOpenWire, &open, error)) return code;
  Wire* made = nullptr;
  const Code code = reinterpret_cast<OpenWire>(open)(settings, ends, &made, error);
  wire->reset(made);
  return code;
}

Code describeWires(const WireSettings& settings, std::string* text, wl_error_t* error) {
  void* describe = nullptr;
  if (Code code = find(nullptr, kDescribeWires, &describe, error)) return code;
  NoEnds ends;
  std::unique_ptr<Wire> wire;
  if (Code code = openWire(settings, ends, &wire, error)) return code;
  return reinterpret_cast<DescribeWires>(describe)(text, error);
}

}  // namespace windlass
