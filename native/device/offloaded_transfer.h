// SPDX-License-Identifier: Apache-2.0
// Device side of a rank's transfer: copies of the rank's boxes that items of any rank name, and the
// rank's own items. The items name copies instead of host memory.
#pragma once

#include <vector>

#include "native/base/far.h"
#include "native/device/statements.h"
#include "native/memory/device.h"
#include "windlass/chunk.h"

namespace windlass {

// Layout of the copies in the window of a rank's device. Kernels only read one image and write the
// other. The written image begins with the rank's staging buffers and ends with the counters of the
// items of its targets.
struct ImageLayout {
  // A box whose elements are packed in the copy, in the order of FarBox.
  struct Copied {
    FarBox box;
    uint64_t at;      // offset in the image
    bool isOnDevice;  // otherwise on the host
  };

  // Ascending, boxes on the host first.
  std::vector<Copied> read, written;
  uint64_t readBytes = 0;
  uint64_t writtenBytes = 0;
  void* stages = nullptr;
  uint64_t stageBytes = 0;  // 0: no item names them
  // True if the staging buffers carry data between this operation and another one of the transfer.
  bool keepsStages = false;
  std::vector<uint32_t*> counts;
  uint64_t countsAt = 0;  // offset in the image
};

// One operation of a transfer on one rank. It is created with the transfer and runs many times.
class OffloadedTransfer {
 public:
  // Windows of the addresses that items name. Data that stays in place is in kAddressSpace.
  static constexpr uint32_t kRead = 1;
  static constexpr uint32_t kWritten = 2;

  OffloadedTransfer(ImageLayout layout, const uint64_t* table);

  // Unique in this process, never 0.
  uint64_t id() const { return id_; }
  uint64_t readBytes() const { return layout_.readBytes; }
  uint64_t writtenBytes() const { return layout_.writtenBytes; }
  // A ChunkTable. name() sets the addresses of its items.
  void* table() { return table_.data(); }
  uint64_t tableBytes() const { return table_.size() * sizeof(uint64_t); }

  // Makes the table name the images of all ranks: the `in` and `out` of their layouts. Returns true
  // if it already did.
  bool name(const std::vector<DeviceLayout>& images);
  // Copies the data that kernels read to this rank's images. `isHeld`: nothing has used the
  // window since this operation last ran there with the same images.
  Code send(RankDevice& device, const DeviceLayout& own, bool isHeld, wl_error_t* error);
  // Location of the counts in the written image.
  uint64_t countsAt() const { return layout_.countsAt; }
  uint64_t countBytes() const { return layout_.counts.size() * sizeof(uint32_t); }
  // Copies the written data to its destinations, and then the counts. A reader that sees a count
  // also sees the elements. `noted`: the counts in host memory, if the kernel copied them there.
  Code fetch(RankDevice& device, const DeviceLayout& own, const void* noted, wl_error_t* error);

 private:
  const uint64_t id_;
  ImageLayout layout_;
  std::vector<DeviceLayout> images_;  // the images that the table names
  std::vector<uint32_t> counts_;  // as the device has them
  std::vector<uint32_t> ahead_;   // excess of the host's counts over the device's, at send()
  std::vector<uint64_t> named_;  // the words from which name() makes table_
  std::vector<uint64_t> table_;
};

}  // namespace windlass
