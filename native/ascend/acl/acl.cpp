// SPDX-License-Identifier: Apache-2.0
#include "native/ascend/acl/acl.h"

#include <dlfcn.h>

#include <cstdlib>

namespace windlass::acl {
namespace {

constexpr const char* kLibrary = "libascendcl.so";

// Returns the dynamic linker's last message.
const char* linkerError() {
  const char* said = dlerror();
  return said == nullptr ? "the dynamic linker does not say why" : said;
}

// Fills the table. Returns the name of the first call that the library lacks, or nullptr.
const char* findCalls(void* library, Acl* acl) {
#define WINDLASS_ACL_FIND(result, name, arguments) \
  acl->name = reinterpret_cast<result(*) arguments>(dlsym(library, #name));
#define WINDLASS_ACL_REQUIRE(result, name, arguments) \
  if (acl->name == nullptr) return #name;
  WINDLASS_ACL_CALLS(WINDLASS_ACL_FIND)
  WINDLASS_ACL_LATER_CALLS(WINDLASS_ACL_FIND)
  WINDLASS_ACL_CALLS(WINDLASS_ACL_REQUIRE)
#undef WINDLASS_ACL_FIND
#undef WINDLASS_ACL_REQUIRE
  return nullptr;
}

}  // namespace

Code Acl::open(const char* home, Acl* acl, wl_error_t* error) {
  *acl = Acl();
  std::string tried = "ASCEND_HOME_PATH is not set";
  void* library = nullptr;
  if (home != nullptr && *home != 0) {
    const std::string path = std::string(home) + "/lib64/" + kLibrary;
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      tried = "ASCEND_HOME_PATH is " + std::string(home) + ": " + linkerError();
  }
  if (library == nullptr) library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(error, WL_UNSUPPORTED,
                "the Ascend runtime, libascendcl.so, does not open: %s; where the dynamic linker "
                "looks: %s",
                tried.c_str(), linkerError());
  }
  const char* lacking = findCalls(library, acl);
  if (lacking == nullptr) return WL_OK;
  *acl = Acl();
  dlclose(library);
  return fail(error, WL_UNSUPPORTED, "the Ascend runtime, libascendcl.so, lacks %s: it is too old",
              lacking);
}

Code driverDevice(const char* visible, int32_t device, uint32_t* number, wl_error_t* error) {
  *number = static_cast<uint32_t>(device);
  const char* at = visible;
  if (device >= 0 && (visible == nullptr || *visible == 0)) return WL_OK;
  for (int32_t place = 0; device >= 0; ++place) {
    char* end = nullptr;
    const long value = std::strtol(at, &end, 10);
    if (end == at || value < 0 || value > INT32_MAX || (*end != ',' && *end != 0)) break;
    if (place == device) {
      *number = static_cast<uint32_t>(value);
      return WL_OK;
    }
    if (*end == 0) break;
    at = end + 1;
  }
  return fail(error, WL_INVALID_ARGUMENT,
              "there is no device %d: ASCEND_RT_VISIBLE_DEVICES is '%.80s'", device,
              visible == nullptr ? "" : visible);
}

}  // namespace windlass::acl
