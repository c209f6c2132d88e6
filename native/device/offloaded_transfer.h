// SPDX-License-Identifier: Apache-2.0
// What a rank's device takes of a transfer: copies of those boxes of the rank's memory that items
// of any rank name, and its own items, which name copies instead of what hosts have.
#pragma once

#include <vector>

#include "native/hosts/far.h"
#include "native/memory/device.h"
#include "windlass/chunk.h"

namespace windlass {

// Where in its window a rank's device has copies: kernels only read one image, and write the other
// one, which begins with the rank's stages and ends with what counts the items of its targets.
struct ImageLayout {
  // A box, whose elements lie one behind the other in the copy, as FarBox has them.
  struct Copied {
    FarBox box;
    uint64_t at;      // in the image
    bool isOnDevice;  // rather than on the host
  };

  // Ascending, those on the host first.
  std::vector<Copied> read, written;
  uint64_t readBytes = 0;
  uint64_t writtenBytes = 0;
  void* stages = nullptr;
  uint64_t stageBytes = 0;  // 0: no item names them
  // Whether another operation of the transfer writes what this one reads there, or reads what this
  // one writes.
  bool keepsStages = false;
  std::vector<uint32_t*> counts;
  uint64_t countsAt = 0;  // in the image
};

// One operation of a transfer on one rank, which makes it with the transfer and runs it many times.
class OffloadedTransfer {
 public:
  // Windows in which the words of items have their places; what stays where it lies is in
  // kAddressSpace.
  static constexpr uint32_t kRead = 1;
  static constexpr uint32_t kWritten = 2;

  // Where devices reach a rank's images.
  struct Images {
    uint64_t read, written;
  };

  OffloadedTransfer(ImageLayout layout, const uint64_t* table);

  // No other one's of this process, nor 0.
  uint64_t id() const { return id_; }
  uint64_t readBytes() const { return layout_.readBytes; }
  uint64_t writtenBytes() const { return layout_.writtenBytes; }
  // A ChunkTable, whose items have addresses once name() has said so.
  void* table() { return table_.data(); }
  uint64_t tableBytes() const { return table_.size() * sizeof(uint64_t); }

  // Has the table name the images of all ranks; whether it did before.
  bool name(const std::vector<Images>& images);
  // Copies what kernels read to this rank's. `isHeld`: nothing has used the window since this last
  // ran there, with the same images.
  Code send(RankDevice& device, const Images& own, bool isHeld, wl_error_t* error);
  // What they count there, of the written image.
  uint64_t countsAt() const { return layout_.countsAt; }
  uint64_t countBytes() const { return layout_.counts.size() * sizeof(uint32_t); }
  // Copies what they wrote to where it belongs, and then what they counted, since who sees that
  // sees the elements. `noted`: the counts, where the kernel has brought them.
  Code fetch(RankDevice& device, const Images& own, const void* noted, wl_error_t* error);

 private:
  const uint64_t id_;
  ImageLayout layout_;
  std::vector<Images> images_;    // that the table names
  std::vector<uint32_t> counts_;  // as the device has them
  std::vector<uint32_t> ahead_;   // by so much the host's own were more, when it was sent
  std::vector<uint64_t> named_;  // the table as it names images
  std::vector<uint64_t> table_;
};

}  // namespace windlass
