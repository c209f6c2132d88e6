// SPDX-License-Identifier: Apache-2.0
// A communicator as one process holds it. It has the addresses of the control block and windows,
// and the ranks that have a handle here. It keeps memory until the last possible access is over.
#pragma once

#include <linux/futex.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "native/base/cpu.h"
#include "native/base/error.h"
#include "native/core/control_block.h"
#include "native/core/devices.h"
#include "native/core/flight_recorder.h"
#include "native/core/group_windows.h"
#include "native/core/joint_objects.h"
#include "native/core/other_hosts.h"
#include "native/core/peer_reads.h"
#include "native/core/signal.h"

namespace windlass {

class Watch;
class OffloadSeats;  // native/device/offload_seats.h

// Longest sleep of a rank between two checks of what ends its wait.
constexpr int64_t kLongestSleepNs = 8'000'000;

// True for an error that all ranks return alike, with nothing moved. The communicator stays usable.
constexpr bool isRefusal(Code code) {
  return code == WL_UNSUPPORTED || code == WL_RESOURCE || code == WL_INVALID_ARGUMENT;
}

class Group {
 public:
  // Creates a group whose ranks all live in this process. Throws std::bad_alloc.
  static std::shared_ptr<Group> create(const GroupConfig& config);
  // Create a group in two steps. reserve() reserves address space for config.ranks ranks. Throws
  // std::bad_alloc. settle() fixes the group at that number of ranks or fewer, and cannot fail.
  static std::shared_ptr<Group> reserve(const GroupConfig& config);
  void settle(uint32_t ranks);
  static void suitTarget(GroupConfig* config);
  // Sets the members that a configuration leaves open, by the numbers of ranks and cores.
  static void decide(GroupConfig* config);
  // Attaches to a control block in memory that processes share and that `memory` keeps. `use` is
  // this process's setting for ordinary memory of other processes. Throws std::bad_alloc.
  static std::shared_ptr<Group> attach(void* block, std::shared_ptr<const void> memory,
                                       PeerMemoryUse use);
  ~Group();

  const GroupConfig& config() const { return config_; }
  uint32_t ranks() const { return config_.ranks; }
  bool oversubscribed() const { return config_.oversubscribed(); }

  // Number of ranks on a core if ranks are spread evenly over the cores, rounded up.
  uint32_t ranksPerCore() const { return (config_.ranks + config_.cores - 1) / config_.cores; }

  // FUTEX_WAIT or FUTEX_WAKE on a word of the control block.
  int futex(int operation) const {
    return config_.spansProcesses ? operation : operation | FUTEX_PRIVATE_FLAG;
  }

  const ControlBlock& block() const { return block_; }
  // nullptr: ranks have no devices.
  Devices* devices() const { return devices_.get(); }
  // Returns devices() as the type that native/device makes. Defined in native/device.
  OffloadSeats& offloadSeats() const;
  // Call before the group is used. Makes its ranks the ranks `members` of `whole`, which keep their
  // devices.
  void comeFrom(const Group& whole, const std::vector<uint32_t>& members);
  // Gives the ranks the devices that they have in `whole`. The control block lists the members.
  void keepDevices(const Group& whole);
  GroupWindows& windows() { return windows_; }
  const GroupWindows& windows() const { return windows_; }
  // Takes an unused number of a window for all ranks. Returns kNobody if none is left.
  uint32_t takeWindow();
  // Drops this rank's hold of the window, and tells other hosts.
  void dropWindow(uint32_t window);
  void sweepWindows();
  // isHere() returns true if the rank lives in this process. processOf() returns the process of a
  // rank that has joined.
  bool isHere(uint32_t rank);
  wl_process_t processOf(uint32_t rank) const;
  // The other hosts; nullptr if there is one host.
  OtherHosts* hosts() const { return hosts_.get(); }
  // Returns true if the rank lives on this host.
  bool isBeside(uint32_t rank) const { return hosts_ == nullptr || hosts_->isBeside(rank); }
  // The lowest rank on the host of `rank`.
  uint32_t firstBeside(uint32_t rank) const;
  // Call before any rank of this process joins.
  void setHosts(std::unique_ptr<OtherHosts> hosts) { hosts_ = std::move(hosts); }
  // For two ranks that have joined. liveTogether() returns true if they live in one process.
  // shareProcess() returns true if they also reach one another's ordinary memory.
  bool liveTogether(uint32_t a, uint32_t b) const;
  bool shareProcess(uint32_t a, uint32_t b) const;
  // For two ranks that have joined. Returns true if the process of `a` precedes that of `b`, in an
  // order that all groups share.
  bool isProcessBefore(uint32_t a, uint32_t b) const;
  // Returns true if `rank` can only pull the memory that `owner` names by `place`.
  bool isFar(uint32_t rank, uint32_t owner, Place place) const {
    return place.isOrdinary() && !shareProcess(rank, owner);
  }
  PeerMemoryUse peerMemoryUse() const;
  // Sets *memory to the memory of the process of `rank`, which has joined. The first rank of this
  // process that calls opens it. WL_UNSUPPORTED: the error says why it cannot be read. Throws
  // std::bad_alloc.
  Code peerMemory(uint32_t rank, const PeerMemory** memory, wl_error_t* error);
  // Returns the address by which `rank`, of this process, names `bytes` of its memory to its peers.
  // The address is in window 0 if no window holds all bytes or ranks live on several hosts.
  Place placeOf(uint32_t rank, const void* memory, uint64_t bytes) const {
    return config_.spansProcesses && hosts_ == nullptr ? windows_.find(rank, memory, bytes)
                                                       : placeInAddressSpace(memory);
  }
  // Address in this process of the memory that `rank` names by `place`.
  void* at(uint32_t rank, Place place) const { return windows_.at(rank, place); }

