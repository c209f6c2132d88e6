// SPDX-License-Identifier: Apache-2.0
#include "native/peer/two_levels.h"

#include <algorithm>

#include "native/base/dtype.h"
#include "native/core/launch/rank_moves.h"
#include "native/peer/peer_access.h"

namespace windlass {
namespace {

// Shortest operation for two levels. Below it, the extra turns cost more than the bytes saved.
constexpr uint64_t kLeastBytes = uint64_t{64} << 10;

// Number of rounds that keeps both levels busy, unless rounds become too short to pay for their
// turns.
constexpr uint64_t kRounds = 8;
constexpr uint64_t kLeastRoundBytes = uint64_t{128} << 10;

// True if a fold of folds is bitwise equal to one left fold. It is not for sums of narrow floats,
// which are folded in a wider type.
bool foldsOn(DType dtype, ReduceOp op) {
  return !isFloat(dtype) || isSelection(op) || dtype == DType::kF32 || dtype == DType::kF64;
}

bool hasReached(const std::atomic<uint64_t>& word, uint64_t count) {
  return word.load(std::memory_order_acquire) >= count;
}

}  // namespace

TwoLevels::TwoLevels(Comm& comm, const PeerAccess& access)
    : PeerRank(comm), access_(access) {
  if (hosts_ == nullptr) return;
  inOrder_ = true;
  width_ = ranks_;
  for (uint32_t host = 0; host < hosts_->count(); ++host) {
    const std::vector<uint32_t>& ranks = hosts_->ranksOf(host);
    if (host > 0 && ranks.front() < hosts_->ranksOf(host - 1).back()) inOrder_ = false;
    width_ = std::min(width_, static_cast<uint32_t>(ranks.size()));
  }
  here_ = hosts_->ranksOf(hosts_->own());
  for (uint32_t host = 0; host < hosts_->count(); ++host) {
    const std::vector<uint32_t>& ranks = hosts_->ranksOf(host);
    lanes_.insert(lanes_.end(), ranks.begin(), ranks.begin() + width_);
  }
  for (uint32_t lane = 0; lane < width_; ++lane)
    if (rankOf(hosts_->own(), lane) == rank_) lane_ = lane;
  sources_.resize(1 + here_.size());
  factors_.resize(1 + here_.size());
}

bool TwoLevels::takes(const PullForm& form, const Launch& launch) const {
  if (hosts_ == nullptr || !form.reducesForAll || launch.bytes < kLeastBytes) return false;
  // With one rank a host, each element crosses as often as if all ranks read all, but in more
  // turns.
  return ranks_ > hosts_->count() && foldsOn(launch.dtype, launch.op) &&
         (inOrder_ || !isFloat(launch.dtype) || isSelection(launch.op));
}

uint64_t TwoLevels::slotBytes() const {
  return 2 * comm_.group().config().stageHalfBytes() / kSlots / kLine * kLine;
}

unsigned char* TwoLevels::slot(uint32_t rank, uint64_t round) const {
  return block().stage(rank, 0) + round % kSlots * slotBytes();
}

Part TwoLevels::roundOf(const Launch& launch, uint64_t round) const {
  const uint64_t start = round * roundBytes_;
  return {start, std::min(launch.bytes - start, roundBytes_)};
}

// Part of a lane, relative to the start of its round. It has the same offset in all rounds, so
// input of one round never overlaps a lane of another.
Part TwoLevels::laneOf(const Launch& launch, uint64_t round, uint32_t lane) const {
  const uint64_t bytes = roundOf(launch, round).bytes;
  const Part whole = Part{0, roundBytes_}.piece(lane, width_);
  const uint64_t start = std::min(whole.start, bytes);
  return {start, std::min(whole.bytes, bytes - start)};
}

uint32_t TwoLevels::stepsOver(uint32_t rank) const {
  const uint64_t over = line(rank).shown.load(std::memory_order_acquire) +
                        line(rank).used.load(std::memory_order_acquire);
  return over < 2 * before_ ? 0 : static_cast<uint32_t>(over - 2 * before_);
}

bool TwoLevels::canShow(uint64_t round) const {
  if (round < kSlots) return true;
  for (uint32_t lane = 0; lane < width_; ++lane) {
    const uint32_t rank = rankOf(hosts_->own(), lane);
    if (!hasReached(line(rank).passed, before_ + round - kSlots + 1)) return false;
  }
  return true;
}

// Returns true if the slots of the round may be filled. Once the result of a slot's last round has
// returned, the next host has folded the data in this rank's slot. The slots of results are reused
// too, but a result only arrives after this rank has passed the round.
bool TwoLevels::isTaken(uint64_t round) const {
  if (round < kSlots) return true;
  const uint64_t count = before_ + round - kSlots + 1;
  if (!hasReached(line(last(lane_)).came, count)) return false;
  return std::all_of(here_.begin(), here_.end(),
                     [&](uint32_t rank) { return hasReached(line(rank).used, count); });
}

bool TwoLevels::canPass(uint64_t round) const {
  const uint64_t count = before_ + round + 1;
  const uint32_t own = hosts_->own();
  if (own > 0 && !hasReached(line(rankOf(own - 1, lane_)).passed, count)) return false;
  const bool areShown = std::all_of(here_.begin(), here_.end(), [&](uint32_t rank) {
    return access_.shareProcess(rank, rank_) || hasReached(line(rank).shown, count);
  });
  return areShown && isTaken(round);
}

bool TwoLevels::canReturn(uint64_t round) const {
  return hasReached(line(last(lane_)).came, before_ + round + 1);
}

bool TwoLevels::canTake(uint64_t round) const {
  for (uint32_t lane = 0; lane < width_; ++lane)
    if (!hasReached(line(last(lane)).came, before_ + round + 1)) return false;
  return true;
}

void TwoLevels::keep(const char* broken) {
  if (broken != nullptr) *broken_ = broken;
}

void TwoLevels::show(const Launch& launch, uint64_t round) {
  const bool isRead = std::any_of(here_.begin(), here_.end(), [&](uint32_t rank) {
    return !access_.shareProcess(rank, rank_);
  });
  const Part part = roundOf(launch, round);
  const auto* from = launch.in(rank_) + part.start;
  for (uint32_t lane = 0; isRead && lane < width_; ++lane) {
    const Part piece = laneOf(launch, round, lane);
    if (lane == lane_ || piece.bytes == 0) continue;
    keep(kRankMoves.copy(slot(rank_, round) + piece.start, from + piece.start, piece.bytes, false));
  }
  line(rank_).shown.store(before_ + round + 1, std::memory_order_release);
}

void TwoLevels::pass(const Launch& launch, uint64_t round) {
  const uint32_t host = hosts_->own();
  const bool isLast = host + 1 == hosts_->count();
  const Part part = roundOf(launch, round);
  const Part piece = laneOf(launch, round, lane_);
  StageLine& own = line(rank_);
  unsigned char* const to = slot(rank_, round) + piece.start;
  if (piece.bytes > 0) {
    uint32_t count = 0;
    factors_[0] = 1;  // the fold of the hosts before has its factors
    if (host > 0) sources_[count++] = slot(rankOf(host - 1, lane_), round) + piece.start;
    for (const uint32_t rank : here_) {
      factors_[count] = launch.factor(rank);
      sources_[count++] = access_.shareProcess(rank, rank_)
                              ? launch.in(rank) + part.start + piece.start
                              : slot(rank, round) + piece.start;
    }
    const bool isMean = launch.op == ReduceOp::kAvg;
    keep(kRankMoves.fold(to, sources_.data(), count,
                       static_cast<int64_t>(piece.bytes / sizeOf(launch.dtype)), launch.dtype,
                       isMean && !isLast ? ReduceOp::kSum : launch.op, launch.ranks,
                       factors_.data()));
  }
  std::atomic<uint64_t>& word = isLast ? own.came : own.passed;
  own.passed.store(before_ + round + 1, std::memory_order_release);
  word.store(before_ + round + 1, std::memory_order_release);
  hosts_->put(isLast ? host - 1 : host + 1, to, piece.bytes, &word, before_ + round + 1);
}

void TwoLevels::giveBack(const Launch& launch, uint64_t round) {
  const Part piece = laneOf(launch, round, lane_);
  const uint32_t host = hosts_->own() - 1;
  hosts_->put(host, slot(last(lane_), round) + piece.start, piece.bytes,
              &line(last(lane_)).came, before_ + round + 1);
}

void TwoLevels::take(const Launch& launch, uint64_t round) {
  const Part part = roundOf(launch, round);
  for (uint32_t lane = 0; lane < width_; ++lane) {
    const Part piece = laneOf(launch, round, lane);
    if (piece.bytes == 0) continue;
    keep(kRankMoves.copy(launch.out(rank_) + part.start + piece.start,
                       slot(last(lane), round) + piece.start, piece.bytes, launch.streams));
  }
  line(rank_).used.store(before_ + round + 1, std::memory_order_release);
}

Code TwoLevels::run(const Launch& launch, Deadline& deadline, std::string* broken) {
  broken_ = broken;
  const uint64_t least = std::min(std::max(launch.bytes / kRounds, kLeastRoundBytes), slotBytes());
  const uint64_t rounds = (launch.bytes + least - 1) / least;
  roundBytes_ = wholeLines((launch.bytes + rounds - 1) / rounds);
  rounds_ = static_cast<uint32_t>((launch.bytes + roundBytes_ - 1) / roundBytes_);
  // Steps that other ranks wait for come first.
  Step pass = {&TwoLevels::canPass, &TwoLevels::pass};
  Step giveBack = {&TwoLevels::canReturn, &TwoLevels::giveBack};
  Step show = {&TwoLevels::canShow, &TwoLevels::show};
  Step take = {&TwoLevels::canTake, &TwoLevels::take};
  Step* const steps[] = {&pass, &giveBack, &show, &take};
  const uint32_t own = hosts_->own();
  if (!hasLane()) pass.rounds = rounds_;
  if (!hasLane() || own == 0 || own + 1 == hosts_->count()) giveBack.rounds = rounds_;
  const auto can = [&](const Step* step) {
    return step->rounds < rounds_ && (this->*step->can)(step->rounds);
  };
  const auto isReady = [&] { return std::any_of(std::begin(steps), std::end(steps), can); };
  while (take.rounds < rounds_ || pass.rounds < rounds_ || giveBack.rounds < rounds_) {
    if (Code code = comm_.waits().wait(isReady, kEveryRank, deadline)) return code;
    for (Step* const step : steps)
      if (can(step)) (this->*step->run)(launch, step->rounds++);
    comm_.waits().waiter().ring();
    hosts_->progress();
  }
  before_ += rounds_;
  rounds_ = 0;
  return WL_OK;
}

}  // namespace windlass
