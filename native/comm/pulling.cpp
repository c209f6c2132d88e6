// SPDX-License-Identifier: Apache-2.0
#include "native/comm/pulling.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>

#include "native/base/target.h"
#include "native/comm/comm.h"
#include "native/comm/failure_text.h"
#include "native/comm/far.h"
#include "native/comm/names.h"
#include "native/window/memory.h"
#include "windlass/chunk.h"

namespace windlass {
namespace {

// What a rank says in StageLine::answer.
constexpr uint32_t kReads = 1;    // it reads the memory of every other process
constexpr uint32_t kStages = 2;   // its process was told to use stages
constexpr uint32_t kCannot = 3;   // it can't read that of one
constexpr uint32_t kInsists = 8;  // beside these: its process was told to read
constexpr uint32_t kSaid = 7;     // bits of the above

// Where what is folded lies while it is.
constexpr uint64_t kScratchBytes = uint64_t{1} << 20;
// Between two looks at whether the operation goes on.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kFoldedPiece = uint64_t{64} << 10;

constexpr uint64_t lines(uint64_t bytes) {
  return bytes / kLine * kLine;
}

}  // namespace

std::unique_ptr<Pulling> Pulling::make(Comm& comm) {
  try {
    std::unique_ptr<Pulling> made(new Pulling(comm));
    made->scratch_ = static_cast<unsigned char*>(mapMemory(kScratchBytes));
    return made->scratch_ == nullptr ? nullptr : std::move(made);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Pulling::Pulling(Comm& comm)
    : comm_(comm),
      rank_(comm.rank()),
      ranks_(comm.group().ranks()),
      process_(ranks_),
      memories_(ranks_),
      sources_(ranks_),
      views_(ranks_),
      served_(ranks_),
      read_(ranks_) {}

Pulling::~Pulling() {
  if (scratch_ != nullptr) unmapMemory(scratch_, kScratchBytes);
}

void Pulling::look() {
  if (looked_) return;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    process_[rank] = rank;
    for (uint32_t other = 0; other < rank; ++other) {
      if (process_[other] != other || !comm_.group().shareProcess(other, rank)) continue;
      process_[rank] = other;
      break;
    }
  }
  looked_ = true;
}

bool Pulling::isRemote(const Phase& phase, uint32_t from, uint32_t to) const {
  const Place place = phase.place(from);
  return process_[from] != process_[to] && !place.isNone() && place.window() == kAddressSpace;
}

bool Pulling::isAnyRemote(const PullForm& form, const Launch& launch) const {
  Deadline none(0);
  for (uint32_t k = 0; k < form.phases; ++k) {
    const Phase phase = {form, launch, k, none};
    for (uint32_t from = 0; from < ranks_; ++from) {
      for (uint32_t to = 0; to < ranks_; ++to)
        if (isRemote(phase, from, to)) return true;
    }
  }
  return false;
}

Code Pulling::run(const PullForm& form, const Launch& launch, Deadline& deadline,
                  wl_error_t* error) {
  look();
  steps_ = 0;
  if (isAnyRemote(form, launch)) {
    if (Code code = settle(deadline, error); code != WL_OK) return code;
  }
  for (uint32_t k = 0; k < form.phases; ++k) {
    if (k == 0 && form.lead != nullptr) form.lead(launch, rank_);
    if (Code code = runPhase({form, launch, k, deadline}); code != WL_OK) return code;
    // What was read after a failure may be what its rank has made of it since.
    if (Code code = comm_.ended(deadline, clockNs()); code != WL_OK) return code;
    comm_.finishPhase(rank_, k);
    comm_.waiter_.ring();
    if (Code code = comm_.awaitNeed(kEveryRank, k + 1, deadline); code != WL_OK) return code;
  }
  return WL_OK;
}

// ---- which way ---------------------------------------------------------------------------------

Code Pulling::answer(uint32_t* said) {
  Group& group = comm_.group();
  *said = kReads;
  if (group.peerMemoryUse() == PeerMemoryUse::kStage) {
    *said = kStages;
    return WL_OK;
  }
  wl_error_t error = {};
  error.struct_size = sizeof error;
  for (uint32_t rank = 0; rank < ranks_ && *said == kReads; ++rank) {
    if (process_[rank] == process_[rank_]) continue;
    Code code = WL_OK;
    try {
      code = group.peerMemory(process_[rank], &memories_[rank], &error);
    } catch (const std::bad_alloc&) {
      return comm_.publishNoMemory();
    }
    if (code == WL_PEER_LOST) return comm_.publishUnread(rank, ESRCH);
    if (code != WL_OK) *said = kCannot;
  }
  if (*said == kCannot) Text(why_, sizeof why_).add("%s", error.message);
  if (group.peerMemoryUse() == PeerMemoryUse::kReadv) *said |= kInsists;
  return WL_OK;
}

Code Pulling::settle(Deadline& deadline, wl_error_t* error) {
  if (settled_) return WL_OK;
  const ControlBlock& block = comm_.group().block();
  StageLine& own = block.stageLine(rank_);
  if (own.answer.load(std::memory_order_relaxed) == 0) {
    uint32_t said = 0;
    if (Code code = answer(&said); code != WL_OK) return code;
    own.answer.store(said, std::memory_order_release);
    comm_.waiter_.ring();
  }
  bool allRead = true;
  bool anyInsists = false;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::atomic<uint32_t>& told = block.stageLine(rank).answer;
    const auto isTold = [&] { return told.load(std::memory_order_acquire) != 0; };
    if (Code code = comm_.wait(isTold, rank, deadline); code != WL_OK) return code;
    allRead = allRead && (told.load() & kSaid) == kReads;
    anyInsists = anyInsists || (told.load() & kInsists) != 0;
  }
  if (anyInsists && !allRead) return refuse(error);
  reads_ = allRead;
  settled_ = true;
  return WL_OK;
}

Code Pulling::refuse(wl_error_t* error) const {
  char why[512];
  const ControlBlock& block = comm_.group().block();
  uint32_t insists = 0;
  uint32_t other = kNobody;
  for (uint32_t rank = ranks_; rank-- > 0;) {
    const uint32_t said = block.stageLine(rank).answer.load(std::memory_order_acquire);
    if ((said & kInsists) != 0) insists = rank;
    // What this rank knows best is why it can't itself.
    if ((said & kSaid) != kReads && other != rank_) other = rank;
  }
  const uint32_t said = block.stageLine(other).answer.load(std::memory_order_acquire) & kSaid;
  std::snprintf(why, sizeof why, "%s%s%s",
                said == kStages ? "was set to stage" : "can't read all others' memory",
                other == rank_ && said == kCannot ? ": " : "",
                other == rank_ && said == kCannot ? why_ : "");
  return fail(error, WL_UNSUPPORTED,
              "rank %u: %s names memory outside windows; WINDLASS_PEER_MEMORY is readv in the "
              "process of rank %u, and that of rank %u %s. Nothing has moved: use auto, or tensors "
              "of windows",
              rank_, operationName(comm_.current_.operation()), insists, other, why);
}

int32_t Pulling::form(char* why, size_t room) const {
  return formAsTold(comm_.group().block(), ranks_, rank_, why_, why, room);
}

int32_t formAsTold(const ControlBlock& block, uint32_t ranks, uint32_t own, const char* ownWhy,
                   char* why, size_t room) {
  bool isTold = true;
  uint32_t other = kNobody;  // that does not read: `own`, where it is one of them
  for (uint32_t rank = ranks; rank-- > 0;) {
    const uint32_t said = block.stageLine(rank).answer.load(std::memory_order_acquire);
    isTold = isTold && said != 0;
    if (said != 0 && (said & kSaid) != kReads && other != own) other = rank;
  }
  if (!isTold) {
    std::snprintf(why, room, "ranks agree when an operation first names memory outside windows");
    return WL_PEER_MEMORY_OPEN;
  }
  if (other == kNobody) {
    std::snprintf(why, room, "every process may read the others' by process_vm_readv");
    return WL_PEER_MEMORY_READV;
  }
  const uint32_t said = block.stageLine(other).answer.load(std::memory_order_acquire) & kSaid;
  if (said == kStages) {
    std::snprintf(why, room, "WINDLASS_PEER_MEMORY is stage in the process of rank %u", other);
  } else {
    std::snprintf(why, room, "the process of rank %u can't read all others'%s%s", other,
                  other == own ? ": " : "", other == own ? ownWhy : "");
  }
  return WL_PEER_MEMORY_STAGE;
}

// ---- a phase -----------------------------------------------------------------------------------

Code Pulling::goesOn(const Phase& phase) {
  return comm_.ended(phase.deadline, clockNs());
}

Code Pulling::runPhase(const Phase& phase) {
  const uint64_t half = comm_.group().config().stageHalfBytes();
  const uint64_t segment = phase.of().apart ? lines(half / ranks_) : half;
  uint64_t most = 0;
  for (uint32_t from = 0; !reads_ && from < ranks_; ++from) {
    for (uint32_t to = 0; to < ranks_; ++to)
      if (isRemote(phase, from, to)) most = std::max(most, phase.pulled(from, to).bytes);
  }
  const uint64_t rounds = (most + segment - 1) / segment;
  if (rounds > 0) {
    if (Code code = runRounds(phase, segment, rounds); code != WL_OK) return code;
  }
  return phase.of().folds ? foldAll(phase) : readAll(phase);
}

// What does not come through stages.
Code Pulling::readAll(const Phase& phase) {
  for (uint32_t step = 0; step < ranks_; ++step) {
    const uint32_t from = (rank_ + step) % ranks_;
    const bool isFar = isRemote(phase, from, rank_);
    const Pulled pulled = phase.pulled(from, rank_);
    if (pulled.bytes == 0 || (isFar && !reads_)) continue;
    const Place place = phase.place(from);
    for (uint64_t at = 0; at < pulled.bytes; at += kPieceBytes) {
      const uint64_t count = std::min(pulled.bytes - at, kPieceBytes);
      const uint64_t start = pulled.from + at;
      if (at > 0) {
        if (Code code = goesOn(phase); code != WL_OK) return code;
      }
      if (!isFar) {
        put(phase, pulled, at, phase.launch.at<const uint8_t>(from, place) + start, count);
        continue;
      }
      uint8_t* out = phase.launch.out(rank_) + pulled.into + at;
      void* into = phase.of().byColumns ? scratch_ : out;
      static_assert(kPieceBytes <= kScratchBytes, "a piece fits");
      if (Code code = copyFrom(from, into, place.offset() + start, count); code != WL_OK)
        return code;
      if (into != out) put(phase, pulled, at, scratch_, count);
    }
  }
  return WL_OK;
}

// Where nothing that this rank folds comes through stages.
Code Pulling::foldAll(const Phase& phase) {
  const Pulled pulled = phase.pulled(rank_, rank_);
  uint32_t far = 0;
  for (uint32_t from = 0; from < ranks_; ++from) far += isRemote(phase, from, rank_) ? 1 : 0;
  if (far > 0 && !reads_) return WL_OK;
  const uint64_t piece =
      far == 0 ? kFoldedPiece : std::min(kFoldedPiece, lines(kScratchBytes / far));
  for (uint64_t at = 0; at < pulled.bytes; at += piece) {
    const uint64_t count = std::min(pulled.bytes - at, piece);
    unsigned char* next = scratch_;
    if (at > 0) {
      if (Code code = goesOn(phase); code != WL_OK) return code;
    }
    for (uint32_t from = 0; from < ranks_; ++from) {
      const Place place = phase.place(from);
      if (!isRemote(phase, from, rank_)) {
        sources_[from] = phase.launch.at<const uint8_t>(from, place) + pulled.from + at;
        continue;
      }
      sources_[from] = next;
      const Code code = copyFrom(from, next, place.offset() + pulled.from + at, count);
      if (code != WL_OK) return code;
      next += piece;
    }
    fold(phase, pulled, at, count);
  }
  return WL_OK;
}

Code Pulling::copyFrom(uint32_t from, void* to, uint64_t address, uint64_t bytes) {
  const int failed = memories_[from]->read(to, address, bytes);
  return failed == 0 ? WL_OK : comm_.publishUnread(from, failed);
}

void Pulling::put(const Phase& phase, const Pulled& pulled, uint64_t at, const uint8_t* bytes,
                  uint64_t count) const {
  uint8_t* out = phase.launch.out(rank_) + pulled.into;
  if (!phase.of().byColumns) {
    if (out + at != bytes) kTarget.copy(out + at, bytes, count);
    return;
  }
  const uint64_t rowBytes = pulled.bytes / phase.launch.rows();
  while (count > 0) {
    const uint64_t column = at % rowBytes;
    const uint64_t length = std::min(rowBytes - column, count);
    kTarget.copy(out + at / rowBytes * ranks_ * rowBytes + column, bytes, length);
    at += length;
    bytes += length;
    count -= length;
  }
}

void Pulling::fold(const Phase& phase, const Pulled& pulled, uint64_t at, uint64_t count) {
  const DType dtype = phase.launch.dtype;
  const auto elements = static_cast<int64_t>(count / sizeOf(dtype));
  const int64_t one = 1;
  const auto rowOf = [&](const uint8_t* data) {
    return StridedView{const_cast<uint8_t*>(data), dtype, 1, &elements, &one};
  };
  std::transform(sources_.begin(), sources_.end(), views_.begin(), rowOf);
  const StridedView out = rowOf(phase.launch.out(rank_) + pulled.into + at);
  kTarget.fold(&out, 1, views_.data(), ranks_, phase.launch.op, dtype, Stores::kCached);
}

// ---- stages ------------------------------------------------------------------------------------

uint32_t Pulling::stepsOver(uint32_t rank) const {
  const StageLine& line = comm_.group().block().stageLine(rank);
  const uint64_t over = line.filled.load(std::memory_order_acquire) +
                        line.taken.load(std::memory_order_acquire);
  return over < 2 * rounds_ ? 0 : static_cast<uint32_t>(over - 2 * rounds_);
}

// All ranks take part in all rounds, so that they count alike.
Code Pulling::runRounds(const Phase& phase, uint64_t segment, uint64_t rounds) {
  StageLine& own = comm_.group().block().stageLine(rank_);
  steps_ = static_cast<uint32_t>(std::min<uint64_t>(2 * rounds, UINT32_MAX));
  for (uint64_t round = 0; round < rounds; ++round) {
    if (Code code = fill(phase, segment, round); code != WL_OK) return code;
    own.filled.store(rounds_ + round + 1, std::memory_order_release);
    comm_.waiter_.ring();
    if (Code code = take(phase, segment, round); code != WL_OK) return code;
    own.taken.store(rounds_ + round + 1, std::memory_order_release);
    comm_.waiter_.ring();
  }
  rounds_ += rounds;
  steps_ = 0;
  return WL_OK;
}

const uint8_t* Pulling::staged(const Phase& phase, uint32_t from, uint32_t to, uint64_t segment,
                               uint64_t round) const {
  const uint8_t* half = comm_.group().block().stage(from, rounds_ + round);
  return phase.of().apart ? half + to * segment : half;
}

Code Pulling::fill(const Phase& phase, uint64_t segment, uint64_t round) {
  const uint64_t at = round * segment;
  const ControlBlock& block = comm_.group().block();
  bool isFilled = false;
  for (uint32_t to = 0; to < ranks_; ++to) {
    const Pulled pulled = phase.pulled(rank_, to);
    if (!isRemote(phase, rank_, to) || pulled.bytes <= at) continue;
    // Whoever reads this half now read it two rounds ago, as did those that need no more.
    for (uint32_t reader = 0; !isFilled && reader < ranks_; ++reader) {
      if (process_[reader] == process_[rank_]) continue;
      const std::atomic<uint64_t>& taken = block.stageLine(reader).taken;
      const auto isTaken = [&] {
        return taken.load(std::memory_order_acquire) + 1 >= rounds_ + round;
      };
      const Code code = comm_.wait(isTaken, reader, phase.deadline);
      if (code != WL_OK) return code;
    }
    if (isFilled && !phase.of().apart) continue;
    isFilled = true;
    const auto* source = phase.launch.at<const uint8_t>(rank_, phase.place(rank_));
    kTarget.copy(const_cast<uint8_t*>(staged(phase, rank_, to, segment, round)),
                  source + pulled.from + at, std::min(pulled.bytes - at, segment));
  }
  return WL_OK;
}

Code Pulling::awaitFilled(const Phase& phase, uint32_t from, uint64_t round) {
  const std::atomic<uint64_t>& filled = comm_.group().block().stageLine(from).filled;
  const auto isFilled = [&] {
    return filled.load(std::memory_order_acquire) > rounds_ + round;
  };
  return comm_.wait(isFilled, from, phase.deadline);
}

Code Pulling::take(const Phase& phase, uint64_t segment, uint64_t round) {
  const uint64_t at = round * segment;
  bool isAny = false;
  for (uint32_t step = 0; step < ranks_; ++step) {
    const uint32_t from = (rank_ + step) % ranks_;
    const Pulled pulled = phase.pulled(from, rank_);
    if (!isRemote(phase, from, rank_) || pulled.bytes <= at) continue;
    if (Code code = awaitFilled(phase, from, round); code != WL_OK) return code;
    const uint8_t* bytes = staged(phase, from, rank_, segment, round);
    isAny = true;
    sources_[from] = bytes;
    if (!phase.of().folds) put(phase, pulled, at, bytes, std::min(pulled.bytes - at, segment));
  }
  if (!isAny || !phase.of().folds) return WL_OK;
  const Pulled pulled = phase.pulled(rank_, rank_);
  for (uint32_t from = 0; from < ranks_; ++from) {
    if (isRemote(phase, from, rank_)) continue;
    sources_[from] =
        phase.launch.at<const uint8_t>(from, phase.place(from)) + pulled.from + at;
  }
  fold(phase, pulled, at, std::min(pulled.bytes - at, segment));
  return WL_OK;
}

// ---- transfers ---------------------------------------------------------------------------------

Code Pulling::runItems(FarPlan& far, const Launch& launch, PhaseOfItems items, uint32_t firstPhase,
                       Deadline& deadline, wl_error_t* error) {
  look();
  steps_ = 0;
  if (Code code = settle(deadline, error); code != WL_OK) return code;
  if (firstPhase == 0) std::fill(served_.begin(), served_.end(), Served{0, 0});
  std::fill(read_.begin(), read_.end(), 0);
  for (uint32_t k = 0; k < launch.phases; ++k) {
    servedPhase_ = firstPhase + k;
    if (Code code = runOwnItems(far, launch, items, k, deadline); code != WL_OK) return code;
    const auto isServed = [&] { return serve(far); };
    if (!reads_) {
      if (Code code = comm_.wait(isServed, kEveryRank, deadline); code != WL_OK) return code;
    }
    comm_.finishPhase(rank_, k);
    comm_.waiter_.ring();
    if (Code code = comm_.awaitNeed(kEveryRank, k + 1, deadline); code != WL_OK) return code;
  }
  return WL_OK;
}

Code Pulling::runOwnItems(FarPlan& far, const Launch& launch, PhaseOfItems items, uint32_t k,
                          Deadline& deadline) {
  const ChunkTable table = {launch.at<const uint64_t>(rank_, launch.of(rank_).aux)};
  if (k >= table.phases()) return WL_OK;
  // A table of one item, which this rank states to itself.
  constexpr uint64_t kTableWords = ChunkTable::kHeadWords + 2;
  uint64_t* words = far.item.data();
  const RankArgs stated = {
      {0}, {0}, Place::of(kAddressSpace, reinterpret_cast<uint64_t>(words))};
  Launch own = launch;
  own.entries = reinterpret_cast<const unsigned char*>(&stated);
  own.entryStride = 0;
  const uint64_t first = uint64_t{k} * table.blocks();
  const uint64_t* end = table.start(first + table.blocks());
  ChunkItem item = {table.start(first)};
  for (; item.words != end; item.words += item.size()) {
    words[0] = 1 | uint64_t{1} << 32;
    words[1] = kTableWords;
    words[2] = 0;
    words[3] = item.size();
    std::copy_n(item.words, item.size(), words + kTableWords);
    if (Code code = localize(far, words + kTableWords, deadline); code != WL_OK) return code;
    items(own, rank_, 0, 0);
    if (Code code = comm_.ended(deadline, clockNs()); code != WL_OK) return code;
  }
  return WL_OK;
}

Code Pulling::localize(FarPlan& far, uint64_t* words, Deadline& deadline) {
  const ChunkItem item = {words};
  unsigned char* to = far.scratch;
  for (uint32_t s = 0; s < item.sources(); ++s) {
    uint64_t* source = words + (item.source(s) - words);
    const uint32_t from = ChunkItem::rankOf(source);
    const Place place = ChunkItem::placeOf(source);
    if (place.window() != kAddressSpace || process_[from] == process_[rank_]) continue;
    const DType dtype = ChunkItem::dtypeOf(source);
    auto* strides = reinterpret_cast<int64_t*>(source + ChunkItem::kSourceWords);
    const FarBox box = {place.offset(), static_cast<uint32_t>(sizeOf(dtype)), item.ndim(),
                        item.extents(), strides};
    const Code code =
        reads_ ? readBox(from, box, to) : takeBox(far, from, box.bytes(), to, deadline);
    if (code != WL_OK) return code;
    source[0] = rank_ | static_cast<uint64_t>(dtype) << 32;
    source[1] = Place::of(kAddressSpace, reinterpret_cast<uint64_t>(to)).word;
    int64_t step = 1;
    for (uint32_t d = item.ndim(); d-- > 0; step *= item.extents()[d]) strides[d] = step;
    to += farRoom(static_cast<uint64_t>(step) * sizeOf(dtype));
  }
  return WL_OK;
}

Code Pulling::readBox(uint32_t from, const FarBox& box, unsigned char* to) {
  PeerMemory::Run runs[PeerMemory::kMostRuns];
  uint32_t count = 0;
  uint64_t bytes = 0;
  int failed = 0;
  const auto readAll = [&] {
    if (count > 0 && failed == 0) failed = memories_[from]->read(to, runs, count);
    to += bytes;
    bytes = 0;
    count = 0;
  };
  box.forEachRun(0, box.bytes(), [&](uint64_t address, uint64_t length) {
    runs[count++] = {address, length};
    bytes += length;
    if (count == PeerMemory::kMostRuns) readAll();
  });
  readAll();
  return failed == 0 ? WL_OK : comm_.publishUnread(from, failed);
}

uint64_t Pulling::pairBytes() const {
  return lines(comm_.group().config().stageHalfBytes() / ranks_);
}

Code Pulling::takeBox(const FarPlan& far, uint32_t from, uint64_t bytes, unsigned char* to,
                      Deadline& deadline) {
  const ControlBlock& block = comm_.group().block();
  StagePair& pair = block.stagePair(from, rank_);
  while (bytes > 0) {
    const uint32_t turn = pair.taken.load(std::memory_order_relaxed);
    const auto isFilled = [&] {
      serve(far);
      return pair.filled.load(std::memory_order_acquire) != turn;
    };
    if (Code code = comm_.wait(isFilled, from, deadline); code != WL_OK) return code;
    uint32_t& read = read_[from];
    const uint32_t count =
        static_cast<uint32_t>(std::min<uint64_t>(pair.bytes[turn & 1] - read, bytes));
    kTarget.copy(to, block.stage(from, turn) + rank_ * pairBytes() + read, count);
    to += count;
    bytes -= count;
    read += count;
    if (read < pair.bytes[turn & 1]) continue;
    read = 0;
    pair.taken.store(turn + 1, std::memory_order_release);
    comm_.waiter_.ring();
  }
  return WL_OK;
}

bool Pulling::serve(const FarPlan& far) {
  bool isServed = true;
  for (uint32_t reader = 0; reader < ranks_; ++reader)
    isServed = serve(far, reader) && isServed;
  return isServed;
}

// Whether the reader has got all of the phase.
bool Pulling::serve(const FarPlan& far, uint32_t reader) {
  const std::vector<uint64_t>& words = far.served[reader];
  Served& next = served_[reader];
  const ControlBlock& block = comm_.group().block();
  StagePair& pair = block.stagePair(rank_, reader);
  const auto isOver = [&] {
    return next.at == words.size() || ServedBox{words.data() + next.at}.phase() != servedPhase_;
  };
  if (words.empty()) return true;
  for (;;) {
    const uint32_t turn = pair.filled.load(std::memory_order_relaxed);
    const uint32_t ahead = turn - pair.taken.load(std::memory_order_acquire);
    if (isOver()) return ahead == 0;
    if (ahead == 2) return false;
    unsigned char* to = block.stage(rank_, turn) + reader * pairBytes();
    uint64_t left = pairBytes();
    while (left > 0 && !isOver()) {
      const ServedBox served = {words.data() + next.at};
      const FarBox box = served.box();
      const uint64_t count = std::min(left, box.bytes() - next.from);
      box.forEachRun(next.from, count, [&](uint64_t address, uint64_t length) {
        kTarget.copy(to, reinterpret_cast<const void*>(address), length);
        to += length;
      });
      left -= count;
      next.from += count;
      if (next.from == box.bytes()) next = {next.at + served.size(), 0};
    }
    pair.bytes[turn & 1] = static_cast<uint32_t>(pairBytes() - left);
    pair.filled.store(turn + 1, std::memory_order_release);
    comm_.waiter_.ring();
  }
}

}  // namespace windlass
