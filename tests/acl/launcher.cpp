// SPDX-License-Identifier: Apache-2.0
// The launcher, as the host calls it, where the stand-in's devices run kernels.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int32_t windlass_launch(uint32_t cores, void* stream, void* context, void* operation) {
  using Launch = int32_t (*)(uint32_t, void*, void*, void*);
  const char* home = std::getenv("ASCEND_HOME_PATH");
  const std::string path = std::string(home == nullptr ? "" : home) + "/lib64/libascendcl.so";
  void* runtime = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (runtime == nullptr) return 507000;
  const auto launch = reinterpret_cast<Launch>(dlsym(runtime, "standInLaunch"));
  dlclose(runtime);
  return launch == nullptr ? 507001 : launch(cores, stream, context, operation);
}
