// SPDX-License-Identifier: Apache-2.0
// The death watch of a communicator whose ranks live in several processes: one thread of each process,
// which polls the others' pidfds.
#pragma once

#include <mutex>
#include <thread>
#include <vector>

#include "native/base/error.h"

namespace windlass {

class Group;

// How often a process that watches others beats. A process that is silent for less than some of them
// may be on a busy machine.
constexpr int64_t kBeatNs = 100'000'000;
constexpr int64_t kLeastSilenceNs = 5 * kBeatNs;

class Watch {
 public:
  // Its thread ends with it. Throws std::bad_alloc, std::system_error.
  explicit Watch(Group& group);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Code add(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
           wl_error_t* error);

 private:
  struct Watched {
    int32_t pid;
    int file;  // readable once the process has ended
    std::vector<uint32_t> ranks;
    int64_t silenceNs;  // 0: it may be silent
    uint64_t beats;     // of all its ranks, when last seen to go on
    int64_t beatNs;     // when that was
  };

  void run();
  bool listen(int file);
  void ring();
  void beat();
  uint64_t beatsOf(const Watched& watched) const;
  // Drops those that have ended or fallen silent.
  void look(int64_t now);
  // Of one that has ended.
  void markLost(const Watched& watched);
  // Whether all ranks of it have closed, so that nobody misses it.
  bool hasLeft(const Watched& watched) const;
  // Publishes that it is gone or silent: `why`.
  void lose(const Watched& watched, const char* why);

  Group& group_;
  int bell_;    // an eventfd: something changed
  int events_;  // an epoll of it and of what is watched
  std::mutex mutex_;  // guards what follows
  std::vector<Watched> watched_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace windlass
