// SPDX-License-Identifier: Apache-2.0
#include "native/core/failure_text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "native/base/clock.h"
#include "native/base/dtype.h"
#include "native/core/launch/kernel_library.h"
#include "native/core/launch/kernels.h"
#include "native/core/launch/stated_arguments.h"
#include "native/core/names.h"

namespace windlass {
namespace {

// Reports that `from` sends `to` a number of elements that `to` does not expect.
void addUnexpected(Text& out, uint32_t from, const Part& sent, uint32_t to, const Part& expected,
                   uint64_t elementBytes) {
  if (sent.bytes == expected.bytes) return;
  out.add("; rank %u sends %llu elements to rank %u, which expects %llu", from,
          text(sent.bytes / elementBytes), to, text(expected.bytes / elementBytes));
}

// Reports the first count that must be the same on ranks a and b and is not.
template <class PartOf>
void addFirstDifference(Text& out, uint32_t ranks, uint32_t a, uint32_t b, PartOf&& partOf,
                        uint64_t elementBytes) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint64_t ofA = partOf(a, rank).bytes;
    const uint64_t ofB = partOf(b, rank).bytes;
    if (ofA == ofB) continue;
    out.add("; counts[%u] is %llu on rank %u and %llu on rank %u", rank,
            text(ofA / elementBytes), a, text(ofB / elementBytes), b);
    return;
  }
}

// The text names up to kNamed culprits of a Timeout. If there are at most kDescribed of them, it
// also says what their operations move.
constexpr uint32_t kNamed = 8;
constexpr uint32_t kDescribed = 3;

// Examples: "2.0 s", "150 ms", "12 us".
void addDuration(Text& out, int64_t ns) {
  if (ns >= 1'000'000'000) {
    out.add("%.1f s", static_cast<double>(ns) / 1e9);
  } else if (ns >= 1'000'000) {
    out.add("%lld ms", text(ns / 1'000'000));
  } else {
    out.add("%lld us", text(std::max<int64_t>(0, ns) / 1000));
  }
}

// Name of this machine. Memory that processes share is always on it.
class HostName {
 public:
  HostName() {
    if (gethostname(text_, sizeof text_ - 1) != 0 || text_[0] == 0)
      std::snprintf(text_, sizeof text_, "this host");
  }
  const char* text() const { return text_; }

 private:
  char text_[65] = {};
};

// Examples: "it finished barrier #41 2.0 s ago", "it is in barrier #41, for 2.0 s". For a rank of
// another host, "it entered barrier #41 2.0 s ago", from the time of its message.
void addCall(Text& out, const Group& group, uint32_t peer, bool described) {
  const FlightRecorder& recorder = group.recorder(peer);
  const uint64_t newest = recorder.newest();
  Recorded last;
  if (newest == 0) return out.add("it called nothing yet");
  if (!recorder.read(newest, group.tickScale(), &last))
    return out.add("it calls one after another");
  const int64_t now = clockNs();
  char what[256];
  describe(last.descriptor, what, sizeof what);
  char operation[288];
  std::snprintf(operation, sizeof operation,
                takesSequence(last.descriptor.operation()) ? "%s #%u" : "%s after #%u",
                described ? what : operationName(last.descriptor.operation()), last.sequence);
  if (last.code == WL_RECORD_INSIDE) {
    out.add("it is in %s", operation);
    const State& state = group.lines(peer).state;
    if (state.running.load(std::memory_order_relaxed) > 0) {
      const Item item = Item::of(state.item.load(std::memory_order_relaxed));
      out.add(", at item %u of rank %u, phase %u", item.block, item.owner, item.phase);
    }
    if (last.enteredNs == 0) return;
    out.add(", for ");
    addDuration(out, now - last.enteredNs);
    return;
  }
  out.add("it %s %s ",
          last.code == WL_OK                ? "finished"
          : last.code == WL_RECORD_ENTERED ? "entered"
                                           : "left",
          operation);
  addDuration(out, now - last.leftNs);
  out.add(" ago");
}

