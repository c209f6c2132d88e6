// SPDX-License-Identifier: Apache-2.0
#include "native/ascend/acl/rank_device.h"

#include <cstdlib>

#include "native/base/target.h"

namespace windlass::acl {

Code AclRankDevice::open(uint32_t number, wl_error_t* error) {
  if (Code code = Acl::open(std::getenv("ASCEND_HOME_PATH"), &acl_, error); code != WL_OK)
    return code;
  return device_.open(acl_, static_cast<int32_t>(number), std::getenv("ASCEND_RT_VISIBLE_DEVICES"),
                      error);
}

Code AclRankDevice::start(const char* kernel, const void*, const OffloadedOperation& given,
                          wl_error_t* error) {
  return device_.start(kernel, kTarget.offload, given.line.cores, window_.context(), &given,
                       sizeof given, error);
}

}  // namespace windlass::acl
