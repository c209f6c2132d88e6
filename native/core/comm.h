// SPDX-License-Identifier: Apache-2.0
// One rank of a communicator: entry and exit of an operation, the wait, and the launch of kernels.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "native/core/call.h"
#include "native/core/group.h"
#include "native/core/host_moves.h"
#include "native/core/rank_failures.h"
#include "native/core/waiter.h"
#include "native/core/workers.h"
#include "native/peer/pulling.h"

namespace windlass {

// Minimum number of bytes, over all ranks, at which ranks claim items one by one. A claimed item
// may run on any rank's thread.
constexpr uint64_t kSharedWorkBytes = uint64_t{48} << 10;
// Minimum number of bytes, over all ranks, at which a rank rings sleeping peers before it moves
// data. Fewer bytes take about as long as a wake, so the ring waits for the operation's end.
constexpr uint64_t kLongWorkBytes = uint64_t{1} << 20;

struct Kernel;   // native/core/launch/kernels.h
enum class Executor : uint32_t;

// Aligned so that two ranks never share a cache line: each rank's thread writes its own Comm at
// every operation.
class alignas(kLine) Comm : private Waiter::Ends {
 public:
  Comm(std::shared_ptr<Group> group, uint32_t rank);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  uint32_t rank() const { return rank_; }
  Group& group() const { return *group_; }
  const std::shared_ptr<Group>& groupPointer() const { return group_; }
  // Low 32 bits of the sequence of the operation in progress, or of the last one. Diagnostics
  // report them.
  uint32_t sequence() const { return static_cast<uint32_t>(sequence_); }
  uint64_t wholeSequence() const { return sequence_; }
  const Descriptor& current() const { return current_; }
  // Low 32 bits of the sequence that the next counted operation gets. Thread-safe, also if begin()
  // will refuse the caller.
  uint32_t nextSequence() const {
    return own_.state.sequence.load(std::memory_order_relaxed) + 1;
  }
  // Returns true if `descriptor` was the last operation and every rank has entered it with the same
  // call. Then stated() returns what each rank stated there, until this rank's next operation.
  bool allStated(const Descriptor& descriptor) const;
  const RankArgs& stated(uint32_t rank) const {
    return group_->lines(rank).entry[sequence_ & 1].args;
  }
  // Parts that `rank` stated in the last operation, which had parts. Valid until this rank's next
  // operation.
  const PartTable& parts(uint32_t rank) const { return group_->block().parts(rank, sequence_); }

  // Returns true if the communicator is alive and no thread is inside an operation.
  bool accepts() const {
    return group_->failure() == nullptr && !closes() &&
           own_.state.busy.load(std::memory_order_seq_cst) == 0;
  }

  // The operation as every rank sees it, without the arguments stated with ENTER and the kernel's
  // plan. Thread-safe.
  Launch launchOf(const Call& call) const;
  // Runs a kernel of the target as this rank's next operation.
  Code run(const Kernel& kernel, const Call& call);
  // Runs kernel K (windlass/kernel.h) as this rank's next operation; see
  // native/core/cpu_executor.h.
  template <class K>
  Code run(const Call& call);
  // Runs K with the device executor; see native/device/device_executor.h.
  template <class K>
  Code runInLine(const Call& call);
  // Runs K if ranks live on several hosts; see native/hosts/hosts_executor.h.
  template <class K>
  Code runOverHosts(const Call& call);
  template <class K>
  Code runHere(Hosts& hosts, const Launch& launch, Deadline& deadline);
  void tellEntry(Hosts& hosts, const Call& call, bool eager) const;
  // Runs K on this rank's device, whose number for it is `kernel`; see
  // native/device/offload_executor.h.
  template <class K>
  Code runOffloaded(const Call& call, uint32_t kernel);

  // Waits until the operation that this rank put on a stream is complete, at most limitNs.
  // Thread-safe.
  Code awaitEnqueued(uint64_t ticket, int64_t limitNs, bool* isOver, wl_error_t* error);

