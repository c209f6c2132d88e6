// SPDX-License-Identifier: Apache-2.0
// A communicator as one process holds it: where its control block and windows lie here, which of
// its ranks have a handle, and memory whose release waits until nobody can touch it.
#pragma once

#include <linux/futex.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "native/base/error.h"
#include "native/core/control_block.h"
#include "native/core/flight_recorder.h"
#include "native/core/signal.h"
#include "native/memory/window.h"
#include "native/peer/peer_memory.h"

namespace windlass {

class Hosts;
class Watch;
class OffloadSeats;

// How a rank names memory of its process, in a window or not.
inline Place placeInAddressSpace(const void* memory) {
  return Place::of(kAddressSpace, Place::offsetOf(reinterpret_cast<uint64_t>(memory)));
}

// Of what all ranks refuse alike, with nothing moved, which leaves the communicator as it was.
constexpr bool isRefusal(Code code) {
  return code == WL_UNSUPPORTED || code == WL_RESOURCE || code == WL_INVALID_ARGUMENT;
}

class Group {
 public:
  // Whose ranks all live in this process. nullptr when memory is short.
  static std::shared_ptr<Group> create(const GroupConfig& config);
  // The same in two steps, of which the second can't fail: address space for config.ranks ranks,
  // and the group of so many or fewer.
  static std::shared_ptr<Group> reserve(const GroupConfig& config);
  void settle(uint32_t ranks);
  static void suitTarget(GroupConfig* config);
  // What follows from how many ranks and cores there are, where a configuration leaves it open.
  static void decide(GroupConfig* config);
  // Of a control block in memory that processes share, and that `memory` keeps. `use`: what this
  // process was asked to do about ordinary memory of others. Throws std::bad_alloc.
  static std::shared_ptr<Group> attach(void* block, std::shared_ptr<const void> memory,
                                       PeerMemoryUse use);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const GroupConfig& config() const { return config_; }
  uint32_t ranks() const { return config_.ranks; }
  bool oversubscribed() const { return config_.oversubscribed(); }

  // Ranks that share a core when all cores have about as many.
  uint32_t ranksPerCore() const { return (config_.ranks + config_.cores - 1) / config_.cores; }

  // FUTEX_WAIT or FUTEX_WAKE on a word of the control block.
  int futex(int operation) const {
    return config_.spansProcesses ? operation : operation | FUTEX_PRIVATE_FLAG;
  }

