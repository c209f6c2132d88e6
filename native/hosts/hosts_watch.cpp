// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "native/base/clock.h"
#include "native/core/failure_text.h"
#include "native/core/group.h"
#include "native/hosts/hosts_message.h"

namespace windlass {
namespace {

// Silence limit of a host before its first message. If packets are lost, TCP asks for a connection
// again after 1, 3 and 7 s.
constexpr int64_t kFirstNs = 10'000'000'000;
// For kAwakeNs after a rank last drove the wire, this process's thread does not wait in poll(). In
// each turn of kTurnNs it sends pending messages, and drives the wire if no rank did.
constexpr int64_t kAwakeNs = 1'000'000;
constexpr int64_t kTurnNs = 200'000;
// kLookNs: time between two looks at connections after a failure, and time for a connection to be
// refused. kLastingNs: a connection that lasts this long was not refused.
constexpr int64_t kLookNs = 20'000'000;
constexpr int64_t kLastingNs = 1'000'000'000;
// Time between the loss of a connection and the first attempt at another. A dying process still
// accepts a connection, and UCX 1.13 then ends this process.
constexpr int64_t kDyingNs = 50'000'000;
// A local process without heartbeats for this long does not receive messages of others. Its
// heartbeats arrive in its control block.
constexpr int64_t kAsleepNs = 3 * kBeatNs;
// Time for other hosts to report that they had lost this host, after it was suspended.
constexpr int64_t kTellingNs = 2'000'000'000;
// Time for another local process to forward that a remote process has left or was lost.
constexpr int64_t kHearsayNs = 1'000'000'000;
// A host is lost after each of its processes has refused this many times in a row.
constexpr uint32_t kMostRefusals = 3;

}  // namespace

// The caller holds the wire. look() handles the loss.
void Hosts::lost(uint32_t peer, const char* why) {
  noteLost(peer, why);
  ring();
}

void Hosts::ring() {
  ringBell(bell_);
}

void Hosts::progress() {
  if (wire_->progress() > 0) group_.wakeSleepers();
  drivenNs_.store(clockNs(), std::memory_order_relaxed);
}

bool Hosts::lose(uint32_t host, const std::vector<uint32_t>& ranks, const char* why) {
  wl_error_t record = blankError(WL_PEER_LOST);
  Text out(record.message, sizeof record.message);
  for (const uint32_t rank : ranks)
    if (!hasLeft(rank)) addFaultyRank(&record, rank);
  const int32_t lost = record.faulty_rank_count;
  if (lost == 0) return false;
  record.observer = static_cast<int32_t>(first());
  const std::vector<uint32_t>& all = ranksOf(host);
  const bool isWhole = std::all_of(all.begin(), all.end(), [&](uint32_t rank) {
    return isGone(rank) || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  });
  out.add(isWhole ? "host %u (%s) is lost, with" : "host %u (%s) is lost in part, with", host,
          nameOf(host));
  for (int32_t i = 0; i < std::min(lost, 8); ++i)
    out.add("%s rank %d", i == 0 ? "" : ",", record.faulty_ranks[i]);
  if (lost > 8) out.add(" and %d more", lost - 8);
  out.add(": %s", why);
  group_.publishFailure(record);
  return true;
}

// Messages in flight when that process closed may not have reached the processes that continue.
void Hosts::leave(const Process& process, const Connection& connection) {
  Host& host = hosts_[process.host];
  if (connectionOf(host.peer) != &connection || !mayLive(ranks_) || !mayLive(host.ranks)) return;
  host.route.hasLeft.store(true, std::memory_order_seq_cst);
  if (host.route.moves.load(std::memory_order_seq_cst)) publishRouteLeft(process.host);
}

bool Hosts::mayMove(uint32_t rank) {
  Route& route = hosts_[hostOf(rank)].route;
  if (!route.moves.load(std::memory_order_relaxed))
    route.moves.store(true, std::memory_order_seq_cst);
  return !hasRouteLeft(hostOf(rank));
}

bool Hosts::hasRouteLeft(uint32_t host) {
  const bool hasLeft = hosts_[host].route.hasLeft.load(std::memory_order_seq_cst);
  if (hasLeft) publishRouteLeft(host);
  return hasLeft;
}

void Hosts::publishRouteLeft(uint32_t host) {
  if (group_.failure() != nullptr) return;
  const Process& process = partnerOf(hosts_[host]);
  wl_error_t record = blankError(WL_ABORTED);
  Text out(record.message, sizeof record.message);
  for (const uint32_t rank : process.ranks) addFaultyRank(&record, rank);
  record.observer = static_cast<int32_t>(first());
  out.add("process %d, which had rank %u, has closed, and host %u (%s) was reached by it: ",
          process.pid, process.ranks[0], host, nameOf(host));
  out.add("what was on its way there may not have come; have all ranks close together");
  group_.publishFailure(record);
}

void Hosts::noteStandstill(int64_t now, int64_t slept) {
  const int64_t since = stoodStillNs_.load(std::memory_order_relaxed);
  if (slept <= standstillNs()) {
    // A host that had lost this one would have reported it by now.
    if (since != 0 && group_.failure() == nullptr && now - since > kTellingNs + silenceNs_)
      stoodStillNs_.store(0, std::memory_order_release);
    return;
  }
  // Another local process was awake if it sent more than half of its heartbeats.
  const auto beatsMeanwhile = [&](const Process& process) {
    const uint32_t rank = process.ranks[0];
    const uint32_t beats = group_.member(rank).beats.load(std::memory_order_relaxed);
    return rank != first() && beats - known_[rank].quiet.beats > slept / kBeatNs / 2;
  };
  const std::vector<Process>& own = hosts_[own_].processes;
  if (std::none_of(own.begin(), own.end(), beatsMeanwhile))
    stoodStillNs_.store(now, std::memory_order_release);
}

bool Hosts::hasStoodStill() const {
  const auto hasLooked = [&](int64_t now) {
    return silenceNs_ == 0 || now - lookedNs_.load(std::memory_order_acquire) <= standstillNs();
  };
  const int64_t start = clockNs();
  for (int64_t now = start; !hasLooked(now) && now - start < kTellingNs; now = clockNs())
    usleep(100);
  return stoodStillNs_.load(std::memory_order_acquire) != 0;
}

bool Hosts::isHeard(const Process& process) const {
  const std::vector<Process>& own = hosts_[own_].processes;
  const auto isAsleep = [&](const Process& each) {
    return mayLive(each.ranks) && known_[each.ranks[0]].quiet.ns >= kAsleepNs;
  };
  const Process& hearer = own[process.number % own.size()];
  return mayLive(hearer.ranks) ? !isAsleep(hearer) : std::none_of(own.begin(), own.end(), isAsleep);
}

void Hosts::sweep() {
  if (sweeps_.load(std::memory_order_acquire)) return;
  if (sweeper_.joinable()) sweeper_.join();
  if (!dropped_.exchange(false)) return;
  sweeps_.store(true, std::memory_order_relaxed);
  try {
    sweeper_ = std::thread([this] {
      group_.sweepWindows();
      sweeps_.store(false, std::memory_order_release);
    });
  } catch (const std::exception&) {  // no thread or memory: the next look retries
    sweeps_.store(false, std::memory_order_relaxed);
    dropped_.store(true, std::memory_order_release);
  }
}

void Hosts::look(int64_t now) {
  for (uint32_t peer = 0; Connection* const found = connectionOf(peer); ++peer) {
    Connection& connection = *found;
    const Process* const process = connection.process.load(std::memory_order_acquire);
    if (connection.isTold || process == nullptr ||
        !connection.isLost.load(std::memory_order_acquire)) {
      continue;
    }
    if (connection.seenNs == 0) connection.seenNs = now;
    // Another local process gets its messages, and learns earlier that it has left or was lost.
    const bool isHeardHere = process->number % hosts_[own_].processes.size() == number();
    if (!isHeardHere && mayLive(process->ranks) && now - connection.seenNs < kHearsayNs) continue;
    connection.isTold = true;
    char why[256];
    std::snprintf(why, sizeof why, "its process %d has ended, or lost its connection (UCX: %s)",
                  process->pid, connection.why);
    if (!lose(process->host, process->ranks, why)) leave(*process, connection);
  }
  // Time in which this process was suspended does not count as silence of others.
  const int64_t slept = now - lookedNs_.load(std::memory_order_relaxed);
  const int64_t looked = std::min(slept, 2 * kBeatNs);
  if (silenceNs_ > 0) noteStandstill(now, slept);
  lookedNs_.store(now, std::memory_order_release);
  if (silenceNs_ == 0) return;
  const auto listen = [&](uint32_t rank) {
    Quiet& quiet = known_[rank].quiet;
    const uint32_t beats = group_.member(rank).beats.load(std::memory_order_relaxed);
    quiet = {beats, beats == quiet.beats ? quiet.ns + looked : 0};
    return quiet;
  };
  for (const uint32_t rank : ranksOf(own_)) listen(rank);
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    int64_t quiet = INT64_MAX;  // silence of the process heard most recently
    bool hasBeaten = false;
    for (const Process& process : hosts_[host].processes) {
      // A local process receives the heartbeats of `process`. While that one is suspended, the
      // silence of `process` does not count.
      if (!mayLive(process.ranks) || !isHeard(process)) continue;
      const Quiet own = listen(process.ranks[0]);
      quiet = std::min(quiet, own.ns);
      hasBeaten |= own.beats != 0;
    }
    if (quiet == INT64_MAX || quiet <= (hasBeaten ? silenceNs_ : std::max(silenceNs_, kFirstNs)))
      continue;
    char why[256];
    std::snprintf(why, sizeof why,
                  "nothing came from it for %.1f s: the link is cut, or the host stands still",
                  static_cast<double>(quiet) / 1e9);
    giveUp(host, why);
  }
}

