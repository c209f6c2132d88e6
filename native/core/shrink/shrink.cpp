// SPDX-License-Identifier: Apache-2.0
#include "native/core/shrink/shrink.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <vector>

#include "native/base/clock.h"
#include "native/core/failure_text.h"
#include "native/core/shared/object_operations.h"
#include "native/core/shrink/shrink_notes.h"
#include "native/core/shrink/shrink_proposal.h"

namespace windlass {
namespace {

// Time that a rank gives each rank before it to propose, before it proposes itself.
constexpr int64_t kTurnNs = 100'000'000;
// The same time on several hosts, where messages take longer.
constexpr int64_t kHostTurnNs = 500'000'000;
// Time for which a host must be gone before other hosts decide on its proposal. A message from that
// host to any rank reaches all ranks in less time.
constexpr int64_t kSettleNs = 200'000'000;
// kRoundNs: least time of a step of a round, even after the deadline. kGraceNs: time that all
// rounds together may take beyond the deadline.
constexpr int64_t kRoundNs = 2'000'000'000;
constexpr int64_t kGraceNs = 10'000'000'000;
constexpr int64_t kLongestNs = int64_t{1} << 61;
// Time between two checks, which cover all ranks. kLookOfRankUs: time for each rank of the group.
// kLeastLookUs, kMostLookUs: limits of the total time.
constexpr uint32_t kLookOfRankUs = 20;
constexpr uint32_t kLeastLookUs = 100;
constexpr uint32_t kMostLookUs = 20'000;

// One call of shrink() on one rank.
class Shrink {
 public:
  Shrink(Comm& comm, int64_t deadlineNs, wl_error_t* error)
      : comm_(comm),
        whole_(comm.group()),
        hosts_(whole_.hosts()),
        own_(whole_.member(comm.rank()).shrink),
        startNs_(clockNs()),
        deadlineNs_(startNs_ + std::min(kLongestNs, deadlineNs == 0 ? whole_.config().deadlineNs
                                                                    : deadlineNs)),
        error_(error) {}

  Code run(std::shared_ptr<Group>* group, uint32_t* rank) {
    const uint32_t pauseUs = std::clamp(kLookOfRankUs * whole_.ranks(), kLeastLookUs, kMostLookUs);
    for (Agreement now = look(); now.step != Agreement::kAgreed; now = look()) {
      const Code code = goOn(now, clockNs());
      if (code != WL_OK && givesUp()) return code;
      tell();
      if (code == WL_OK) usleep(pauseUs);
    }
    // If a round has two proposals, this rank may hold the abandoned one.
    if (hasJoined_ && look().maker != maker_) {
      forsake("the others went on without it");
      own_.store(Agreement::came(round_), std::memory_order_seq_cst);
    }
    tell();
    if (whole_.leftOut(comm_.rank())) {
      forsake("the others went on without it");
      return comm_.gate().status(error_);
    }
    if (proposal_ == nullptr) {
      return fail(error_, WL_INVALID_ARGUMENT,
                  "rank %u has shrunk this communicator already; use the one that it got",
                  comm_.rank());
    }
    if (hosts_ != nullptr && proposal_->hosts() == nullptr && hosts_->hasStoodStill()) {
      forsake("the other hosts had lost it");
      return copyError(error_, stoodStillOf(whole_, comm_.rank(), hosts_->silenceNs()), nullptr);
    }
    *group = std::shared_ptr<Group>(proposal_, proposal_->group());
    *rank = rank_;
    return WL_OK;
  }

 private:
  Agreement look() const { return whole_.agreement(); }
  bool move(const Agreement& from, const Agreement& to) const {
    uint64_t word = from.word();
    return whole_.shared().shrink.compare_exchange_strong(word, to.word(),
                                                          std::memory_order_seq_cst);
  }
  // Opens the next round, unless ranks have agreed or another rank has opened it.
  void abandon(const Agreement& proposed) const {
    move(proposed, {Agreement::kOpen, proposed.round + 1, 0, 0});
  }

