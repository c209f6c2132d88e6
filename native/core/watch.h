// SPDX-License-Identifier: Apache-2.0
// The death watch of a communicator whose ranks live in several processes. One thread per process
// polls the other processes' pidfds and sends heartbeats.
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
// A shorter silence may be a busy machine.
constexpr int64_t kLeastSilenceNs = 5 * kBeatNs;

class Watch {
 public:
  // Starts the watch's thread, which ends with the watch. Throws std::bad_alloc, std::system_error.
  static Code start(Group& group, std::unique_ptr<Watch>* watch, wl_error_t* error);
  ~Watch();

  // *isGone: the process had already ended, and is lost.
  Code add(const wl_process_t& process, std::vector<uint32_t> ranks, int64_t silenceNs,
           bool* isGone, wl_error_t* error);

 private:
  struct Watched {
    int32_t pid;
    OpenFile file;  // readable once the process has ended
    std::vector<uint32_t> ranks;
    int64_t silenceNs;  // 0: silence is allowed
    uint64_t beats;     // sum of all its ranks, when it last changed; 0: none yet
    int64_t beatNs;     // time of that change
  };

  Watch(Group& group, OpenFile bell, OpenFile events);

  void run();
  // Drops ended processes and reports silent ones. Returns true if any has ended.
  bool look(int64_t now);
  // Returns true if all ranks of the process have closed, so that no rank misses it.
  bool hasLeft(const Watched& watched) const;
  // Publishes that the process is gone or silent. `why` is the verb of the text, as "has ended".
  void lose(const Watched& watched, const char* why) const;
  // Handles a process that has ended.
  void bury(const Watched& watched) const;

  Group& group_;
  const OpenFile bell_;    // an eventfd: something changed
  const OpenFile events_;  // an epoll of bell_ and of the watched processes
  std::mutex mutex_;         // guards what follows
  std::vector<Watched> watched_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace windlass
