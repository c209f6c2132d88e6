// SPDX-License-Identifier: Apache-2.0
#include "native/comm/shrink.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <vector>

#include "native/base/clock.h"
#include "native/comm/failure_text.h"
#include "native/comm/shared_group.h"

namespace windlass {
namespace {

// How long the next rank waits before it does what the one before it should have done.
constexpr int64_t kTurnNs = 100'000'000;
// What a round may take beyond the deadline, and all of them together.
constexpr int64_t kRoundNs = 2'000'000'000;
constexpr int64_t kGraceNs = 10'000'000'000;
constexpr int64_t kLongestNs = int64_t{1} << 61;
// Between two looks, which go over all ranks.
constexpr uint32_t kLookOfRankUs = 20;
constexpr uint32_t kLeastLookUs = 100;
constexpr uint32_t kMostLookUs = 20'000;

// The new communicator as a round proposes it, and as this process holds it.
class Proposal {
 public:
  // By the rank that proposes it. Throws std::bad_alloc.
  Code make(const Group& whole, const std::vector<uint32_t>& members, wl_error_t* error) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (whole.config().spansProcesses) {
      if (Code code = shared_.make(whole, members, error); code != WL_OK) return code;
      block_ = ControlBlock(shared_.mapping().memory());
      return WL_OK;
    }
    GroupConfig config = whole.config();
    config.ranks = static_cast<uint32_t>(members.size());
    local_ = Group::create(config);
    if (local_ == nullptr) throw std::bad_alloc();
    local_->comeFrom(whole, members);
    block_ = local_->block();
    return WL_OK;
  }
  int32_t file() { return shared_.mapping().file(); }

  // By any rank. WL_PEER_LOST: whoever proposed it is gone.
  Code open(const Group& whole, const Agreement& told, wl_error_t* error) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (block_.base() != 0) return WL_OK;
    if (!whole.config().spansProcesses)
      return fail(error, WL_PEER_LOST, "rank %u proposes nothing any more", told.maker);
    SharedMapping& mapping = shared_.mapping();
    if (Code code = mapping.map(whole.processOf(told.maker), told.file, error); code != WL_OK)
      return code;
    if (Code code = checkPart(mapping, whole, error); code != WL_OK) return code;
    block_ = ControlBlock(mapping.memory());
    return WL_OK;
  }

  // Once that was done.
  uint32_t size() const { return block_.shared().config.ranks; }
  uint32_t former(uint32_t rank) const { return block_.member(rank).former; }
  std::atomic<uint32_t>& holding() const { return block_.shared().holding; }
  // kNobody where that rank of the whole is no member.
  uint32_t rankOf(uint32_t of) const {
    for (uint32_t rank = 0; rank < size(); ++rank)
      if (former(rank) == of) return rank;
    return kNobody;
  }
  // Throws std::bad_alloc, std::system_error.
  Code join(Group& whole, uint32_t rank, wl_error_t* error) {
    Code code = local_ == nullptr ? shared_.attach(whole, error) : WL_OK;
    return code == WL_OK ? group()->claim(rank, error) : code;
  }
  Group* group() { return local_ == nullptr ? shared_.group() : local_.get(); }

 private:
  std::mutex mutex_;  // guards how the rest comes to be
  SharedGroup shared_;
  std::shared_ptr<Group> local_;  // where all ranks live in this process
  ControlBlock block_;
};