  const ControlBlock& block() const { return block_; }
  // Where ranks have devices.
  OffloadSeats& offloadSeats() const { return *offloadSeats_; }
  // The ranks of this group, which nobody has used yet, are those ranks of `whole`: they keep their
  // devices.
  void comeFrom(const Group& whole, const std::vector<uint32_t>& members);
  // The same where the control block says which ones they are.
  void keepDevices(const Group& whole);
  const WindowBase* windows() const { return windows_; }
  // Windows that are made while ranks live in several processes. A window is mapped everywhere
  // until the last rank has dropped it: its number is taken by one rank for all of them, its memory
  // held by each process, and every rank drops it once.
  //
  // A number that no window has, for as many ranks as the group has; kNobody: none is left.
  uint32_t takeWindow();
  // One that was taken for nothing, before any rank has it.
  void returnWindow(uint32_t window);
  // `memory` keeps what lies there; nullptr: it stays.
  void holdWindow(uint32_t window, std::shared_ptr<const void> memory, void* base, uint64_t stride,
                  uint64_t bytes);
  // Calls visit(base, bytes of a segment) for each that this process holds.
  template <class Visit>
  void forEachWindow(Visit&& visit) const {
    const uint32_t count = windowCount_.load(std::memory_order_acquire);
    for (uint32_t window = kControlBlock + 1; window < count; ++window) {
      const uint64_t bytes = windowBytes_[window].load(std::memory_order_acquire);
      if (bytes != 0) visit(windows_[window], bytes);
    }
  }
  void dropWindow(uint32_t window);
  // Where `rank`'s part of it, and an offset there, lie in this process; nullptr: not all of them.
  void* within(uint32_t rank, uint32_t window, uint64_t offset, uint64_t bytes) const {
    const uint64_t held = windowBytes_[window].load(std::memory_order_acquire);
    return offset <= held && bytes <= held - offset ? at(rank, Place::of(window, offset)) : nullptr;
  }
  // The window that holds so many bytes of `rank`'s part, and where; else the address space.
  Place windowOf(uint32_t rank, const void* memory, uint64_t bytes) const {
    return find(rank, memory, bytes);
  }
  // Unmaps what nobody holds any more; on return that is so of what others do, too.
  void sweepWindows();
  // Whether that rank lives in this process, and the process of one that has joined.
  bool isHere(uint32_t rank);
  wl_process_t processOf(uint32_t rank) const;
  // The others, where ranks live on several; nullptr: on one.
  Hosts* hosts() const { return hosts_.get(); }
  // Whether that rank lives on this host.
  bool isBeside(uint32_t rank) const;
  // Of a group that spans hosts, that of the rank's; else nullptr.
  const char* hostNameOf(uint32_t rank) const;
  // Has what came from other hosts arrive.
  void driveHosts();
  // Of the ranks of that one's host the lowest.
  uint32_t firstBeside(uint32_t rank) const;
  // Before any rank of this process joins.
  void setHosts(std::unique_ptr<Hosts> hosts);
  // Of two that have joined: whether they live in one process, and whether they reach one another's
  // ordinary memory there.
  bool liveTogether(uint32_t a, uint32_t b) const;
  bool shareProcess(uint32_t a, uint32_t b) const;
  // Of two that have joined: whether the process of `a` comes before that of `b` in an order that
  // all groups have of processes.
  bool isProcessBefore(uint32_t a, uint32_t b) const;
  // Whether `rank` can't reach what that one names by the place but by a pull.
  bool isFar(uint32_t rank, uint32_t owner, Place place) const {
    return place.isOrdinary() && !shareProcess(rank, owner);
  }
  PeerMemoryUse peerMemoryUse() const;
  // The memory of the process of that rank, which has joined; opened by whichever of this process's
  // ranks asks first. WL_UNSUPPORTED says why it can't be read. Throws std::bad_alloc.
  Code peerMemory(uint32_t rank, const PeerMemory** memory, wl_error_t* error);
  // How `rank`, of this process, names `bytes` of its memory to its peers: in the address space
  // where no window holds them all, or ranks live on several hosts.
  Place placeOf(uint32_t rank, const void* memory, uint64_t bytes) const {
    return config_.spansProcesses && hosts_ == nullptr ? find(rank, memory, bytes)
                                                       : placeInAddressSpace(memory);
  }
  // What `rank` names by the place, in this process.
  void* at(uint32_t rank, Place place) const {
    return reinterpret_cast<void*>(windows_[place.window()].segment(rank) + place.offset());
  }

  RankLines& lines(uint32_t rank) const { return block_.lines(rank); }
  Member& member(uint32_t rank) const { return block_.member(rank); }
  SharedLines& shared() const { return block_.shared(); }
  FlightRecorder& recorder(uint32_t rank) const { return block_.recorder(rank); }
  // Converts the stamps of all ranks up to now.
  TickScale tickScale() const { return TickScale::since(block_); }
  // The rank that entered the operation of these low 32 bits last, of those whose record of it is
  // there; -1 if none's.
  int32_t lastToEnter(uint32_t sequence) const;

  bool entered(uint32_t rank, uint64_t sequence) const {
    return reached(lines(rank).entry[sequence & 1].sequence.load(std::memory_order_acquire),
                   static_cast<uint32_t>(sequence));
  }
  bool done(uint32_t rank, uint64_t sequence, uint32_t phases) const {
    return lines(rank).done.word.load(std::memory_order_acquire) >= phaseWord(sequence, phases);
  }

  // Claims rank's one handle. WL_INVALID_ARGUMENT if there is no such rank, or it was claimed
  // before, by any process.
  Code claim(uint32_t rank, wl_error_t* error);
  void unclaim(uint32_t rank);

  // Marks `rank`, which enters nothing any more, as gone, and rings those that wait for it. False
  // if it was marked before.
  bool leave(uint32_t rank);

  // The record, once it is whole.
  const wl_error_t* failure() const {
    const uint32_t record = shared().failed.load(std::memory_order_seq_cst);
    return record == 0 ? nullptr : &shared().records[record - 1];
  }
  // Writes the failure record unless one stands, and wakes every rank. failure() is set on return.
  void publishFailure(const wl_error_t& error);
  // The same on this host alone. Whether it is this record that stands.
  bool publishHere(const wl_error_t& error);
  // No operation failed, or no rank that lives is inside a call: nobody can touch memory named in a
  // failed operation.
  bool quiescent() const;