// Sends the state of this process's ranks, with a heartbeat.
void Hosts::beat() {
  for (const uint32_t rank : ranks_) {
    const State& state = group_.lines(rank).state;
    Member& member = group_.member(rank);
    member.beats.fetch_add(1, std::memory_order_relaxed);
    Outgoing message(*this, member.beats);
    message.addRange(*this, &state, kStateBytes);
    send(kAll, message, Order::kPast);
    // The first attempt may have found no connection.
    if (member.shrink.load(std::memory_order_seq_cst) != 0) tellShrink(rank);
  }
}

bool Hosts::mayLive(const std::vector<uint32_t>& ranks) const {
  return !std::all_of(ranks.begin(), ranks.end(), [&](uint32_t rank) { return isGone(rank); });
}

void Hosts::giveUp(uint32_t host, const char* why) {
  lose(host, ranksOf(host), why);
  for (const uint32_t rank : ranksOf(host))
    group_.member(rank).lost.store(1, std::memory_order_seq_cst);
}

// A process that refuses a connection does so at once, or within kLookNs.
void Hosts::tryNext(uint32_t host) {
  const std::vector<Process>& processes = hosts_[host].processes;
  Route& route = hosts_[host].route;
  for (size_t each = 0; each < processes.size(); ++each) {
    const Process& process = processes[route.next];
    route.next = (route.next + 1) % processes.size();
    if (!mayLive(process.ranks)) continue;
    if (++route.refusals > kMostRefusals * processes.size()) break;
    wl_error_t why = blankError();
    uint32_t peer = 0;
    if (connectWire(process, &peer, &why) == WL_OK) route.tried = peer;
    route.triedProcess = &process;
    return;
  }
  giveUp(host, "none of its processes takes a connection");
}

