// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/core.h"

#include <cstdio>
#include <cstdlib>

#include "native/base/dtype.h"
#include "native/isa/checked/arithmetic.h"
#include "native/isa/sim/loops.h"

namespace windlass::checked {
namespace {

thread_local Core* running = nullptr;

// Maximum length of a pipe's queue. The scalar pipe waits for a longer queue.
constexpr size_t kMostQueued = 64;
constexpr uint32_t kScratchTile = 0xffffffffu;

std::optional<Pipe> modelled(pipe_t pipe) {
  constexpr pipe_t kModelled[kPipes] = {PIPE_S, PIPE_V, PIPE_MTE2, PIPE_MTE3};
  for (const Pipe each : kEveryPipe) {
    if (kModelled[static_cast<size_t>(each)] == pipe) return each;
  }
  return std::nullopt;
}

// Mixes the seed, rank and block, so that neighbouring values give unrelated results.
uint64_t orderSeed(const Machine& machine, uint32_t rank, uint32_t block) {
  std::seed_seq mix{machine.config().seed & 0xffffffffu, machine.config().seed >> 32,
                    uint64_t{rank}, uint64_t{block}};
  uint32_t words[2];
  mix.generate(words, words + 2);
  return uint64_t{words[0]} << 32 | words[1];
}

// Views the tensor's elements as the tile's dtype, which has the same size. Moves keep every bit.
StridedView viewOf(const GlobalRef& tensor, const TileRef& tile) {
  return {tensor.data, tile.dtype, kGlobalDims, tensor.shape, tensor.strides};
}

bool overlapInPart(const TileRef& a, const TileRef& b) {
  const int64_t from = a.at.offset;
  const int64_t other = b.at.offset;
  if (from == other && a.rowBytes() == b.rowBytes() && sizeOf(a.dtype) == sizeOf(b.dtype)) {
    return false;
  }
  return from < other + b.bytes() && other < from + a.bytes();
}

// Returns for example "the signal at byte 64 of a window of rank 1".
std::string describeSignal(const Region* region, uint64_t address) {
  if (region == nullptr)
    return "the signal lies in no memory of this rank, and in none that its peers let it reach";
  return "the signal at byte " +
         std::to_string(address - reinterpret_cast<uint64_t>(region->data)) + " of " +
         (region->isWindow ? "a window" : "the memory") + " of rank " +
         std::to_string(region->rank);
}

size_t flagIndex(Pipe from, Pipe to, int id) {
  const size_t pipes = static_cast<size_t>(from) * kPipes + static_cast<size_t>(to);
  return pipes * kFlagIds + static_cast<size_t>(id);
}

std::string describeFlag(Pipe from, Pipe to, size_t id) {
  return std::string("the flag from ") + nameOf(from) + " to " + nameOf(to) + ", id " +
         std::to_string(id);
}

bool isSized(const TileRef& tile) {
  return tile.validRows >= 0 && tile.validRows <= tile.rows && tile.validColumns >= 0 &&
         tile.validColumns <= tile.columns;
}

bool areAlike(const TileRef& a, const TileRef& b) {
  return a.validRows == b.validRows && a.validColumns == b.validColumns;
}

std::string sizesOf(const TileRef& tile) {
  return std::to_string(tile.validRows) + " rows and " + std::to_string(tile.validColumns) +
         " columns";
}

}  // namespace

Core::Core(Machine& machine, uint32_t rank, uint32_t block, const Patience& patience)
    : machine_(machine),
      rank_(rank),
      block_(block),
      firstPipe_((size_t{rank} * machine.config().blocks + block) * kPipes),
      buffer_(machine.architecture(), orderSeed(machine, rank, block)),
      queues_(kPipes, Queue(machine.pipes())),
      flags_(kPipes * kPipes * kFlagIds, Flag(machine.pipes())),
      random_(orderSeed(machine, rank, block)),
      drained_(machine.pipes()),
      patience_(patience) {
  changeMood();
}

Core::Running::Running(Core& core) : before_(running) {
  running = &core;
}
Core::Running::~Running() {
  running = before_;
}

Core& Core::current() {
  if (running == nullptr) {
    std::fputs("an instruction of the checked target outside of any Core::Running\n", stderr);
    std::abort();
  }
  return *running;
}

void Core::finish() {
  const Origin origin = {"the kernel's end", 0, rank_, block_};
  for (const Flag& flag : flags_) {
    if (!flag.pending) continue;
    const auto index = static_cast<size_t>(&flag - flags_.data());
    require(false, Rule::kFlagLeftOver, origin, [&] {
      return describeFlag(kEveryPipe[index / kFlagIds / kPipes],
                          kEveryPipe[index / kFlagIds % kPipes], index % kFlagIds) +
             ", which " + describe(flag.setBy) + ", set, was never waited for";
    });
  }
  while (step(true)) {
  }
  for (const Pipe pipe : kEveryPipe) {
    counters_.cycles = std::max(counters_.cycles, queue(pipe).clock.cycle);
  }
  counters_.coreCycles = counters_.cycles;
  counters_.overlapCycles = common(loading_, storing_);
  counters_.cores = 1;
  machine_.add(counters_, std::move(spans_));
}

uint64_t Core::common(const std::vector<Busy>& a, const std::vector<Busy>& b) {
  uint64_t cycles = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t begin = std::max(a[i].begin, b[j].begin);
    const uint64_t end = std::min(a[i].end, b[j].end);
    if (begin < end) cycles += end - begin;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return cycles;
}

Origin Core::begin(const char* name) {
  return {name, ++issued_, rank_, block_, inItem_, item_, phase_, issuedBefore_};
}

void Core::reportClash(const std::optional<Clash>& clash, const Origin& origin) {
  if (clash) require(false, clash->rule, origin, [&] { return clash->what; });
}

Placement Core::place(const TileRef& tile, uint64_t offset) {
  const Origin origin = begin("TASSIGN");
  const auto name = [&] { return describe(tile) + " at byte " + std::to_string(offset); };
  const uint64_t end = offset + static_cast<uint64_t>(tile.bytes());
  const uint32_t room = machine_.architecture().bufferBytes;
  const bool aligned = require(offset % kTileAlignment == 0, Rule::kTileMisaligned, origin, name);
  const bool hasRows = require(tile.rowBytes() % kTileAlignment == 0, Rule::kTileRow, origin, [&] {
    return name() + " has rows of " + std::to_string(tile.rowBytes()) + " bytes";
  });
  const bool fits = require(end <= room, Rule::kBufferOverflow, origin, [&] {
    return name() + " ends at " + std::to_string(end) + " of " + std::to_string(room) + " bytes";
  });
  const bool usable = aligned && hasRows && fits;
  if (usable) counters_.bufferBytes = std::max(counters_.bufferBytes, end);
  return {++placed_, static_cast<uint32_t>(offset), issued_, usable};
}

// ---- flags and barriers

int Core::flagOf(pipe_t from, pipe_t to, int id, const Origin& origin) {
  const std::optional<Pipe> a = modelled(from);
  const std::optional<Pipe> b = modelled(to);
  const bool named = a && b && *a != *b && id >= 0 && id < static_cast<int>(kFlagIds);
  if (!require(named, Rule::kFlagName, origin, [&] {
        return "from pipe " + std::to_string(from) + " to pipe " + std::to_string(to) + ", id " +
               std::to_string(id);
      })) {
    return -1;
  }
  return static_cast<int>(flagIndex(*a, *b, id));
}

bool Core::isPending(pipe_t from, pipe_t to, int id) const {
  return flags_[flagIndex(*modelled(from), *modelled(to), id)].pending;
}

void Core::setFlag(pipe_t from, pipe_t to, int id, const char* name) {
  const Origin origin = begin(name);
  const int index = flagOf(from, to, id, origin);
  if (index < 0) return;
  Flag& flag = flags_[static_cast<size_t>(index)];
  const Pipe pipe = *modelled(from);
  Clock& clock = queue(pipe).clock;
  clock.join(queue(Pipe::kS).clock);
  // A flag holds one edge. Before the setting pipe sets the flag again, it must have observed that
  // the previous edge was waited for.
  require(!flag.pending && flag.waitedTick <= clock[number(*modelled(to))], Rule::kFlagSetTwice,
          origin, [&] {
            return describeFlag(pipe, *modelled(to), index % kFlagIds) +
                   ", may still be set by " + describe(flag.setBy);
          });
  clock.advance(number(pipe));
  flag.pending = true;
  flag.released = clock;
  flag.setBy = origin;
  ++counters_.flags;
  enqueue(pipe, {nullptr, index, false});
}

void Core::waitFlag(pipe_t from, pipe_t to, int id, const char* name) {
  const Origin origin = begin(name);
  const int index = flagOf(from, to, id, origin);
  if (index < 0) return;
  Flag& flag = flags_[static_cast<size_t>(index)];
  const Pipe pipe = *modelled(to);
  if (!require(flag.pending, Rule::kWaitWithoutSet, origin, [&] {
        return describeFlag(*modelled(from), pipe, index % kFlagIds) + ", isn't set before";
      })) {
    return;
  }
  Clock& clock = queue(pipe).clock;
  clock.join(queue(Pipe::kS).clock);
  clock.join(flag.released);
  flag.waitedTick = clock.advance(number(pipe));
  flag.pending = false;
  enqueue(pipe, {nullptr, index, true});
}

void Core::barrier(pipe_t pipe) {
  const Origin origin = begin("pipe_barrier");
  ++counters_.barriers;
  if (pipe == PIPE_ALL) {
    Clock all = queue(Pipe::kS).clock;
    for (Queue& each : queues_) all.join(each.clock);
    for (Queue& each : queues_) each.clock = all;
    mustAcquire_ = false;
    while (step(true)) {
    }
    return;
  }
  // Each pipe runs in order, so this barrier has no effect.
  require(modelled(pipe).has_value(), Rule::kFlagName, origin,
          [&] { return "pipe " + std::to_string(pipe); });
}

void Core::drainStores() {
  begin("dsb");
  drained_ = queue(Pipe::kS).clock;
}

void Core::maintainCache(const void* address) {
  const Origin origin = begin("dcci");
  require(machine_.memory().reach(rank_, reinterpret_cast<uint64_t>(address), 1) != nullptr,
          Rule::kOutsideMemory, origin,
          [&] { return "a line of no memory of this rank or of a window"; });
}

// ---- operands

bool Core::isUsable(const TileRef& tile, const Origin& origin) {
  if (!require(tile.at.serial != 0, Rule::kTileUnplaced, origin, [&] { return describe(tile); }))
    return false;
  const bool given = tile.validRows >= 0 && tile.validColumns >= 0;
  return require(isSized(tile), Rule::kTileValidSize, origin,
                 [&] {
                   return describe(tile) + (given ? " has " + sizesOf(tile) + " valid"
                                                  : " never got its valid rows and columns");
                 }) &&
         tile.at.usable;
}

bool Core::areUsable(const TileRef& dst, Tiles sources, const Origin& origin) {
  if (!isUsable(dst, origin)) return false;
  for (const TileRef* tile : sources) {
    if (!isUsable(*tile, origin)) return false;
  }
  for (const TileRef* tile : sources) {
    if (!require(!overlapInPart(dst, *tile), Rule::kTileOverlap, origin, [&] {
          return describe(dst) + " overlaps in part " + describe(*tile) +
                 " of the same instruction";
        })) {
      return false;
    }
  }
  return true;
}

bool Core::fit(const GlobalRef& tensor, const TileRef& tile, const Origin& origin) {
  if (!isUsable(tile, origin)) return false;
  bool positive = true;
  for (const int64_t extent : tensor.shape) positive = positive && extent > 0;
  const auto both = [&] {
    return describe(tensor) + " and " + describe(tile) + " of " + sizesOf(tile);
  };
  if (!require(positive, Rule::kShape, origin,
               [&] { return both() + ": each dimension must be positive"; }) ||
      !require(sizeOf(tensor.dtype) == sizeOf(tile.dtype), Rule::kShape, origin,
               [&] { return both() + " differ in the size of elements"; }) ||
      !require(tile.validColumns == tensor.shape[4] && tile.validRows == tensor.rows(),
               Rule::kShape, origin, [&] { return both() + " differ in rows or columns"; })) {
    return false;
  }
  const int64_t mostRows = machine_.architecture().mostRows;
  return require(mostRows == 0 || (tile.rows <= mostRows && tensor.shape[3] <= mostRows),
                 Rule::kRowLimit, origin, both) &&
         takes(Op::kMove, tile.dtype, origin) &&
         require(machine_.memory().reaches(rank_, tensor), Rule::kOutsideMemory, origin,
                 [&] {
                   return describe(tensor) +
                          " lies in no memory of this rank, and in none that its peers let it "
                          "reach, in whole or in part";
                 }) &&
         isThere(tensor, origin);
}

bool Core::isThere(const GlobalRef& tensor, const Origin& origin) {
  if (order_ == nullptr) return true;
  const Region* region =
      machine_.memory().reach(rank_, reinterpret_cast<uint64_t>(tensor.data), 1);
  const uint32_t owner = region == nullptr ? rank_ : region->rank;
  const auto whose = [&] {
    return describe(tensor) + " of rank " + std::to_string(owner) + " is touched in phase " +
           std::to_string(phase_);
  };
  return require(order_->hasEntered(rank_, item_, phase_, owner), Rule::kMemoryRace, origin,
                 [&] { return whose() + ", and by `needs` that rank may not have entered yet"; }) &&
         require(order_->staysFor(owner, rank_, phase_), Rule::kMemoryRace, origin, [&] {
           return whose() + ", and by `leavesAfter` that rank may have left: have it name this "
                  "one, or kEveryRank";
         });
}

bool Core::isWritten(const char* unwritten, const std::string& what, const Origin& origin) {
  return require(unwritten == nullptr, Rule::kNotWritten, origin, [&] {
    return what + " lies in argument " + unwritten + ", which isn't `written()`";
  });
}

bool Core::takes(Op op, DType dtype, const Origin& origin) {
  return require(machine_.architecture().has(op, dtype), Rule::kElementType, origin, [&] {
    return std::string(windlass::nameOf(dtype)) + " on " + machine_.architecture().name;
  });
}

// ---- instructions

void Core::issue(Pipe pipe, const Origin& origin, uint64_t bytes, Tiles reads, Tiles writes,
                 std::function<void()> run) {
  account(pipe, origin, bytes);
  const Issue now = {pipe, queue(pipe).clock, firstPipe_, origin};
  for (const TileRef* tile : reads) reportClash(buffer_.read(*tile, now), origin);
  for (const TileRef* tile : writes) reportClash(buffer_.write(*tile, now), origin);
  enqueue(pipe, {std::move(run)});
}

template <typename What>
void Core::compute(const Origin& origin, Op op, const TileRef& dst, Tiles sources, bool fit,
                   const What& what, std::function<void()> run) {
  if (!areUsable(dst, sources, origin) || !takes(op, dst.dtype, origin) ||
      !require(fit, Rule::kShape, origin, what)) {
    return refuse(Pipe::kV, origin, dst);
  }
  issue(Pipe::kV, origin, dst.validBytes(), sources, {&dst}, std::move(run));
}

void Core::refuse(Pipe pipe, const Origin& origin, const TileRef& dst) {
  if (!dst.at.usable || !isSized(dst)) return;
  account(pipe, origin, 0);
  buffer_.write(dst, {pipe, queue(pipe).clock, firstPipe_, origin});
}

void Core::account(Pipe pipe, const Origin& origin, uint64_t bytes) {
  Clock& scalar = queue(Pipe::kS).clock;
  Clock& clock = queue(pipe).clock;
  scalar.cycle += machine_.architecture().rates[static_cast<size_t>(Pipe::kS)].startCycles;
  clock.join(scalar);
  clock.advance(number(pipe));
  const Rate& rate = machine_.architecture().rates[static_cast<size_t>(pipe)];
  const uint64_t cycles = rate.startCycles + (bytes + rate.bytesPerCycle - 1) / rate.bytesPerCycle;
  const uint64_t start = clock.cycle;
  clock.cycle += cycles;
  Counters::Engine& engine = counters_.engines[static_cast<size_t>(pipe)];
  ++engine.instructions;
  engine.bytes += bytes;
  engine.busyCycles += cycles;
  if (pipe == Pipe::kMte2 || pipe == Pipe::kMte3) {
    std::vector<Busy>& busy = pipe == Pipe::kMte2 ? loading_ : storing_;
    if (!busy.empty() && busy.back().end == start) {
      busy.back().end = clock.cycle;
    } else {
      busy.push_back({start, clock.cycle});
    }
  }
  if (machine_.config().traces) spans_.push_back({origin, pipe, start, cycles, bytes});
}

void Core::load(const TileRef& tile, const GlobalRef& tensor, const char* name) {
  const Origin origin = begin(name);
  if (!fit(tensor, tile, origin)) return refuse(Pipe::kMte2, origin, tile);
  require(!mustAcquire_, Rule::kLoadUnacquired, origin, [&] {
    return describe(tensor) + " is loaded after a wait without pipe_barrier(PIPE_ALL)";
  });
  mustAcquire_ = false;
  issue(Pipe::kMte2, origin, tensor.bytes(), {}, {&tile}, [this, tile, tensor] {
    TMOVE_CVT(TileView(buffer(), tile, tensor.shape).view, viewOf(tensor, tile));
  });
  const Issue now = {Pipe::kMte2, queue(Pipe::kMte2).clock, firstPipe_, origin};
  reportClash(machine_.memory().touch(tensor, Touching::kRead, now), origin);
}

void Core::store(const GlobalRef& tensor, const TileRef& tile, bool adds, const char* name) {
  const Origin origin = begin(name);
  if (!fit(tensor, tile, origin)) return;
  if (adds && !takes(Op::kAtomicAdd, tile.dtype, origin)) return;
  if (!isWritten(machine_.memory().unwritten(rank_, tensor), describe(tensor), origin)) return;
  const Issue now = {Pipe::kMte3, queue(Pipe::kMte3).clock, firstPipe_, origin};
  issue(Pipe::kMte3, origin, tensor.bytes(), {&tile}, {}, [this, tile, tensor, adds] {
    const TileView from(buffer(), tile, tensor.shape);
    if (adds) {
      detail::atomicAdd(viewOf(tensor, tile), from.view);
    } else {
      TMOVE_CVT(viewOf(tensor, tile), from.view);
    }
  });
  lastStore_ = now.tick(Pipe::kMte3);
  const Touching touching = adds ? Touching::kAdd : Touching::kWrite;
  reportClash(machine_.memory().touch(tensor, touching, now), origin);
}

void Core::combine(const char* name, Op op, const TileRef& dst, const TileRef& a,
                   const TileRef& b) {
  compute(
      begin(name), op, dst, {&a, &b}, areAlike(dst, a) && areAlike(dst, b),
      [&] { return "tiles of " + sizesOf(dst) + ", " + sizesOf(a) + ", " + sizesOf(b); },
      [this, op, dst, a, b] { checked::combine(buffer(), op, dst, a, b); });
}

void Core::combineScalar(const char* name, Op op, const TileRef& dst, const TileRef& a,
                         uint64_t scalar) {
  compute(
      begin(name), op, dst, {&a}, areAlike(dst, a),
      [&] { return "tiles of " + sizesOf(dst) + ", " + sizesOf(a); },
      [this, op, dst, a, scalar] { checked::combineScalar(buffer(), op, dst, a, scalar); });
}

void Core::fill(const TileRef& dst, uint64_t scalar) {
  compute(
      begin("TEXPANDS"), Op::kExpandScalar, dst, {}, true, [] { return std::string(); },
      [this, dst, scalar] { checked::fill(buffer(), dst, scalar); });
}

void Core::move(const TileRef& dst, const TileRef& src) {
  compute(
      begin("TMOV"), Op::kMove, dst, {&src},
      dst.rows == src.rows && dst.columns == src.columns && areAlike(dst, src),
      [&] { return describe(dst) + " and " + describe(src); },
      [this, dst, src] { checked::move(buffer(), dst, src); });
}

void Core::convert(const TileRef& dst, const TileRef& src, const TileRef* scratch,
                   pto::RoundMode mode, const pto::SaturationMode* saturation) {
  const Origin origin = begin("TCVT");
  const Architecture& architecture = machine_.architecture();
  const auto pair = [&] {
    return std::string(windlass::nameOf(src.dtype)) + " to " + windlass::nameOf(dst.dtype) +
           " on " + architecture.name;
  };
  if (!areUsable(dst, {&src}, origin) ||
      !require(architecture.converts(src.dtype, dst.dtype), Rule::kConversion, origin, pair) ||
      !require(hasRoundMode(src.dtype, dst.dtype, mode), Rule::kRoundMode, origin, pair) ||
      !require(areAlike(dst, src), Rule::kShape, origin,
               [&] { return "tiles of " + sizesOf(dst) + ", " + sizesOf(src); })) {
    return refuse(Pipe::kV, origin, dst);
  }
  const Conversion how = conversionOf(architecture, src.dtype, dst.dtype, mode, saturation);
  const auto run = [this, dst, src, how] { checked::convert(buffer(), dst, src, how); };
  const uint64_t bytes = std::max(dst.validBytes(), src.validBytes());
  const bool usesScratch =
      architecture.castScratchBytes != 0 && !how.saturates && needsScratch(src.dtype, dst.dtype);
  if (!usesScratch) {
    issue(Pipe::kV, origin, bytes, {&src}, {&dst}, run);
    return;
  }
  const int64_t columns = architecture.castScratchBytes;
  const Placement at = {kScratchTile, architecture.castScratchOffset, 0, true};
  TileRef room = {at, DType::kU8, 1, columns, 1, columns, false, false};
  if (scratch != nullptr) {
    if (!areUsable(*scratch, {&dst, &src}, origin)) return refuse(Pipe::kV, origin, dst);
    room = *scratch;
  }
  issue(Pipe::kV, origin, bytes, {&src}, {&room, &dst}, run);
}

// ---- signals

bool Core::isUsable(const Region* region, uint64_t address, const Origin& origin) {
  return require(region != nullptr, Rule::kOutsideMemory, origin,
                 [&] { return describeSignal(region, address); }) &&
         require(address % sizeof(int32_t) == 0, Rule::kSignalAlignment, origin,
                 [&] { return describeSignal(region, address); });
}

void Core::notify(int32_t* signal, int32_t value, pto::comm::NotifyOp op) {
  const Origin origin = begin("TNOTIFY");
  const auto address = reinterpret_cast<uint64_t>(signal);
  const Region* region = machine_.memory().reach(rank_, address, sizeof *signal);
  ++counters_.notifies;
  if (!isUsable(region, address, origin)) return;
  if (!isWritten(machine_.memory().unwritten(rank_, address, sizeof *signal),
                 describeSignal(region, address), origin)) {
    return;
  }
  require(lastStore_ <= drained_[number(Pipe::kMte3)], Rule::kNotifyUnreleased, origin, [&] {
    return describeSignal(region, address) +
           " is written while what this core stored may not have reached memory";
  });
  std::optional<Clash> clash =
      machine_.memory().notify(signal, value, op, drained_, firstPipe_, origin);
  if (clash) clash->what = describeSignal(region, address) + clash->what;
  reportClash(clash, origin);
}

bool Core::look(const int32_t* signal, int32_t value, pto::comm::WaitCmp cmp) {
  const Origin origin = begin("TTEST");
  const auto address = reinterpret_cast<uint64_t>(signal);
  const Region* region = machine_.memory().reach(rank_, address, sizeof *signal);
  bool seen = false;
  if (isUsable(region, address, origin)) {
    require(region->rank == rank_, Rule::kPeerWait, origin,
            [&] { return describeSignal(region, address); });
    seen = machine_.memory().look(signal, value, cmp, &queue(Pipe::kS).clock);
  }
  if (seen) {
    mustAcquire_ = true;
  } else {
    --issued_;  // the number of failed looks depends on timing
    endWhereLate(describeSignal(region, address), origin);
  }
  return seen;
}

void Core::endWhereLate(const std::string& signal, const Origin& origin) {
  if (!inItem_ || patience_.ending == nullptr) return;
  const Ending ending = patience_.ending(patience_.operation);
  if (ending == Ending::kNone) return;
  require(ending != Ending::kDeadline, Rule::kPhaseWaits, origin,
          [&] { return signal + " is looked at until the deadline has come"; });
  hasEnded_ = true;
  throw Ended();
}

// ---- the order in which pipes run

void Core::enqueue(Pipe pipe, Entry entry) {
  if (pipe == Pipe::kS) {
    Flag& flag = flags_[static_cast<size_t>(entry.flag)];
    while (entry.waits && flag.raised == 0 && step(true)) {
    }
    entry.waits ? --flag.raised : ++flag.raised;
    return;
  }
  queue(pipe).entries.push_back(std::move(entry));
  if (--moodLeft_ == 0) changeMood();
  while (random_() % 8 < eagerness_ && step(false)) {
  }
  while (queue(pipe).entries.size() > kMostQueued && step(true)) {
  }
}

bool Core::canRun(const Queue& queue) const {
  if (queue.entries.empty()) return false;
  const Entry& first = queue.entries.front();
  return !first.waits || flags_[static_cast<size_t>(first.flag)].raised > 0;
}

// Runs one queue entry. Returns false if no entry can run. Unless `anyPipe`, skips pipes that are
// held back.
bool Core::step(bool anyPipe) {
  uint64_t total = 0;
  const auto weightOf = [&](const Queue& queue) {
    return canRun(queue) ? queue.weight + (anyPipe ? 1 : 0) : 0;
  };
  for (const Queue& each : queues_) total += weightOf(each);
  if (total == 0) return false;
  uint64_t pick = random_() % total;
  for (Queue& each : queues_) {
    if (pick >= weightOf(each)) {
      pick -= weightOf(each);
      continue;
    }
    const Entry entry = std::move(each.entries.front());
    each.entries.pop_front();
    if (entry.run != nullptr) {
      entry.run();
    } else {
      Flag& flag = flags_[static_cast<size_t>(entry.flag)];
      entry.waits ? --flag.raised : ++flag.raised;
    }
    break;
  }
  return true;
}

// Selects for a while which pipes lag behind: some behind the others, all behind the scalar pipe,
// or none.
void Core::changeMood() {
  moodLeft_ = 1 + random_() % 16;
  constexpr uint32_t kEagerness[] = {0, 4, 6, 8};
  eagerness_ = kEagerness[random_() % 4];
  for (Queue& each : queues_) {
    constexpr uint32_t kWeights[] = {0, 1, 8};
    each.weight = kWeights[random_() % 3];
  }
}

}  // namespace windlass::checked
