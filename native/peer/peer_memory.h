// SPDX-License-Identifier: Apache-2.0
// Ordinary memory of another process of this host, read by one copy and never written: outside
// windows, whatever backs it. Where the kernel forbids that, its owner copies it to a stage that
// both map; native/peer/pulling.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/base/error.h"
#include "native/base/open_file.h"

namespace windlass {

// What WINDLASS_PEER_MEMORY asks for.
enum class PeerMemoryUse : uint32_t {
  kAuto,   // read it where all processes may, else through stages, as what is short
  kReadv,  // read it, or refuse
  kStage,  // through stages
};
// WL_INVALID_ARGUMENT where the setting is none of auto, readv and stage.
Code askedPeerMemoryUse(PeerMemoryUse* use, wl_error_t* error);

// Where the system says whose memory a process may read.
struct TracingFiles {
  const char* yamaScope = "/proc/sys/kernel/yama/ptrace_scope";
  const char* ownStatus = "/proc/self/status";
};

// Whether this process would read memory of others that are no children of its own, as far as it
// can tell alone, and why.
bool ownPeerMemory(PeerMemoryUse use, char* why, size_t room, const TracingFiles& files = {});

class PeerMemory {
 public:
  // Where this process has what its peers read to see whether they may.
  static uint64_t probeAddress();

  // Opens that process, which has its probe at that address, and reads the probe. WL_UNSUPPORTED
  // says why its memory can't be read; WL_PEER_LOST: it has ended.
  Code open(const wl_process_t& process, uint64_t probe, wl_error_t* error);
  // 0, or an errno: ESRCH where nothing has that number's memory any more, EFAULT where that
  // address has none, or where a process that is being ended has lost all of it. What is read is
  // this process's where it has not ended afterwards: until then nobody else has its number, and
  // then another one's bytes may have been read.
  int read(void* to, uint64_t from, uint64_t bytes) const;
  // The same of several runs, side by side.
  struct Run {
    uint64_t from;
    uint64_t bytes;
  };
  static constexpr uint32_t kMostRuns = 256;
  // From when the memory of a process is gone to when its end shows, at most; and between two looks
  // for that.
  static constexpr int64_t kLongestEndNs = 1'000'000'000;
  static constexpr uint32_t kEndPauseUs = 100;
  int read(void* to, const Run* runs, uint32_t count) const;
  // Whether its memory can't be read as a whole: it ends, its first thread has ended, or another
  // program runs in it.
  bool isGone() const;
  bool hasEnded() const;

 private:
  int32_t pid_ = 0;
  uint64_t probe_ = 0;
  OpenFile process_;
};

}  // namespace windlass
