// SPDX-License-Identifier: Apache-2.0
// Data of an operation that a device runs by itself. The host of its rank writes it into the
// device's own memory, and the device's cores read it.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

// Index of the device's kernel that ends after all cores of all ranks have begun it.
constexpr uint32_t kBarrierKernel = 0;
// Index of the kernel that moves MoveViews.
constexpr uint32_t kMoveKernel = 1;

// A move by one device: to = from, or to += from, with one shape and the launch's dtype.
struct MoveViews {
  uint64_t to;  // addresses, as this device has them
  uint64_t from;
  uint32_t adds;
  uint32_t ndim;
  int64_t shape[kMaxDims];
  int64_t toStrides[kMaxDims];
  int64_t fromStrides[kMaxDims];
};

// Counters of a rank, in its device's memory, if its device numbers its own operations. They
// let the operations of a graph run each time that the graph is launched.
struct DeviceCounters {
  uint32_t over;   // operations that all of its cores have left
  uint32_t ended;  // cores that have left the operation after these
};

// The first misuse of arguments by a rank's cores in a launch, in device memory. told: 1 if there
// is one.
struct OffloadedMisuses {
  Misuses taken;
  uint32_t told;
  Misuse first;
};
// Additional data of a rank for the launch of a library's kernel, on its device. Its arguments
// follow, and an empty one after them.
struct OffloadedCall {
  KernelCall call;  // its kernel is nullptr
  OffloadedMisuses misuses;
  uint64_t tiles;  // on-core memory of core 0; other cores' follow at kLimits.tileBytes each
};

struct OffloadedOperation {
  uint32_t kernel;  // index in the device's kernels
  Launch launch;    // its pointers are not used; the device uses `entries`
  InLine line;      // for core 0; its pointers are not used; the device uses `lines`
  // Arguments of each rank. Places are addresses, as this device has them.
  RankArgs entries[kMostDeviceRanks];
  uint64_t lines[kMostDeviceRanks];    // lines that signal to each rank
  uint64_t windows[kMostDeviceRanks];  // each rank's window, which contains all other memory
  uint64_t windowBytes;
  // Address of a device-visible word. It is set to `stopValue` when no rank waits any more.
  uint64_t stop;
  // Time on the device's own clock after which a core stops, whatever it waits for. 0: never.
  uint64_t limitNs;
  // Address of the rank's DeviceCounters, which determine the sequence. 0: the line holds it.
  uint64_t counters;
  // Address of a host-visible word. A core that stops early writes the operation's sequence there.
  // 0: disabled.
  uint64_t report;
  uint64_t call;  // address of an OffloadedCall, for a library's kernel; otherwise 0
  // A copy that the rank's core 0 makes for the host after the operation is complete on all ranks.
  // The host reads it after the kernel has ended. 0 bytes: none.
  uint64_t noteTo, noteFrom, noteBytes;
  uint32_t stopValue;
  // True if ranks may begin the operation before others have arrived. Then their cores wait for one
  // another before they access other ranks' memory.
  bool waitsForAll;

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
  const OffloadedOperation* operation[kMostDeviceRanks];  // in device memory
};

}  // namespace windlass
