// SPDX-License-Identifier: Apache-2.0
// What a rank's device takes of a transfer: images of the rank's memory that items of any rank
// name, and its own items, which name the images that devices have instead of what hosts have.
#pragma once

#include <memory>
#include <vector>

#include "native/window/device.h"
#include "windlass/chunk.h"

namespace windlass {

// One operation of one rank. Every rank has entered it; all of them live in this process.
class OffloadedTransfer {
 public:
  // Where all ranks share a device, their kernels reach what lies on it, and no image is taken.
  OffloadedTransfer(uint32_t rank, bool isOneDevice) : rank_(rank), isOneDevice_(isOneDevice) {}
  OffloadedTransfer(const OffloadedTransfer&) = delete;
  OffloadedTransfer& operator=(const OffloadedTransfer&) = delete;

  // Finds what items of all ranks name of this rank's. Throws std::bad_alloc.
  void find(const Launch& launch);
  // Copies what lies on the host into images. WL_UNSUPPORTED where devices don't reach what lies on
  // one of them, or an item has more targets or sources than there may be ranks. Throws
  // std::bad_alloc.
  Code gather(RankDevice& device, wl_error_t* error);
  // What kernels only read.
  void* in() const { return images_[0].get(); }
  uint64_t inBytes() const { return bytes_[0]; }
  // What they write: targets, stages and the counts of both.
  void* out() const { return images_[1].get(); }
  uint64_t outBytes() const { return bytes_[1]; }
  // A ChunkTable.
  void* table() { return table_.data(); }
  uint64_t tableBytes() const { return table_.size() * sizeof(uint64_t); }

  // Where devices reach a rank's images.
  struct Images {
    const OffloadedTransfer* of;
    uint64_t in, out;
  };
  // Has the table name those of all ranks, which have gathered theirs.
  void name(const std::vector<Images>& images);
  // Copies those elements that items wrote from the image to where they belong, and then what was
  // counted, since who sees that sees the elements.
  void scatter();

 private:
  // Memory of this rank that views span, from its first byte to the last one's end.
  struct Range {
    uint64_t begin, end;
    bool isWritten;
    bool stays;   // on the device
    uint64_t at;  // in its image

    uint64_t image(const Images& images) const {
      return stays ? begin : (isWritten ? images.out : images.in) + at;
    }
  };
  struct Target {
    ChunkItem item;
    const uint64_t* words;
    uint64_t address;
  };

  void findView(const Launch& launch, const ChunkItem& item, const uint64_t* view,
                const int64_t* strides, bool isWritten);
  void copyTable(const Launch& launch, const ChunkTable& own);
  // That which holds the address.
  const Range& rangeOf(uint64_t address) const;
  uint64_t countAt(uint64_t address) const;  // in the image

  const uint32_t rank_;
  const bool isOneDevice_;
  std::vector<Range> ranges_;     // ascending, apart
  std::vector<uint64_t> counts_;  // where they lie, ascending
  std::vector<Target> targets_;
  std::vector<uint64_t> table_;
  uint32_t mostViews_ = 0;  // that any rank's item has, targets or sources
  uint64_t countsAt_ = 0;   // in the image
  uint64_t bytes_[2] = {0, 0};
  std::unique_ptr<unsigned char[]> images_[2];
};

}  // namespace windlass
