// SPDX-License-Identifier: Apache-2.0
// One operation as its caller states it.
#pragma once

#include <cstdint>

#include "native/core/control_block.h"
#include "windlass/windlass.h"

namespace windlass {

struct FarPlan;  // native/base/far.h
struct OnStream;  // native/device/offload.h
class OffloadedLaunch;    // native/device/offloaded_launch.h
class OffloadedTransfer;  // native/device/offloaded_transfer.h

// Counts and offsets, in elements, of an operation whose parts differ in size. Each list has one
// entry per rank.
struct PartLists {
  const int64_t* inCounts;    // nullptr: the input is one part
  const int64_t* inOffsets;   // nullptr: parts are contiguous, in ascending rank
  const int64_t* outCounts;   // nullptr: the output is one part, or packed in order of rank
  const int64_t* outOffsets;  // nullptr: parts are contiguous, in ascending rank
  uint64_t room;              // size of a packed output in bytes
};

// The rank's own addresses of the buffers that it states as RankArgs.
struct OwnArgs {
  const void* in;
  void* out;
  const void* aux;
};

// One operation as its caller states it.
struct Call {
  Descriptor descriptor;
  OwnArgs args;
  uint64_t bytes;      // Launch::bytes, or the bytes that a transfer writes to this rank
  // Bytes of args.in, for kernels whose inputs travel with ENTER and for parts of different sizes.
  uint64_t inBytes;
  uint64_t outBytes;   // bytes of args.out, if no part list states them
  bool inParts = false;  // rank r reads only the r-th part, of `bytes` bytes, of args.in
  uint64_t workBytes;  // bytes that all ranks move together; one thread runs small operations
  double factor = 0;   // of a premultiplied sum
  int64_t deadlineNs;  // 0 = the communicator's deadline
  wl_error_t* error;
  const PartLists* parts = nullptr;  // nullptr: all parts have one size
  uint32_t phases = 0;               // Launch::phases
  uint32_t firstPhase = 0;           // the transfer's first phase in this operation
  // Set for a transfer in which any rank reads ordinary memory of other processes. Otherwise
  // nullptr.
  FarPlan* far = nullptr;
  OffloadedTransfer* offloaded = nullptr;  // set for a transfer that the rank's device runs
  OffloadedLaunch* launch = nullptr;       // set for a library's kernel that the rank's device runs
  // Stream that the operation is put on. nullptr: the operation is complete when its call returns.
  OnStream* on = nullptr;
  int64_t startNs = 0;               // start of the deadline, for several operations that share one

  // Returns a call without memory or items. The caller sets the other members.
  static Call of(const Descriptor& descriptor, int64_t deadlineNs, wl_error_t* error) {
    Call call = {};
    call.descriptor = descriptor;
    call.deadlineNs = deadlineNs;
    call.error = error;
    return call;
  }

  // Bytes of args.in and args.out, from the first element to the end of the last part.
  uint64_t inExtent(uint32_t ranks) const;
  uint64_t outExtent(uint32_t ranks) const;
};

}  // namespace windlass
