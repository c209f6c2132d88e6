// SPDX-License-Identifier: Apache-2.0
// Data that the ranks of one communicator share. It is plain data in one stretch of memory, which
// each process maps at any address and in which everything has an offset. Per-rank lines have one
// writer and all ranks poll them, so that the memory in use grows with the rank count.
//
// An operation with sequence s uses entry[s & 1] of each rank. A rank enters s only after every
// peer has entered s - 1, and so has left s - 2. Therefore no rank reads the slot that it
// overwrites.
//
// Ranks count operations in 64 bits, of which 56 are ever used. ENTER, written at every operation,
// states the low 32 bits, and ranks compare it as it wraps. Words that some operations do not write
// state all 56 bits, and ranks compare them as numbers. A word that is still 0 reads as not reached
// yet. So does a word that operations have not written for any length of time.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/base/error.h"
#include "native/core/message/message_lane.h"
#include "native/core/offload_line.h"
#include "native/core/rank_lines.h"
#include "native/core/shrink/agreement.h"

namespace windlass {

// Failure records that threads write at the same time: the first complete one stands. If a writer
// dies, its record stays incomplete. The last record is complete from the start and says that all
// the others failed.
constexpr uint32_t kFailureRecords = 9;

// Most windows of a communicator that spans processes, including the address space and its control
// block.
constexpr uint32_t kMostWindows = 64;

// Lines that all ranks write.
struct SharedLines {
  std::atomic<uint64_t> layout;  // layout of the library that made the block; set last
  GroupConfig config;  // written before any rank but the maker's reads it
  int64_t madeTicks;                               // creation time in CPU ticks
  int64_t madeNs;                                  // creation time from clockNs()
  uint64_t id;      // unique on this host, if ranks live in several processes
  uint64_t parent;  // id of the communicator whose ranks made this one; 0: none
  alignas(kLine) std::atomic<uint64_t> arrivals;   // ranks that entered, over all operations
  alignas(kLine) std::atomic<uint64_t> released;   // last sequence that all ranks may leave
  std::atomic<uint64_t> openPhase;                 // phaseWord of the items that may run
  alignas(kLine) std::atomic<uint32_t> remaining;  // ranks with unfinished items of that phase
  alignas(kLine) std::atomic<uint32_t> sleepers;   // ranks inside the sleeping wait
  alignas(kLine) std::atomic<uint32_t> leavers;    // ranks that closed
  alignas(kLine) std::atomic<uint32_t> failed;  // number of the record that stands, from 1; 0: none
  std::atomic<uint32_t> failing;                   // threads that have claimed a record
  std::atomic<int64_t> contestedNs;  // when a rank last ran beside a thread that computes; 0: never
  std::atomic<uint64_t> shrink;      // Agreement
  std::atomic<uint32_t> holding;     // for a communicator that shrink makes: ranks that hold it
  std::atomic<int64_t> shortSlicesUntilNs;  // ranks have short time slices until then; 0: never
  // For each window that ranks make together: ranks that have not dropped it.
  alignas(kLine) std::atomic<uint32_t> holders[kMostWindows];
  alignas(kLine) wl_error_t records[kFailureRecords];
};

class FlightRecorder;

// Offset in a page at which staging buffers and eager inputs begin. Long memory of malloc() begins
// at offset 16, and UCX puts some bytes before a message. With this offset, isSlowToCopy() is false
// for copies between these buffers and such memory.
constexpr uint64_t kInPage = 2 * kLine;

// Addresses of the parts of a control block. A process has one ControlBlock for each block that it
// maps.
class ControlBlock {
 public:
  static uint64_t bytes(const GroupConfig& config);
  // Bytes at the end of the control block that take memory only when ranks use them: lanes and
  // blocks of messages, and all staging buffers. A rank reserves memory for its own when any rank
  // first needs it.
  static uint64_t laterBytes(const GroupConfig& config);