  // How far a shrink has come on this host. Once ranks have agreed on any host, it has heard of it,
  // and holds nothing of a later round itself, they have here.
  Agreement agreement() const;
  // Whether the ranks that live have formed a new communicator without that one.
  bool leftOut(uint32_t rank) const {
    const Agreement agreed = agreement();
    return agreed.step == Agreement::kAgreed &&
           member(rank).shrink.load(std::memory_order_seq_cst) != Agreement::holds(agreed.round);
  }

  // Has the end of another process, in which those ranks live, be the failure of the communicator
  // (WL_PEER_LOST), and its silence of silenceNs, if that isn't 0, as well. Throws std::bad_alloc.
  Code watch(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
             wl_error_t* error);
  // A sign of life of this process's ranks.
  void beat();

  // Rings every rank that sleeps. Call after a seq_cst read-modify-write that follows the stores to
  // announce; what the caller looks at next, it sees no older than them.
  void wakeSleepers();

  // Parts of an operation that ranks of a process make together, whatever each of them calls; from
  // 0 on, the group of a color. Less the rank that proposes it, what a shrink makes in a round.
  enum JointPart : int32_t { kJointShrink = -3, kJointTransfer = -2, kJointWindow = -1 };
  // What ranks of this process make together in the operation of that sequence, `part` of it: the
  // first of them to come makes it, and those that come while any of them holds a Joint get it too.
  // Each comes before it enters the operation, and holds its Joint until it has left; what was made
  // may last longer, and is not found by an operation of the same 32 bits that follows. A part has
  // one type, whatever the operations that ranks call. Throws std::bad_alloc.
  template <class T>
  using Joint = std::shared_ptr<const std::shared_ptr<T>>;
  template <class T, class Make>
  Joint<T> join(uint32_t sequence, int32_t part, Make&& make);

  // Drops `memory` now or, when a rank may still touch it, once the last rank is out.
  void retire(std::shared_ptr<const void> memory) noexcept;
  // Drops what was retired unless a rank may still touch it. Call when a rank is out of a call and
  // a failure stands.
  void dropRetired();

 private:
  explicit Group(const GroupConfig& config);

  void place(void* block);
  [[gnu::noinline]] Place find(uint32_t rank, const void* memory, uint64_t bytes) const;

  GroupConfig config_;
  ControlBlock block_;
  WindowBase windows_[kMostWindows] = {};
  std::atomic<uint64_t> windowBytes_[kMostWindows] = {};  // 0: there is none of that number
  std::atomic<uint32_t> windowCount_{0};
  void* mapping_ = nullptr;  // of the control block, where this group made it
  std::shared_ptr<OffloadSeats> offloadSeats_;  // where ranks have devices
  uint64_t mapped_ = 0;
  std::shared_ptr<const void> memory_;  // keeps the control block, where another process made it
  std::unique_ptr<Hosts> hosts_;
  std::mutex sweepMutex_;    // taken before mutex_: one thread unmaps windows
  std::mutex mutex_;         // guards what follows; in an operation, while it first opens a peer's
                             // memory
  std::vector<bool> claimed_;
  std::vector<std::shared_ptr<const void>> retired_;
  std::shared_ptr<const void> held_[kMostWindows];
  std::map<std::pair<uint32_t, int32_t>, std::weak_ptr<const void>> joint_;
  PeerMemoryUse peerMemoryUse_ = PeerMemoryUse::kAuto;
  std::map<uint32_t, PeerMemory> peerMemories_;  // by the lowest rank of each process
  std::mutex watchMutex_;  // guards
  std::unique_ptr<Watch> watch_;
};

template <class T, class Make>
Group::Joint<T> Group::join(uint32_t sequence, int32_t part, Make&& make) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = joint_.begin(); entry != joint_.end();)
    entry = entry->second.expired() ? joint_.erase(entry) : std::next(entry);
  std::weak_ptr<const void>& held = joint_[{sequence, part}];
  if (const std::shared_ptr<const void> made = held.lock())
    return std::static_pointer_cast<const std::shared_ptr<T>>(made);
  Joint<T> made = std::make_shared<const std::shared_ptr<T>>(make());
  held = made;
  return made;
}

}  // namespace windlass
