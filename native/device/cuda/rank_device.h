// SPDX-License-Identifier: Apache-2.0
// A rank's device on a GPU, which other ranks of the process may share.
#pragma once

#include <memory>

#include "native/device/cuda/device_window.h"
#include "native/device/cuda/moves.h"
#include "native/device/cuda/streams.h"

namespace windlass::cuda {

class CudaRankDevice final : public RankDevice {
 public:
  // `image`: the target's kernels.
  explicit CudaRankDevice(const void* image) : image_(image) {}

  Code open(uint32_t number, wl_error_t* error) override;
  Code close(wl_error_t* error) override;
  DeviceKind kind() const override { return gpu_->kind(); }

  Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) override;
  uint32_t faultyRank() const override { return window_.faultyRank(); }
  Code closeWindow(wl_error_t* error) override { return window_.close(error); }
  void* part(uint32_t rank) const override { return window_.part(rank); }
  uint64_t partBytes() const override { return window_.bytes(); }

  Gpu& gpu() { return *gpu_; }
  Copies& copies() { return copies_; }

  Code move(const DeviceMove& move, wl_error_t* error) override {
    return moves_.run(*gpu_, copies_, move, error);
  }
  Code stage(void** memory, wl_error_t* error) override {
    return moves_.stage(*gpu_, memory, error);
  }

  Code find(const Named& memory, Lies* lies, wl_error_t* error) override;
  Code onDevices(void* to, const void* from, uint64_t bytes, wl_error_t* error) override {
    return copies_.onDevices(reinterpret_cast<CuAddress>(to), reinterpret_cast<CuAddress>(from),
                             bytes, error);
  }
  Code toDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) override {
    return copies_.toDevice(reinterpret_cast<CuAddress>(to), from, bytes, error);
  }
  Code fromDevice(void* to, const void* from, uint64_t bytes, wl_error_t* error) override {
    return copies_.fromDevice(to, reinterpret_cast<CuAddress>(from), bytes, error);
  }
  Code fillDevice(void* to, uint64_t bytes, const Fill& fill, wl_error_t* error) override {
    return copies_.fill(reinterpret_cast<CuAddress>(to), bytes, fill, error);
  }
  Code takeFromDevice(const void* from, uint64_t bytes, const Take& take,
                      wl_error_t* error) override {
    return copies_.take(reinterpret_cast<CuAddress>(from), bytes, take, error);
  }
  Code copyRows(const std::vector<Rows>& rows, wl_error_t* error) override {
    return copies_.copyRows(rows, error);
  }
  Code isReached(const void* memory, uint64_t bytes, const std::vector<uint32_t>& devices, bool* is,
                 wl_error_t* error) override;

  Code load(const void* image, wl_error_t* error) override { return gpu_->load(image, error); }
  uint32_t coresAtOnce(uint32_t most, const void* image) const override {
    return window_.coresAtOnce(most, gpu_->loaded(image));
  }
  // The stop word is in host memory, which a kernel sees whatever the device does.
  uint64_t stopWord(uint64_t) const override { return wordsAddress_; }
  Notes notes() const override {
    return {words_ + kWordBytes, wordsAddress_ + kWordBytes, kNoteBytes};
  }
  Code writeStop(uint64_t word, uint32_t value, wl_error_t* error) override;

  Code start(const char* kernel, const void* image, const OffloadedOperation& given,
             wl_error_t* error) override;
  Code await(const char* kernel, int64_t limitNs, wl_error_t* error) override;
  bool mayRunOn() override { return window_.grid().mayRunOn(window_.slot()); }
  void giveUp() override { isStuck_ = true; }
  const char* lasting() const override {
    if (moves_.isStuck()) return "a move";
    const bool mayCopy = window_.hasGrid() && window_.grid().mayCopy();
    return copies_.isStuck() || mayCopy ? "a copy" : nullptr;
  }
  // Operations on callers' streams. Valid after open().
  Streams& streams() { return *streams_; }

 private:
  // Host memory that kernels access: a line with the stop word, the lines of streams, and notes.
  static constexpr uint64_t kWordBytes = kCoreLineBytes + Streams::kWordBytes;
  static constexpr uint64_t kNoteBytes = 4096 - kWordBytes;
  void setStop(uint32_t value) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(words_), value, __ATOMIC_RELEASE);
  }
  // Sets *type to the type of memory at that address.
  Code typeOf(CuAddress address, int32_t* type, wl_error_t* error);
  // Refuse memory that is shorter than its caller says. checkAllocation() checks an allocation on a
  // device, checkLast() memory whose last byte is of another kind than the first.
  Code checkAllocation(const Named& memory, wl_error_t* error);
  Code checkLast(const Named& memory, bool isOnDevice, wl_error_t* error);

  const void* const image_;
  Gpu* gpu_ = nullptr;
  Copies copies_;
  Moves moves_;
  DeviceWindow window_;
  std::unique_ptr<Streams> streams_;
  unsigned char* words_ = nullptr;
  CuAddress wordsAddress_ = 0;
  bool isStuck_ = false;
};

}  // namespace windlass::cuda
