// SPDX-License-Identifier: Apache-2.0
#include "native/comm/watch.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "native/base/clock.h"
#include "native/base/process.h"
#include "native/comm/failure_text.h"
#include "native/comm/group.h"

namespace windlass {
namespace {

// Its thread handles no signal of the program's.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Watch::Watch(Group& group)
    : group_(group),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      events_(epoll_create1(EPOLL_CLOEXEC)) {
  listen(bell_);
  const NoSignals masked;
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ring();
  thread_.join();
  for (const Watched& watched : watched_) {
    if (watched.file >= 0) close(watched.file);
  }
  if (events_ >= 0) close(events_);
  if (bell_ >= 0) close(bell_);
}

Code Watch::add(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
                wl_error_t* error) {
  if (bell_ < 0 || events_ < 0) {
    return fail(error, WL_RESOURCE, "cannot watch process %d: too many open files?", process.pid);
  }
  Watched made = {process.pid, -1, std::move(ranks), silenceNs, 0, clockNs()};
  made.beats = beatsOf(made);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    watched_.reserve(watched_.size() + 1);
    if (Code code = openProcess(process, &made.file, error); code != WL_OK) return code;
    if (made.file >= 0) {
      if (!listen(made.file)) {
        close(made.file);
        return fail(error, WL_RESOURCE, "cannot watch process %d: %s", process.pid,
                    std::strerror(errno));
      }
      watched_.push_back(std::move(made));
      ring();
      return WL_OK;
    }
  }
  markLost(made);
  if (!hasLeft(made)) lose(made, "has ended");
  return WL_OK;
}

bool Watch::listen(int file) {
  epoll_event event = {};
  event.events = EPOLLIN;
  return epoll_ctl(events_, EPOLL_CTL_ADD, file, &event) == 0;
}

void Watch::ring() {
  const uint64_t one = 1;
  if (bell_ >= 0 && write(bell_, &one, sizeof one) < 0) {
    // Full: it is ringing.
  }
}

void Watch::run() {
  int64_t last = clockNs();
  for (;;) {
    bool watches = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (ends_) return;
      watches = !watched_.empty();
    }
    const int forMs = watches ? static_cast<int>(kBeatNs / 1'000'000) : -1;
    epoll_event event = {};
    if (epoll_wait(events_, &event, 1, forMs) < 0 && errno != EINTR) return;
    uint64_t rings = 0;
    if (read(bell_, &rings, sizeof rings) < 0) {
      // Nobody rang.
    }
    const int64_t now = clockNs();
    beat();
    std::lock_guard<std::mutex> lock(mutex_);
    // A thread that stood still itself can't say who was silent meanwhile.
    if (now - last > 2 * kBeatNs) {
      for (Watched& watched : watched_) watched.beatNs = now;
    }
    last = now;
    look(now);
  }
}

void Watch::beat() {
  const std::vector<bool> own = group_.claimed();
  for (uint32_t rank = 0; rank < own.size(); ++rank) {
    if (own[rank]) group_.lines(rank).state.beats.fetch_add(1, std::memory_order_relaxed);
  }
}

uint64_t Watch::beatsOf(const Watched& watched) const {
  uint64_t beats = 0;
  for (const uint32_t rank : watched.ranks)
    beats += group_.lines(rank).state.beats.load(std::memory_order_relaxed);
  return beats;
}

void Watch::look(int64_t now) {
  const auto gone = [&](Watched& watched) {
    pollfd ended = {watched.file, POLLIN, 0};
    const bool hasEnded = poll(&ended, 1, 0) > 0;
    const uint64_t beats = beatsOf(watched);
    if (beats != watched.beats) {
      watched.beats = beats;
      watched.beatNs = now;
    }
    const bool isSilent = watched.silenceNs > 0 && now - watched.beatNs > watched.silenceNs;
    if (!hasEnded && !isSilent) return false;
    if (hasEnded) markLost(watched);
    if (!hasLeft(watched)) {
      char silence[64];
      std::snprintf(silence, sizeof silence, "is silent since %lld ms",
                    static_cast<long long>((now - watched.beatNs) / 1'000'000));
      lose(watched, hasEnded ? "has ended" : silence);
    }
    if (hasEnded) close(watched.file);
    return hasEnded;
  };
  watched_.erase(std::remove_if(watched_.begin(), watched_.end(), gone), watched_.end());
}

void Watch::markLost(const Watched& watched) {
  for (const uint32_t rank : watched.ranks)
    group_.lines(rank).state.lost.store(1, std::memory_order_seq_cst);
}

bool Watch::hasLeft(const Watched& watched) const {
  return std::all_of(watched.ranks.begin(), watched.ranks.end(), [&](uint32_t rank) {
    return group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
  });
}

void Watch::lose(const Watched& watched, const char* why) {
  wl_error_t record = errorOf(WL_PEER_LOST, "%s", "");
  uint32_t count = 0;
  for (const uint32_t rank : watched.ranks) {
    const State& state = group_.lines(rank).state;
    if (state.left.load(std::memory_order_seq_cst) != 0) continue;
    if (count == 0) {
      record.operation = state.operation.load(std::memory_order_relaxed);
      record.sequence = state.sequence.load(std::memory_order_relaxed);
    }
    if (count < WL_ERROR_CULPRITS) record.culprits[count] = static_cast<int32_t>(rank);
    ++count;
  }
  record.culprit_count = static_cast<int32_t>(count);
  Text out(record.message, sizeof record.message);
  writeLost(out, group_, watched.pid, why, record.culprits, count);
  group_.publishFailure(record);
}

}  // namespace windlass
