// SPDX-License-Identifier: Apache-2.0
// A rank's Ascend device. No other rank uses it.
#pragma once

#include "native/ascend/acl/device_window.h"
#include "native/memory/device.h"

namespace windlass::acl {

inline Code noParts(wl_error_t* error) {
  return fail(error, WL_UNSUPPORTED,
              "windows that callers have on Ascend devices are of the host: make one by window");
}

class AclRankDevice final : public RankDevice {
 public:
  Code open(uint32_t number, wl_error_t* error) override;
  Code close(wl_error_t* error) override { return device_.close(error); }

  Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) override {
    return window_.make(device_, exchange, bytes, error);
  }
  uint32_t culprit() const override { return window_.culprit(); }
  Code closeWindow(wl_error_t* error) override { return window_.close(error); }
  void* part(uint32_t rank) const override { return window_.part(rank); }
  uint64_t partBytes() const override { return window_.bytes(); }

  Code move(const DeviceMove&, wl_error_t* error) override { return noParts(error); }
  Code stage(void**, wl_error_t* error) override { return noParts(error); }

  // Callers only name host memory.
  Code find(const Named&, Lies* lies, wl_error_t*) override {
    *lies = Lies::kHost;
    return WL_OK;
  }
  Code onDevices(void*, const void*, uint64_t, wl_error_t* error) override {
    return fail(error, WL_UNSUPPORTED, "tensors on Ascend devices are of the host");
  }
  Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) override {
    return device_.toDevice(to, from, bytes, error);
  }
  Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) override {
    return device_.fromDevice(to, from, bytes, error);
  }

  uint32_t coresAtOnce(uint32_t, const void*) const override { return 0; }
  uint64_t stopWord(uint64_t line) const override { return line; }
  Code writeStop(uint64_t word, uint32_t value, wl_error_t* error) override {
    return device_.toDevice(reinterpret_cast<void*>(word), &value, sizeof value, error);
  }

  Code start(const char* kernel, const void* image, const OffloadedOperation& given,
             wl_error_t* error) override;
  Code await(const char* kernel, int64_t limitNs, wl_error_t* error) override {
    return device_.await(kernel, limitNs, error);
  }
  bool mayRunOn() override { return device_.mayRunOn(); }
  void giveUp() override { device_.giveUp(); }

 private:
  Acl acl_;
  Device device_;
  DeviceWindow window_;
};

}  // namespace windlass::acl