  // A rank on another host counts as closed only after it has left.
  bool isGone(uint32_t rank) const {
    return whole_.member(rank).lost.load(std::memory_order_seq_cst) != 0 ||
           whole_.lines(rank).state.closing.load(std::memory_order_seq_cst) != 0 ||
           whole_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0 ||
           whole_.member(rank).shrink.load(std::memory_order_seq_cst) == Agreement::kGaveUp;
  }
  bool hasCome(uint32_t rank) const {
    return whole_.member(rank).shrink.load(std::memory_order_seq_cst) == Agreement::came(round_);
  }
  uint32_t said() const { return own_.load(std::memory_order_relaxed); }
  bool holds() const { return said() == Agreement::holds(round_); }
  // Returns true if this host decides on the proposal of `maker`.
  bool decides(uint32_t maker) const { return hosts_ == nullptr || hosts_->isBeside(maker); }

  // Returns true if this rank gives up. Returns false if ranks agreed meanwhile and it holds the
  // new communicator.
  bool givesUp() {
    const auto concerns = [&](const Agreement& now) {
      return now.round == round_ && now.step != Agreement::kOpen &&
             (holds() || now.maker == comm_.rank());
    };
    for (Agreement now = look(); concerns(now); now = look()) {
      if (now.step == Agreement::kAgreed) return false;
      // Other ranks may have agreed, or may agree before they hear that this rank gives up.
      if (!decides(now.maker)) break;
      abandon(now);
    }
    forsake(error_ == nullptr ? "it gave up" : error_->message);
    // This rank holds nothing in the following rounds.
    own_.store(Agreement::kGaveUp, std::memory_order_seq_cst);
    tell();
    return true;
  }

  // On several hosts, ends the new communicator if this rank does not keep it. Other ranks may
  // already have it, or may still get it.
  void forsake(const char* why) {
    if (hosts_ == nullptr || !hasJoined_) return;
    hasJoined_ = false;
    leaveSplit(*proposal_->group(), rank_, WL_OP_SHRINK, errorOf(WL_ABORTED, "%s", why));
    proposal_.reset();
  }

  // Sends to other hosts what this rank said last and the state of the agreement on this host, if
  // either has changed.
  void tell() {
    if (hosts_ == nullptr) return;
    const uint64_t word = whole_.shared().shrink.load(std::memory_order_seq_cst);
    if (said() == toldSaid_ && word == toldWord_) return;
    toldSaid_ = said();
    toldWord_ = word;
    whole_.member(comm_.rank()).agreement.store(word, std::memory_order_release);
    hosts_->tellShrink(comm_.rank());
  }

  Code goOn(const Agreement& now, int64_t atNs) {
    if (comm_.gate().closes())
      return fail(error_, WL_CLOSED, "rank %u was closed in shrink", comm_.rank());
    if (comm_.gate().isAborted())
      return fail(error_, WL_ABORTED, "rank %u was aborted in shrink", comm_.rank());
    if (atNs > deadlineNs_ + kGraceNs || now.round == Agreement::kMostRounds) return late(atNs);
    const bool isNewRound = limitNs_ == 0 || now.round != round_;
    if (isNewRound || now.step != step_) {
      round_ = now.round;
      step_ = now.step;
      completeNs_ = 0;
      limitNs_ = std::max(deadlineNs_, atNs + kRoundNs);
      if (round_ == 0 && step_ == Agreement::kOpen) limitNs_ = deadlineNs_;
    }
    if (isNewRound) {
      forsake("others had to begin anew");
      proposal_.reset();
      members_.clear();
      hasTried_ = false;
      goneNs_ = 0;
      own_.store(Agreement::came(round_), std::memory_order_seq_cst);
    }
    try {
      if (hosts_ != nullptr) {
        if (follow(now)) return WL_OK;
        if (now.step == Agreement::kProposed) return answerOverHosts(now, atNs);
      }
      if (now.step == Agreement::kProposed) return answer(now, atNs);
      return isTurn(atNs) ? propose(now) : WL_OK;
    } catch (const std::bad_alloc&) {
      return copyError(error_, noMemory(comm_.rank()), nullptr);
    } catch (const std::system_error&) {
      return fail(error_, WL_RESOURCE, "rank %u: no thread to watch other processes", comm_.rank());
    }
  }