// One rank's call.
class Shrink {
 public:
  Shrink(Comm& comm, int64_t deadlineNs, wl_error_t* error)
      : comm_(comm),
        whole_(comm.group()),
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
      if (code == WL_OK) usleep(pauseUs);
    }
    if (whole_.leftOut(comm_.rank())) return comm_.status(error_);
    if (proposal_ == nullptr) {
      return fail(error_, WL_INVALID_ARGUMENT,
                  "rank %u has shrunk this communicator already; use the one that it got",
                  comm_.rank());
    }
    *group = std::shared_ptr<Group>(proposal_, proposal_->group());
    *rank = rank_;
    return WL_OK;
  }

 private:
  Agreement look() const {
    return Agreement::of(whole_.shared().shrink.load(std::memory_order_seq_cst));
  }
  bool move(const Agreement& from, const Agreement& to) const {
    uint64_t word = from.word();
    return whole_.shared().shrink.compare_exchange_strong(word, to.word(),
                                                          std::memory_order_seq_cst);
  }
  // Opens the next round, unless ranks have agreed, or one did.
  void abandon(const Agreement& proposed) const {
    move(proposed, {Agreement::kOpen, proposed.round + 1, 0, 0});
  }

  bool isGone(uint32_t rank) const {
    return whole_.member(rank).lost.load(std::memory_order_seq_cst) != 0 ||
           whole_.lines(rank).state.closing.load(std::memory_order_seq_cst) != 0 ||
           whole_.member(rank).shrink.load(std::memory_order_seq_cst) == Agreement::kGaveUp;
  }
  bool hasCome(uint32_t rank) const {
    return whole_.member(rank).shrink.load(std::memory_order_seq_cst) == Agreement::came(round_);
  }
  bool holds() const {
    return own_.load(std::memory_order_relaxed) == Agreement::holds(round_);
  }

  // Whether this rank is out of it: not where ranks agreed meanwhile, and it holds the new one.
  bool givesUp() {
    const auto concerns = [&](const Agreement& now) {
      return now.round == round_ && now.step != Agreement::kOpen &&
             (holds() || now.maker == comm_.rank());
    };
    for (Agreement now = look(); concerns(now); now = look()) {
      if (now.step == Agreement::kAgreed) return false;
      abandon(now);
    }
    // In the rounds to come it holds nothing.
    own_.store(Agreement::kGaveUp, std::memory_order_seq_cst);
    return true;
  }

  Code goOn(const Agreement& now, int64_t atNs) {
    if (comm_.closes())
      return fail(error_, WL_CLOSED, "rank %u was closed in shrink", comm_.rank());
    if (comm_.shrinkAborted())
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
      proposal_.reset();
      joint_.reset();
      own_.store(Agreement::came(round_), std::memory_order_seq_cst);
    }
    try {
      if (now.step == Agreement::kProposed) return answer(now, atNs);
      return isTurn(atNs) ? propose(now) : WL_OK;
    } catch (const std::bad_alloc&) {
      return copyError(error_, noMemory(comm_.rank()), nullptr);
    } catch (const std::system_error&) {
      return fail(error_, WL_RESOURCE, "rank %u: no thread to watch other processes", comm_.rank());
    }
  }

  // Whether this rank is to propose now.
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
    return atNs >= (complete ? std::min(completeNs_, limitNs_) : limitNs_) + before * kTurnNs;
  }

  // What `maker` proposes in this round.
  Group::Joint<Proposal> proposalOf(uint32_t maker) const {
    return whole_.join<Proposal>(round_, Group::kJointShrink - static_cast<int32_t>(maker),
                                 [] { return std::make_shared<Proposal>(); });
  }

  Code propose(const Agreement& open) {
    std::vector<uint32_t> members;
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank)
      if (!isGone(rank) && hasCome(rank)) members.push_back(rank);
    Group::Joint<Proposal> joint = proposalOf(comm_.rank());
    const std::shared_ptr<Proposal>& made = *joint;
    if (Code code = made->make(whole_, members, error_); code != WL_OK) return code;
    const Agreement proposed = {Agreement::kProposed, round_, comm_.rank(), made->file()};
    if (!move(open, proposed)) return WL_OK;
    proposal_ = made;
    joint_ = std::move(joint);
    rank_ = proposal_->rankOf(comm_.rank());
    return WL_OK;
  }

  Code answer(const Agreement& proposed, int64_t atNs) {
    if (proposal_ == nullptr) {
      if (Code code = open(proposed); code != WL_OK || proposal_ == nullptr) return code;
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

  // proposal_ stays as it is where there is nothing to open any more.
  Code open(const Agreement& proposed) {
    Group::Joint<Proposal> joint = proposalOf(proposed.maker);
    const std::shared_ptr<Proposal>& told = *joint;
    wl_error_t why = blankError();
    const Code code = told->open(whole_, proposed, &why);
    // Until here the number was that file's.
    if (look().word() != proposed.word()) return WL_OK;
    if (code == WL_PEER_LOST) abandon(proposed);
    if (code != WL_OK) return code == WL_PEER_LOST ? WL_OK : copyError(error_, why, nullptr);
    proposal_ = told;
    joint_ = std::move(joint);
    rank_ = proposal_->rankOf(comm_.rank());
    return WL_OK;
  }

  Code late(int64_t atNs) {
    wl_error_t record = blankError(WL_TIMEOUT);
    Text out(record.message, sizeof record.message);
    out.add("rank %u waited %.3f s in shrink, and ranks came to no decision in %u rounds",
            comm_.rank(), static_cast<double>(atNs - startNs_) / 1e9, round_ + 1);
    for (uint32_t rank = 0; rank < whole_.ranks(); ++rank) {
      const uint32_t said = whole_.member(rank).shrink.load(std::memory_order_seq_cst);
      if (isGone(rank) || said >= Agreement::came(round_)) continue;
      if (record.culprit_count < WL_ERROR_CULPRITS)
        record.culprits[record.culprit_count] = static_cast<int32_t>(rank);
      out.add("%s rank %u", record.culprit_count++ == 0 ? "; what has not answered:" : ",", rank);
    }
    out.add(". Call it again, or close this communicator and start anew");
    record.operation = WL_OP_SHRINK;
    record.observer = static_cast<int32_t>(comm_.rank());
    return copyError(error_, record, nullptr);
  }

  Comm& comm_;
  Group& whole_;
  std::atomic<uint32_t>& own_;
  const int64_t startNs_;
  const int64_t deadlineNs_;
  wl_error_t* const error_;
  // Of the round that this rank is in.
  uint32_t round_ = 0;
  Agreement::Step step_ = Agreement::kOpen;
  int64_t limitNs_ = 0;     // until when its step lasts; 0: there is none yet
  int64_t completeNs_ = 0;  // since when all have come; 0: not yet
  std::shared_ptr<Proposal> proposal_;  // what it proposes, as soon as this rank has it
  Group::Joint<Proposal> joint_;        // of that
  uint32_t rank_ = kNobody;             // of this rank there
};

}  // namespace

Code shrink(Comm& comm, int64_t deadlineNs, std::shared_ptr<Group>* group, uint32_t* rank,
            wl_error_t* error) {
  if (Code code = comm.beginShrink(error); code != WL_OK) return code;
  return comm.endShrink(Shrink(comm, deadlineNs, error).run(group, rank));
}

}  // namespace windlass
