// SPDX-License-Identifier: Apache-2.0
#include "native/ascend/acl/device.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "native/base/target.h"
#include "native/base/text.h"

namespace windlass::acl {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// Starts the runtime unless it runs. It ends with the process, since other libraries may use it
// too.
AclError startRuntime(const Acl& acl) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const AclError result = acl.aclInit(nullptr);
  return result == kAclInitialised ? kAclOk : result;
}

}  // namespace

Code Device::check(AclError result, const char* call, wl_error_t* error) const {
  if (result == kAclOk) return WL_OK;
  const char* said = acl_->aclGetRecentErrMsg();
  return fail(error, WL_DEVICE, "%s of device %d returned %d%s%.600s", call, number_, result,
              said == nullptr || *said == 0 ? "" : ": ", said == nullptr ? "" : said);
}

Code Device::open(uint32_t device, wl_error_t* error) {
  if (Code code = Acl::open(std::getenv("ASCEND_HOME_PATH"), &found_, error); code != WL_OK)
    return code;
  return open(found_, static_cast<int32_t>(device), std::getenv("ASCEND_RT_VISIBLE_DEVICES"),
              error);
}

Code Device::open(const Acl& acl, int32_t device, const char* visible, wl_error_t* error) {
  if (acl_ != nullptr)
    return fail(error, WL_INVALID_ARGUMENT, "device %d is open here already", number_);
  if (Code code = driverDevice(visible, device, &driverNumber_, error); code != WL_OK) return code;
  visible_ = visible == nullptr ? "" : visible;
  acl_ = &acl;
  number_ = device;
  Code code = check(startRuntime(acl), "aclInit", error);
  if (code == WL_OK) {
    code = check(acl.aclrtSetDevice(device), "aclrtSetDevice", error);
    isSet_ = code == WL_OK;
  }
  if (code == WL_OK) {
    code = check(acl.aclrtCreateStream(&stream_), "aclrtCreateStream", error);
    if (code != WL_OK) stream_ = nullptr;
  }
  if (code != WL_OK) close(nullptr);
  return code;
}

Code Device::close(wl_error_t* error) {
  Code code = WL_OK;
  const auto undo = [&](AclError result, const char* call) {
    const Code undone = check(result, call, code == WL_OK ? error : nullptr);
    if (code == WL_OK) code = undone;
  };
  if (arguments_ != nullptr) undo(acl_->aclrtFree(arguments_), "aclrtFree");
  if (stream_ != nullptr) undo(acl_->aclrtDestroyStream(stream_), "aclrtDestroyStream");
  if (isSet_) undo(acl_->aclrtResetDevice(number_), "aclrtResetDevice");
  acl_ = nullptr;
  arguments_ = nullptr;
  argumentBytes_ = 0;
  stream_ = nullptr;
  isSet_ = isStuck_ = mayRunOn_ = false;
  return code;
}

Code Device::find(uint32_t driverNumber, int32_t* device, wl_error_t* error) const {
  if (visible_.empty()) {
    *device = static_cast<int32_t>(driverNumber);
    return WL_OK;
  }
  uint32_t number = 0;
  for (*device = 0; driverDevice(visible_.c_str(), *device, &number, nullptr) == WL_OK; ++*device) {
    if (number == driverNumber) return WL_OK;
  }
  return fail(error, WL_UNSUPPORTED,
              "this process does not see the driver's device %u, where a peer's memory lies: "
              "ASCEND_RT_VISIBLE_DEVICES is '%.80s'",
              driverNumber, visible_.c_str());
}

Code Device::allocate(uint64_t bytes, void** memory, wl_error_t* error) const {
  const Code code =
      check(acl_->aclrtMalloc(memory, bytes, kMallocHugeFirst), "aclrtMalloc", error);
  if (code != WL_OK) *memory = nullptr;
  return code;
}

Code Device::free(void* memory, wl_error_t* error) const {
  return check(acl_->aclrtFree(memory), "aclrtFree", error);
}

Code Device::zero(void* memory, uint64_t bytes, wl_error_t* error) const {
  return check(acl_->aclrtMemset(memory, bytes, 0, bytes), "aclrtMemset", error);
}

Code Device::toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) {
  return check(acl_->aclrtMemcpy(to, bytes, from, bytes, kHostToDevice), "aclrtMemcpy", error);
}

Code Device::fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) {
  return check(acl_->aclrtMemcpy(to, bytes, from, bytes, kDeviceToHost), "aclrtMemcpy", error);
}

Code Device::argumentsFor(uint64_t bytes, wl_error_t* error) {
  if (bytes <= argumentBytes_) return WL_OK;
  void* larger = nullptr;
  if (Code code = allocate(bytes, &larger, error); code != WL_OK) return code;
  void* smaller = arguments_;
  arguments_ = larger;
  argumentBytes_ = bytes;
  return smaller == nullptr ? WL_OK : free(smaller, error);
}

Code Device::start(const char* kernel, const void*, const OffloadedOperation& given,
                   wl_error_t* error) {
  return start(kernel, kTarget.offload, given.line.cores, window_.context(), &given, sizeof given,
               error);
}

Code Device::start(const char* kernel, Launch launch, uint32_t blocks, void* context,
                   const void* arguments, uint64_t bytes, wl_error_t* error) {
  if (isStuck_) {
    return fail(error, WL_DEVICE,
                "device %d still runs a kernel that did not end in time: it takes no %s; close it",
                number_, kernel);
  }
  if (Code code = argumentsFor(bytes, error); code != WL_OK) return code;
  if (bytes > 0) {
    if (Code code = toDevice(arguments_, arguments, bytes, error); code != WL_OK) return code;
  }
  const Code code = check(launch(blocks, stream_, context, arguments_), kernel, error);
  mayRunOn_ = code == WL_OK;
  return code;
}

Code Device::await(const char* kernel, int64_t limitNs, wl_error_t* error) {
  // Rounds up to ms. A wait of 0 would only poll, and a negative one would not end.
  const int64_t most =
      std::clamp<int64_t>((limitNs + kMillisecond - 1) / kMillisecond, 1, INT32_MAX);
  const AclError result =
      acl_->aclrtSynchronizeStreamWithTimeout(stream_, static_cast<int32_t>(most));
  if (saysEnded(result)) mayRunOn_ = false;
  if (result == kAclOk) return WL_OK;
  if (result == kAclTimedOut) {
    return fail(error, WL_DEADLINE_EXCEEDED, "%s did not end on device %d within %lld ms", kernel,
                number_, text(most));
  }
  isStuck_ = true;
  return check(result, "aclrtSynchronizeStreamWithTimeout", error);
}

}  // namespace windlass::acl
