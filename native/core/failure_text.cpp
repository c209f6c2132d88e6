// SPDX-License-Identifier: Apache-2.0
#include "native/core/failure_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

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

// Reports the first count that differs between ranks a and b although it must be the same.
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
struct HostName {
  HostName() {
    if (gethostname(text, sizeof text - 1) != 0 || text[0] == 0)
      std::snprintf(text, sizeof text, "this host");
  }

  char text[65] = {};
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
  const Described what(last.descriptor);
  char operation[288];
  std::snprintf(operation, sizeof operation,
                takesSequence(last.descriptor.operation()) ? "%s #%u" : "%s after #%u",
                described ? what.text : operationName(last.descriptor.operation()), last.sequence);
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
  const LoadedKernel* kernel = loadedKernel(ofA.descriptor.kernel());
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

// Writes the text of `record`, which names the faulty ranks.
void writeLost(const Group& group, int32_t pid, const char* why, wl_error_t* record) {
  const auto count = static_cast<uint32_t>(record->faulty_rank_count);
  Text out(record->message, sizeof record->message);
  out.add("process %d on %s %s: ", pid, HostName().text, why);
  for (uint32_t i = 0; i < std::min(count, kNamedRanks); ++i) {
    const auto faultyRank = static_cast<uint32_t>(record->faulty_ranks[i]);
    out.add("%srank %u is lost: ", i == 0 ? "" : "; ", faultyRank);
    addCall(out, group, faultyRank, count <= kDescribedRanks);
  }
  if (count > kNamedRanks) out.add("; and %u more", count - kNamedRanks);
  uint32_t inside = 0;
  for (uint32_t rank = 0; rank < group.ranks(); ++rank) {
    if (!isInsideElsewhere(group, rank, pid) || ++inside > kDescribedRanks) continue;
    out.add("%srank %u: ", inside == 1 ? ". Of the others " : "; ", rank);
    addCall(out, group, rank, true);
    addAwaited(out, group, rank);
  }
  if (inside == 0) out.add(". No other rank is in a call");
  if (inside > kDescribedRanks) out.add("; and %u more are in calls", inside - kDescribedRanks);
  out.add(". See what that process logged last, and whether it was killed for memory");
}

// Example: "(4 x f32 to rank 1, tag 7)".
void describeMessage(Text& out, const Descriptor& descriptor) {
  const bool sends = descriptor.operation() == WL_OP_SEND;
  out.add("(%s%llu x %s %s", sends ? "" : "at most ", text(descriptor.count),
          dtypeName(descriptor.dtype()), sends ? "to" : "from");
  if (descriptor.partner() == Descriptor::kAnyPartner) {
    out.add(" any rank");
  } else {
    out.add(" rank %u", descriptor.partner());
  }
  if (descriptor.tag() < 0) return out.add(", any tag)");
  out.add(", tag %d)", descriptor.tag());
}

// Adds the operation and its size.
void describeTo(Text& out, const Descriptor& descriptor) {
  const auto count = text(descriptor.count);
  const char* const dtype = dtypeName(descriptor.dtype());
  out.add("%s", operationName(descriptor.operation()));
  const Collective* collective = collectiveOf(descriptor.operation());
  if (collective != nullptr && collective->hasEqualParts())
    return describeEqualParts(out, *collective, descriptor);
  switch (descriptor.operation()) {
    case WL_OP_ALL_TO_ALL_V:
      return out.add("(%s, %s)", dtype,
                     descriptor.pairsParts() ? "receive counts given" : "packed as it comes");
    case WL_OP_ALL_GATHER_V:
      return out.add("(%s, counts %016llx)", dtype, count);
    case WL_OP_REDUCE_SCATTER_V:
      return out.add("(%s, %s, counts %016llx)", dtype, reduceOpName(descriptor.reduceOp()), count);
    case WL_OP_PUT:
    case WL_OP_ACCUMULATE:
      return out.add("(%llu x %s to rank %u)", count, dtype, descriptor.peer());
    case WL_OP_GET:
      return out.add("(%llu x %s from rank %u)", count, dtype, descriptor.peer());
    case WL_OP_NOTIFY:
      return out.add("(value %llu to rank %u)", count, descriptor.peer());
    case WL_OP_WAIT:
      return out.add("(value %llu from rank %u)", count, descriptor.peer());
    case WL_OP_SEND:
    case WL_OP_RECEIVE:
      return describeMessage(out, descriptor);
    case WL_OP_SEND_RECEIVE:
      return out.add("(%llu messages)", count);
    case WL_OP_WINDOW:
    case WL_OP_DEVICE_WINDOW:
    case WL_OP_MEMORY_POOL:
      return out.add("(%llu bytes)", count);
    case WL_OP_CHECK_REPLICAS:
      return out.add("(%llu hashes of each rank)", count);
    case WL_OP_SUBGROUP:
      return out.add(descriptor.members() == 1 ? "(%u rank)" : "(%u ranks)", descriptor.members());
    case WL_OP_TRANSFER:
      return out.add("(plan registered as #%u, version %llu)", descriptor.transfer(), count);
    case WL_OP_EXPERT_DISPATCH:
      return out.add("(%s, %s, routing %016llx)", dtype,
                     descriptor.routesAnew() ? "routed anew" : "routed as before", count);
    case WL_OP_EXPERT_COMBINE:
      return out.add("(%s, routing %016llx)", dtype, count);
    case WL_OP_LAUNCH:
      if (const LoadedKernel* kernel = loadedKernel(descriptor.kernel()))
        return out.add(" of %s", kernel->entry->name);
      return out.add(" of a kernel that this process has not loaded (%08x)", descriptor.kernel());
    default:
      return;
  }
}

// Completes a record about a rank that fails its own shrink.
wl_error_t ofShrink(const Group& group, uint32_t rank, wl_error_t record) {
  record.operation = WL_OP_SHRINK;
  record.observer = static_cast<int32_t>(rank);
  record.sequence = group.lines(rank).state.sequence.load(std::memory_order_relaxed);
  nameFaultyRank(&record, rank);
  return record;
}

}  // namespace

