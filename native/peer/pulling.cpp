// SPDX-License-Identifier: Apache-2.0
#include "native/peer/pulling.h"

#include <algorithm>
#include <new>
#include <utility>

#include "native/core/launch/rank_moves.h"
#include "native/memory/memory.h"

namespace windlass {
namespace {

// Size of the buffer for data that is being folded.
constexpr uint64_t kScratchBytes = uint64_t{1} << 20;
// Bytes between two checks that the operation continues.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kFoldedPiece = uint64_t{64} << 10;
// Longest short part. If each rank has a core, the system calls of ranks that only copy run in
// parallel, and pay off sooner.
constexpr uint64_t kShortBytes = uint64_t{256} << 10;
constexpr uint64_t kShortCopiedBytes = uint64_t{32} << 10;
// Shortest data that ranks of one host read directly although other hosts use staging buffers.
constexpr uint64_t kLeastReadBeside = uint64_t{128} << 10;
// Shortest part that goes straight into the receive buffer. A shorter one is faster through a
// staging buffer, because its message carries the word too.
constexpr uint64_t kLeastLanded = uint64_t{32} << 10;

}  // namespace

std::unique_ptr<PeerReads> PeerReads::make(Comm& comm) {
  try {
    return std::make_unique<Pulling>(comm);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Pulling::Pulling(Comm& comm)
    : PeerRank(comm),
      access_(comm),
      items_(comm, access_),
      twoLevels_(comm, access_),
      sources_(ranks_),
      factors_(ranks_),
      scratch_(static_cast<unsigned char*>(mapMemory(kScratchBytes))) {
  if (scratch_ == nullptr) throw std::bad_alloc();
}

Pulling::~Pulling() { unmapMemory(scratch_, kScratchBytes); }

bool Pulling::lands(const Phase& phase, uint32_t from, uint32_t to) const {
  const PullPhase& of = phase.of();
  // If parts differ in size, their senders state the sizes, too late for the receiver.
  return hosts_ != nullptr && of.apart && !of.folds && !of.byColumns && phase.launch.bytes > 0 &&
         hosts_->hostOf(from) != hosts_->hostOf(to) &&
         phase.pulled(from, to).bytes >= kLeastLanded;
}

Pulling::Route Pulling::routeOf(const Phase& phase, uint32_t from, uint32_t to) const {
  if (lands(phase, from, to)) return Route::kLanded;
  if (!phase.place(from).isOrdinary() || access_.shareProcess(from, to)) return Route::kDirect;
  if (!phase.staged) return Route::kRead;
  const bool isReadBeside = access_.readsBeside() && !phase.of().folds &&
                            hosts_->hostOf(from) == hosts_->hostOf(to) &&
                            phase.pulled(from, to).bytes >= kLeastReadBeside;
  return isReadBeside ? Route::kRead : Route::kStaged;
}

bool Pulling::isAnyFar(const PullForm& form, const Launch& launch) const {
  for (uint32_t k = 0; k < form.phases && access_.areSeveral(); ++k) {
    const Phase phase = {form, launch, k, false};
    for (uint32_t from = 0; from < ranks_; ++from)
      if (phase.place(from).isOrdinary()) return true;
  }
  return false;
}

bool Pulling::isShort(const PullForm& form, const Launch& launch) const {
  // If parts differ in size, other ranks state the sizes.
  if (launch.bytes == 0) return false;
  const uint64_t copied = comm_.group().oversubscribed() ? kShortBytes : kShortCopiedBytes;
  for (uint32_t k = 0; k < form.phases; ++k) {
    const PullPhase& phase = form.phase[k];
    // Copied data fits into one round, because ranks wait for one another in each.
    const uint64_t most = phase.folds ? kShortBytes : std::min(copied, segmentOf(phase));
    // The size depends either on the reader only or on the owner only. Pairs of neighbours
    // therefore cover all sizes.
    for (uint32_t from = 0; from < ranks_; ++from)
      if (form.pulled(launch, from, (from + 1) % ranks_, k).bytes > most) return false;
  }
  return true;
}

bool Pulling::useOnlyStages(const Launch& launch) const {
  // If parts differ in size, ranks read one another's tables.
  if (launch.bytes == 0) return false;
  const auto isReached = [](Place place) { return !place.isNone() && !place.isOrdinary(); };
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const RankArgs& stated = launch.of(rank);
    if (isReached(stated.in) || isReached(stated.out)) return false;
    if (rank != rank_ && access_.shareProcess(rank, rank_)) return false;
  }
  return true;
}

Code Pulling::run(const PullForm& form, const Launch& launch, Deadline& deadline,
                  wl_error_t* error) {
  access_.look();
  steps_ = 0;
  bool staged = false;
  if (isAnyFar(form, launch)) {
    if (Code code = access_.settle(deadline, error)) return code;
    if (Code code = access_.choose(isShort(form, launch), &staged, deadline)) return code;
  }
  const bool inTwoLevels = twoLevels_.takes(form, launch);
  bool isFree = staged && !inTwoLevels && useOnlyStages(launch);
  for (uint32_t k = 0; isFree && k < form.phases; ++k) {
    for (uint32_t to = 0; to < ranks_; ++to)
      isFree = isFree && routeOf({form, launch, k, true}, rank_, to) != Route::kRead;
  }
  // True if this rank waits only for ranks of its own host at the end of a phase, because no others
  // read its memory. In two levels it is false, because other hosts fill slots anew. After a lead
  // it is false, because all ranks wait for what the lead wrote.
  const bool waitsForOwnHost = hosts_ != nullptr && !inTwoLevels && form.lead == nullptr;
  for (uint32_t k = inTwoLevels ? form.phases - 1 : 0; k < form.phases; ++k) {
    if (k == 0 && form.lead != nullptr) {
      if (const char* broken = kRankMoves.lead(form, launch, rank_)) broken_ = broken;
      if (hosts_ != nullptr) tellRefused(launch);
    }
    if (Code code = inTwoLevels ? runTwoLevels(launch, deadline)
                                : runPhase({form, launch, k, staged}, deadline)) {
      return code;
    }
    if (!broken_.empty()) {
      const std::string broken = std::exchange(broken_, std::string());
      return comm_.failures().publishBreach(comm_.rank(), broken.c_str());
    }
    if (Code code = access_.confirm()) return code;
    // After a failure, the owner of the data may change it. Data read since then may be wrong.
    if (Code code = comm_.waits().ended(deadline, clockNs())) return code;
    comm_.operation().finishPhase(rank_, k);
    const std::atomic<uint64_t>& done = comm_.group().lines(rank_).done.word;
    if (hosts_ != nullptr && waitsForOwnHost) hosts_->tellSoon(done);
    if (hosts_ != nullptr && !waitsForOwnHost) hosts_->tell(done);
    comm_.waits().waiter().ring();
    // A rank that is free to continue does not wait here. It waits for readers before it fills a
    // half of its staging buffer again.
    for (uint32_t rank = 0; !isFree && rank < ranks_; ++rank) {
      if (waitsForOwnHost && !hosts_->isBeside(rank)) continue;
      if (Code code = comm_.waits().awaitNeed(rank, k + 1, deadline)) return code;
    }
    if (hosts_ != nullptr && !inTwoLevels) tellTaken({form, launch, k, staged});
  }
  return WL_OK;
}

// Publishes to other hosts that this rank has read the halves, and has received the data sent
// straight to it.
void Pulling::tellTaken(const Phase& phase) const {
  if (phase.staged) hosts_->tellSoon(line(rank_).taken);
  for (uint32_t from = 0; from < ranks_; ++from)
    if (lands(phase, from, rank_))
      hosts_->tellSoon(block().stagePair(from, rank_).taken, hosts_->hostOf(from));
}

// Sends to other hosts what this rank's lead wrote: the bytes that it needs, and the refusals. Does
// nothing if the parts of other ranks fit into its room.
void Pulling::tellRefused(const Launch& launch) const {
  const PartTable& own = launch.parts(rank_);
  if (own.needed <= own.room) return;
  hosts_->tell(reinterpret_cast<const std::atomic<uint64_t>&>(own.needed));
  for (uint32_t other = 0; other < ranks_; ++other)
    hosts_->tell(reinterpret_cast<const std::atomic<uint32_t>&>(launch.parts(other).refused));
}

Code Pulling::runPhase(const Phase& phase, Deadline& deadline) {
  const uint64_t segment = segmentOf(phase.of());
  uint64_t most = 0;
  for (uint32_t from = 0; phase.staged && from < ranks_; ++from) {
    for (uint32_t to = 0; to < ranks_; ++to)
      if (isStaged(phase, from, to)) most = std::max(most, phase.pulled(from, to).bytes);
  }
  if (Code code = land(phase, deadline)) return code;
  const uint64_t rounds = (most + segment - 1) / segment;
  if (Code code = rounds > 0 ? runRounds(phase, segment, rounds, deadline) : WL_OK) return code;
  const bool folds = phase.of().folds;
  Code code = WL_OK;
  comm_.waits().waiter().move(
      [&] { code = folds ? foldAll(phase, deadline) : readAll(phase, deadline); });
  return code == WL_OK && !folds ? awaitLanded(phase, deadline) : code;
}

// Reads the data that does not go through staging buffers.
Code Pulling::readAll(const Phase& phase, Deadline& deadline) {
  for (uint32_t step = 0; step < ranks_; ++step) {
    const uint32_t from = (rank_ + step) % ranks_;
    const Route route = routeOf(phase, from, rank_);
    const Pulled pulled = phase.pulled(from, rank_);
    if (pulled.bytes == 0 || route == Route::kStaged || route == Route::kLanded) continue;
    const Place place = phase.place(from);
    for (uint64_t at = 0; at < pulled.bytes; at += kPieceBytes) {
      const uint64_t count = std::min(pulled.bytes - at, kPieceBytes);
      const uint64_t start = pulled.from + at;
      if (Code code = at > 0 ? comm_.waits().ended(deadline, clockNs()) : WL_OK) return code;
      if (route == Route::kDirect) {
        put(phase, pulled, at, phase.launch.at<const uint8_t>(from, place) + start, count);
        continue;
      }
      uint8_t* out = phase.launch.out(rank_) + pulled.into + at;
      void* into = phase.of().byColumns ? scratch_ : out;
      static_assert(kPieceBytes <= kScratchBytes, "a piece fits");
      const PeerMemory::Run run = {place.offset() + start, count};
      if (Code code = access_.read(from, into, &run, 1, deadline)) return code;
      if (into != out) put(phase, pulled, at, scratch_, count);
    }
  }
  return WL_OK;
}

// Folds if none of this rank's input goes through staging buffers.
Code Pulling::foldAll(const Phase& phase, Deadline& deadline) {
  const Pulled pulled = phase.pulled(rank_, rank_);
  const uint32_t terms = phase.terms(rank_);
  uint32_t far = 0;
  for (uint32_t from = 0; from < terms; ++from)
    far += routeOf(phase, from, rank_) == Route::kDirect ? 0 : 1;
  if (far > 0 && phase.staged) return WL_OK;
  const uint32_t copied = phase.readsColumns() ? terms : far;
  const uint64_t piece =
      copied == 0 ? kFoldedPiece : std::min(kFoldedPiece, kScratchBytes / copied / kLine * kLine);
  for (uint64_t at = 0; at < pulled.bytes; at += piece) {
    const uint64_t count = std::min(pulled.bytes - at, piece);
    unsigned char* next = scratch_;
    if (Code code = at > 0 ? comm_.waits().ended(deadline, clockNs()) : WL_OK) return code;
    for (uint32_t from = 0; from < terms; ++from) {
      if (routeOf(phase, from, rank_) == Route::kDirect) {
        findSource(phase, pulled, from, at, count, &next);
        continue;
      }
      sources_[from] = next;
      const uint64_t start = phase.place(from).offset() + pulled.from;
      const PeerMemory::Run run = {start + at, count};
      const Code code =
          phase.readsColumns()
              ? access_.read(from, next, phase.columns(start, pulled), at, count, deadline)
              : access_.read(from, next, &run, 1, deadline);
      if (code != WL_OK) return code;
      next += piece;
    }
    fold(phase, pulled, at, count);
  }
  return WL_OK;
}

void Pulling::copy(void* to, const void* from, uint64_t bytes) const {
  if (const char* broken = kRankMoves.copy(to, from, bytes, false)) broken_ = broken;
}

void Pulling::copyPart(const Phase& phase, const Pulled& pulled, void* to, const uint8_t* from,
                       uint64_t at, uint64_t count) const {
  if (!phase.readsColumns()) return copy(to, from + at, count);
  const FarBox columns = phase.columns(reinterpret_cast<uint64_t>(from), pulled);
  if (const char* broken = kRankMoves.copyBox(to, columns, at, count)) broken_ = broken;
}

void Pulling::findSource(const Phase& phase, const Pulled& pulled, uint32_t from, uint64_t at,
                         uint64_t count, unsigned char** room) {
  const auto* start = phase.launch.at<const uint8_t>(from, phase.place(from)) + pulled.from;
  sources_[from] = start + at;
  if (!phase.readsColumns()) return;
  copyPart(phase, pulled, *room, start, at, count);
  sources_[from] = *room;
  *room += wholeLines(count);
}

void Pulling::put(const Phase& phase, const Pulled& pulled, uint64_t at, const uint8_t* bytes,
                  uint64_t count) const {
  uint8_t* out = phase.launch.out(rank_) + pulled.into;
  if (!phase.of().byColumns) {
    if (out + at != bytes) copy(out + at, bytes, count);
    return;
  }
  const uint64_t rowBytes = pulled.bytes / phase.launch.rows();
  while (count > 0) {
    const uint64_t column = at % rowBytes;
    const uint64_t length = std::min(rowBytes - column, count);
    copy(out + at / rowBytes * ranks_ * rowBytes + column, bytes, length);
    at += length;
    bytes += length;
    count -= length;
  }
}

void Pulling::fold(const Phase& phase, const Pulled& pulled, uint64_t at, uint64_t count) {
  const DType dtype = phase.launch.dtype;
  const uint32_t terms = phase.terms(rank_);
  for (uint32_t from = 0; from < terms; ++from) factors_[from] = phase.launch.factor(from);
  const char* broken = kRankMoves.fold(phase.launch.out(rank_) + pulled.into + at, sources_.data(),
                                     terms, static_cast<int64_t>(count / sizeOf(dtype)), dtype,
                                     phase.launch.op, terms, factors_.data());
  if (broken != nullptr) broken_ = broken;
}

}  // namespace windlass
