// SPDX-License-Identifier: Apache-2.0
// What ends a wait, and the texts of the failure record.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "native/comm/comm.h"

namespace windlass {
namespace {

const char* dtypeName(int32_t dtype) {
  static const char* const names[] = {"bool", "u8",  "i8",  "f8e5m2", "f8e4m3", "f8e8m0",
                                      "i16",  "u16", "f16", "bf16",   "i32",    "u32",
                                      "f32",  "f64", "i64", "u64",    "c64"};
  static_assert(sizeof names / sizeof *names == WL_DTYPE_COUNT);
  return dtype >= 0 && dtype < WL_DTYPE_COUNT ? names[dtype] : "?";
}

const char* reduceOpName(int32_t op) {
  static const char* const names[] = {"sum", "max", "min", "product", "avg"};
  static_assert(sizeof names / sizeof *names == WL_REDUCE_OP_COUNT);
  return op >= 0 && op < WL_REDUCE_OP_COUNT ? names[op] : "?";
}

const char* algorithmName(int32_t algorithm) {
  static const char* const names[] = {"auto",      "push",      "pull", "staged",
                                      "one-phase", "two-phase", "ring", "bidirectional ring"};
  static_assert(sizeof names / sizeof *names == WL_BIDIRECTIONAL_RING + 1);
  return algorithm >= 0 && algorithm <= WL_BIDIRECTIONAL_RING ? names[algorithm] : "?";
}

// Appends to a fixed text and stops at its end.
class Text {
 public:
  Text(char* text, size_t room) : at_(text), left_(room) { *text = 0; }
  void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    const int written = std::vsnprintf(at_, left_, format, arguments);
    va_end(arguments);
    const size_t step = std::min(left_ - 1, static_cast<size_t>(std::max(0, written)));
    at_ += step;
    left_ -= step;
  }

 private:
  char* at_;
  size_t left_;
};

// What `from` sends to `to`, where `to` expects something else.
void addUnexpected(Text& out, uint32_t from, const Part& sent, uint32_t to, const Part& expected,
                   uint64_t elementBytes) {
  if (sent.bytes == expected.bytes) return;
  out.add("; rank %u sends %llu elements to rank %u, which expects %llu", from,
          static_cast<unsigned long long>(sent.bytes / elementBytes), to,
          static_cast<unsigned long long>(expected.bytes / elementBytes));
}

// The first of the counts that must be the same on ranks a and b, and are not.
template <class PartOf>
void addFirstDifference(Text& out, uint32_t ranks, uint32_t a, uint32_t b, PartOf&& partOf,
                        uint64_t elementBytes) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint64_t ofA = partOf(a, rank).bytes;
    const uint64_t ofB = partOf(b, rank).bytes;
    if (ofA == ofB) continue;
    out.add("; counts[%u] is %llu on rank %u and %llu on rank %u", rank,
            static_cast<unsigned long long>(ofA / elementBytes), a,
            static_cast<unsigned long long>(ofB / elementBytes), b);
    return;
  }
}

// Of a Timeout's culprits, how many are named, and up to how many with what their operations move.
constexpr uint32_t kNamed = 8;
constexpr uint32_t kDescribed = 3;

// "2.0 s", "150 ms" or "12 us".
void addDuration(Text& out, int64_t ns) {
  if (ns >= 1'000'000'000) {
    out.add("%.1f s", static_cast<double>(ns) / 1e9);
  } else if (ns >= 1'000'000) {
    out.add("%lld ms", static_cast<long long>(ns / 1'000'000));
  } else {
    out.add("%lld us", static_cast<long long>(std::max<int64_t>(0, ns) / 1000));
  }
}

// "it finished barrier #41 2.0 s ago".
void addWhereabouts(Text& out, const Group& group, uint32_t peer, bool described) {
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
                isOneSided(last.descriptor.operation()) ? "%s after #%u" : "%s #%u",
                described ? what : operationName(last.descriptor.operation()), last.sequence);
  if (last.code == WL_RECORD_INSIDE) {
    out.add("it is in %s", operation);
    if (last.enteredNs == 0) return;
    out.add(", for ");
    addDuration(out, now - last.enteredNs);
    return;
  }
  out.add("it %s %s ", last.code == WL_OK ? "finished" : "left", operation);
  addDuration(out, now - last.leftNs);
  out.add(" ago");
}

}  // namespace