void describe(const Descriptor& descriptor, char* text, size_t room) {
  Text out(text, room);
  describeTo(out, descriptor);
  if (descriptor.isOnStream()) out.add(" on a stream");
}

OperationText::OperationText(const State& state) {
  const int32_t operation = state.operation.load(std::memory_order_relaxed);
  std::snprintf(text, sizeof text, takesSequence(operation) ? "%s #%u" : "%s after #%u",
                operationName(operation), state.sequence.load(std::memory_order_relaxed));
}

void addWhereabouts(Text& out, const Group& group, uint32_t peer, bool described) {
  addCall(out, group, peer, described);
  char call[ToldCall::kRoom];
  if (group.config().offloadCores > 0 && group.block().offloadLine(peer).call.read(call))
    out.add(", whose device's driver does not return from %s", call);
  const int32_t pid = group.member(peer).pid.load(std::memory_order_acquire);
  if (pid == 0) return;
  const HostName own;
  const OtherHosts* const hosts = group.hosts();
  out.add(" (process %d on %s)", pid,
          hosts == nullptr ? own.text : hosts->nameOf(hosts->hostOf(peer)));
}

void writeProgress(Text& out, const OffloadProgress& progress, const wl_error_t& record) {
  const auto count = static_cast<uint32_t>(record.faulty_rank_count);
  for (uint32_t i = 0; i < std::min(count, kDescribedRanks); ++i) {
    const auto faultyRank = static_cast<uint32_t>(record.faulty_ranks[i]);
    const OffloadProgress::Rank& rank = progress.ranks[faultyRank];
    out.add("%srank %u's has ended %u of %u phases", i == 0 ? ". Of the devices, " : "; ",
            faultyRank, rank.over, progress.phases);
    if (rank.over < progress.phases) out.add(", its core %u no more", rank.core);
  }
}

wl_error_t lostOf(const Group& group, int32_t pid, const char* why,
                  const std::function<bool(uint32_t rank)>& isOwn) {
  wl_error_t record = blankError(WL_PEER_LOST);
  for (uint32_t rank = 0; rank < group.ranks(); ++rank) {
    const bool hasLeft = group.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
    if (!hasLeft && isOwn(rank)) addFaultyRank(&record, rank);
  }
  for (uint32_t rank = 0; rank < group.ranks() && record.observer < 0; ++rank) {
    if (!isInsideElsewhere(group, rank, pid)) continue;
    const State& state = group.lines(rank).state;
    record.operation = state.operation.load(std::memory_order_relaxed);
    record.sequence = state.sequence.load(std::memory_order_relaxed);
    record.observer = static_cast<int32_t>(rank);
  }
  writeLost(group, pid, why, &record);
  return record;
}

wl_error_t endedOf(const Group& group, uint32_t peer) {
  return lostOf(group, group.processOf(peer).pid, "has ended",
                [&](uint32_t rank) { return group.shareProcess(rank, peer); });
}

wl_error_t leftOutOf(const Group& group, uint32_t rank) {
  const bool gaveUp =
      group.member(rank).shrink.load(std::memory_order_seq_cst) == Agreement::kGaveUp;
  return ofShrink(
      group, rank,
      errorOf(WL_ABORTED,
              "rank %u was left out: other ranks shrank this communicator to a new one, and it "
              "%s; it reaches nothing of theirs: close this one, and start with them anew",
              rank,
              gaveUp ? "had given up its own shrink by then" : "had not come by their deadline"));
}

wl_error_t stoodStillOf(const Group& group, uint32_t rank, int64_t silenceNs) {
  return ofShrink(
      group, rank,
      errorOf(WL_ABORTED,
              "rank %u was left out: its host stood still for about the %.1f s of silence after "
              "which other hosts lose it, or longer, and finds none of their ranks, which may have "
              "gone on without it: close this one, and start with them anew",
              rank, static_cast<double>(silenceNs) / 1e9));
}

void writeMismatch(Text& out, const Group& group, uint32_t a, uint32_t b, uint64_t sequence) {
  const Descriptor& ofA = group.lines(a).entry[sequence & 1].descriptor;
  const Descriptor& ofB = group.lines(b).entry[sequence & 1].descriptor;
  out.add("ranks disagree in operation #%u: rank %u calls %s, rank %u calls %s",
          static_cast<uint32_t>(sequence), a, Described(ofA).text, b, Described(ofB).text);
  if (ofA.what == ofB.what && ofA.operation() == WL_OP_SUBGROUP)
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

}  // namespace windlass