void addWhereabouts(Text& out, const Group& group, uint32_t peer, bool described) {
  addCall(out, group, peer, described);
  char call[ToldCall::kRoom];
  if (group.config().offloadCores > 0 && group.block().offloadLine(peer).call.read(call))
    out.add(", whose device's driver does not return from %s", call);
  const int32_t pid = group.member(peer).pid.load(std::memory_order_acquire);
  const HostName own;
  const char* const other = group.hostNameOf(peer);
  if (pid != 0) out.add(" (process %d on %s)", pid, other == nullptr ? own.text() : other);
}

// Adds the ranks that a rank inside a call waits for.
void addAwaited(Text& out, const Group& group, uint32_t rank) {
  const int32_t awaited = group.lines(rank).state.awaited.load(std::memory_order_relaxed);
  if (awaited >= 0) out.add(", and waits for rank %d", awaited);
  if (awaited == -2) out.add(", and waits for several ranks");
}

// Example: "(1024 x f32 to each rank, push)".
void describeEqualParts(Text& out, const Collective& collective, const Descriptor& descriptor) {
  out.add("(%llu x %s%s", text(descriptor.count), dtypeName(descriptor.dtype()),
          !isOnePart(collective.in)    ? " to each rank"
          : !isOnePart(collective.out) ? " of each rank"
                                       : "");
  if (collective.result == Result::kReduced) out.add(", %s", reduceOpName(descriptor.reduceOp()));
  if (collective.hasAlgorithms()) out.add(", %s", algorithmName(descriptor.algorithm()));
  if (collective.hasRoot()) out.add(", root %d", descriptor.root());
  if (collective.shape == PartShape::kRows) out.add(", %d rows", descriptor.rows());
  out.add(")");
}

// Adds how the launches of ranks a and b differ, in an operation that otherwise matches.
void addLaunchDifference(Text& out, const Group& group, uint32_t a, uint32_t b, uint64_t sequence) {
  const Entry& ofA = group.lines(a).entry[sequence & 1];
  const Entry& ofB = group.lines(b).entry[sequence & 1];
  if (ofA.descriptor.what != ofB.descriptor.what)
    return out.add("; every rank launches one kernel, of one library, whose file is the same");
  const LoadedKernel* kernel = loadedKernel(static_cast<uint32_t>(ofA.descriptor.root()));
  if (kernel == nullptr) return;
  addDifference(out, *kernel, a, static_cast<const uint64_t*>(group.at(a, ofA.args.in)), b,
                static_cast<const uint64_t*>(group.at(b, ofB.args.in)));
}

// Returns true if the rank is in a call and lives in a process other than `pid`.
bool isInsideElsewhere(const Group& group, uint32_t rank, int32_t pid) {
  const Member& member = group.member(rank);
  return group.lines(rank).state.busy.load(std::memory_order_relaxed) != 0 &&
         member.lost.load(std::memory_order_relaxed) == 0 &&
         member.pid.load(std::memory_order_relaxed) != pid;
}

void writeLost(Text& out, const Group& group, int32_t pid, const char* why, const int32_t* ranks,
               uint32_t count) {
  out.add("process %d on %s %s: ", pid, HostName().text(), why);
  for (uint32_t i = 0; i < std::min(count, kNamed); ++i) {
    out.add("%srank %d is lost: ", i == 0 ? "" : "; ", ranks[i]);
    addCall(out, group, static_cast<uint32_t>(ranks[i]), count <= kDescribed);
  }
  if (count > kNamed) out.add("; and %u more", count - kNamed);
  uint32_t inside = 0;
  for (uint32_t rank = 0; rank < group.ranks(); ++rank) {
    if (!isInsideElsewhere(group, rank, pid) || ++inside > kDescribed) continue;
    out.add("%srank %u: ", inside == 1 ? ". Of the others " : "; ", rank);
    addCall(out, group, rank, true);
    addAwaited(out, group, rank);
  }
  if (inside == 0) out.add(". No other rank is in a call");
  if (inside > kDescribed) out.add("; and %u more are in calls", inside - kDescribed);
  out.add(". See what that process logged last, and whether it was killed for memory");
}

