// SPDX-License-Identifier: Apache-2.0
#include "native/core/watch.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "native/base/clock.h"
#include "native/base/makes_threads.h"
#include "native/base/process.h"
#include "native/core/failure_text.h"
#include "native/core/group.h"

namespace windlass {
namespace {

bool listenTo(const OpenFile& events, const OpenFile& file) {
  epoll_event event = {};
  event.events = EPOLLIN;
  return epoll_ctl(events.number(), EPOLL_CTL_ADD, file.number(), &event) == 0;
}

}  // namespace

Code Watch::start(Group& group, std::unique_ptr<Watch>* watch, wl_error_t* error) {
  OpenFile bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  OpenFile events(epoll_create1(EPOLL_CLOEXEC));
  if (!bell || !events || !listenTo(events, bell)) {
    return fail(error, WL_RESOURCE, "cannot watch other processes: %s", std::strerror(errno));
  }
  watch->reset(new Watch(group, std::move(bell), std::move(events)));
  group.beat();
  return WL_OK;
}

Watch::Watch(Group& group, OpenFile bell, OpenFile events)
    : group_(group), bell_(std::move(bell)), events_(std::move(events)) {
  const MakesThreads making;
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ringBell(bell_);
  thread_.join();
}

Code Watch::add(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
                bool* isGone, wl_error_t* error) {
  Watched made = {process.pid, OpenFile(), std::move(ranks), silenceNs, 0, clockNs()};
  std::lock_guard<std::mutex> lock(mutex_);
  watched_.reserve(watched_.size() + 1);
  if (Code code = openProcess(process, &made.file, error); code != WL_OK) return code;
  *isGone = !made.file;
  if (*isGone) {
    bury(made);
    return WL_OK;
  }
  if (!listenTo(events_, made.file)) {
    return fail(error, WL_RESOURCE, "cannot watch process %d: %s", process.pid,
                std::strerror(errno));
  }
  watched_.push_back(std::move(made));
  ringBell(bell_);
  return WL_OK;
}

// Allocates nothing, because the thread could not report a failure.
void Watch::run() {
  int64_t last = clockNs();
  for (;;) {
    epoll_event event = {};
    // If epoll fails, sleeps one heartbeat interval instead. look() then polls each file itself.
    if (epoll_wait(events_.number(), &event, 1, static_cast<int>(kBeatNs / 1'000'000)) < 0 &&
        errno != EINTR) {
      poll(nullptr, 0, static_cast<int>(kBeatNs / 1'000'000));
    }
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t heard = read(bell_.number(), &rings, sizeof rings);
    const int64_t now = clockNs();
    bool anyGone = false;
    group_.beat();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (ends_) return;
      // If this thread was suspended itself, it does not know who was silent meanwhile.
      if (now - last > 2 * kBeatNs) {
        for (Watched& watched : watched_) watched.beatNs = now;
      }
      last = now;
      anyGone = look(now);
    }
    // A dead rank never drops retired memory, and this process does not notice when other ranks
    // leave.
    if (anyGone || group_.failure() != nullptr) group_.dropRetired();
    group_.sweepWindows();
  }
}

bool Watch::look(int64_t now) {
  const auto gone = [&](Watched& watched) {
    pollfd ended = {watched.file.number(), POLLIN, 0};
    if (poll(&ended, 1, 0) > 0) {
      bury(watched);
      // A child forked meanwhile keeps the same file open, so closing it does not suffice.
      epoll_ctl(events_.number(), EPOLL_CTL_DEL, watched.file.number(), nullptr);
      return true;
    }
    uint64_t beats = 0;
    for (const uint32_t rank : watched.ranks)
      beats += group_.member(rank).beats.load(std::memory_order_relaxed);
    if (beats != watched.beats) {
      watched.beats = beats;
      watched.beatNs = now;
    }
    const bool isSilent =
        watched.silenceNs > 0 && beats != 0 && now - watched.beatNs > watched.silenceNs;
    if (isSilent && !hasLeft(watched)) {
      char why[64];
      std::snprintf(why, sizeof why, "is silent since %lld ms",
                    text((now - watched.beatNs) / 1'000'000));
      lose(watched, why);
    }
    return false;
  };
  const auto end = std::remove_if(watched_.begin(), watched_.end(), gone);
  const bool any = end != watched_.end();
  watched_.erase(end, watched_.end());
  return any;
}

bool Watch::hasLeft(const Watched& watched) const {
  return std::all_of(watched.ranks.begin(), watched.ranks.end(), [&](uint32_t rank) {
    return group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
  });
}

void Watch::bury(const Watched& watched) const {
  for (const uint32_t rank : watched.ranks)
    group_.member(rank).lost.store(1, std::memory_order_seq_cst);
  if (!hasLeft(watched)) lose(watched, "has ended");
}

void Watch::lose(const Watched& watched, const char* why) const {
  if (group_.failure() != nullptr) return;
  const std::vector<uint32_t>& ranks = watched.ranks;
  group_.publishFailure(lostOf(group_, watched.pid, why, [&](uint32_t rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }));
}

}  // namespace windlass
