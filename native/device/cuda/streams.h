// SPDX-License-Identifier: Apache-2.0
// Operations of a rank on its caller's streams, on a GPU. Their resources exist before the first
// operation: slots in GPU memory, pinned memory to fill them from, and events.
#pragma once

#include <atomic>

#include "native/device/cuda/device_window.h"
#include "native/device/stream_device.h"

namespace windlass::cuda {

class Streams final : public StreamDevice {
 public:
  // Bytes of host memory that kernels access: a line with the stop word, and one for reports.
  static constexpr uint64_t kWordBytes = 2 * kCoreLineBytes;

  // `words`: this memory, zeroed, which must outlive this object.
  Streams(Gpu& gpu, Copies& copies, unsigned char* words, CuAddress wordsAddress)
      : gpu_(gpu), copies_(copies), words_(words), wordsAddress_(wordsAddress) {}

  Code open(wl_error_t* error) override;
  Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) override {
    return window_.make(gpu_, copies_, exchange, bytes, error);
  }
  Code closeWindow(wl_error_t* error) override { return window_.close(error); }
  uint32_t culprit() const override { return window_.culprit(); }
  void* part(uint32_t rank) const override { return reinterpret_cast<void*>(window_.part(rank)); }
  uint64_t partBytes() const override { return window_.bytes(); }
  uint32_t coresAtOnce(uint32_t most) const override {
    return window_.coresAtOnce(most, gpu_.own());
  }
  Code close(wl_error_t* error) override;

  Code look(uint64_t stream, uint64_t* capture, wl_error_t* error) override;
  uint64_t stopWord() const override { return wordsAddress_; }
  uint64_t reportWord() const override { return wordsAddress_ + kCoreLineBytes; }
  Code mark(uint64_t stream, uint64_t capture, uint32_t place, const Brought& brought,
            uint64_t* mark, wl_error_t* error) override;
  Code join(uint64_t stream, uint64_t capture, uint32_t place, const OffloadedOperation& given,
            const uint64_t* marks, uint32_t count, wl_error_t* error) override;
  Code leave(uint64_t stream, uint64_t capture, uint32_t place, const Copy& copy,
             wl_error_t* error) override;
  void withdraw(uint64_t stream, uint64_t capture, uint32_t place) override;
  Code hasBegun(uint64_t mark, bool* has, wl_error_t* error) override;
  Code isOver(uint32_t place, bool* is, wl_error_t* error) override;
  void stop() override;
  uint32_t reported() const override;

 private:
  // Host data of an operation, valid while it owns its slot.
  struct Given {
    OffloadedOperation operation;
    alignas(8) unsigned char parts[kMostPartsBytes];
  };
  // Events of an operation in flight.
  struct Place {
    CuEvent mark = nullptr;
    CuEvent over = nullptr;
    bool isUnknown = false;  // `over` was not recorded: over only once the device has failed
  };

  // Returns the slot's address on the device.
  CuAddress givenThere(uint64_t capture, uint32_t place) const {
    return given_ + (capture == 0 ? place : kMostInFlight + place) * sizeof(Given);
  }
  template <class Visit>
  void forEachPlace(const Visit& visit) {
    visit(captured_);
    for (Place& place : places_) visit(place);
  }
  Code bringParts(CuStream stream, uint64_t capture, uint32_t place, const Copy& parts,
                  wl_error_t* error);
  Code copy(CuStream stream, const Copy& copy, wl_error_t* error);
  // Refuses a capture after which another one began: only the order in the last capture is known.
  Code checkCapture(uint64_t stream, uint64_t capture, wl_error_t* error) const;

  Gpu& gpu_;
  Copies& copies_;
  unsigned char* const words_;
  const CuAddress wordsAddress_;
  DeviceWindow window_;
  // Slots of operations in flight, followed by those of captured operations.
  CuAddress given_ = 0;
  Given* pinned_ = nullptr;  // slots of those in flight
  Place places_[kMostInFlight];
  Place captured_;  // events of the last captured operation
  // Event of the rank's last operation outside captures; nullptr: none.
  CuEvent last_ = nullptr;
  // Capture of the last captured operation, whose `over` is captured_'s; 0: none.
  uint64_t lastCapture_ = 0;
  // Earlier captures, each with at least one operation.
  uint64_t left_[kMostCaptured];
  uint32_t leftCount_ = 0;
  bool isWithdrawn_ = false;  // an operation was withdrawn
};

}  // namespace windlass::cuda
