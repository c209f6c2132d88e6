// SPDX-License-Identifier: Apache-2.0
// A device of one rank: its stream, its memory, and kernels that run on it. All of its calls are
// made on the thread that opened it, since the runtime keeps the device in use for each thread.
#pragma once

#include <string>

#include "native/ascend/acl/acl.h"

namespace windlass::acl {

class Device {
 public:
  // Starts `device`, of those that the process sees. `visible`: ASCEND_RT_VISIBLE_DEVICES. A
  // failure leaves nothing behind. Throws std::bad_alloc.
  Code open(const Acl& acl, int32_t device, const char* visible, wl_error_t* error);
  Device() = default;
  ~Device() { close(nullptr); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Gives back what open() took, whatever fails, and tells the first failure.
  Code close(wl_error_t* error);

  const Acl& acl() const { return *acl_; }
  int32_t number() const { return number_; }
  uint32_t driverNumber() const { return driverNumber_; }
  // How this process counts the device that the driver has as `driverNumber`; WL_UNSUPPORTED where
  // the process doesn't see it.
  Code find(uint32_t driverNumber, int32_t* device, wl_error_t* error) const;

  // Memory of the device that its own kernels alone see.
  Code allocate(uint64_t bytes, void** memory, wl_error_t* error) const;
  Code free(void* memory, wl_error_t* error) const;
  Code zero(void* memory, uint64_t bytes, wl_error_t* error) const;
  Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) const;
  Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) const;

  // What the launcher of a kernel does, in the code that the toolkit compiles: puts the kernel on
  // the stream. `arguments` lie on the device. kAclOk or why not.
  using Launch = AclError (*)(uint32_t blocks, AclStream stream, void* context, void* arguments);
  // Runs a kernel until it has ended, or WL_TIMEOUT after limitNs: then it may run on for ever, and
  // this device runs no other one.
  Code run(const char* kernel, Launch launch, uint32_t blocks, void* context,
           const void* arguments, uint64_t bytes, int64_t limitNs, wl_error_t* error);
  // The same in steps. await() may be called again after WL_TIMEOUT, and after another error while
  // mayRunOn() is true; giveUp() says that nobody will.
  Code start(const char* kernel, Launch launch, uint32_t blocks, void* context,
             const void* arguments, uint64_t bytes, wl_error_t* error);
  Code await(const char* kernel, int64_t limitNs, wl_error_t* error);
  bool mayRunOn() const { return mayRunOn_; }
  void giveUp() { isStuck_ = true; }

  // `result` of a call, as Acl::check() has it.
  Code check(AclError result, const char* call, wl_error_t* error) const;

 private:
  // The device's copy of a kernel's arguments, with room for `bytes`.
  Code argumentsFor(uint64_t bytes, wl_error_t* error);

  const Acl* acl_ = nullptr;
  std::string visible_;
  int32_t number_ = -1;
  uint32_t driverNumber_ = 0;
  AclStream stream_ = nullptr;
  void* arguments_ = nullptr;
  uint64_t argumentBytes_ = 0;
  bool isSet_ = false;
  bool isStuck_ = false;
  bool mayRunOn_ = false;
};

}  // namespace windlass::acl