  RankLines& lines(uint32_t rank) const { return block_.lines(rank); }
  Member& member(uint32_t rank) const { return block_.member(rank); }
  SharedLines& shared() const { return block_.shared(); }
  FlightRecorder& recorder(uint32_t rank) const { return block_.recorder(rank); }
  // Returns the scale that converts the stamps of all ranks up to now.
  TickScale tickScale() const { return TickScale::since(block_); }
  // Returns the rank that entered the operation last, among the ranks that still have a record of
  // it. -1 if there is none. `sequence`: low 32 bits of the operation's sequence.
  int32_t lastToEnter(uint32_t sequence) const;

  bool entered(uint32_t rank, uint64_t sequence) const {
    return reached(lines(rank).entry[sequence & 1].sequence.load(std::memory_order_acquire),
                   static_cast<uint32_t>(sequence));
  }
  bool done(uint32_t rank, uint64_t sequence, uint32_t phases) const {
    return lines(rank).done.word.load(std::memory_order_acquire) >= phaseWord(sequence, phases);
  }

  // Claims the one handle of `rank`. WL_INVALID_ARGUMENT if there is no such rank, or any process
  // has claimed it before.
  Code claim(uint32_t rank, wl_error_t* error);
  void unclaim(uint32_t rank);

  // Marks `rank` as gone after its last operation, and rings the ranks that wait for it. False if
  // it was marked before.
  bool leave(uint32_t rank);

  // The complete failure record, or nullptr.
  const wl_error_t* failure() const {
    const uint32_t record = shared().failed.load(std::memory_order_seq_cst);
    return record == 0 ? nullptr : &shared().records[record - 1];
  }
  // Writes the failure record unless one exists, and wakes every rank. failure() is set on return.
  void publishFailure(const wl_error_t& error);
  // Like publishFailure(), but on this host only. Returns true if `error` became the failure
  // record.
  bool publishHere(const wl_error_t& error);
  // Returns true if no operation failed, or if no live rank of this host is inside a call and no
  // device may still run one. Then nobody can access memory named in a failed operation.
  bool quiescent() const;

  // Progress of a shrink on this host. If this host has heard of an agreement on another host, and
  // has no later round itself, its ranks have agreed, too.
  Agreement agreement() const;
  // Returns true if the live ranks have formed a new communicator without `rank`.
  bool leftOut(uint32_t rank) const {
    const Agreement agreed = agreement();
    return agreed.step == Agreement::kAgreed &&
           member(rank).shrink.load(std::memory_order_seq_cst) != Agreement::holds(agreed.round);
  }

  // Watches another process, in which `ranks` live. Its end fails the communicator with
  // WL_PEER_LOST, and so does a silence of silenceNs if that is not 0. Throws std::bad_alloc,
  // std::system_error.
  Code watch(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
             wl_error_t* error);
  // Sends a heartbeat of this process's ranks.
  void beat();

  // Wakes every rank that sleeps. Call after the stores that ranks wait for, followed by a seq_cst
  // read-modify-write. The caller's later loads see values at least as new as those stores.
  void wakeSleepers();
  // Puts the calling thread to sleep on the rank's doorbell if stays() returns true, for at most
  // limitNs. Returns that result. stays() checks what the thread waits for.
  template <class Stays>
  bool sleep(uint32_t rank, Stays&& stays, int64_t limitNs) {
    Doorbell& bell = lines(rank).bell;
    const uint32_t seen = bell.ring.load(std::memory_order_seq_cst);
    bell.sleeping.fetch_add(1, std::memory_order_seq_cst);
    shared().sleepers.fetch_add(1, std::memory_order_seq_cst);
    orderLooks();
    // A rank that stores after these checks sees `sleeping` after its own read-modify-write, and
    // rings.
    const bool sleeps = stays();
    if (sleeps) sleepOn(bell, seen, limitNs);
    shared().sleepers.fetch_sub(1, std::memory_order_seq_cst);
    bell.sleeping.fetch_sub(1, std::memory_order_seq_cst);
    return sleeps;
  }

  JointObjects& joint() { return joint_; }

  // Drops `memory` now if no rank may still access it. Otherwise dropRetired() drops it, after all
  // ranks have left the calls that may.
  void retire(std::shared_ptr<const void> memory) noexcept;
  // Drops retired memory unless a rank may still access it. Call when a rank has left a call after
  // a failure.
  void dropRetired();

 private:
  explicit Group(const GroupConfig& config);

  void place(void* block);
  void sleepOn(Doorbell& bell, uint32_t seen, int64_t limitNs);

  GroupConfig config_;
  ControlBlock block_;
  void* mapping_ = nullptr;  // control block that this group made
  std::shared_ptr<Devices> devices_;
  uint64_t mapped_ = 0;
  std::shared_ptr<const void> memory_;  // keeps a control block that another process made
  std::unique_ptr<OtherHosts> hosts_;
  GroupWindows windows_;  // its windows use `hosts_` when they are dropped
  std::mutex mutex_;      // guards the members down to `watchMutex_`; held in an operation only
                          // when it first opens a peer's memory
  std::vector<bool> claimed_;
  std::vector<std::shared_ptr<const void>> retired_;
  PeerMemoryUse peerMemoryUse_ = PeerMemoryUse::kAuto;
  // Key: the lowest rank of each process.
  std::map<uint32_t, std::shared_ptr<const PeerMemory>> peerMemories_;
  std::mutex watchMutex_;  // guards watch_
  std::unique_ptr<Watch> watch_;
  JointObjects joint_;
};

}  // namespace windlass
