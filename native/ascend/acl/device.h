// SPDX-License-Identifier: Apache-2.0
// A rank's Ascend device: its stream, its memory, its window, and the kernels that run on it. No
// other rank uses it. Only the thread that opened it may call it, since the runtime keeps a current
// device for each thread.
#pragma once

#include <string>

#include "native/ascend/acl/device_window.h"
#include "native/memory/device.h"

namespace windlass::acl {

inline Code noParts(wl_error_t* error) {
  return fail(error, WL_UNSUPPORTED,
              "windows that callers have on Ascend devices are of the host: make one by window");
}

class Device final : public RankDevice {
 public:
  // Starts `device`, a number among those that the process sees. `visible`:
  // ASCEND_RT_VISIBLE_DEVICES. A failure leaves nothing behind. Throws std::bad_alloc.
  Code open(const Acl& acl, int32_t device, const char* visible, wl_error_t* error);
  // Opens the runtime too, and takes `visible` from the environment.
  Code open(uint32_t device, wl_error_t* error) override;
  ~Device() override {
    window_.close(nullptr);
    close(nullptr);
  }
  Code close(wl_error_t* error) override;

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
  Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) override;
  Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) override;

  Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) override {
    return window_.make(*this, exchange, bytes, error);
  }
  uint32_t faultyRank() const override { return window_.faultyRank(); }
  Code closeWindow(wl_error_t* error) override { return window_.close(error); }
  void* part(uint32_t rank) const override { return window_.part(rank); }
  uint64_t partBytes() const override { return window_.bytes(); }

  // Callers only name host memory.
  Code find(const Named&, Lies* lies, wl_error_t*) override {
    *lies = Lies::kHost;
    return WL_OK;
  }
  Code onDevices(void*, const void*, uint64_t, wl_error_t* error) override {
    return fail(error, WL_UNSUPPORTED, "tensors on Ascend devices are of the host");
  }
  Code move(const DeviceMove&, wl_error_t* error) override { return noParts(error); }
  Code stage(void**, wl_error_t* error) override { return noParts(error); }

  // Launcher of a kernel, in code that the toolkit compiles. It puts the kernel on the stream.
  // `arguments` are on the device. Returns kAclOk or an error.
  using Launch = AclError (*)(uint32_t blocks, AclStream stream, void* context, void* arguments);
  Code start(const char* kernel, Launch launch, uint32_t blocks, void* context,
             const void* arguments, uint64_t bytes, wl_error_t* error);
  Code start(const char* kernel, const void* image, const OffloadedOperation& given,
             wl_error_t* error) override;
  Code await(const char* kernel, int64_t limitNs, wl_error_t* error) override;
  bool mayRunOn() override { return mayRunOn_; }
  void giveUp() override { isStuck_ = true; }
  uint32_t coresAtOnce(uint32_t, const void*) const override { return 0; }
  uint64_t stopWord(uint64_t line) const override { return line; }
  Code writeStop(uint64_t word, uint32_t value, wl_error_t* error) override {
    return toDevice(reinterpret_cast<void*>(word), &value, sizeof value, error);
  }

  // Returns WL_OK if `result` is kAclOk, otherwise WL_DEVICE with the runtime's message.
  Code check(AclError result, const char* call, wl_error_t* error) const;

 private:
  // Makes room for `bytes` in the device's copy of a kernel's arguments.
  Code argumentsFor(uint64_t bytes, wl_error_t* error);

  Acl found_;  // the runtime, unless the caller passes it to open()
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
  DeviceWindow window_;
};

}  // namespace windlass::acl
