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

// From this many bytes over all ranks, items are claimed one by one and may run on any rank's
// thread.
constexpr uint64_t kSharedWorkBytes = uint64_t{48} << 10;
// From this many bytes over all ranks, a rank rings peers that sleep before it moves any. Less
// takes about as long as a wake, and the ring waits for the operation's end.
constexpr uint64_t kLongWorkBytes = uint64_t{1} << 20;

struct Kernel;   // native/core/launch/kernels.h
enum class Executor : uint32_t;

// Aligned so that no two ranks, whose threads write their own at every operation, share a line.
class alignas(kLine) Comm : private Waiter::Ends {
 public:
  Comm(std::shared_ptr<Group> group, uint32_t rank);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  uint32_t rank() const { return rank_; }
  Group& group() const { return *group_; }
  const std::shared_ptr<Group>& groupPointer() const { return group_; }
  // Of the operation in progress, or of the last one, as diagnostics tell it: the low 32 bits.
  uint32_t sequence() const { return static_cast<uint32_t>(sequence_); }
  uint64_t wholeSequence() const { return sequence_; }
  const Descriptor& current() const { return current_; }
  // The low 32 bits of the next operation's that takes one. Any thread may ask, one that begin()
  // will refuse too.
  uint32_t nextSequence() const {
    return own_.state.sequence.load(std::memory_order_relaxed) + 1;
  }
  // Whether the last operation was this one, and every rank has entered it and calls the same:
  // stated() of each is what it stated there, until this rank's next operation.
  bool allStated(const Descriptor& descriptor) const;
  const RankArgs& stated(uint32_t rank) const {
    return group_->lines(rank).entry[sequence_ & 1].args;
  }
  // What `rank` stated in the last operation, which had parts; until this rank's next operation.
  const PartTable& parts(uint32_t rank) const { return group_->block().parts(rank, sequence_); }

  // Whether it takes an operation now: it lives, and no thread is inside one.
  bool accepts() const {
    return group_->failure() == nullptr && !closes() &&
           own_.state.busy.load(std::memory_order_seq_cst) == 0;
  }

  // As every rank sees the operation, but for what they state with ENTER and the kernel's plan. Any
  // thread.
  Launch launchOf(const Call& call) const;
  // Runs a kernel of the target as this rank's next operation.
  Code run(const Kernel& kernel, const Call& call);
  // Runs kernel K (windlass/kernel.h) as this rank's next operation; native/core/cpu_executor.h
  // says how.
  template <class K>
  Code run(const Call& call);
  // The same by the device executor; native/device/device_executor.h.
  template <class K>
  Code runInLine(const Call& call);
  // The same where ranks live on several hosts; native/hosts/hosts_executor.h.
  template <class K>
  Code runOverHosts(const Call& call);
  template <class K>
  Code runHere(Hosts& hosts, const Launch& launch, Deadline& deadline);
  void tellEntry(Hosts& hosts, const Call& call, bool eager) const;
  // The same by this rank's device, which has it as that kernel; native/device/offload_executor.h.
  template <class K>
  Code runOffloaded(const Call& call, uint32_t kernel);

  // Waits until the operation is over that this rank has put on a stream, for no longer than
  // limitNs. Any thread.
  Code awaitEnqueued(uint64_t ticket, int64_t limitNs, bool* isOver, wl_error_t* error);

  // One-sided operations, which take no sequence: descriptor.root() is the one peer that they
  // concern. native/core/one_sided.h says what for.
  //
  // Runs `move` unless the peer has left. It returns what the target does not allow of it, or the
  // error of the rank's device.
  template <class Move>
  Code reachPeer(const Descriptor& descriptor, wl_error_t* error, Move&& move);
  // Of a group that spans hosts; nullptr: memory was short.
  HostMoves* hostMoves() const { return hostMoves_.get(); }
  // Waits until `signal`, which the peer alone writes, has reached descriptor.count.
  Code awaitSignal(const Descriptor& descriptor, const uint32_t* signal, int64_t deadlineNs,
                   wl_error_t* error);
  // Runs `body`, by this rank alone, unless the communicator has failed: it reads memory of peers,
  // which keep it as long as any rank is inside a call. The result is the body's.
  template <class Body>
  Code readPeers(const Descriptor& descriptor, wl_error_t* error, Body&& body) {
    if (Code code = begin(descriptor, error); code != WL_OK) return code;
    const Code code = body();
    leaveCall();
    return code;
  }
  // Inside readPeers(), of what this rank's device said: one that has failed ends the communicator.
  Code outcomeOfReading(const wl_error_t& ofDevice, wl_error_t* error);
  // One look at it.
  Code testSignal(const Descriptor& descriptor, const uint32_t* signal, bool* isReached,
                  wl_error_t* error);

  // How ranks get at ordinary memory of one another: a wl_peer_memory_form, and why. Any thread.
  int32_t peerMemory(char* why, size_t room) const;