  // Returns true if it is this rank's turn to propose.
  bool isTurn(int64_t atNs) {
    bool complete = true;
    uint32_t before = 0;
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank) {
      if (isGone(rank)) continue;
      const bool came = hasCome(rank);
      complete = complete && came;
      if (came && rank < comm_.rank()) ++before;
    }
    if (!complete) {
      completeNs_ = 0;
    } else if (completeNs_ == 0) {
      completeNs_ = atNs;
    }
    const int64_t turnNs = hosts_ == nullptr ? kTurnNs : kHostTurnNs;
    return atNs >= (complete ? std::min(completeNs_, limitNs_) : limitNs_) + before * turnNs;
  }

  // The proposal of `maker` in this round. It keeps the joint object, so that other ranks of this
  // process get the same one.
  std::shared_ptr<Proposal> proposalOf(uint32_t maker) const {
    const Joint<Proposal> joint = whole_.joint().make<Proposal>(
        round_, JointObjects::kShrink - static_cast<int32_t>(maker),
        [] { return std::make_shared<Proposal>(); });
    return {joint, joint->get()};
  }

  Code propose(const Agreement& open) {
    std::vector<uint32_t> members;
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank)
      if (!isGone(rank) && hasCome(rank)) members.push_back(rank);
    if (hosts_ != nullptr)
      writeNote({Agreement::kProposed, round_, comm_.rank(), -1}, members, {}, &note(comm_.rank()));
    return offer(open, comm_.rank(), members);
  }

  // Makes the new communicator's memory on this host, for the proposal of `maker`. Then changes the
  // host's word from `from` to that proposal.
  Code offer(const Agreement& from, uint32_t maker, const std::vector<uint32_t>& members) {
    std::shared_ptr<Proposal> made = proposalOf(maker);
    if (Code code = made->make(whole_, members, error_); code != WL_OK) return code;
    if (!move(from, {Agreement::kProposed, round_, maker, made->file()})) return WL_OK;
    proposal_ = std::move(made);
    rank_ = proposal_->rankOf(comm_.rank());
    return WL_OK;
  }

  Code answer(const Agreement& proposed, int64_t atNs) {
    if (proposal_ == nullptr) {
      const Code code = open(proposed, proposed.maker);
      if (code != WL_OK || proposal_ == nullptr) return code;
    }
    if (!holds() && rank_ != kNobody) {
      if (Code code = proposal_->join(whole_, rank_, error_); code != WL_OK) return code;
      own_.store(Agreement::holds(round_), std::memory_order_seq_cst);
      proposal_->holding().fetch_add(1, std::memory_order_seq_cst);
    }
    if (proposal_->holding().load(std::memory_order_seq_cst) == proposal_->size()) {
      move(proposed, {Agreement::kAgreed, round_, proposed.maker, proposed.file});
      return WL_OK;
    }
    bool isOver = atNs > limitNs_;
    for (uint32_t rank = 0; rank < proposal_->size(); ++rank)
      isOver = isOver || isGone(proposal_->former(rank));
    if (isOver) abandon(proposed);
    return WL_OK;
  }

  // Opens what `maker` made on this host. proposal_ does not change if nothing is left to open.
  Code open(const Agreement& proposed, uint32_t maker) {
    std::shared_ptr<Proposal> told = proposalOf(proposed.maker);
    wl_error_t why = blankError();
    const Code code = told->open(whole_, maker, proposed.file, &why);
    // The number was valid for that file until this check.
    if (look().word() != proposed.word()) return WL_OK;
    if (code == WL_PEER_LOST && decides(proposed.maker)) abandon(proposed);
    if (code != WL_OK) return code == WL_PEER_LOST ? WL_OK : copyError(error_, why, nullptr);
    proposal_ = std::move(told);
    rank_ = proposal_->rankOf(comm_.rank());
    return WL_OK;
  }

  // For several hosts.
  ShrinkNote& note(uint32_t rank) const { return whole_.block().note(rank); }
  Agreement agreementOf(uint32_t rank) const {
    return Agreement::of(whole_.member(rank).agreement.load(std::memory_order_acquire));
  }

