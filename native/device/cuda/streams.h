// SPDX-License-Identifier: Apache-2.0
// Operations of a rank on its caller's streams, on a GPU. The host enqueues them and continues.
// They run one after another, each with all ranks of the GPU in one launch. Their resources exist
// before the first operation: slots in GPU memory, pinned memory to fill them from, and events.
#pragma once

#include <vector>

#include "native/device/cuda/device_window.h"

namespace windlass::cuda {

class Streams final : public KernelWindow {
 public:
  // Most operations in flight on the GPU, and most that graphs hold for good.
  static constexpr uint32_t kMostInFlight = 64;
  static constexpr uint32_t kMostCaptured = 512;
  // Bytes of host memory that kernels access: a line with the stop word, and one for reports.
  static constexpr uint64_t kWordBytes = 2 * kCoreLineBytes;

  struct Copy {
    void* to;
    const void* from;
    uint64_t bytes;  // 0: none
  };
  // Data that a rank copies to its part of the window.
  struct Brought {
    Copy in, out;
    // Data from the host, at most kMostPartsBytes, copied during the call.
    Copy parts;
  };
  static constexpr uint64_t kMostPartsBytes = PartTable::bytes(kMostDeviceRanks);

  // `words`: this memory, zeroed, which must outlive this object.
  Streams(CudaRankDevice& device, Gpu& gpu, Copies& copies, unsigned char* words,
          CuAddress wordsAddress)
      : device_(device), gpu_(gpu), copies_(copies), words_(words), wordsAddress_(wordsAddress) {}

  // Allocates everything that operations need except their window. A failure leaves nothing behind.
  Code open(wl_error_t* error);
  // Releases everything, even after failures, and returns the first failure.
  Code close(wl_error_t* error);

  // The window, which only these operations use. It changes while nothing is in flight or captured.
  Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) override {
    return window_.make(device_, exchange, bytes, error);
  }
  Code closeWindow(wl_error_t* error) override { return window_.close(error); }
  uint32_t faultyRank() const override { return window_.faultyRank(); }
  void* part(uint32_t rank) const override { return window_.part(rank); }
  uint64_t partBytes() const override { return window_.bytes(); }
  uint32_t coresAtOnce(uint32_t most) const { return window_.coresAtOnce(most, gpu_.own()); }

  // Checks that the GPU can use the stream. *capture is the graph that it captures; 0: none.
  Code look(uint64_t stream, uint64_t* capture, wl_error_t* error);
  // Addresses, for the GPU, of two words. One ends operations when it is 1. In the other, they
  // report that they ended early.
  uint64_t stopWord() const { return wordsAddress_; }
  uint64_t reportWord() const { return wordsAddress_ + kCoreLineBytes; }

  // Stream and slot of an operation. Without a graph, the operation owns the slot (below
  // kMostInFlight) until it is over. With a graph, it owns the slot (below kMostCaptured) for good.
  struct Placed {
    uint64_t stream;
    uint64_t capture;  // the graph that the stream captures; 0: none
    uint32_t place;
  };
  // Steps of an operation:
  //
  // Enqueues the copies on the stream and marks that point. *mark is for the join() of all ranks.
  Code mark(const Placed& at, const Brought& brought, uint64_t* mark, wl_error_t* error);
  // Adds the rank's cores to the next launch. The launch begins after all `marks`, those of the
  // ranks of this process, and the stream continues after it. The last rank of the GPU launches.
  Code join(const Placed& at, const OffloadedOperation& given, const std::vector<uint64_t>& marks,
            wl_error_t* error);
  // Enqueues the copy on the stream. After it the operation is over.
  Code leave(const Placed& at, const Copy& copy, wl_error_t* error);

  // Withdraws an operation that some rank could not enqueue. It ends everything, as stop() does,
  // and prevents launches that have not begun. Without a graph, the operation stays in flight until
  // isOver() says that the GPU and the stream are done with it.
  void withdraw(const Placed& at);

  // For an operation without a graph: hasBegun() reports if its stream has reached it, isOver() if
  // it is over.
  Code hasBegun(uint64_t mark, bool* has, wl_error_t* error);
  Code isOver(uint32_t place, bool* is, wl_error_t* error);
  // Ends all running operations, and those that begin later.
  void stop();
  // Sequence of an operation that ended early, by the last report; 0: none.
  uint32_t reported() const;

 private:
  // Host data of an operation, valid while it owns its slot.
  struct Given {
    OffloadedOperation operation;
    alignas(8) unsigned char parts[kMostPartsBytes];
  };
  // Events of an operation.
  struct Place {
    CuEvent mark = nullptr;
    CuEvent over = nullptr;
    bool isUnknown = false;  // `over` was not recorded: over only once the device has failed
  };

  // Returns the slot's address on the device.
  CuAddress givenThere(const Placed& at) const {
    return given_ + (at.capture == 0 ? at.place : kMostInFlight + at.place) * sizeof(Given);
  }
  Place& eventsOf(const Placed& at) {
    return places_[at.capture == 0 ? at.place : kMostInFlight];
  }
  Code bringParts(const Placed& at, const Copy& parts, wl_error_t* error);
  Code copy(uint64_t stream, const Copy& copy, wl_error_t* error);

  CudaRankDevice& device_;
  Gpu& gpu_;
  Copies& copies_;
  unsigned char* const words_;
  const CuAddress wordsAddress_;
  DeviceWindow window_;
  // Slots of operations in flight, followed by those of captured operations.
  CuAddress given_ = 0;
  Given* pinned_ = nullptr;  // slots of those in flight
  // Events of operations in flight, followed by those of the last captured operation.
  Place places_[kMostInFlight + 1];
  // Event of the rank's last operation outside captures; nullptr: none.
  CuEvent last_ = nullptr;
  // Capture of the last captured operation, whose events are the last of places_; 0: none.
  uint64_t lastCapture_ = 0;
  // Earlier captures, each with at least one operation.
  uint64_t left_[kMostCaptured];
  uint32_t leftCount_ = 0;
  bool isWithdrawn_ = false;  // an operation was withdrawn
};

}  // namespace windlass::cuda