void describe(const Descriptor& descriptor, char* text, size_t room) {
  Text out(text, room);
  const auto count = static_cast<unsigned long long>(descriptor.count);
  out.add("%s", operationName(descriptor.operation()));
  switch (descriptor.operation()) {
    case WL_OP_ALL_TO_ALL:
      out.add("(%llu x %s to each rank, %s)", count, dtypeName(descriptor.dtype()),
              algorithmName(descriptor.algorithm()));
      break;
    case WL_OP_ALL_GATHER:
      out.add("(%llu x %s of each rank)", count, dtypeName(descriptor.dtype()));
      break;
    case WL_OP_SCATTER:
    case WL_OP_GATHER:
      out.add("(%llu x %s of each rank, root %d)", count, dtypeName(descriptor.dtype()),
              descriptor.root());
      break;
    case WL_OP_REDUCE_SCATTER:
      out.add("(%llu x %s to each rank, %s)", count, dtypeName(descriptor.dtype()),
              reduceOpName(descriptor.reduceOp()));
      break;
    case WL_OP_ALL_REDUCE:
      out.add("(%llu x %s, %s, %s)", count, dtypeName(descriptor.dtype()),
              reduceOpName(descriptor.reduceOp()), algorithmName(descriptor.algorithm()));
      break;
    case WL_OP_REDUCE:
      out.add("(%llu x %s, %s, root %d)", count, dtypeName(descriptor.dtype()),
              reduceOpName(descriptor.reduceOp()), descriptor.root());
      break;
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
    case WL_OP_BROADCAST:
      out.add("(%llu x %s, root %d)", count, dtypeName(descriptor.dtype()), descriptor.root());
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
      out.add("(%llu bytes)", count);
      break;
    case WL_OP_CHECK_REPLICAS:
      out.add("(%llu hashes of each rank)", count);
      break;
    case WL_OP_SUBSET:
      out.add(descriptor.root() == 1 ? "(%d rank)" : "(%d ranks)", descriptor.root());
      break;
    case WL_OP_REGISTER:
      out.add("(fingerprint %016llx)", count);
      break;
    case WL_OP_TRANSFER:
      out.add("(plan registered as #%u, version %llu)", static_cast<uint32_t>(descriptor.root()),
              count);
      break;
    default:
      break;
  }
}

OperationText::OperationText(int32_t operation, uint32_t sequence) {
  std::snprintf(text_, sizeof text_, isOneSided(operation) ? "%s after #%u" : "%s #%u",
                operationName(operation), sequence);
}

OperationText::OperationText(const State& state)
    : OperationText(state.operation.load(std::memory_order_relaxed),
                    state.sequence.load(std::memory_order_relaxed)) {}

Code Comm::interruption(Deadline& deadline, int64_t now) {
  if (group_->failure() != nullptr) return WL_ABORTED;
  if (own_.state.closing.load(std::memory_order_seq_cst) != 0) {
    const int32_t self = static_cast<int32_t>(rank_);
    char text[256];
    std::snprintf(text, sizeof text, "rank %u closed its handle while %s was in progress", rank_,
                  OperationText(own_.state).text());
    publish(WL_ABORTED, &self, 1, text);
    return WL_CLOSED;
  }
  if (Code code = missed(); code != WL_OK) return code;
  if (deadline.left(now) > 0) return WL_OK;
  return signal_ == nullptr ? publishTimeout(deadline.limitNs())
                            : publishSignalTimeout(deadline.limitNs());
}

bool Comm::left(uint32_t peer) const {
  return group_->lines(peer).state.left.load(std::memory_order_seq_cst) != 0;
}

Code Comm::missed() {
  if (group_->shared().leavers.load(std::memory_order_seq_cst) == 0) return WL_OK;
  if (signal_ != nullptr) {
    // It may have notified between the last look and its leave.
    return left(currentPeer()) && !signalReached() ? publishLeft() : WL_OK;
  }
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!left(peer) || group_->entered(peer, sequence_)) continue;
    const int32_t culprit = static_cast<int32_t>(peer);
    char text[256];
    std::snprintf(text, sizeof text,
                  "rank %u closed the communicator, and rank %u waits for it in %s; every rank "
                  "must call the same operations before it closes",
                  peer, rank_, OperationText(own_.state).text());
    return publish(WL_ABORTED, &culprit, 1, text);
  }
  return WL_OK;
}