  ControlBlock() = default;
  // Wraps memory that make() filled in, in this process or another.
  explicit ControlBlock(void* memory);
  // Fills in zeroed memory of bytes(config). `former` is nullptr or each member's rank in the
  // parent communicator, and `parent` is that communicator's id. `hosts` is the host of each rank,
  // or nullptr for one host.
  static void make(void* memory, const GroupConfig& config, const uint32_t* former = nullptr,
                   uint64_t parent = 0, const uint32_t* hosts = nullptr);
  // Checks that `bytes` from `memory` are a control block that make() filled in, with this
  // library's layout. Trusts none of the content, and only reads it. *block and all counts in
  // *config stay within the bytes, whatever other processes write later.
  static Code open(const void* memory, uint64_t bytes, GroupConfig* config, ControlBlock* block,
                   wl_error_t* error);

  SharedLines& shared() const { return *reinterpret_cast<SharedLines*>(base_); }
  RankLines& lines(uint32_t rank) const { return lines_[rank]; }
  Member& member(uint32_t rank) const { return members_[rank]; }
  FlightRecorder& recorder(uint32_t rank) const;
  // Indexed by parity of the operation, like the entries.
  unsigned char* eager(uint32_t rank, uint64_t sequence) const {
    return eager_ + (2 * rank + (sequence & 1)) * eagerBytes_;
  }
  // Parts that `rank` states in an operation, by parity of the operation.
  PartTable& parts(uint32_t rank, uint64_t sequence) const {
    return *reinterpret_cast<PartTable*>(parts_ + (2 * rank + (sequence & 1)) * partsBytes_);
  }
  // For ranks with devices.
  OffloadLine& offloadLine(uint32_t rank) const { return offloadLines_[rank]; }
  // For ranks on several hosts.
  ShrinkNote& note(uint32_t rank) const { return notes_[rank]; }
  // For ranks in several processes.
  StageLine& stageLine(uint32_t rank) const { return stageLines_[rank]; }
  StagePair& stagePair(uint32_t owner, uint32_t reader) const {
    return reinterpret_cast<StagePair*>(stage(owner, 0) + 2 * stageHalfBytes_)[reader];
  }
  unsigned char* stage(uint32_t rank, uint64_t round) const {
    return stageArea(rank) + kInPage + (round & 1) * stageHalfBytes_;
  }
  // Both halves of one rank's staging buffer, in whole pages.
  unsigned char* stageArea(uint32_t rank) const { return stages_ + rank * stageAreaBytes_; }
  uint64_t stageAreaBytes() const { return stageAreaBytes_; }
  // Messages from `from` to `to`.
  MessageLane& lane(uint32_t to, uint32_t from) const {
    return *reinterpret_cast<MessageLane*>(lanes_ + (uint64_t{to} * ranks_ + from) * laneBytes_);
  }
  uint64_t laneBytes() const { return laneBytes_; }
  // Memory of the rank for messages that have left their sender's buffers.
  MessageRoom& messageRoom(uint32_t rank) const {
    return *reinterpret_cast<MessageRoom*>(messageRooms_ + rank * messageRoomBytes_);
  }
  uint64_t messageRoomBytes() const { return messageRoomBytes_; }
  // Signals of the in-line executor: rank 0's, then the other ranks'.
  unsigned char* coreLines() const { return coreLines_; }

  Place placeOf(const void* memory) const {
    return Place::of(kControlBlock,
                     static_cast<uint64_t>(static_cast<const unsigned char*>(memory) - base_));
  }
  uint64_t base() const { return reinterpret_cast<uint64_t>(base_); }

 private:
  ControlBlock(void* memory, const GroupConfig& config);

  unsigned char* base_ = nullptr;
  RankLines* lines_ = nullptr;
  Member* members_ = nullptr;
  FlightRecorder* recorders_ = nullptr;
  unsigned char* eager_ = nullptr;
  unsigned char* parts_ = nullptr;
  unsigned char* coreLines_ = nullptr;
  OffloadLine* offloadLines_ = nullptr;
  StageLine* stageLines_ = nullptr;
  ShrinkNote* notes_ = nullptr;
  unsigned char* lanes_ = nullptr;
  unsigned char* messageRooms_ = nullptr;
  unsigned char* stages_ = nullptr;
  uint64_t ranks_ = 0;
  uint64_t laneBytes_ = 0;
  uint64_t messageRoomBytes_ = 0;
  uint64_t laterBytes_ = 0;
  uint64_t stageHalfBytes_ = 0;
  uint64_t stageAreaBytes_ = 0;
  uint64_t eagerBytes_ = 0;
  uint64_t partsBytes_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace windlass
