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
#include "native/core/watch.h"
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
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.number(), &one, sizeof one);
}

void Hosts::progress() {
  if (wire_->progress() > 0) group_.wakeSleepers();
  drivenNs_.store(clockNs(), std::memory_order_relaxed);
}

bool Hosts::lose(uint32_t host, const std::vector<uint32_t>& ranks, const char* why) {
  wl_error_t record = blankError(WL_PEER_LOST);
  Text out(record.message, sizeof record.message);
  const auto hasLeft = [&](uint32_t rank) {
    return group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
  };
  uint32_t lost = 0;
  for (const uint32_t rank : ranks) {
    if (hasLeft(rank)) continue;
    if (lost < WL_ERROR_CULPRITS) record.culprits[lost] = static_cast<int32_t>(rank);
    ++lost;
  }
  if (lost == 0) return false;
  record.culprit_count = static_cast<int32_t>(lost);
  record.observer = static_cast<int32_t>(ranks_[0]);
  const std::vector<Process>& all = processes_[host];
  const bool isWhole = std::all_of(all.begin(), all.end(), [&](const Process& process) {
    return !mayLive(process) ||
           std::find(ranks.begin(), ranks.end(), process.ranks[0]) != ranks.end();
  });
  out.add(isWhole ? "host %u (%s) is lost, with" : "host %u (%s) is lost in part, with", host,
          nameOf(host));
  for (uint32_t i = 0; i < std::min<uint32_t>(lost, 8); ++i)
    out.add("%s rank %d", i == 0 ? "" : ",", record.culprits[i]);
  if (lost > 8) out.add(" and %u more", lost - 8);
  out.add(": %s", why);
  group_.publishFailure(record);
  return true;
}

// Messages in flight when that process closed may not have reached the processes that continue.
void Hosts::leave(uint32_t host, const Connection& connection) {
  Route& route = routes_[host];
  if (&connectionOf(peers_[host]) != &connection) return;
  const auto goesOn = [&](const std::vector<Process>& processes) {
    return std::any_of(processes.begin(), processes.end(),
                       [&](const Process& process) { return mayLive(process); });
  };
  const bool areOwnGone = std::all_of(ranks_.begin(), ranks_.end(), [&](uint32_t rank) {
    return group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
  });
  if (areOwnGone || !goesOn(processes_[host])) return;
  route.hasLeft.store(true, std::memory_order_seq_cst);
  if (route.moves.load(std::memory_order_seq_cst)) publishRouteLeft(host);
}

bool Hosts::mayMove(uint32_t rank) {
  Route& route = routes_[hostOf(rank)];
  if (!route.moves.load(std::memory_order_relaxed))
    route.moves.store(true, std::memory_order_seq_cst);
  return !hasRouteLeft(hostOf(rank));
}

bool Hosts::hasRouteLeft(uint32_t host) {
  const bool hasLeft = routes_[host].hasLeft.load(std::memory_order_seq_cst);
  if (hasLeft) publishRouteLeft(host);
  return hasLeft;
}

void Hosts::publishRouteLeft(uint32_t host) {
  if (group_.failure() != nullptr) return;
  const Process& process = processes_[host][partners_[host]];
  wl_error_t record = blankError(WL_ABORTED);
  Text out(record.message, sizeof record.message);
  for (const uint32_t rank : process.ranks) {
    if (record.culprit_count == WL_ERROR_CULPRITS) break;
    record.culprits[record.culprit_count++] = static_cast<int32_t>(rank);
  }
  record.observer = static_cast<int32_t>(ranks_[0]);
  out.add("process %d, which had rank %u, has closed, and host %u (%s) was reached by it: ",
          process.pid, process.ranks[0], host, nameOf(host));
  out.add("what was on its way there may not have come; have all ranks close together");
  group_.publishFailure(record);
}

void Hosts::lookAtOwn(int64_t looked) {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (!isBeside(rank)) continue;
    quiet_[rank].look(group_.member(rank).beats.load(std::memory_order_relaxed), looked);
  }
}