  // One-sided operations take no sequence. descriptor.root() is the one peer that they concern. See
  // native/core/one_sided.h.
  //
  // Runs `move` unless the peer has left. `move` returns what the target does not allow, or the
  // error of the rank's device.
  template <class Move>
  Code reachPeer(const Descriptor& descriptor, wl_error_t* error, Move&& move);
  // Moves to other hosts. nullptr: the group is on one host, or memory was short.
  HostMoves* hostMoves() const { return hostMoves_.get(); }
  // Waits until `signal`, which only the peer writes, has reached descriptor.count.
  Code awaitSignal(const Descriptor& descriptor, const uint32_t* signal, int64_t deadlineNs,
                   wl_error_t* error);
  // Runs `body` on this rank only, unless the communicator has failed, and returns its result.
  // `body` reads memory of peers, who keep it while any rank is inside a call.
  template <class Body>
  Code readPeers(const Descriptor& descriptor, wl_error_t* error, Body&& body) {
    if (Code code = begin(descriptor, error); code != WL_OK) return code;
    const Code code = body();
    leaveCall();
    return code;
  }
  // Converts the device's result inside readPeers(). A failed device ends the communicator.
  Code outcomeOfReading(const wl_error_t& ofDevice, wl_error_t* error);
  // Checks the signal once.
  Code testSignal(const Descriptor& descriptor, const uint32_t* signal, bool* isReached,
                  wl_error_t* error);

  // Reports how ranks reach one another's ordinary memory: a wl_peer_memory_form, and the reason.
  // Thread-safe.
  int32_t peerMemory(char* why, size_t room) const;

  // For code that does this rank's part of the operation in progress.
  //
  // Waits until ready() returns true. `awaited` is a rank or kEveryRank.
  template <class Ready>
  Code wait(Ready&& ready, uint32_t awaited, Deadline& deadline) {
    return waiter_.wait(ready, awaited, {sequence_, signal_ != nullptr}, deadline);
  }
  // Waits for data that this rank moves to or from the memory of a peer on another host.
  template <class Ready>
  Code waitMoved(Ready&& ready, uint32_t peer, Deadline& deadline) {
    movedWith_ = peer;
    const Code code = waiter_.wait(ready, peer, {sequence_, true}, deadline);
    movedWith_ = kNobody;
    return code;
  }
  Waiter& waiter() { return waiter_; }
  // Returns Ok, or the reason that ends every wait: a failure, this rank's close, a peer that left,
  // or the deadline.
  Code ended(Deadline& deadline, int64_t now) override;
  // Waits until the ranks that `need` names have entered, or have ended the previous phase.
  Code awaitNeed(uint32_t need, uint32_t phase, Deadline& deadline);
  void finishPhase(uint32_t owner, uint32_t phase);
  RankFailures& failures() { return failures_; }

  // Begins and ends a shrink. Only a rank whose communicator has failed begins one, with no other
  // thread inside.
  Code beginShrink(wl_error_t* error);
  Code endShrink(Code code);
  // Returns true if abort() was called on this rank's handle during a shrink.
  bool shrinkAborted() const { return shrinkAborted_.load(std::memory_order_relaxed); }
  // Returns true after the close of this rank's handle has begun.
  bool closes() const { return own_.state.closing.load(std::memory_order_seq_cst) != 0; }

  // Thread-safe.
  Code abort(const char* reason, wl_error_t* error);
  // Publishes a failure that only the caller can see. Thread-safe.
  Code blame(const wl_error_t& record, wl_error_t* error);
  // Returns Mismatch after this rank has left if ranks called different operations and no call of
  // this rank has reported it. Returns Timeout if a call in flight does not leave within 60 s.
  Code close(wl_error_t* error);
  Code status(wl_error_t* error) const;

 private:
  class Handover;
  template <class K>
  class Helped;
  template <class Session>
  struct InLineCode;
  template <class Session>
  class Cores;

