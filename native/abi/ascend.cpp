// SPDX-License-Identifier: Apache-2.0
// C ABI: the runtime of Ascend devices.
#include <cstdlib>
#include <new>

#include "native/ascend/acl/acl.h"

using namespace windlass;

extern "C" {

int32_t wl_ascend_find(wl_error_t* error) {
  try {
    acl::Acl found;
    return acl::Acl::open(std::getenv("ASCEND_HOME_PATH"), &found, error);
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for the names of files");
  }
}

}  // extern "C"