// The operation and its size.
void describeTo(Text& out, const Descriptor& descriptor) {
  const auto count = text(descriptor.count);
  out.add("%s", operationName(descriptor.operation()));
  const Collective* collective = collectiveOf(descriptor.operation());
  if (collective != nullptr && collective->hasEqualParts())
    return describeEqualParts(out, *collective, descriptor);
  switch (descriptor.operation()) {
    case WL_OP_ALL_TO_ALL_V:
      out.add("(%s, %s)", dtypeName(descriptor.dtype()),
              descriptor.pairsParts() ? "receive counts given" : "packed as it comes");
      break;
    case WL_OP_ALL_GATHER_V:
      out.add("(%s, counts %016llx)", dtypeName(descriptor.dtype()), count);
      break;
    case WL_OP_REDUCE_SCATTER_V:
      out.add("(%s, %s, counts %016llx)", dtypeName(descriptor.dtype()),
              reduceOpName(descriptor.reduceOp()), count);
      break;
    case WL_OP_PUT:
    case WL_OP_ACCUMULATE:
      out.add("(%llu x %s to rank %d)", count, dtypeName(descriptor.dtype()), descriptor.root());
      break;
    case WL_OP_GET:
      out.add("(%llu x %s from rank %d)", count, dtypeName(descriptor.dtype()), descriptor.root());
      break;
    case WL_OP_NOTIFY:
      out.add("(value %llu to rank %d)", count, descriptor.root());
      break;
    case WL_OP_WAIT:
      out.add("(value %llu from rank %d)", count, descriptor.root());
      break;
    case WL_OP_WINDOW:
    case WL_OP_DEVICE_WINDOW:
    case WL_OP_MEMORY_POOL:
      out.add("(%llu bytes)", count);
      break;
    case WL_OP_CHECK_REPLICAS:
      out.add("(%llu hashes of each rank)", count);
      break;
    case WL_OP_SUBSET:
      out.add(descriptor.root() == 1 ? "(%d rank)" : "(%d ranks)", descriptor.root());
      break;
    case WL_OP_TRANSFER:
      out.add("(plan registered as #%u, version %llu)", static_cast<uint32_t>(descriptor.root()),
              count);
      break;
    case WL_OP_EXPERT_DISPATCH:
      out.add("(%s, %s, routing %016llx)", dtypeName(descriptor.dtype()),
              descriptor.root() == 1 ? "routed anew" : "routed as before", count);
      break;
    case WL_OP_EXPERT_COMBINE:
      out.add("(%s, routing %016llx)", dtypeName(descriptor.dtype()), count);
      break;
    case WL_OP_LAUNCH: {
      const auto id = static_cast<uint32_t>(descriptor.root());
      const LoadedKernel* kernel = loadedKernel(id);
      if (kernel != nullptr) return out.add(" of %s", kernel->entry->name);
      out.add(" of a kernel that this process has not loaded (%08x)", id);
      break;
    }
    default:
      break;
  }
}

// The record that a rank gets about itself in its shrink.
wl_error_t ofShrink(const Group& group, uint32_t rank, wl_error_t record) {
  record.operation = WL_OP_SHRINK;
  record.observer = static_cast<int32_t>(rank);
  record.sequence = group.lines(rank).state.sequence.load(std::memory_order_relaxed);
  nameCulprit(&record, rank);
  return record;
}

}  // namespace

void describe(const Descriptor& descriptor, char* text, size_t room) {
  Text out(text, room);
  describeTo(out, descriptor);
  if (descriptor.isOnStream()) out.add(" on a stream");
}

OperationText::OperationText(int32_t operation, uint32_t sequence) {
  std::snprintf(text_, sizeof text_, takesSequence(operation) ? "%s #%u" : "%s after #%u",
                operationName(operation), sequence);
}

OperationText::OperationText(const State& state)
    : OperationText(state.operation.load(std::memory_order_relaxed),
                    state.sequence.load(std::memory_order_relaxed)) {}

void writeAborted(Text& out, uint32_t rank, const char* reason) {
  out.add("rank %u aborted the communicator: %s", rank, reason);
}