  // Marks that a thread is inside a call. Fails if one already is.
  Code enterCall(wl_error_t* error);
  // Guards against a second caller, a closed handle and a dead communicator.
  Code begin(const Descriptor& descriptor, wl_error_t* error);
  Code end(Code code, wl_error_t* error);
  // Returns true if a rank names memory that not all peers reach, so that all ranks pull. All ranks
  // must have entered the operation. The result is the same on every rank.
  bool pulls(const Launch& launch) const;
  Code pull(const PullForm& form, const Call& call, const Launch& launch, Deadline& deadline);
  // Runs the items of a transfer in which some rank reads memory that it can only pull.
  Code pullItems(const Call& call, const Launch& launch, Deadline& deadline);
  // Returns true if this rank may write the output of `owner`, which has entered.
  bool reachesOutput(const Launch& launch, uint32_t owner) const;
  // How this rank names its memory to its peers if ranks live in several processes.
  RankArgs placesOf(const Call& call) const;
  // Marks that this rank's thread has left its call.
  void leaveCall();
  // end() for an operation in the flight recorder. `isLong`: the operation took long without a
  // wait.
  Code finish(Code code, bool isLong, wl_error_t* error);
  // Returns the code of a call that failed, and fills in its text.
  [[gnu::cold]] Code failed(Code code, wl_error_t* error);
  // Runs body(launch, deadline) as this rank's next operation, as kernel K plans it. States the
  // operation to the other ranks, then does this rank's part. See native/core/executor.h.
  template <class K, class Body>
  Code operate(const Call& call, Body&& body);
  void takeSequence(const Call& call);
  // Waits until every rank has entered the previous operation, then states and enters this one.
  // prepare() runs before peers see the entry.
  template <class K, class Prepare>
  Code enter(const Call& call, Deadline& deadline, Prepare&& prepare);
  // If K pulls, prepares the data that peers may then pull from this rank or send to it.
  template <class K>
  Code preparePull(const Launch& launch);
  // Waits until every rank has entered the previous operation, and compares their calls. A rank
  // leaves an operation without this check if its input was eager or if it waited only for the
  // root.
  Code awaitPrevious(Deadline& deadline) {
    return allEntered_ == sequence_ - 1 || group_->ranks() == 1 ? WL_OK
                                                               : awaitAllOfPrevious(deadline);
  }
  Code awaitAllOfPrevious(Deadline& deadline);
  // Writes what peers need to know of the operation, into lines that they do not read yet.
  void fillEntry(const Call& call, bool eager);
  // Makes the entry visible to peers.
  void publishEntry();
  // Records a one-sided operation, which takes no sequence, in the flight recorder.
  void record(const Descriptor& descriptor);
  // Fills in this rank's part table for the operation in progress.
  [[gnu::noinline]] const PartTable& stateParts(const Call& call);
  template <class K>
  Code ask(const Launch& launch, bool* runs) const;
  template <class K>
  Code runDirect(const Call& call, const Launch& launch, Deadline& deadline);
  template <class K>
  Code runOwnItems(const Launch& launch, uint32_t phase, Deadline& deadline);
  // Runs one ready item of each rank if a worker calls it (`ownToo`), or of each other rank during
  // a wait. Returns true if an item ran.
  template <class K>
  bool help(const Launch& launch, bool ownToo);
  Code offload(const Call& call, uint32_t kernel, uint32_t phases, const Launch& launch,
               Deadline& deadline);
  // Ends this rank's unfinished operations on streams, because the rank closes.
  void endEnqueued();
  void endInFlight(uint32_t count);
  // Waits for the operation's turn on the devices of its ranks.
  Code awaitTurn(Deadline& deadline);
  Code awaitProcessesBefore(Deadline& deadline);
  // One core of this rank in the operation in progress, for the device executor.
  InLine inLine(uint32_t core) const;
  // Memory that this rank's cores may access in the operation in progress. Throws std::bad_alloc.
  std::vector<Reach> reach(const Call& call, const Launch& launch) const;
  // Writes the lines of an operation that its cores do not run. Returns `code`, or an error if
  // memory is short.
  Code skipInLine(Code code, uint32_t phases);
  template <class K>
  Code awaitConcerned(const Launch& launch, Deadline& deadline);
  template <class Session>
  Code runCores(const InLineCode<Session>& kernel, const Call& call, const Launch& launch,
                Deadline& deadline);
  template <class Session>
  Code goOnWithCores(const InLineCode<Session>& kernel, const Call& call, const Launch& launch,
                     Deadline& deadline);
  template <class K>
  Code runMeeting(const Call& call, const Launch& launch, Deadline& deadline);
  template <class K>
  void openPhase(const Launch& launch, uint32_t phase);
  template <class K>
  bool runOpenPhase(const Launch& launch, Waiter* interrupted);
  // A block that may be claimed, and the step of the work word that claims it. `step` is 0 if there
  // is no such block.
  struct Claim {
    uint64_t word;
    uint64_t step;
    uint32_t block;
    explicit operator bool() const { return step != 0; }
  };
  // Returns the next unclaimed block of `owner` for this rank.
  Claim nextClaim(uint32_t owner, uint32_t phase) const;
  // Runs the block and returns true, unless another thread has claimed one of `owner` since.
  // `interrupted` is the wait that this rank interrupts for it, or nullptr.
  template <class K>
  bool runClaimed(const Launch& launch, uint32_t owner, uint32_t phase, const Claim& claim,
                  Waiter* interrupted);
  // Lets ranks claim the blocks of `owner` in this phase.
  void offerItems(uint32_t owner, uint32_t phase, uint32_t blocks);