  // For what does this rank's part of the operation in progress.
  //
  // Looks until ready(). `awaited` is a rank or kEveryRank.
  template <class Ready>
  Code wait(Ready&& ready, uint32_t awaited, Deadline& deadline) {
    return waiter_.wait(ready, awaited, {sequence_, signal_ != nullptr}, deadline);
  }
  // The same of what this rank moves to or from the memory of a peer on another host.
  template <class Ready>
  Code waitMoved(Ready&& ready, uint32_t peer, Deadline& deadline) {
    movedWith_ = peer;
    const Code code = waiter_.wait(ready, peer, {sequence_, true}, deadline);
    movedWith_ = kNobody;
    return code;
  }
  Waiter& waiter() { return waiter_; }
  // Ok, or what ends every wait: a failure, this rank's close, a peer that left, the deadline.
  Code ended(Deadline& deadline, int64_t now) override;
  // Until the ranks that `need` names have entered, or ended the phase before this one.
  Code awaitNeed(uint32_t need, uint32_t phase, Deadline& deadline);
  void finishPhase(uint32_t owner, uint32_t phase);
  RankFailures& failures() { return failures_; }

  // Around a shrink, which only a rank whose communicator has failed begins, and no other thread is
  // in then.
  Code beginShrink(wl_error_t* error);
  Code endShrink(Code code);
  // Whether abort() was called on this rank's handle while it is in one.
  bool shrinkAborted() const { return shrinkAborted_.load(std::memory_order_relaxed); }
  // Whether this rank's handle is being closed.
  bool closes() const { return own_.state.closing.load(std::memory_order_seq_cst) != 0; }

  // Legal from any thread.
  Code abort(const char* reason, wl_error_t* error);
  // Publishes what only the caller can see. Any thread.
  Code blame(const wl_error_t& record, wl_error_t* error);
  // Mismatch, once this rank has left, where ranks called different things and no call of this rank
  // has said so.
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

  // Says that a thread is inside, unless one is.
  Code enterCall(wl_error_t* error);
  // Guards against a second caller, a closed handle and a dead communicator.
  Code begin(const Descriptor& descriptor, wl_error_t* error);
  Code end(Code code, wl_error_t* error);
  // Whether memory that a rank names, in the operation in progress that all have entered, lies
  // where not all peers reach it, so that all pull. The same on every rank.
  bool pulls(const Launch& launch) const;
  Code pull(const PullForm& form, const Call& call, const Launch& launch, Deadline& deadline);
  // Runs the items of a transfer, of which any rank reads what lies far from it.
  Code pullItems(const Call& call, const Launch& launch, Deadline& deadline);
  // Whether this rank may write the output of that one, which has entered.
  bool reachesOutput(const Launch& launch, uint32_t owner) const;
  // How this rank names its memory to its peers, where ranks live in several processes.
  RankArgs placesOf(const Call& call) const;
  // Says that this rank's thread is out of its call.
  void leaveCall();
  // end() of an operation that the flight recorder holds. `isLong`: it took long without a wait.
  Code finish(Code code, bool isLong, wl_error_t* error);
  // The code that a call returns, with its text.
  Code outcome(Code code, wl_error_t* error);
  // Runs body(launch, deadline) as this rank's next operation, as kernel K plans it: it states the
  // operation to the others, and does this rank's part. native/core/executor.h.
  template <class K, class Body>
  Code operate(const Call& call, Body&& body);
  void takeSequence(const Call& call);
  // States the operation, once this rank is done with the one before, and enters it. prepare() runs
  // before others see that it has entered.
  template <class K, class Prepare>
  Code enter(const Call& call, Deadline& deadline, Prepare&& prepare);
  // Has what others may then pull of this rank, or send to it, be ready, where K pulls.
  template <class K>
  Code preparePull(const Launch& launch);
  // Waits until every rank has entered the operation before this one, and compares what they call:
  // one whose input is eager, or that waited for the root alone, has left without a look at all.
  Code awaitPrevious(Deadline& deadline) {
    return allEntered_ == sequence_ - 1 || group_->ranks() == 1 ? WL_OK
                                                               : awaitAllOfPrevious(deadline);
  }
  Code awaitAllOfPrevious(Deadline& deadline);
  // States what peers need to know of the operation, in lines that they don't look at yet.
  void fillEntry(const Call& call, bool eager);
  // Lets peers look.
  void publishEntry();
  // Enters a one-sided operation, which takes no sequence, into the flight recorder.
  void record(const Descriptor& descriptor);
  // Fills in this rank's table for the operation in progress.
  [[gnu::noinline]] const PartTable& stateParts(const Call& call);
  template <class K>
  Code ask(const Launch& launch, bool* runs) const;
  template <class K>
  Code runDirect(const Call& call, const Launch& launch, Deadline& deadline);
  template <class K>
  Code runOwnItems(const Launch& launch, uint32_t phase, Deadline& deadline);
  // One ready item of each rank, by a worker; or of each other rank, by this one while it waits.
  // Whether there was one.
  template <class K>
  bool help(const Launch& launch, bool ownToo);
  Code offload(const Call& call, uint32_t kernel, uint32_t phases, const Launch& launch,
               Deadline& deadline);
  // Ends what this rank has put on streams that is not over: it closes.
  void endEnqueued();
  void endInFlight(uint32_t count);
  // Waits until it is the operation's turn on the devices of its ranks.
  Code awaitTurn(Deadline& deadline);
  Code awaitProcessesBefore(Deadline& deadline);
  // A core of this rank in the operation in progress, for the device executor.
  InLine inLine(uint32_t core) const;
  // What this rank's cores may touch in the operation in progress, which names it. Throws
  // std::bad_alloc.
  std::vector<Reach> reach(const Call& call, const Launch& launch) const;
  // Writes the lines of an operation that its cores leave alone; `code`, unless memory is short.
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
  // A block that may be claimed, and the step of the work word that claims it; 0: there is none.
  struct Claim {
    uint64_t word;
    uint64_t step;
    uint32_t block;
    explicit operator bool() const { return step != 0; }
  };
  // The next unclaimed block of `owner` for this rank.
  Claim nextClaim(uint32_t owner, uint32_t phase) const;
  // Runs the block unless somebody else claimed one since. `interrupted`: the wait in which this
  // rank does so; nullptr: none.
  template <class K>
  bool runClaimed(const Launch& launch, uint32_t owner, uint32_t phase, const Claim& claim,
                  Waiter* interrupted);
  // Lets the blocks of `owner` in this phase be claimed.
  void offerItems(uint32_t owner, uint32_t phase, uint32_t blocks);

