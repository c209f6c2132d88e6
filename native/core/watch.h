// SPDX-License-Identifier: Apache-2.0
// The death watch of a communicator whose ranks live in several processes: one thread of each
// process, which polls the others' pidfds, and beats so that they see that it lives.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "native/base/error.h"
#include "native/base/open_file.h"

namespace windlass {

class Group;

constexpr int64_t kBeatNs = 100'000'000;
// A process that is silent for less may be on a busy machine.
constexpr int64_t kLeastSilenceNs = 5 * kBeatNs;

class Watch {
 public:
  // Starts its thread, which ends with it. Throws std::bad_alloc, std::system_error.
  static Code start(Group& group, std::unique_ptr<Watch>* watch, wl_error_t* error);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // *isGone: it had ended already, and is lost.
  Code add(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
           bool* isGone, wl_error_t* error);

 private:
  struct Watched {
    int32_t pid;
    OpenFile file;  // readable once the process has ended
    std::vector<uint32_t> ranks;
    int64_t silenceNs;  // 0: it may be silent
    uint64_t beats;     // of all its ranks, when last seen to go on; 0: it doesn't beat yet
    int64_t beatNs;     // when that was
  };

  Watch(Group& group, OpenFile bell, OpenFile events);

  void run();
  void ring() const;
  uint64_t beatsOf(const Watched& watched) const;
  // Drops those that have ended, and names those that have fallen silent. Whether any has ended.
  bool look(int64_t now);
  // Whether all ranks of it have closed, so that nobody misses it.
  bool hasLeft(const Watched& watched) const;
  // Publishes that it is gone or silent: `why`.
  void lose(const Watched& watched, const char* why) const;
  // Of one that has ended.
  void bury(const Watched& watched) const;

  Group& group_;
  const OpenFile bell_;    // an eventfd: something changed
  const OpenFile events_;  // an epoll of it and of what is watched
  std::mutex mutex_;         // guards what follows
  std::vector<Watched> watched_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace windlass
