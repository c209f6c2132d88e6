// SPDX-License-Identifier: Apache-2.0
// One operation as its caller states it.
#pragma once

#include <cstdint>

#include "native/core/control_block.h"
#include "windlass/windlass.h"

namespace windlass {

struct FarPlan;  // native/hosts/far.h
struct OnStream;  // native/device/enqueuing.h
class OffloadedLaunch;    // native/device/offloaded_launch.h
class OffloadedTransfer;  // native/device/offloaded_transfer.h

// Counts and offsets, in elements, of an operation whose parts differ in size: one for each rank.
struct PartLists {
  const int64_t* inCounts;    // nullptr: the input is one part
  const int64_t* inOffsets;   // nullptr: side by side in ascending rank
  const int64_t* outCounts;   // nullptr: the output is one part, or packed as its parts come
  const int64_t* outOffsets;  // nullptr: side by side in ascending rank
  uint64_t room;              // bytes of the output, where its parts are packed as they come
};

// What a rank's own addresses are of what it states as RankArgs.
struct OwnArgs {
  const void* in;
  void* out;
  const void* aux;
};

// One operation as its caller states it.
struct Call {
  Descriptor descriptor;
  OwnArgs args;
  uint64_t bytes;      // Launch::bytes, or what a transfer writes to this rank
  // Of args.in, for kernels whose inputs ride with ENTER, and where parts differ in size.
  uint64_t inBytes;
  uint64_t outBytes;   // of args.out, where parts don't say
  bool inParts = false;  // rank r reads nothing of args.in but the r-th of parts of `bytes`
  uint64_t workBytes;  // bytes that all ranks move together: small is run by one thread
  int64_t deadlineNs;  // 0 = the communicator's
  wl_error_t* error;
  const PartLists* parts = nullptr;  // nullptr: the operation's parts are of one size
  uint32_t phases = 0;               // Launch::phases
  uint32_t firstPhase = 0;           // of the transfer's, in this operation
  // Of a transfer in which any rank reads ordinary memory of other processes; nullptr elsewhere.
  FarPlan* far = nullptr;
  OffloadedTransfer* offloaded = nullptr;  // of one that the rank's device runs
  OffloadedLaunch* launch = nullptr;       // of a library's kernel, where the rank's device runs it
  // Where the operation is put on a stream; nullptr: it is over when its call returns.
  OnStream* on = nullptr;
  int64_t startNs = 0;               // Deadline's, of several operations that share one

  // Bytes of args.in and args.out, from the first element to the end of the last part.
  uint64_t inExtent(uint32_t ranks) const;
  uint64_t outExtent(uint32_t ranks) const;
};

}  // namespace windlass
