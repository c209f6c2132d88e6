// SPDX-License-Identifier: Apache-2.0
#include "native/peer/peer_memory.h"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "native/base/clock.h"
#include "native/base/process.h"
#include "native/base/small_file.h"
#include "native/base/text.h"

namespace windlass {
namespace {

constexpr uint64_t kProbe = 0x5057696e646c6173u;
// The process writes the probe, so that the probe's page is its own and goes with the rest of its
// memory.
std::atomic<uint64_t> ownProbe{0};

// True if the process has CAP_SYS_PTRACE.
bool mayTraceAny(const char* ownStatus) {
  const FileText status(ownStatus);
  const char* line = std::strstr(status.text(), "CapEff:");
  constexpr int kSysPtrace = 19;
  return line != nullptr && (std::strtoull(line + 7, nullptr, 16) >> kSysPtrace & 1) != 0;
}

// Texts that say which processes yama lets read another one, by scope from 1 on.
constexpr const char* kYamaReaders[] = {
    "only its ancestors read a process, and those with CAP_SYS_PTRACE",
    "only those with CAP_SYS_PTRACE read another process",
    "no process reads another until the system starts anew",
};
constexpr int kYamaScopes = 3;

// Writes yama's rule that forbids this process to read others. Writes nothing if there is none.
void writeYama(Text& out, const TracingFiles& files = {}) {
  const FileText file(files.yamaScope);
  const int scope = std::min(std::atoi(file.text()), kYamaScopes);
  if (scope < 1 || (scope < kYamaScopes && mayTraceAny(files.ownStatus))) return;
  out.add("kernel.yama.ptrace_scope is %d: %s", scope, kYamaReaders[scope - 1]);
}

// As PeerMemory::read().
int readRuns(int32_t pid, void* to, const PeerMemory::Run* runs, uint32_t count) {
  iovec remote[PeerMemory::kMostRuns];
  iovec local = {to, 0};
  for (uint32_t i = 0; i < count; ++i) {
    remote[i] = {reinterpret_cast<void*>(runs[i].from), runs[i].bytes};
    local.iov_len += runs[i].bytes;
  }
  ssize_t got = 0;
  do {
    got = process_vm_readv(pid, &local, 1, remote, count, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  return static_cast<size_t>(got) < local.iov_len ? EFAULT : 0;
}

}  // namespace

Code askedPeerMemoryUse(PeerMemoryUse* use, wl_error_t* error) {
  const char* const set = std::getenv("WINDLASS_PEER_MEMORY");
  const std::string_view asked = set == nullptr ? "" : set;
  *use = asked == "readv"   ? PeerMemoryUse::kReadv
         : asked == "stage" ? PeerMemoryUse::kStage
                            : PeerMemoryUse::kAuto;
  if (*use != PeerMemoryUse::kAuto || asked.empty() || asked == "auto") return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "WINDLASS_PEER_MEMORY is '%.40s', none of auto, readv and stage", set);
}

bool ownPeerMemory(PeerMemoryUse use, char* why, size_t room, const TracingFiles& files) {
  Text out(why, room);
  if (use == PeerMemoryUse::kStage) {
    out.add("WINDLASS_PEER_MEMORY is stage");
    return false;
  }
  uint64_t found = 0;
  // A sandbox or an old kernel refuses a read of the process's own memory too.
  const PeerMemory::Run probe = {peerMemoryProbe(), sizeof found};
  const int refused = readRuns(getpid(), &found, &probe, 1);
  if (refused != 0) {
    out.add("process_vm_readv: %s", std::strerror(refused));
    return false;
  }
  writeYama(out, files);
  if (*why != 0) return false;
  out.add("works here");
  return true;
}

Code openPeerMemory(const wl_process_t& process, uint64_t probe,
                    std::shared_ptr<const PeerMemory>* memory, wl_error_t* error) {
  auto opened = std::make_shared<PeerMemory>();
  const Code code = opened->open(process, probe, error);
  if (code == WL_OK) *memory = std::move(opened);
  return code;
}

Code readPeerMemory(const PeerMemory& memory, void* to, uint64_t from, uint64_t bytes,
                    int* reason) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  *reason = 0;
  for (uint64_t at = 0; at < bytes && *reason == 0; at += kMostBytes) {
    *reason = memory.read(static_cast<unsigned char*>(to) + at, from + at,
                          std::min(kMostBytes, bytes - at));
  }
  // A process loses its memory some time before its end shows.
  const int64_t start = clockNs();
  while (*reason != 0 && memory.isGone() && !memory.hasEnded() &&
         clockNs() - start < PeerMemory::kLongestEndNs) {
    usleep(PeerMemory::kEndPauseUs);
  }
  return memory.hasEnded() ? WL_PEER_LOST : *reason == 0 ? WL_OK : WL_ABORTED;
}

uint64_t peerMemoryProbe() {
  ownProbe.store(kProbe, std::memory_order_relaxed);
  return reinterpret_cast<uint64_t>(&ownProbe);
}

Code PeerMemory::open(const wl_process_t& process, uint64_t at, wl_error_t* error) {
  pid_ = process.pid;
  probe_ = at;
  if (Code code = openProcess(process, &process_, error); code != WL_OK) {
    // The reason doesn't matter: its memory can't be read safely.
    if (error != nullptr) error->code = WL_UNSUPPORTED;
    return WL_UNSUPPORTED;
  }
  if (!process_) return fail(error, WL_PEER_LOST, "process %d has ended", pid_);
  uint64_t found = 0;
  int refused = read(&found, at, sizeof found);
  const int64_t start = clockNs();
  while ((refused == ESRCH || refused == EFAULT) && !hasEnded() &&
         clockNs() - start < kLongestEndNs) {
    usleep(kEndPauseUs);
    refused = read(&found, at, sizeof found);
  }
  if (hasEnded()) return fail(error, WL_PEER_LOST, "process %d has ended", pid_);
  if (refused == ESRCH) {
    return fail(error, WL_UNSUPPORTED,
                "process_vm_readv of process %d: its first thread has ended, by whose number its "
                "memory is read",
                pid_);
  }
  if (refused != 0) {
    char rule[128];
    Text out(rule, sizeof rule);
    if (refused == EPERM) writeYama(out);
    return fail(error, WL_UNSUPPORTED, "process_vm_readv of process %d: %s%s%s", pid_,
                std::strerror(refused), *rule != 0 ? "; " : "", rule);
  }
  if (found == kProbe) return WL_OK;
  return fail(error, WL_UNSUPPORTED, "process %d is not the one that joined, as its memory shows",
              pid_);
}

int PeerMemory::read(void* to, const Run* runs, uint32_t count) const {
  return readRuns(pid_, to, runs, count);
}

bool PeerMemory::isGone() const {
  uint64_t found = 0;
  return read(&found, probe_, sizeof found) != 0 || found != kProbe;
}

bool PeerMemory::hasEnded() const {
  pollfd ended = {process_.number(), POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

}  // namespace windlass
