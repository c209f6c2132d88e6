// SPDX-License-Identifier: Apache-2.0
// What a device takes that runs an operation by itself: written by its rank's host into the
// device's own memory, read by its cores.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// Of the kernels that a device has, the one that ends once all cores of all ranks have begun it.
constexpr uint32_t kMeetingKernel = 0;
// The one that moves MoveViews.
constexpr uint32_t kMoveKernel = 21;

// What a device moves by itself: to = from, or to += from, of one shape, and of the launch's dtype.
struct MoveViews {
  uint64_t to;  // addresses, as this device has them
  uint64_t from;
  uint32_t adds;
  uint32_t ndim;
  int64_t shape[kMaxDims];
  int64_t toStrides[kMaxDims];
  int64_t fromStrides[kMaxDims];
};

// Of a rank, in its own memory, where its device numbers its operations by itself: so what a graph
// holds runs as often as the graph is launched.
struct DeviceCounters {
  uint32_t over;   // operations that all of its cores have left
  uint32_t ended;  // cores that have left the one after those
};

// The first of what cores of a rank do in a launch that its arguments don't allow, on their device.
// told: 1 once there is any.
struct OffloadedMisuses {
  Misuses taken;
  uint32_t told;
  Misuse first;
};
// What a launch of a library's kernel takes beside: of a rank, on its device. Its arguments follow,
// and one of nothing.
struct OffloadedCall {
  KernelCall call;  // whose kernel is nullptr
  OffloadedMisuses misuses;
  uint64_t tiles;  // on-core memory of core 0; the next cores' follow, kLimits.tileBytes each
};

struct OffloadedOperation {
  uint32_t kernel;  // its place among those that the device has
  Launch launch;    // but what it points to: the device has `entries` instead
  InLine line;      // of core 0, but what it points to: `lines`
  // What each rank states; places are addresses, as this device has them.
  RankArgs entries[kMostDeviceRanks];
  uint64_t lines[kMostDeviceRanks];    // of the signals to each rank
  uint64_t windows[kMostDeviceRanks];  // of each rank's window, which holds all the rest
  uint64_t windowBytes;
  // Of a word that the device sees, which is `stopValue` once nobody waits any more.
  uint64_t stop;
  // After so long, of the device's own clock, a core ends whoever it waits for; 0: never.
  uint64_t limitNs;
  // Of the rank's DeviceCounters, which say what the line's sequence is; 0: the line says it.
  uint64_t counters;
  // Of a word that the host sees, into which a core writes that sequence that has ended before the
  // operation was over; 0: nobody asks.
  uint64_t report;
  uint64_t call;  // of an OffloadedCall, where the kernel is a library's; else 0
  // What the rank's core 0 copies for the host once the operation is over on all ranks, and the
  // host reads once the kernel has ended; 0 bytes: nothing.
  uint64_t noteTo, noteFrom, noteBytes;
  uint32_t stopValue;
  // Whether ranks may begin it before others have come to it: their cores wait for one another
  // before they touch what others bring.
  bool meets;

  WL_CORE Launch launchHere() const {
    Launch here = launch;
    here.entries = reinterpret_cast<const unsigned char*>(entries);
    here.entryStride = sizeof(RankArgs);
    here.windows = nullptr;
    here.call = call == 0 ? nullptr : &reinterpret_cast<const OffloadedCall*>(call)->call;
    return here;
  }
  WL_CORE InLine lineHere(uint32_t core) const {
    InLine here = line;
    here.core = core;
    here.lines = reinterpret_cast<unsigned char*>(lines[0]);
    here.apart = lines;
    return here;
  }
};

// The operations of the ranks that share a device, as one launch takes them.
struct OffloadedRanks {
  const OffloadedOperation* operation[kMostDeviceRanks];  // on the device
};

}  // namespace windlass
