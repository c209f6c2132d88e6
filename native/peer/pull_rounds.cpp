// SPDX-License-Identifier: Apache-2.0
// Rounds of a phase, for data that goes through staging buffers. In each round, a rank fills one
// half of its staging buffer and takes data from those of the others.
#include <algorithm>

#include "native/peer/pulling.h"

namespace windlass {

uint32_t Pulling::over(uint32_t rank) const {
  if (access_.isAgreeing()) return access_.hasTold(rank) ? 1 : 0;
  if (twoLevels_.steps() > 0) return twoLevels_.stepsOver(rank);
  const uint64_t over = line(rank).filled.load(std::memory_order_acquire) +
                        line(rank).taken.load(std::memory_order_acquire);
  return over < 2 * rounds_ ? 0 : static_cast<uint32_t>(over - 2 * rounds_);
}

uint64_t Pulling::segmentOf(const PullPhase& phase) const {
  const GroupConfig& config = comm_.group().config();
  return phase.apart ? config.stagePartBytes() : config.stageHalfBytes();
}

// All ranks take part in all rounds, so that they count alike.
Code Pulling::runRounds(const Phase& phase, uint64_t segment, uint64_t rounds,
                        Deadline& deadline) {
  StageLine& own = line(rank_);
  steps_ = static_cast<uint32_t>(std::min<uint64_t>(2 * rounds, UINT32_MAX));
  for (uint64_t round = 0; round < rounds; ++round) {
    if (!isFilled_) {
      if (Code code = fill(phase, segment, round, deadline)) return code;
      tellFilled(phase, segment, round);
      comm_.waits().waiter().ring();
    }
    isFilled_ = false;
    if (Code code = take(phase, segment, round, deadline)) return code;
    own.taken.store(rounds_ + round + 1, std::memory_order_release);
    // tellTaken() sends the word of the last round.
    if (hosts_ != nullptr && round + 1 < rounds) hosts_->tell(own.taken);
    comm_.waits().waiter().ring();
  }
  rounds_ += rounds;
  steps_ = 0;
  return WL_OK;
}

const uint8_t* Pulling::staged(const Phase& phase, uint32_t from, uint32_t to, uint64_t segment,
                               uint64_t round) const {
  const uint8_t* half = block().stage(from, rounds_ + round);
  return phase.of().apart ? half + to * segment : half;
}

bool Pulling::isReadFrom(const Phase& phase, uint64_t at) const {
  for (uint32_t to = 0; to < ranks_; ++to)
    if (isStaged(phase, rank_, to) && phase.pulled(rank_, to).bytes > at) return true;
  return false;
}

// Returns true if the reader has read the half of two rounds ago, which is filled again in this
// round. A reader that needs no more data counts rounds too.
bool Pulling::hasTaken(uint32_t reader, uint64_t round) const {
  const std::atomic<uint64_t>& taken = line(reader).taken;
  return taken.load(std::memory_order_acquire) + 1 >= rounds_ + round;
}

void Pulling::copyHalf(const Phase& phase, uint64_t segment, uint64_t round) {
  const uint64_t at = round * segment;
  const auto* source = phase.launch.at<const uint8_t>(rank_, phase.place(rank_));
  for (uint32_t step = 1; step < ranks_; ++step) {
    const uint32_t to = (rank_ + step) % ranks_;
    const Pulled pulled = phase.pulled(rank_, to);
    if (!isStaged(phase, rank_, to) || pulled.bytes <= at) continue;
    copyPart(phase, pulled, const_cast<uint8_t*>(staged(phase, rank_, to, segment, round)),
             source + pulled.from, at, std::min(pulled.bytes - at, segment));
    if (!phase.of().apart) return;
  }
}

Code Pulling::fill(const Phase& phase, uint64_t segment, uint64_t round, Deadline& deadline) {
  if (!isReadFrom(phase, round * segment)) return WL_OK;
  for (uint32_t reader = 0; reader < ranks_; ++reader) {
    if (access_.shareProcess(reader, rank_)) continue;
    const auto isTaken = [&] { return hasTaken(reader, round); };
    if (Code code = comm_.waits().wait(isTaken, reader, deadline)) return code;
  }
  copyHalf(phase, segment, round);
  return WL_OK;
}

void Pulling::tellFilled(const Phase& phase, uint64_t segment, uint64_t round) {
  std::atomic<uint64_t>& word = line(rank_).filled;
  word.store(rounds_ + round + 1, std::memory_order_release);
  const uint64_t at = round * segment;
  for (uint32_t host = 0; hosts_ != nullptr && host < hosts_->count(); ++host) {
    if (host == hosts_->own()) continue;
    // Last data to send. The word follows it.
    const uint8_t* last = staged(phase, rank_, rank_, segment, round);
    uint64_t bytes = 0;
    for (uint32_t to = 0; to < ranks_; ++to) {
      if (hosts_->hostOf(to) != host || !isStaged(phase, rank_, to)) continue;
      const Pulled pulled = phase.pulled(rank_, to);
      if (pulled.bytes <= at) continue;
      const uint64_t count = std::min(pulled.bytes - at, segment);
      if (!phase.of().apart) {
        bytes = std::max(bytes, count);
        continue;
      }
      if (bytes > 0) hosts_->put(host, last, bytes);
      last = staged(phase, rank_, to, segment, round);
      bytes = count;
    }
    hosts_->put(host, last, bytes, &word, rounds_ + round + 1);
  }
}

Code Pulling::runTwoLevels(const Launch& launch, Deadline& deadline) {
  for (uint32_t reader = 0; reader < ranks_; ++reader) {
    const auto hasTakenAll = [&] { return hasTaken(reader, 1); };
    if (Code code = comm_.waits().wait(hasTakenAll, reader, deadline)) return code;
  }
  return twoLevels_.run(launch, deadline, &broken_);
}

void Pulling::beforeEntry(const PullForm& form, const Launch& launch) {
  if (hosts_ != nullptr) receive(form, launch);
  if (twoLevels_.takes(form, launch)) return;
  // If parts differ in size, this rank does not know yet what others read of it.
  if (launch.bytes == 0 || !access_.areReserved() || !access_.isStaged(isShort(form, launch)))
    return;
  const Phase phase = {form, launch, 0, true};
  if (!isReadFrom(phase, 0)) return;
  for (uint32_t reader = 0; reader < ranks_; ++reader)
    if (!access_.shareProcess(reader, rank_) && !hasTaken(reader, 0)) return;
  copyHalf(phase, segmentOf(phase.of()), 0);
  tellFilled(phase, segmentOf(phase.of()), 0);
  isFilled_ = true;
}

Code Pulling::take(const Phase& phase, uint64_t segment, uint64_t round, Deadline& deadline) {
  const uint64_t at = round * segment;
  bool isAny = false;
  const uint32_t terms = phase.terms(rank_);
  for (uint32_t step = 0; step < ranks_; ++step) {
    const uint32_t from = (rank_ + step) % ranks_;
    const Pulled pulled = phase.pulled(from, rank_);
    if (from >= terms || !isStaged(phase, from, rank_) || pulled.bytes <= at) continue;
    const std::atomic<uint64_t>& filled = line(from).filled;
    const auto isFilled = [&] { return filled.load(std::memory_order_acquire) > rounds_ + round; };
    if (Code code = comm_.waits().wait(isFilled, from, deadline)) return code;
    const uint8_t* bytes = staged(phase, from, rank_, segment, round);
    isAny = true;
    sources_[from] = bytes;
    if (!phase.of().folds) put(phase, pulled, at, bytes, std::min(pulled.bytes - at, segment));
  }
  if (!isAny || !phase.of().folds) return WL_OK;
  const Pulled pulled = phase.pulled(rank_, rank_);
  const uint64_t count = std::min(pulled.bytes - at, segment);
  unsigned char* next = scratch_;
  for (uint32_t from = 0; from < terms; ++from)
    if (routeOf(phase, from, rank_) == Route::kDirect)
      findSource(phase, pulled, from, at, count, &next);
  fold(phase, pulled, at, count);
  return WL_OK;
}

}  // namespace windlass
