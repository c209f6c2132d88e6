// SPDX-License-Identifier: Apache-2.0
// Reads ordinary memory of another process of this host by one copy, and never writes it. Any
// memory outside windows can be read. If the kernel forbids that, the owner copies the data to a
// staging buffer that both processes map (native/peer/pulling.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/core/peer_reads.h"

namespace windlass {

// WL_INVALID_ARGUMENT: the setting is none of auto, readv and stage.
Code askedPeerMemoryUse(PeerMemoryUse* use, wl_error_t* error);

// Files with the rules on whose memory a process may read.
struct TracingFiles {
  const char* yamaScope = "/proc/sys/kernel/yama/ptrace_scope";
  const char* ownStatus = "/proc/self/status";
};

// True if this process would read memory of processes that are not its children, as far as it can
// find out on its own. `why`: the reason.
bool ownPeerMemory(PeerMemoryUse use, char* why, size_t room, const TracingFiles& files = {});

class PeerMemory {
 public:
  struct Run {
    uint64_t from;
    uint64_t bytes;
  };

  // Opens the process, whose peerMemoryProbe() is `probe`, and reads the probe. WL_UNSUPPORTED: its
  // memory can't be read; the error says why. WL_PEER_LOST: it has ended.
  Code open(const wl_process_t& process, uint64_t probe, wl_error_t* error);
  // Returns 0 or an errno. ESRCH: no process has memory under that number any more. EFAULT: the
  // address has no memory, or a process that is being ended has lost all of it. The bytes are
  // certain to be of the opened process only if hasEnded() is false afterwards. After its end
  // another process may have its number, and the bytes may come from that process.
  int read(void* to, uint64_t from, uint64_t bytes) const {
    const Run run = {from, bytes};
    return read(to, &run, 1);
  }
  static constexpr uint32_t kMostRuns = 256;
  // kLongestEndNs: longest time from when a process's memory is gone to when its end shows.
  // kEndPauseUs: time between two checks for that.
  static constexpr int64_t kLongestEndNs = 1'000'000'000;
  static constexpr uint32_t kEndPauseUs = 100;
  // Reads several runs, of at most 2 GiB in all, into contiguous memory at `to`.
  int read(void* to, const Run* runs, uint32_t count) const;
  // True if its memory as a whole can't be read: the process ends, its first thread has ended, or
  // another program runs in it.
  bool isGone() const;
  bool hasEnded() const;

 private:
  int32_t pid_ = 0;
  uint64_t probe_ = 0;
  OpenFile process_;
};

}  // namespace windlass