int64_t Hosts::standstillNs() const { return silenceNs_ - 2 * kBeatNs; }

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
    return rank != first() && beats - quiet_[rank].beats > slept / kBeatNs / 2;
  };
  const std::vector<Process>& own = processes_[own_];
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

bool Hosts::isHeard(size_t process) const {
  const std::vector<Process>& own = processes_[own_];
  const auto isAsleep = [&](const Process& each) {
    return mayLive(each) && quiet_[each.ranks[0]].ns >= kAsleepNs;
  };
  const Process& hearer = own[process % own.size()];
  return mayLive(hearer) ? !isAsleep(hearer) : std::none_of(own.begin(), own.end(), isAsleep);
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
  size_t connected = 0;
  {
    std::lock_guard<std::mutex> lock(connectionsMutex_);
    connected = connections_.size();
  }
  for (uint32_t peer = 0; peer < connected; ++peer) {
    Connection& connection = connectionOf(peer);
    const uint32_t host = connection.host.load(std::memory_order_acquire);
    if (connection.isTold || host == kNone || !connection.isLost.load(std::memory_order_acquire))
      continue;
    if (connection.seenNs == 0) connection.seenNs = now;
    const Process& process = processes_[host][connection.process];
    // Another local process gets its messages, and learns earlier that it has left or was lost.
    if (!hears(connection) && mayLive(process) && now - connection.seenNs < kHearsayNs) continue;
    connection.isTold = true;
    char why[256];
    std::snprintf(why, sizeof why, "its process %d has ended, or lost its connection (UCX: %s)",
                  process.pid, connection.why);
    if (!lose(host, process.ranks, why)) leave(host, connection);
  }
  // Time in which this process was suspended does not count as silence of others.
  const int64_t slept = now - lookedNs_.load(std::memory_order_relaxed);
  const int64_t looked = std::min(slept, 2 * kBeatNs);
  if (silenceNs_ > 0) noteStandstill(now, slept);
  lookedNs_.store(now, std::memory_order_release);
  if (silenceNs_ == 0) return;
  lookAtOwn(looked);
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    int64_t quiet = INT64_MAX;  // silence of the process heard most recently
    bool hasBeaten = false;
    for (size_t each = 0; each < processes_[host].size(); ++each) {
      const Process& process = processes_[host][each];
      // A local process receives the heartbeats of `process`. While that one is suspended, the
      // silence of `process` does not count.
      if (!mayLive(process) || !isHeard(each)) continue;
      Quiet& own = quiet_[process.ranks[0]];
      own.look(group_.member(process.ranks[0]).beats.load(std::memory_order_relaxed), looked);
      quiet = std::min(quiet, own.ns);
      hasBeaten |= own.beats != 0;
    }
    if (quiet == INT64_MAX || quiet <= (hasBeaten ? silenceNs_ : std::max(silenceNs_, kFirstNs)))
      continue;
    char why[256];
    std::snprintf(why, sizeof why,
                  "nothing came from it for %.1f s: the link is cut, or the host stands still",
                  static_cast<double>(quiet) / 1e9);
    lose(host, ranksOf(host), why);
    giveUp(host);
  }
}

// Sends the state of this process's ranks, with a heartbeat.
void Hosts::beat() {
  for (const uint32_t rank : ranks_) {
    const State& state = group_.lines(rank).state;
    Member& member = group_.member(rank);
    Message message;
    message.count = 1;
    message.ranges[0] = {offsetOf(&state), kStateBytes};
    message.wordAt = offsetOf(&member.beats);
    message.word = member.beats.fetch_add(1, std::memory_order_relaxed) + 1;
    message.wordBytes = sizeof(uint32_t);
    const Wire::Part part = {&state, kStateBytes};
    sendAllPast(message, &part, 1);
    // The first attempt may have found no connection.
    if (member.shrink.load(std::memory_order_seq_cst) != 0) tellShrink(rank);
  }
}