Code Comm::differing() {
  if (signal_ != nullptr || !group_->entered(rank_, sequence_)) return WL_OK;
  for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
    if (!group_->entered(peer, sequence_)) continue;
    if (!agree(rank_, peer, sequence_)) return publishMismatch(rank_, peer, sequence_);
  }
  return WL_OK;
}

Code Comm::publishLeft() {
  const int32_t culprit = current_.root();
  char what[256];
  describe(current_, what, sizeof what);
  char text[512];
  std::snprintf(text, sizeof text,
                "rank %d closed the communicator, and rank %u needs it in %s; a rank stays until "
                "its peers need it no more",
                culprit, rank_, what);
  return publish(WL_ABORTED, &culprit, 1, text);
}

Code Comm::publishSignalTimeout(int64_t limitNs) {
  const int32_t culprit = current_.root();
  char what[256];
  describe(current_, what, sizeof what);
  char text[WL_ERROR_MESSAGE];
  Text out(text, sizeof text);
  out.add("rank %u waited %.3f s in %s: rank %d has notified no more than %u: ", rank_,
          static_cast<double>(limitNs) / 1e9, what, culprit, lookAt(signal_));
  addWhereabouts(out, *group_, currentPeer(), true);
  out.add(". See what that rank is doing, or give a longer deadline");
  return publish(WL_TIMEOUT, &culprit, 1, text);
}

wl_error_t Comm::recordOf(Code code, const int32_t* culprits, uint32_t count,
                          const char* text) const {
  wl_error_t record = errorOf(code, "%s", text);
  record.operation = own_.state.operation.load(std::memory_order_relaxed);
  record.observer = static_cast<int32_t>(rank_);
  record.sequence = own_.state.sequence.load(std::memory_order_relaxed);
  record.culprit_count = static_cast<int32_t>(count);
  for (uint32_t i = 0; i < std::min<uint32_t>(count, WL_ERROR_CULPRITS); ++i)
    record.culprits[i] = culprits[i];
  return record;
}

Code Comm::publish(Code code, const int32_t* culprits, uint32_t count, const char* text) {
  group_->publishFailure(recordOf(code, culprits, count, text));
  return code;
}

uint32_t Comm::phasesOver(uint32_t rank) const {
  const GroupConfig& config = group_->config();
  if (config.deviceCores == 0) {
    const uint64_t word = group_->lines(rank).done.word.load(std::memory_order_acquire);
    return sequenceOf(word) == sequence_ ? phaseOf(word) : 0;
  }
  const InLine own = inLine(0);
  uint32_t fewest = kMostPhases;
  for (uint32_t core = 0; core < own.cores; ++core) {
    const uint32_t told = lookAt(own.line(rank_, rank, core));
    fewest = std::min(fewest, reached(told, own.word(0)) ? told - own.word(0) : 0);
  }
  return fewest;
}