void writeClosed(Text& out, uint32_t rank, const State& state) {
  out.add("rank %u closed its handle while %s was in progress", rank, OperationText(state).text());
}

void writeWhy(Text& out, uint32_t rank, const State& state, const char* why) {
  out.add("rank %u: %s: %s", rank, OperationText(state).text(), why);
}

void writeMissed(Text& out, uint32_t peer, uint32_t rank, const State& state) {
  out.add("rank %u closed the communicator, and rank %u waits for it in %s; every rank must call "
          "the same operations before it closes",
          peer, rank, OperationText(state).text());
}

void writeLeft(Text& out, uint32_t rank, const Descriptor& called) {
  char what[256];
  describe(called, what, sizeof what);
  out.add("rank %d closed the communicator, and rank %u needs it in %s; a rank stays until its "
          "peers need it no more",
          called.root(), rank, what);
}

void writeSignalTimeout(Text& out, const TimedOut& wait, uint32_t seen) {
  const auto& [group, rank, called, limitNs] = wait;
  char what[256];
  describe(called, what, sizeof what);
  out.add("rank %u waited %.3f s in %s: rank %d has notified no more than %u: ", rank,
          static_cast<double>(limitNs) / 1e9, what, called.root(), seen);
  addWhereabouts(out, group, static_cast<uint32_t>(called.root()), true);
  out.add(". See what that rank is doing, or give a longer deadline");
}

void writeTimeout(Text& out, const TimedOut& wait, uint32_t sequence, const int32_t* culprits,
                  uint32_t count, bool behind) {
  const auto& [group, rank, called, limitNs] = wait;
  char what[256];
  describe(called, what, sizeof what);
  out.add("rank %u waited %.3f s in %s, operation #%u on %u ranks: ", rank,
          static_cast<double>(limitNs) / 1e9, what, sequence, group.ranks());
  for (uint32_t i = 0; i < std::min(count, kNamed); ++i) {
    out.add("%srank %d %s: ", i == 0 ? "" : "; ", culprits[i],
            behind ? "has not come" : "has not finished");
    addWhereabouts(out, group, static_cast<uint32_t>(culprits[i]), count <= kDescribed);
  }
  if (count > kNamed) out.add("; and %u more", count - kNamed);
  if (count == 0) out.add("every rank came; this rank was not scheduled in time");
  out.add(". See what %s doing, or give a longer deadline",
          count == 1 ? "that rank is" : "those ranks are");
}

void writeProgress(Text& out, const OffloadProgress& progress, const int32_t* culprits,
                   uint32_t count) {
  for (uint32_t i = 0; i < std::min(count, kDescribed); ++i) {
    const OffloadProgress::Rank& rank = progress.ranks[static_cast<uint32_t>(culprits[i])];
    out.add("%srank %d's has ended %u of %u phases", i == 0 ? ". Of the devices, " : "; ",
            culprits[i], rank.over, progress.phases);
    if (rank.over < progress.phases) out.add(", its core %u no more", rank.core);
  }
}

wl_error_t lostOf(const Group& group, int32_t pid, const char* why, const int32_t* ranks,
                  uint32_t count) {
  wl_error_t record = blankError(WL_PEER_LOST);
  record.culprit_count = static_cast<int32_t>(count);
  std::copy_n(ranks, std::min<uint32_t>(count, WL_ERROR_CULPRITS), record.culprits);
  for (uint32_t rank = 0; rank < group.ranks() && record.observer < 0; ++rank) {
    if (!isInsideElsewhere(group, rank, pid)) continue;
    const State& state = group.lines(rank).state;
    record.operation = state.operation.load(std::memory_order_relaxed);
    record.sequence = state.sequence.load(std::memory_order_relaxed);
    record.observer = static_cast<int32_t>(rank);
  }
  Text out(record.message, sizeof record.message);
  writeLost(out, group, pid, why, record.culprits, count);
  return record;
}

wl_error_t endedOf(const Group& group, uint32_t peer) {
  return lostOf(group, group.processOf(peer).pid, "has ended",
                [&](uint32_t rank) { return group.shareProcess(rank, peer); });
}

