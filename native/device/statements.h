// SPDX-License-Identifier: Apache-2.0
// Data of an operation of devices, as its ranks state it to one another, and the layout of this
// data in each rank's part of the window.
#pragma once

#include <vector>

#include "native/memory/device.h"

namespace windlass {

class Group;
class OffloadedLaunch;
class OffloadedTransfer;

// Number of polls of a signal between two checks of the stop word by a core.
constexpr uint32_t kDeviceLooks = 1024;

// Returns the next offset in a device's window at which data may begin.
constexpr uint64_t aligned(uint64_t at) {
  constexpr uint64_t kAlignment = 512;
  return (at + kAlignment - 1) / kAlignment * kAlignment;
}

// Stream of an operation, and the ticket that the caller gets.
struct OnStream {
  uint64_t stream;
  uint64_t ticket;  // out; 0: a graph holds it
};

// Memory of the rank that an operation uses.
struct DeviceBuffers {
  const void* in;
  uint64_t inBytes;
  void* out;
  uint64_t outBytes;
  void* parts;  // a PartTable, or an ExpertTable
  uint64_t partBytes;
  // Set for a transfer. The sizes are those of its images and its table, which have no addresses
  // in the window yet.
  OffloadedTransfer* transfer = nullptr;
  // Set for a launch of a library's kernel. The other members are empty until its arguments are
  // found.
  OffloadedLaunch* launch = nullptr;
  uint64_t factor = 0;  // see Statement

  bool isPlain() const { return transfer == nullptr && launch == nullptr; }
};

struct DeviceOperation {
  const char* name;
  uint32_t kernel;
  const Launch* launch;
  uint32_t phases;
  uint32_t cores;  // at most
  DeviceBuffers buffers;
  int32_t operation = 0;  // wl_operation; `sequence` is the communicator's number
  uint32_t sequence = 0;
  // Set for an operation on a stream: the stream, the group, and the time limit.
  OnStream* on = nullptr;
  Group* group = nullptr;
  int64_t limitNs = 0;
};

// Result and requirements of a rank.
struct Statement {
  int32_t code;
  uint32_t device;
  uint32_t cores;
  uint32_t reserved;
  uint64_t in, out, parts;  // bytes
  // Addresses of input and output if they are on the rank's own device; otherwise 0.
  uint64_t inThere, outThere;
  uint64_t capture;  // graph that the rank's stream captures; 0: none
  uint64_t mark;     // event on that stream
  uint64_t factor;   // bits of the rank's factor; 0 unless the operation is a premultiplied sum
};

// Addresses of a rank's data in its part of the window. Data that kernels access in place takes no
// room there.
struct DeviceLayout {
  uint64_t word;  // stop word, or DeviceCounters
  uint64_t in, out, parts, end;
};

// Statements of all ranks in the current operation. They are valid once agree() has succeeded.
class Statements {
 public:
  Statement own = {};

  // Begins an operation on this rank's device `device`. With `isOnStream`, its data must be on
  // devices. Throws std::bad_alloc.
  void begin(const AllRanks& ranks, uint32_t device, bool isOnStream);
  // Finds the location and the size of the rank's data.
  Code find(RankDevice& device, const DeviceBuffers& buffers, wl_error_t* error);
  // Exchanges the statements. Returns WL_OK once all ranks have stated WL_OK. *faultyRank is the
  // failing rank; kNobody: no rank failed, or only the exchange.
  Code agree(Code code, AllRanks& ranks, uint32_t* faultyRank, wl_error_t* error);
  // Like agree(), before anything has moved. If one rank refuses its memory or stream, all ranks
  // do, and *faultyRank is kNobody.
  Code agreeOrRefuse(Code code, AllRanks& ranks, uint32_t* faultyRank, wl_error_t* error);
  // Refuses sizes that no window can hold, identically on all ranks.
  Code checkExtents(uint32_t* faultyRank, wl_error_t* error) const;
  // Replaces the window by one that is large enough. No kernel may access it any more.
  Code makeRoom(KernelWindow& window, uint32_t cores, AllRanks& ranks, uint32_t* faultyRank,
                wl_error_t* error);

  uint32_t ranks() const { return static_cast<uint32_t>(all_.size()); }
  const Statement& operator[](uint32_t rank) const { return all_[rank]; }
  const std::vector<Statement>& all() const { return all_; }
  bool isOneProcess() const { return isOneProcess_; }
  // Location of this rank's input and output.
  RankDevice::Lies in() const { return in_; }
  RankDevice::Lies out() const { return out_; }
  // Bytes of them that are copied to the window, and back.
  uint64_t inBytes() const { return copied(own.in, own.inThere); }
  uint64_t outBytes() const { return copied(own.out, own.outThere); }
  // Returns the bytes of data that are copied to the window: none if kernels access it in place.
  uint64_t copied(uint64_t bytes, uint64_t there) const {
    return isOneDevice_ && there != 0 ? 0 : bytes;
  }
  // Number of cores that all ranks have, at most `most`.
  uint32_t cores(uint32_t most) const;
  // Returns the layout of a part that begins at `base`. `cores`: the most that an operation uses in
  // this window.
  DeviceLayout layout(uint32_t rank, uint32_t cores, uint64_t base) const;
  DeviceLayout layout(uint32_t rank, uint32_t cores, const KernelWindow& window) const {
    return layout(rank, cores, reinterpret_cast<uint64_t>(window.part(rank)));
  }
  // Returns the bytes of a part that has room for each rank's data.
  uint64_t bytes(uint32_t cores) const;
  // Describes the operation for the cores of rank `self`, without its sequence and what stops it.
  OffloadedOperation describe(const DeviceOperation& operation, const KernelWindow& window,
                              uint32_t self) const;

 private:
  std::vector<Statement> all_;
  RankDevice::Lies in_ = RankDevice::Lies::kHost;
  RankDevice::Lies out_ = RankDevice::Lies::kHost;
  bool isOnStream_ = false;
  bool isOneProcess_ = false;
  // True if all ranks live in one process and use one device. Their kernels then access data on it
  // in place.
  bool isOneDevice_ = false;
};

}  // namespace windlass
