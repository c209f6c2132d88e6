// SPDX-License-Identifier: Apache-2.0
// Device operations on the caller's streams. The host enqueues them and continues. They run one
// after another, each with all ranks of the device in one launch. The target's runtime implements
// this if it has such streams.
#pragma once

#include "native/memory/device.h"

namespace windlass {

class StreamDevice : public KernelWindow {
 public:
  // Most operations in flight on the device, and most that graphs hold for good.
  static constexpr uint32_t kMostInFlight = 64;
  static constexpr uint32_t kMostCaptured = 512;

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

  // Allocates everything that operations need except their window. A failure leaves nothing behind.
  virtual Code open(wl_error_t* error) = 0;
  // Number of cores of a rank that run concurrently, at most `most`. No other operations use the
  // window, which changes only while nothing is in flight or captured.
  virtual uint32_t coresAtOnce(uint32_t most) const = 0;
  // Releases everything, even after failures, and returns the first failure.
  virtual Code close(wl_error_t* error) = 0;

  // Checks that the device can use the stream. *capture is the graph that it captures; 0: none.
  virtual Code look(uint64_t stream, uint64_t* capture, wl_error_t* error) = 0;
  // Addresses, for the device, of two words. One ends operations when it is 1. In the other, they
  // report that they ended early.
  virtual uint64_t stopWord() const = 0;
  virtual uint64_t reportWord() const = 0;

  // Steps of an operation. `capture`: the graph that its stream captures; 0: none. Without a graph,
  // the operation owns slot `place` (below kMostInFlight) until it is over. With a graph, it owns
  // `place` (below kMostCaptured) for good.
  //
  // Enqueues the copies on the stream and marks that point. *mark is for the join() of all ranks.
  virtual Code mark(uint64_t stream, uint64_t capture, uint32_t place, const Brought& brought,
                    uint64_t* mark, wl_error_t* error) = 0;
  // Adds the rank's cores to the next launch. The launch begins after all `marks`, those of the
  // ranks of this process, and the stream continues after it. The last rank of the device launches.
  virtual Code join(uint64_t stream, uint64_t capture, uint32_t place,
                    const OffloadedOperation& given, const uint64_t* marks, uint32_t count,
                    wl_error_t* error) = 0;
  // Enqueues the copy on the stream. After it the operation is over.
  virtual Code leave(uint64_t stream, uint64_t capture, uint32_t place, const Copy& copy,
                     wl_error_t* error) = 0;

  // Withdraws an operation that some rank could not enqueue. It ends everything, as stop() does,
  // and prevents launches that have not begun. Without a graph, the operation stays in flight until
  // isOver() says that the device and the stream are done with it.
  virtual void withdraw(uint64_t stream, uint64_t capture, uint32_t place) = 0;

  // For an operation without a graph: hasBegun() reports if its stream has reached it, isOver() if
  // it is over.
  virtual Code hasBegun(uint64_t mark, bool* has, wl_error_t* error) = 0;
  virtual Code isOver(uint32_t place, bool* is, wl_error_t* error) = 0;
  // Ends all running operations, and those that begin later.
  virtual void stop() = 0;
  // Sequence of an operation that ended early, by the last report; 0: none.
  virtual uint32_t reported() const = 0;
};

}  // namespace windlass