// Names the ranks whose sequence is furthest behind. When all came: those that are inside and don't
// wait, or, where it shows, those of whose items the fewest phases have run: this rank too, if it is
// the only one.
Code Comm::publishTimeout(int64_t limitNs) {
  int32_t culprits[WL_ERROR_CULPRITS];
  uint32_t count = 0;
  const auto collect = [&](auto&& guilty) {
    for (uint32_t peer = 0; peer < group_->ranks(); ++peer) {
      if (peer == rank_ || !guilty(peer)) continue;
      if (count < WL_ERROR_CULPRITS) culprits[count] = static_cast<int32_t>(peer);
      ++count;
    }
    return count > 0;
  };
  const bool behind =
      collect([&](uint32_t peer) { return !group_->entered(peer, sequence_ - 1); }) ||
      collect([&](uint32_t peer) { return !group_->entered(peer, sequence_); });
  if (!behind) {
    const bool works = collect([&](uint32_t peer) {
      const State& state = group_->lines(peer).state;
      return state.busy.load() != 0 && state.sequence.load() == sequence() &&
             state.operation.load() == current_.operation() &&
             // A rank that waits runs others' items where those are claimed.
             (state.awaited.load() == -1 || state.running.load() > 0);
    });
    // An item of its own, or of a worker of its own.
    if (!works && own_.state.running.load() > 0) {
      culprits[count++] = static_cast<int32_t>(rank_);
    } else if (!works && shownPhases_ != 0) {
      uint32_t fewest = shownPhases_;
      for (uint32_t rank = 0; rank < group_->ranks(); ++rank)
        fewest = std::min(fewest, phasesOver(rank));
      const auto slowest = [&](uint32_t rank) {
        return fewest < shownPhases_ && phasesOver(rank) == fewest;
      };
      if (!collect(slowest) && slowest(rank_)) culprits[count++] = static_cast<int32_t>(rank_);
    }
  }
  char what[256];
  describe(current_, what, sizeof what);
  char text[WL_ERROR_MESSAGE];
  Text out(text, sizeof text);
  out.add("rank %u waited %.3f s in %s, operation #%u on %u ranks: ", rank_,
          static_cast<double>(limitNs) / 1e9, what, sequence(), group_->ranks());
  for (uint32_t i = 0; i < std::min(count, kNamed); ++i) {
    out.add("%srank %d %s: ", i == 0 ? "" : "; ", culprits[i],
            behind ? "has not come" : "has not finished");
    addWhereabouts(out, *group_, static_cast<uint32_t>(culprits[i]), count <= kDescribed);
  }
  if (count > kNamed) out.add("; and %u more", count - kNamed);
  if (count == 0) out.add("every rank came; this rank was not scheduled in time");
  out.add(". See what %s doing, or give a longer deadline",
          count == 1 ? "that rank is" : "those ranks are");
  return publish(WL_TIMEOUT, culprits, count, text);
}

Code Comm::publishMismatch(uint32_t a, uint32_t b, uint64_t sequence) {
  const Descriptor& ofA = group_->lines(a).entry[sequence & 1].descriptor;
  const Descriptor& ofB = group_->lines(b).entry[sequence & 1].descriptor;
  char first[256];
  char second[256];
  describe(ofA, first, sizeof first);
  describe(ofB, second, sizeof second);
  char text[WL_ERROR_MESSAGE];
  Text out(text, sizeof text);
  out.add("ranks disagree in operation #%u: rank %u calls %s, rank %u calls %s",
          static_cast<uint32_t>(sequence), a, first, b, second);
  if (ofA.what == ofB.what && ofA.operation() == WL_OP_SUBSET)
    out.add(", but not the same ones in one order");
  if (ofA.what == ofB.what && ofA.operation() == WL_OP_REGISTER) {
    out.add("; names, shapes, dtypes, layouts and options of all tensors, and their order, are the "
            "same on every rank");
  }
  const uint64_t elementBytes = sizeOf(static_cast<DType>(ofA.dtype()));
  const uint32_t ranks = group_->ranks();
  const auto in = [&](uint32_t of, uint32_t rank) {
    return group_->block().parts(of, sequence).in(rank);
  };
  const auto outOf = [&](uint32_t of, uint32_t rank) {
    return group_->block().parts(of, sequence).out(rank);
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
  return publishDisagreement(a, b, sequence, text);
}

Code Comm::publishUnmatched(uint32_t caller, uint32_t other, uint64_t sequence) {
  char what[256];
  describe(group_->lines(caller).entry[sequence & 1].descriptor, what, sizeof what);
  char text[512];
  std::snprintf(text, sizeof text,
                "ranks disagree in operation #%u: rank %u calls %s, rank %u closed the communicator "
                "without it; every rank must call the same operations before it closes",
                static_cast<uint32_t>(sequence), caller, what, other);
  return publishDisagreement(caller, other, sequence, text);
}

Code Comm::publishDisagreement(uint32_t caller, uint32_t other, uint64_t sequence,
                               const char* text) {
  const int32_t culprits[2] = {static_cast<int32_t>(std::min(caller, other)),
                               static_cast<int32_t>(std::max(caller, other))};
  const Descriptor& called = group_->lines(caller).entry[sequence & 1].descriptor;
  wl_error_t record = recordOf(WL_MISMATCH, culprits, 2, text);
  record.operation = called.operation();
  record.sequence = static_cast<uint32_t>(sequence);
  group_->publishFailure(record);
  return WL_MISMATCH;
}

}  // namespace windlass
