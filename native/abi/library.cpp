// SPDX-License-Identifier: Apache-2.0
// C ABI: the library, the current process, and the runtime of Ascend devices.
#include <cstdlib>

#include "native/abi/handles.h"
#include "native/ascend/acl/acl.h"
#include "native/base/clock.h"
#include "native/base/cores.h"
#include "native/base/target.h"
#include "native/core/adjustment.h"
#include "native/core/names.h"

using namespace windlass;

extern "C" {

uint32_t wl_abi_version(void) {
  return WL_ABI_VERSION;
}
const char* wl_version(void) {
  return WINDLASS_VERSION;
}
const char* wl_target(void) {
  return kTarget.limits.name;
}
const char* wl_code_name(int32_t code) {
  return codeName(code);
}
const char* wl_operation_name(int32_t operation) {
  return operationName(operation);
}
const char* wl_call_name(int32_t operation) {
  return callName(operation);
}
const char* wl_algorithm_name(int32_t algorithm) {
  return algorithmName(algorithm);
}
const char* wl_isa_path(void) {
  return kTarget.path();
}
int32_t wl_allowed_cores(void) {
  return allowedCores();
}
int32_t wl_thread_adopt(int32_t place, int32_t stays) {
  if (adoptThread()) return 1;
  if (place >= 0) placeThread(static_cast<uint32_t>(place), stays != 0);
  return 0;
}
int64_t wl_clock_ns(void) {
  return clockNs();
}
int32_t wl_ascend_find(wl_error_t* error) {
  const auto find = [&] {
    acl::Acl found;
    return acl::Acl::open(std::getenv("ASCEND_HOME_PATH"), &found, error);
  };
  return withMemory(error, find, "out of memory for the names of files");
}

}  // extern "C"