  // Returns true if two ranks that have entered `sequence` stated the same operation and matching
  // parts.
  bool agree(uint32_t a, uint32_t b, uint64_t sequence) const;
  // Compares what all ranks stated. All ranks must have entered.
  Code compareAll();
  // Waits for the peer's ENTER and compares its call with this rank's call.
  Code awaitEntry(uint32_t peer, Deadline& deadline);
  // Returns Ok, or publishes a failure record that names this rank and a peer that called a
  // different operation.
  Code compared() override;
  // Returns Ok, or publishes a failure record that names a peer that left too early. It left before
  // it entered the operation, or before it set the signal that this rank waits for.
  Code missed();
  // Runs when this rank leaves. Publishes a failure record if a peer called something different in
  // this rank's last operation, or left after fewer or more operations.
  void compareLast();
  // Returns the result of `run`, which continues the operation. If `run` throws std::bad_alloc, the
  // operation fails for lack of memory.
  template <class Run>
  Code orNoMemory(Run&& run) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return failures_.publishNoMemory();
    }
  }
  // Returns the error of a communicator that has failed.
  Code told(const char* prefix, wl_error_t* error) const;
  // Returns the Mismatch that no call of this rank has returned yet.
  Code untoldMismatch(wl_error_t* error) const;
  bool left(uint32_t peer) const;
  bool signalReached() const {
    return reached(lookAt(signal_), static_cast<uint32_t>(current_.count));
  }
  uint32_t currentPeer() const { return static_cast<uint32_t>(current_.root()); }

  // shownSteps() is the number of steps of the operation that peers see. stepsOver() is the number
  // that all items of `rank` have completed, as far as shown. A step is a phase, or a round of a
  // phase that goes through staging buffers.
  uint32_t shownSteps() const;
  uint32_t stepsOver(uint32_t rank) const;
  // For operations that ranks hand to their devices. Returns true if this rank waits for `peer`
  // and no other peer is further behind. A rank waits for a peer to get its turn, to state its next
  // step, or to say why its device failed.
  bool isUnmet(uint32_t peer) const;
  Code publishTimeout(int64_t limitNs);
  Code outcomeOf(const char* broken, wl_error_t* error);
  Code outcomeOf(Code code, wl_error_t*) { return code; }
  Code outcomeOf(const wl_error_t& ofDevice, wl_error_t* error);

  const std::shared_ptr<Group> group_;
  const uint32_t rank_;
  RankFailures failures_;
  RankLines& own_;
  FlightRecorder& recorder_;
  const Executor executor_;           // runs this rank's operations
  uint64_t sequence_;                 // sequence of the operation in progress, or of the last one
  bool claims_ = false;               // ranks claim the operation's items one by one
  // Phases of the operation whose completion peers see, by DONE or by the lines of cores. Otherwise
  // 0.
  uint32_t shownPhases_ = 0;
  Descriptor current_ = {};           // the operation in progress, or the last one
  const uint32_t* signal_ = nullptr;  // checked by the one-sided wait in progress
  bool endedByClose_ = false;         // another thread's close() ended the call in flight
  uint32_t movedWith_ = kNobody;      // peer on another host whose memory the current wait is for
  uint64_t meetings_ = 0;             // meetings entered so far
  uint64_t allEntered_;               // every rank is known to have entered this sequence
  Waiter waiter_;
  std::atomic<bool> shrinkAborted_{false};
  std::atomic<bool> told_{false};  // a call of this rank has returned the failure record
  std::unique_ptr<Workers> workers_;  // null if a rank has one block, or memory was short
  std::unique_ptr<HostMoves> hostMoves_;
  std::unique_ptr<Pulling> pulling_;  // null if all ranks live in this process, or memory was short
  bool isPulling_ = false;            // pulling_ runs the operation in progress
  // Progress of the operation, if devices run it and this rank's device has been queried.
  const OffloadProgress* progress_ = nullptr;
  uint32_t owesWhy_ = kNobody;  // rank whose device fails the operation, before it says why
  bool meetsOnHosts_ = false;   // ranks hand the operation in progress to their devices
};

}  // namespace windlass
