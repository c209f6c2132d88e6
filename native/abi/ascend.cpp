// SPDX-License-Identifier: Apache-2.0
// C ABI: the runtime of Ascend devices.
#include <cstdlib>

#include "native/abi/handles.h"
#include "native/ascend/acl/acl.h"

using namespace windlass;

extern "C" {

int32_t wl_ascend_find(wl_error_t* error) {
  const auto find = [&] {
    acl::Acl found;
    return acl::Acl::open(std::getenv("ASCEND_HOME_PATH"), &found, error);
  };
  return withMemory(error, find, "out of memory for the names of files");
}

}  // extern "C"
