// SPDX-License-Identifier: Apache-2.0
// A device of one rank: its stream, its memory, and the kernels that run on it. Only the thread
// that opened it may call it, since the runtime keeps a current device for each thread.
#pragma once

#include <string>

#include "native/ascend/acl/acl.h"

namespace windlass::acl {

class Device {
 public:
  // Starts `device`, a number among those that the process sees. `visible`:
  // ASCEND_RT_VISIBLE_DEVICES. A failure leaves nothing behind. Throws std::bad_alloc.
  Code open(const Acl& acl, int32_t device, const char* visible, wl_error_t* error);
  Device() = default;
  ~Device() { close(nullptr); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Releases what open() took, even after failures, and returns the first failure.
  Code close(wl_error_t* error);

  const Acl& acl() const { return *acl_; }
  int32_t number() const { return number_; }
  uint32_t driverNumber() const { return driverNumber_; }
  // Finds this process's number of the device that the driver calls `driverNumber`. WL_UNSUPPORTED:
  // the process does not see it.
  Code find(uint32_t driverNumber, int32_t* device, wl_error_t* error) const;

  // Allocates device memory that only this device's kernels see.
  Code allocate(uint64_t bytes, void** memory, wl_error_t* error) const;
  Code free(void* memory, wl_error_t* error) const;
  Code zero(void* memory, uint64_t bytes, wl_error_t* error) const;
  Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) const;
  Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) const;

  // Launcher of a kernel, in code that the toolkit compiles. It puts the kernel on the stream.
  // `arguments` are on the device. Returns kAclOk or an error.
  using Launch = AclError (*)(uint32_t blocks, AclStream stream, void* context, void* arguments);
  // Runs a kernel and blocks until it has ended. Returns WL_TIMEOUT after limitNs. The kernel may
  // then run without end, and this device runs no other one.
  Code run(const char* kernel, Launch launch, uint32_t blocks, void* context,
           const void* arguments, uint64_t bytes, int64_t limitNs, wl_error_t* error);
  // Steps of run(). await() may be called again after WL_TIMEOUT, and after another error while
  // mayRunOn() is true. After giveUp() nobody calls it.
  Code start(const char* kernel, Launch launch, uint32_t blocks, void* context,
             const void* arguments, uint64_t bytes, wl_error_t* error);
  Code await(const char* kernel, int64_t limitNs, wl_error_t* error);
  bool mayRunOn() const { return mayRunOn_; }
  void giveUp() { isStuck_ = true; }

  // Converts `result` like Acl::check().
  Code check(AclError result, const char* call, wl_error_t* error) const;

 private:
  // Makes room for `bytes` in the device's copy of a kernel's arguments.
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