  // Whether two ranks, which have entered `sequence`, stated the same operation, and parts that
  // fit.
  bool agree(uint32_t a, uint32_t b, uint64_t sequence) const;
  // Compares what all ranks stated, once all have entered.
  Code compareAll();
  // Waits for the peer's ENTER and compares what it calls with what this rank calls.
  Code awaitEntry(uint32_t peer, Deadline& deadline);
  // Ok, or a failure record that names two ranks, this one and a peer, that call different things.
  Code compared() override;
  // Ok, or a failure record that names a peer that left without what this rank waits for.
  Code missed();
  // On leaving: publishes a failure record where a peer that entered this rank's last operation
  // calls something else, or where one has left after fewer operations, or more.
  void compareLast();
  // What `run` returns, which goes on with the operation; where it throws std::bad_alloc the
  // operation fails with that.
  template <class Run>
  Code orNoMemory(Run&& run) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return failures_.publishNoMemory();
    }
  }
  // What a rank of a communicator that has failed gets.
  Code told(const char* prefix, wl_error_t* error) const;
  // The Mismatch that no call of this rank has returned.
  Code untoldMismatch(wl_error_t* error) const;
  bool left(uint32_t peer) const;
  bool signalReached() const {
    return reached(lookAt(signal_), static_cast<uint32_t>(current_.count));
  }
  uint32_t currentPeer() const { return static_cast<uint32_t>(current_.root()); }

  // Steps of the operation in progress that peers see, and how many all items of `rank` have behind
  // them, as far as shown: phases, or rounds of a phase that goes through stages.
  uint32_t shownSteps() const;
  uint32_t stepsOver(uint32_t rank) const;
  // Where ranks bring an operation to their devices: whether this one waits for `peer` to have its
  // turn, to state its next step or why its device failed, and for nobody that is further behind.
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
  const Executor executor_;           // that runs this rank's operations
  uint64_t sequence_;                 // of the operation in progress, or of the last one
  bool claims_ = false;               // its items are claimed one by one
  // Of it, where peers see how many are over, by DONE or by the lines of cores. Else 0.
  uint32_t shownPhases_ = 0;
  Descriptor current_ = {};           // of the operation in progress, or of the last one
  const uint32_t* signal_ = nullptr;  // that a one-sided wait in progress looks at
  bool endedByClose_ = false;         // a call in flight, by another thread's close()
  uint32_t movedWith_ = kNobody;      // whose memory, on another host, it waits for to be moved
  uint64_t meetings_ = 0;             // entered so far
  uint64_t allEntered_;               // every rank is known to have entered this sequence
  Waiter waiter_;
  std::atomic<bool> shrinkAborted_{false};
  std::atomic<bool> told_{false};  // a call of this rank has returned the failure record
  std::unique_ptr<Workers> workers_;  // null where a rank has one block
  std::unique_ptr<HostMoves> hostMoves_;
  std::unique_ptr<Pulling> pulling_;  // null where all ranks live in this process
  bool isPulling_ = false;            // it runs the operation in progress
  // Of the operation in progress, where devices run it and this one's has been asked.
  const OffloadProgress* progress_ = nullptr;
  uint32_t owesWhy_ = kNobody;  // whose device fails it, as all know, before that rank says why
  bool meetsOnHosts_ = false;   // ranks bring the operation in progress to their devices
};

}  // namespace windlass