void writeUnread(Text& out, uint32_t rank, uint32_t peer, int32_t pid, const State& state,
                 int reason) {
  out.add("rank %u can't read what rank %u names in %s: process_vm_readv of process %d: %s; ", rank,
          peer, OperationText(state).text(), pid, std::strerror(reason));
  if (reason == ESRCH)
    out.add("it lives, but its first thread, by whose number it is read, has ended; ");
  out.add(reason == EFAULT ? "memory that a call names stays mapped until the call returns"
                           : "WINDLASS_PEER_MEMORY=stage in all processes does without");
}

wl_error_t leftOutOf(const Group& group, uint32_t rank) {
  const bool gaveUp =
      group.member(rank).shrink.load(std::memory_order_seq_cst) == Agreement::kGaveUp;
  return ofShrink(
      group, rank,
      errorOf(WL_ABORTED,
              "rank %u was left out: other ranks shrank this communicator to a new one, and it "
              "%s; it reaches nothing of theirs: close this one, and meet them anew",
              rank,
              gaveUp ? "had given up its own shrink by then" : "had not come by their deadline"));
}

wl_error_t stoodStillOf(const Group& group, uint32_t rank, int64_t silenceNs) {
  return ofShrink(
      group, rank,
      errorOf(WL_ABORTED,
              "rank %u was left out: its host stood still for about the %.1f s of silence after "
              "which other hosts lose it, or longer, and finds none of their ranks, which may have "
              "gone on without it: close this one, and meet them anew",
              rank, static_cast<double>(silenceNs) / 1e9));
}

void writeMismatch(Text& out, const Group& group, uint32_t a, uint32_t b, uint64_t sequence) {
  const Descriptor& ofA = group.lines(a).entry[sequence & 1].descriptor;
  const Descriptor& ofB = group.lines(b).entry[sequence & 1].descriptor;
  char first[256];
  char second[256];
  describe(ofA, first, sizeof first);
  describe(ofB, second, sizeof second);
  out.add("ranks disagree in operation #%u: rank %u calls %s, rank %u calls %s",
          static_cast<uint32_t>(sequence), a, first, b, second);
  if (ofA.what == ofB.what && ofA.operation() == WL_OP_SUBSET)
    out.add(", but not the same ones in one order");
  if (ofA.what == ofB.what && ofA.operation() == WL_OP_REGISTER) {
    out.add("; names, shapes, dtypes, layouts and options of all tensors, and their order, are the "
            "same on every rank");
  }
  if (ofA.operation() == WL_OP_LAUNCH && ofB.operation() == WL_OP_LAUNCH)
    return addLaunchDifference(out, group, a, b, sequence);
  const uint64_t elementBytes = sizeOf(static_cast<DType>(ofA.dtype()));
  const uint32_t ranks = group.ranks();
  const auto in = [&](uint32_t of, uint32_t rank) {
    return group.block().parts(of, sequence).in(rank);
  };
  const auto outOf = [&](uint32_t of, uint32_t rank) {
    return group.block().parts(of, sequence).out(rank);
  };
  const bool sameList = ofA.what == ofB.what;
  if (ofA == ofB) {
    addUnexpected(out, a, in(a, b), b, outOf(b, a), elementBytes);
    addUnexpected(out, b, in(b, a), a, outOf(a, b), elementBytes);
  } else if (sameList && ofA.operation() == WL_OP_ALL_GATHER_V) {
    addFirstDifference(out, ranks, a, b, outOf, elementBytes);
  } else if (sameList && ofA.operation() == WL_OP_REDUCE_SCATTER_V) {
    addFirstDifference(out, ranks, a, b, in, elementBytes);
  }
}

void writeUnmatched(Text& out, const Group& group, uint32_t caller, uint32_t other,
                    uint64_t sequence) {
  char what[256];
  describe(group.lines(caller).entry[sequence & 1].descriptor, what, sizeof what);
  out.add("ranks disagree in operation #%u: rank %u calls %s, rank %u closed the communicator "
          "without it; every rank must call the same operations before it closes",
          static_cast<uint32_t>(sequence), caller, what, other);
}

}  // namespace windlass
