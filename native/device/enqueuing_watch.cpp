// SPDX-License-Identifier: Apache-2.0
// Watch on operations on streams. No host thread waits for them. Instead, the thread that makes the
// device's calls checks which have ended, the deadline of the oldest one, and the communicator. The
// deadline counts from the time at which the rank's stream reached the operation.
#include <algorithm>

#include "native/base/clock.h"
#include "native/base/text.h"
#include "native/core/group.h"
#include "native/core/names.h"
#include "native/device/enqueuing.h"
#include "native/device/offload_seats.h"

namespace windlass {
namespace {

// Intervals between checks:
// - kSoonNs if somebody waits, or if an operation was enqueued or ended within kMomentNs.
// - kBusyNs if operations are in flight.
// - kIdleNs if graphs hold operations, which may run at any time.
constexpr int64_t kSoonNs = 20'000;
constexpr int64_t kBusyNs = 500'000;
constexpr int64_t kIdleNs = 20'000'000;
constexpr int64_t kMomentNs = 2'000'000;

// Adds text such as "rank 1" or "ranks 1, 2".
void addRanks(Text& to, const std::vector<uint32_t>& ranks) {
  to.add("rank%s", ranks.size() == 1 ? "" : "s");
  for (size_t i = 0; i < ranks.size(); ++i) to.add("%s %u", i == 0 ? "" : ",", ranks[i]);
}

}  // namespace

int64_t Enqueuing::look() {
  if (isClosed_ || (!isInFlight() && captured_ == 0)) return kNever;
  wl_error_t error = blankError();
  Code code = poll(&error);
  if (!hasEnded_.load()) {
    // After a withdrawal, the rank publishes the reason itself, possibly a moment later.
    const uint32_t reported = hasGivenUp_ ? 0 : streams_->reported();
    if (code == WL_OK && reported != 0) code = publishReported(reported, &error);
    if (code == WL_OK && isInFlight() && !hasGivenUp_)
      code = checkDeadline(&error);
    if (code != WL_OK) publishDevice(error);
    const bool closes = group_.lines(rank_).state.closing.load(std::memory_order_seq_cst) != 0;
    if (group_.failure() != nullptr || (closes && !isInFlight())) end();
  }
  if (!isInFlight()) return hasEnded_.load() || captured_ == 0 ? kNever : kIdleNs;
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiters_ > 0 || clockNs() - lastNs_ < kMomentNs ? kSoonNs : kBusyNs;
}

void Enqueuing::close() {
  isClosed_ = true;
  if (streams_ != nullptr && (isInFlight() || captured_ > 0)) end();
}

Code Enqueuing::poll(wl_error_t* error) {
  bool hasMoved = false;
  Code code = WL_OK;
  while (isInFlight()) {
    const uint64_t ticket = over_.load() + 1;
    bool isOver = false;
    code = streams_->isOver(ticket % cuda::Streams::kMostInFlight, &isOver, error);
    if (code != WL_OK || !isOver) break;
    const std::lock_guard<std::mutex> lock(mutex_);
    // A core that ends an operation early reports this before the operation ends.
    if (!hasEnded_.load() && streams_->reported() == 0) whole_.store(ticket);
    over_.store(ticket);
    group_.offloadSeats()[rank_].enqueued.fetch_sub(1);
    hasMoved = true;
  }
  if (!hasMoved) return code;
  lastNs_ = clockNs();
  changed_.notify_all();
  return code;
}

void Enqueuing::end() {
  streams_->stop();
  const std::lock_guard<std::mutex> lock(mutex_);
  hasEnded_.store(true);
  changed_.notify_all();
}

template <class Write>
Code Enqueuing::publish(Code code, Write&& write) {
  wl_error_t record = blankError(code);
  Text text(record.message, sizeof record.message);
  std::vector<uint32_t> faultyRanks;
  if (Code failed = write(text, &faultyRanks); failed != WL_OK) return failed;
  const InFlight of = isInFlight() ? oldest() : InFlight{};
  record.operation = of.operation;
  record.observer = static_cast<int32_t>(rank_);
  record.sequence = of.sequence;
  for (const uint32_t faultyRank : faultyRanks) addFaultyRank(&record, faultyRank);
  group_.publishFailure(record);
  return WL_OK;
}

void Enqueuing::publishDevice(const wl_error_t& why) {
  publish(static_cast<Code>(why.code), [&](Text& text, std::vector<uint32_t>* faultyRanks) {
    text.add("rank %u: what it has put on streams: %s", rank_, why.message);
    faultyRanks->push_back(rank_);
    return WL_OK;
  });
}

Code Enqueuing::checkDeadline(wl_error_t* error) {
  InFlight& late = oldest();
  const int64_t now = clockNs();
  if (late.begunNs == 0) {
    bool hasBegun = false;
    const Code code = streams_->hasBegun(late.marks[rank_], &hasBegun, error);
    if (code != WL_OK || !hasBegun) return code;
    late.begunNs = now;
    group_.block().offloadLine(rank_).come.store(over_.load() + 1, std::memory_order_release);
  }
  if (now - late.begunNs < late.deadlineNs) return WL_OK;
  return publish(WL_DEADLINE_EXCEEDED, [&](Text& text, std::vector<uint32_t>* faultyRanks) {
    text.add("rank %u: %s on a stream was not over %.3f s after its stream had come to it: ",
             rank_, operationName(late.operation), static_cast<double>(late.deadlineNs) / 1e9);
    return findLate(&text, faultyRanks, error);
  });
}

// All ranks number enqueued operations alike. A rank of another process may not have noticed yet
// that its stream reached the operation. So this also reads the lines that its cores write here.
Code Enqueuing::hasCome(uint32_t rank, bool* has, wl_error_t* error) {
  if (group_.liveTogether(rank, rank_)) return streams_->hasBegun(oldest().marks[rank], has, error);
  *has = group_.block().offloadLine(rank).come.load(std::memory_order_acquire) > over_.load();
  if (*has) return WL_OK;
  OffloadProgress progress;
  const Code code = read(0, &progress, error);
  *has = code == WL_OK && progress.ranks[rank].hasBegun;
  return code;
}

Code Enqueuing::findLate(Text* text, std::vector<uint32_t>* ranks, wl_error_t* error) {
  for (uint32_t rank = 0; rank < stated_.ranks(); ++rank) {
    bool has = false;
    if (Code code = hasCome(rank, &has, error); code != WL_OK) return code;
    if (!has) ranks->push_back(rank);
  }
  if (!ranks->empty()) {
    text->add("the stream%s of ", ranks->size() == 1 ? "" : "s");
    addRanks(*text, *ranks);
    text->add(" ha%s not", ranks->size() == 1 ? "s" : "ve");
    return WL_OK;
  }
  uint32_t over = 0;
  if (Code code = leastFar(0, ranks, &over, error); code != WL_OK) return code;
  text->add("of its %u phases, the device of ", oldest().phases);
  addRanks(*text, *ranks);
  text->add(" has ended %u", over);
  return WL_OK;
}

void Enqueuing::publishInTheWay(OffloadPeers& peers) {
  if (!isInFlight()) return;
  const auto count = static_cast<uint32_t>(last_.load() - over_.load());
  char why[WL_ERROR_MESSAGE];
  Text text(why, sizeof why);
  text.add("for %u operation%s that %s in flight on streams%s, until the streams of all have come "
           "to the oldest, %s, and it is over: ",
           count, count == 1 ? "" : "s", count == 1 ? "is" : "are",
           count == cuda::Streams::kMostInFlight ? ", as many as may be" : "",
           operationName(oldest().operation));
  std::vector<uint32_t> faultyRanks;
  wl_error_t error = blankError();
  // If findLate() fails, the watch publishes the device's error.
  if (findLate(&text, &faultyRanks, &error) == WL_OK)
    peers.busy(faultyRanks, why);
}

Code Enqueuing::publishReported(uint32_t sequence, wl_error_t* error) {
  return publish(WL_DEADLINE_EXCEEDED, [&](Text& text, std::vector<uint32_t>* faultyRanks) {
    uint32_t over = 0;
    const Code code = leastFar(sequence, faultyRanks, &over, error);
    text.add(
        "rank %u: its device ended an operation on streams at its deadline, the %uth of them: "
        "the device of ",
        rank_, sequence);
    addRanks(text, *faultyRanks);
    text.add(" has ended %u phases, and no other one fewer", over);
    return code;
  });
}

Code Enqueuing::read(uint32_t sequence, OffloadProgress* progress, wl_error_t* error) {
  InLine line = {};
  line.cores = isInFlight() ? oldest().cores : capturedCores_;
  line.sequence = sequence;
  if (sequence == 0) {
    DeviceCounters counters = {};
    const uint64_t at = stated_.layout(rank_, group_.config().offloadCores, *streams_).word;
    const Code code = device_.fromDevice(&counters, reinterpret_cast<const void*>(at),
                                         sizeof counters, error);
    if (code != WL_OK) return code;
    line.sequence = counters.over + 1;
  }
  *progress = {UINT32_MAX, std::vector<OffloadProgress::Rank>(stated_.ranks())};
  std::vector<unsigned char> lines;
  return readProgress(device_, streams_->part(rank_), line, &lines, progress, error);
}

Code Enqueuing::leastFar(uint32_t sequence, std::vector<uint32_t>* ranks, uint32_t* phases,
                         wl_error_t* error) {
  OffloadProgress progress;
  if (Code code = read(sequence, &progress, error); code != WL_OK) return code;
  *phases = progress.fewest();
  const auto waits = [](const OffloadProgress::Rank& rank) { return !rank.hasBegun; };
  const bool some = std::any_of(progress.ranks.begin(), progress.ranks.end(), waits);
  for (uint32_t rank = 0; rank < progress.ranks.size(); ++rank) {
    const OffloadProgress::Rank& of = progress.ranks[rank];
    if (some ? waits(of) : of.over == *phases) ranks->push_back(rank);
  }
  return WL_OK;
}

}  // namespace windlass