bool Hosts::reconnect(int64_t now) {
  bool areAllThere = true;
  for (uint32_t host = 0; host < count(); ++host) {
    Route& route = hosts_[host].route;
    const bool hasFailed = group_.failure() != nullptr;
    if (host == own_ || (!hasFailed && !route.hasLeft.load(std::memory_order_relaxed))) continue;
    areAllThere &= route.tried != kNone &&
                   route.peer.load(std::memory_order_relaxed) == route.tried;
    if (now - route.triedNs < kLookNs) continue;
    if (route.tried != kNone && !wire_->isLost(route.tried)) {
      if (now - route.triedNs > kLastingNs) route.refusals = 0;
      if (route.peer.load(std::memory_order_relaxed) == route.tried) continue;
      if (!hasFailed)
        connectionOf(route.tried)->process.store(route.triedProcess, std::memory_order_release);
      route.peer.store(route.tried, std::memory_order_release);
      // Messages sent in the meantime reached no process of that host.
      if (const wl_error_t* failure = group_.failure()) tellFailure(*failure);
      tellGone(true);
      beat();
      continue;
    }
    if (route.tried != kNone) {
      route.tried = kNone;
      route.peer.store(kNone, std::memory_order_release);
      route.triedNs = now + kDyingNs - kLookNs;
      continue;
    }
    if (!mayLive(ranksOf(host))) continue;
    route.triedNs = now;
    tryNext(host);
  }
  return areAllThere;
}

void Hosts::tellGone(bool all) {
  for (const uint32_t rank : ranksOf(own_)) {
    bool& isTold = known_[rank].isToldGone;
    if (!isGone(rank) || (isTold && !all)) continue;
    isTold = true;
    if (hasLeft(rank)) send(kAll, {Message::kLeft, rank});
    if (isLost(rank)) send(kAll, {Message::kLost, rank});
  }
}

void Hosts::run() {
  int64_t beaten = 0;
  const wl_error_t* failure = nullptr;
  bool areAllThere = true;
  while (!ends_.load()) {
    const int64_t now = clockNs();
    if (failure == nullptr && (failure = group_.failure()) != nullptr) tellFailure(*failure);
    const bool beats = now - beaten >= kBeatNs;
    if (beats) {
      beaten = now;
      beat();
    }
    try {
      look(now);
      areAllThere = reconnect(now);
      if (failure != nullptr) {
        const bool again = beats && untold_.exchange(false);
        if (again) tellFailure(*failure);
        if (again) beat();
        tellGone(beats);
      }
    } catch (const std::bad_alloc&) {
      // The next turn tries again.
    }
    if (dropped_.load(std::memory_order_acquire)) sweep();
    if (now - drivenNs_.load(std::memory_order_relaxed) < kAwakeNs) {
      wire_->delay(true);
      usleep(kTurnNs / 1000);
      wire_->delay(false);
      const bool isIdle = clockNs() - drivenNs_.load(std::memory_order_relaxed) > kTurnNs;
      if (isIdle && wire_->progress() > 0) group_.wakeSleepers();
      continue;
    }
    if (wire_->progress() > 0) {
      group_.wakeSleepers();
      continue;
    }
    if (!wire_->arm()) continue;
    pollfd files[2] = {{wire_->file(), POLLIN, 0}, {bell_.number(), POLLIN, 0}};
    const int64_t restNs = failure == nullptr && areAllThere ? kBeatNs : kLookNs;
    poll(files, 2, static_cast<int>(restNs / 1'000'000));
    uint64_t rung = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.number(), &rung, sizeof rung);
  }
}

}  // namespace windlass
