// SPDX-License-Identifier: Apache-2.0
// What a rank's device takes on streams of its caller's: operations that the host hands over and
// goes on, one after another, each with all ranks of the device in one launch. The target's runtime
// fills it in where it has such streams.
#pragma once

#include "native/memory/device.h"

namespace windlass {

class StreamDevice {
 public:
  // Of operations that the device has at a time, and of those that graphs hold, for good.
  static constexpr uint32_t kMostInFlight = 64;
  static constexpr uint32_t kMostCaptured = 512;

  struct Copy {
    void* to;
    const void* from;
    uint64_t bytes;  // 0: none
  };
  // What a rank brings to its part of the window.
  struct Brought {
    Copy in, out;
    // From the host, of kMostPartsBytes at most, as it is now.
    Copy parts;
  };
  static constexpr uint64_t kMostPartsBytes = PartTable::bytes(kMostDeviceRanks);

  virtual ~StreamDevice() = default;

  // Takes what operations need beside their window. Nothing is taken after that. A failure leaves
  // nothing behind.
  virtual Code open(wl_error_t* error) = 0;
  // As RankDevice has them, of a window that these operations have for themselves. Nothing is
  // enqueued that has not ended, nor captured.
  virtual Code makeWindow(AllRanks& exchange, uint64_t bytes, wl_error_t* error) = 0;
  virtual uint32_t culprit() const = 0;
  virtual void* part(uint32_t rank) const = 0;
  virtual uint64_t partBytes() const = 0;
  virtual uint32_t coresAtOnce(uint32_t most) const = 0;
  // Gives all back, whatever fails, and tells the first failure.
  virtual Code close(wl_error_t* error) = 0;

  // Whether the device may take a stream's operations, and which graph it captures; 0: none.
  virtual Code look(uint64_t stream, uint64_t* capture, wl_error_t* error) = 0;
  // Of memory in the device's sight: the word that ends operations once it is 1, and the one that
  // they report in.
  virtual uint64_t stopWord() const = 0;
  virtual uint64_t reportWord() const = 0;

  // An operation, step by step. `capture`: the graph that its stream captures; 0: none. Where there
  // is none, `place`, below kMostInFlight, is its own until it is over; else `place`, below
  // kMostCaptured, is its own for good.
  //
  // Has the stream make the copies, and marks that point: *mark, for all ranks' join().
  virtual Code mark(uint64_t stream, uint64_t capture, uint32_t place, const Brought& brought,
                    uint64_t* mark, wl_error_t* error) = 0;
  // Has the rank's cores in the next launch, which begins after all `marks`, those of the ranks of
  // this process, and the stream go on after it. The last of the device's ranks there launches.
  virtual Code join(uint64_t stream, uint64_t capture, uint32_t place,
                    const OffloadedOperation& given, const uint64_t* marks, uint32_t count,
                    wl_error_t* error) = 0;
  // Has the stream make the copy, after which the operation is over.
  virtual Code leave(uint64_t stream, uint64_t capture, uint32_t place, const Copy& copy,
                     wl_error_t* error) = 0;

  // Of one that some rank could not enqueue: ends all as stop() does, and nothing begins that has
  // not. An operation that is not captured is in flight all the same until isOver() says that the
  // device has left it, and all that the stream was given for it.
  virtual void withdraw(uint64_t stream, uint64_t capture, uint32_t place) = 0;

  // Of one that is not captured: whether its stream has come to it, and whether it is over.
  virtual Code hasBegun(uint64_t mark, bool* has, wl_error_t* error) = 0;
  virtual Code isOver(uint32_t place, bool* is, wl_error_t* error) = 0;
  // Ends all that run, and all that begin from now on.
  virtual void stop() = 0;
  // The sequence of an operation that ended before it was over, whichever told last; 0: none.
  virtual uint32_t reported() const = 0;
};

}  // namespace windlass