  // Changes this host's word if another host has reported a later round, or its own proposal for
  // this round. Returns true if it did.
  bool follow(const Agreement& now) const {
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank) {
      if (hosts_->isBeside(rank) || whole_.member(rank).lost.load(std::memory_order_seq_cst) != 0)
        continue;
      const Agreement theirs = agreementOf(rank);
      if (theirs.step == Agreement::kAgreed || theirs.maker >= whole_.ranks()) continue;
      const uint32_t host = hosts_->hostOf(rank);
      if (now.step == Agreement::kProposed &&
          (decides(now.maker) || host != hosts_->hostOf(now.maker))) {
        continue;
      }
      if (theirs.round > now.round) return move(now, {Agreement::kOpen, theirs.round, 0, 0});
      if (now.step == Agreement::kOpen && theirs.step == Agreement::kProposed &&
          theirs.round == now.round && host == hosts_->hostOf(theirs.maker)) {
        return move(now, {Agreement::kProposed, now.round, theirs.maker, -1});
      }
    }
    return false;
  }

  Code answerOverHosts(const Agreement& proposed, int64_t atNs) {
    maker_ = proposed.maker;
    std::vector<unsigned char> unused;
    if (members_.empty() &&
        readNote(note(proposed.maker), proposed, whole_.ranks(), &members_, &unused)) {
      const auto own = std::find(members_.begin(), members_.end(), comm_.rank());
      rank_ = own == members_.end() ? kNobody : static_cast<uint32_t>(own - members_.begin());
    }
    if (!members_.empty() && rank_ != kNobody) {
      if (Code code = takeStep(proposed); code != WL_OK) return code;
    }
    if (decides(proposed.maker)) {
      if (allSay(proposed, Agreement::holds(round_)) && !hasFailed())
        move(proposed, {Agreement::kAgreed, round_, proposed.maker, proposed.file});
      else if (atNs > limitNs_ || hasFailed() || anyGoesOn(proposed))
        abandon(proposed);
    } else if (atNs > limitNs_ + kRoundNs || isForlorn(proposed.maker, atNs)) {
      abandon(proposed);
    }
    return WL_OK;
  }

  // Takes the next step of a member.
  Code takeStep(const Agreement& proposed) {
    if (proposal_ == nullptr) {
      const uint32_t maker =
          decides(proposed.maker)
              ? proposed.maker
              : *std::find_if(members_.begin(), members_.end(),
                              [&](uint32_t member) { return hosts_->isBeside(member); });
      if (proposed.file < 0)
        return maker == comm_.rank() ? offer(proposed, proposed.maker, members_) : WL_OK;
      const Code code = open(proposed, maker);
      if (code != WL_OK || proposal_ == nullptr) return code;
    }
    if (said() == Agreement::came(round_)) {
      if (Code code = proposal_->join(whole_, rank_, error_); code != WL_OK) return code;
      hasJoined_ = true;
      // One rank of each process states the wire's name.
      const OtherHosts* const made = proposal_->hosts();
      const bool tells = made != nullptr && made->first() == rank_;
      writeNote(proposed, members_, tells ? made->name() : std::vector<unsigned char>(),
                &note(comm_.rank()));
      own_.store(Agreement::opened(round_), std::memory_order_seq_cst);
    }
    if (said() != Agreement::opened(round_) || !allSay(proposed, Agreement::opened(round_)))
      return WL_OK;
    if (OtherHosts* const made = proposal_->hosts()) {
      if (made->first() == rank_) {
        if (!connect(proposed)) return WL_OK;
      } else if (whole_.member(members_[made->first()]).shrink != Agreement::holds(round_)) {
        return WL_OK;
      }
    }
    own_.store(Agreement::holds(round_), std::memory_order_seq_cst);
    return WL_OK;
  }

  // Connects for this process and returns true if it did. If a member is gone, other ranks soon
  // report it, or the round ends.
  bool connect(const Agreement& proposed) {
    if (hasTried_) return false;
    std::vector<std::vector<unsigned char>> names;
    for (const uint32_t member : members_) {
      std::vector<uint32_t> members;
      std::vector<unsigned char> name;
      if (!readNote(note(member), proposed, whole_.ranks(), &members, &name)) return false;
      if (!name.empty()) names.push_back(std::move(name));
    }
    hasTried_ = true;
    wl_error_t why = blankError();
    if (proposal_->shared().connect(whole_, names, &why) == WL_OK) return true;
    lastWhy_ = why;
    return false;
  }

  bool allSay(const Agreement& proposed, uint32_t least) const {
    return !members_.empty() && std::all_of(members_.begin(), members_.end(), [&](uint32_t rank) {
      const uint32_t says = whole_.member(rank).shrink.load(std::memory_order_seq_cst);
      const bool saysSo = says == least || says == Agreement::holds(round_);
      return saysSo && (hosts_->isBeside(rank) || agreementOf(rank).isOf(proposed));
    });
  }
  // Returns true if a member can no longer hold the proposal.
  bool anyGoesOn(const Agreement& proposed) const {
    return std::any_of(members_.begin(), members_.end(), [&](uint32_t rank) {
      if (isGone(rank)) return true;
      if (hosts_->isBeside(rank)) return false;
      const Agreement theirs = agreementOf(rank);
      return theirs.round > round_ ||
             (theirs.round == round_ && theirs.step != Agreement::kOpen && !theirs.isOf(proposed));
    });
  }
  bool hasFailed() const {
    return hasJoined_ && proposal_->group()->failure() != nullptr;
  }
  // Returns true if all ranks of the deciding host have been gone for more than kSettleNs.
  bool isForlorn(uint32_t maker, int64_t atNs) {
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank) {
      if (hosts_->hostOf(rank) != hosts_->hostOf(maker) || isGone(rank)) continue;
      goneNs_ = 0;
      return false;
    }
    if (goneNs_ == 0) goneNs_ = atNs;
    return atNs - goneNs_ > kSettleNs;
  }

  Code late(int64_t atNs) {
    wl_error_t record = blankError(WL_DEADLINE_EXCEEDED);
    Text out(record.message, sizeof record.message);
    out.add("rank %u waited %.3f s in shrink, and ranks came to no decision in %u rounds",
            comm_.rank(), static_cast<double>(atNs - startNs_) / 1e9, round_ + 1);
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank) {
      const uint32_t said = whole_.member(rank).shrink.load(std::memory_order_seq_cst);
      if (isGone(rank) || said >= Agreement::came(round_)) continue;
      out.add("%s rank %u", record.faulty_rank_count == 0 ? "; what has not answered:" : ",", rank);
      addFaultyRank(&record, rank);
    }
    if (lastWhy_.code != WL_OK) out.add("; the last try to connect failed: %s", lastWhy_.message);
    out.add(". Call it again, or close this communicator and start anew");
    record.operation = WL_OP_SHRINK;
    record.observer = static_cast<int32_t>(comm_.rank());
    return copyError(error_, record, nullptr);
  }

  Comm& comm_;
  Group& whole_;
  OtherHosts* const hosts_;  // nullptr: all ranks live on one host
  std::atomic<uint32_t>& own_;
  const int64_t startNs_;
  const int64_t deadlineNs_;
  wl_error_t* const error_;
  // State of this rank's current round.
  uint32_t round_ = 0;
  Agreement::Step step_ = Agreement::kOpen;
  int64_t limitNs_ = 0;     // end of its current step; 0: none yet
  int64_t completeNs_ = 0;  // when all had joined; 0: not yet
  std::shared_ptr<Proposal> proposal_;  // the round's proposal, after this rank opened or made it
  uint32_t rank_ = kNobody;             // this rank's number in proposal_
  // State of the round on several hosts.
  uint32_t maker_ = kNobody;
  std::vector<uint32_t> members_;  // known after their note has arrived
  bool hasJoined_ = false;
  bool hasTried_ = false;  // to connect
  int64_t goneNs_ = 0;     // when the deciding host's last rank was gone; 0: some live
  // State of all rounds.
  uint32_t toldSaid_ = 0;
  uint64_t toldWord_ = 0;
  wl_error_t lastWhy_ = blankError();
};

}  // namespace

Code shrink(Comm& comm, int64_t deadlineNs, std::shared_ptr<Group>* group, uint32_t* rank,
            wl_error_t* error) {
  if (Code code = comm.beginShrink(error); code != WL_OK) return code;
  return comm.endShrink(Shrink(comm, deadlineNs, error).run(group, rank));
}

}  // namespace windlass