bool Hosts::hears(const Connection& connection) const {
  return connection.process % processes_[own_].size() == index_;
}

bool Hosts::mayLive(const Process& process) const {
  return std::any_of(process.ranks.begin(), process.ranks.end(), [&](uint32_t rank) {
    return group_.member(rank).lost.load(std::memory_order_relaxed) == 0 &&
           group_.lines(rank).state.left.load(std::memory_order_relaxed) == 0;
  });
}

std::vector<uint32_t> Hosts::ranksOf(uint32_t host) const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank)
    if (hostOf(rank) == host) ranks.push_back(rank);
  return ranks;
}

void Hosts::giveUp(uint32_t host) {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank)
    if (hostOf(rank) == host) group_.member(rank).lost.store(1, std::memory_order_seq_cst);
}

// A process that refuses a connection does so at once, or within kLookNs.
void Hosts::tryNext(uint32_t host, Route& route) {
  const std::vector<Process>& processes = processes_[host];
  for (size_t each = 0; each < processes.size(); ++each) {
    const size_t number = route.next;
    const Process& process = processes[number];
    route.next = (route.next + 1) % processes.size();
    if (!mayLive(process)) continue;
    if (++route.refusals > kMostRefusals * processes.size()) break;
    wl_error_t why = blankError();
    uint32_t peer = 0;
    if (connectWire(process, &peer, &why) == WL_OK) route.tried = peer;
    route.triedProcess = number;
    return;
  }
  if (group_.failure() == nullptr)
    lose(host, ranksOf(host), "none of its processes takes a connection");
  giveUp(host);
}

bool Hosts::reconnect(int64_t now) {
  bool areAllThere = true;
  for (uint32_t host = 0; host < count(); ++host) {
    Route& route = routes_[host];
    const bool hasFailed = group_.failure() != nullptr;
    if (host == own_ || (!hasFailed && !route.hasLeft.load(std::memory_order_relaxed))) continue;
    areAllThere &= route.tried != kNone &&
                   route.peer.load(std::memory_order_relaxed) == route.tried;
    if (now - route.triedNs < kLookNs) continue;
    if (route.tried != kNone && !wire_->isLost(route.tried)) {
      if (now - route.triedNs > kLastingNs) route.refusals = 0;
      if (route.peer.load(std::memory_order_relaxed) == route.tried) continue;
      if (!hasFailed) {
        Connection& connection = connectionOf(route.tried);
        connection.process = route.triedProcess;
        connection.host.store(host, std::memory_order_release);
      }
      route.peer.store(route.tried, std::memory_order_release);
      // Messages sent in the meantime reached no process of that host.
      if (const wl_error_t* failure = group_.failure()) tellFailure(*failure);
      tellGone(true);
      beat();
      continue;
    }
    const std::vector<Process>& processes = processes_[host];
    const bool isOver = std::none_of(processes.begin(), processes.end(),
                                     [&](const Process& process) { return mayLive(process); });
    if (route.tried != kNone) {
      route.tried = kNone;
      route.peer.store(kNone, std::memory_order_release);
      route.triedNs = now + kDyingNs - kLookNs;
      continue;
    }
    if (isOver) continue;
    route.triedNs = now;
    tryNext(host, route);
  }
  return areAllThere;
}

void Hosts::tellGone(bool all) {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (!isBeside(rank)) continue;
    const bool hasLeft = group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
    const bool isLost = group_.member(rank).lost.load(std::memory_order_seq_cst) != 0;
    if ((!hasLeft && !isLost) || (toldGone_[rank] && !all)) continue;
    toldGone_[rank] = true;
    Message message;
    message.about = rank;
    for (const Message::Kind kind : {Message::kLeft, Message::kLost}) {
      message.kind = kind;
      if (kind == Message::kLeft ? hasLeft : isLost) sendAll(message, nullptr, 0);
    }
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
      wire_->linger(true);
      usleep(kTurnNs / 1000);
      wire_->linger(false);
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
