// SPDX-License-Identifier: Apache-2.0
#include "native/peer/peer_access.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>

#include "native/core/failure_text.h"
#include "native/core/names.h"
#include "native/memory/shared_memory.h"

namespace windlass {
namespace {

// Values of StageLine::answer.
constexpr uint32_t kReads = 1;    // the rank reads the memory of every other process
constexpr uint32_t kStages = 2;   // its process is set to use staging buffers
constexpr uint32_t kCannot = 3;   // it can't read one of these
constexpr uint32_t kSpans = 4;    // some ranks are on another host
constexpr uint32_t kInsists = 8;  // added to these: its process is set to read
constexpr uint32_t kSaid = 7;     // mask of the first four values
constexpr uint32_t kBeside = 16;  // it reads every other process of its host
// Values of StageLine::reserved.
constexpr uint32_t kReserved = 1;
constexpr uint32_t kLacked = 2;  // it had no memory for its staging buffer

}  // namespace

struct PeerAccess::Told {
  bool areThere = true;
  uint32_t insists = kNobody;  // a rank whose process is set to read
  uint32_t other = kNobody;    // a rank that does not read; `own` if `own` does not
  uint32_t otherSays = 0;      // its reason: kStages, kCannot or kSpans
  uint32_t lacks = kNobody;    // a rank without memory for its staging buffer
  bool readBeside = true;

  static Told look(const ControlBlock& block, uint32_t ranks, uint32_t own) {
    Told all;
    for (uint32_t rank = ranks; rank-- > 0;) {
      const StageLine& line = block.stageLine(rank);
      const uint32_t said = line.answer.load(std::memory_order_acquire);
      all.areThere = all.areThere && said != 0;
      if ((said & kInsists) != 0) all.insists = rank;
      all.readBeside = all.readBeside && (said & kBeside) != 0;
      if (line.reserved.load(std::memory_order_acquire) == kLacked && all.lacks != own)
        all.lacks = rank;
      // A rank prefers its own reason, which it knows best.
      if (said == 0 || (said & kSaid) == kReads || all.other == own) continue;
      all.other = rank;
      all.otherSays = said & kSaid;
    }
    return all;
  }
};

namespace {

void writeRefused(const PeerAccess::Told& all, uint32_t own, const char* ownWhy, char* why,
                  size_t room) {
  const bool isOwn = all.other == own && all.otherSays == kCannot;
  const char* const because = all.otherSays == kStages  ? "was set to stage"
                              : all.otherSays == kSpans ? "reads no memory of another host's"
                                                        : "can't read all others' memory";
  std::snprintf(why, room,
                "WINDLASS_PEER_MEMORY is readv in the process of rank %u, and that of rank %u "
                "%s%s%s",
                all.insists, all.other, because, isOwn ? ": " : "", isOwn ? ownWhy : "");
}

}  // namespace

PeerAccess::PeerAccess(Comm& comm)
    : PeerRank(comm),
      process_(ranks_),
      memories_(ranks_) {
  unconfirmed_.reserve(ranks_);
}

void PeerAccess::look() {
  if (looked_) return;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    process_[rank] = rank;
    for (uint32_t other = 0; other < rank; ++other) {
      if (process_[other] != other || !comm_.group().shareProcess(other, rank)) continue;
      process_[rank] = other;
      break;
    }
    areSeveral_ = areSeveral_ || process_[rank] != 0;
  }
  looked_ = true;
}

Code PeerAccess::answer(uint32_t* said) {
  Group& group = comm_.group();
  *said = kReads;
  if (group.peerMemoryUse() == PeerMemoryUse::kStage) {
    *said = kStages;
    return WL_OK;
  }
  wl_error_t error = blankError();
  for (uint32_t rank = 0; rank < ranks_ && *said == kReads; ++rank) {
    if (process_[rank] == process_[rank_] || !group.isBeside(rank)) continue;
    Code code = WL_OK;
    try {
      code = group.peerMemory(process_[rank], &memories_[rank], &error);
    } catch (const std::bad_alloc&) {
      return comm_.failures().publishNoMemory();
    }
    if (code == WL_PEER_LOST) return comm_.failures().publishLost(rank);
    if (code != WL_OK) *said = kCannot;
  }
  if (hosts_ != nullptr) {
    *said = *said == kReads ? kSpans | kBeside : kSpans;
  } else if (*said == kCannot) {
    Text(why_, sizeof why_).add("%s", error.message);
  }
  if (group.peerMemoryUse() == PeerMemoryUse::kReadv) *said |= kInsists;
  return WL_OK;
}

Code PeerAccess::settle(Deadline& deadline, wl_error_t* error) {
  if (settled_) return WL_OK;
  uint32_t said = line(rank_).answer.load(std::memory_order_relaxed);
  if (Code code = said == 0 ? answer(&said) : WL_OK) return code;
  if (Code code = tell(&StageLine::answer, said, deadline)) return code;
  const Told all = Told::look(block(), ranks_, rank_);
  if (all.other != kNobody && all.insists != kNobody) {
    char why[512];
    writeRefused(all, rank_, why_, why, sizeof why);
    const char* const refused =
        hosts_ != nullptr
            ? "rank %u: %s names memory of ranks of other hosts; %s. Nothing has moved: use auto"
            : "rank %u: %s names memory outside windows; %s. Nothing has moved: use auto, or "
              "tensors of windows";
    return fail(error, WL_UNSUPPORTED, refused, rank_,
                operationName(comm_.operation().current().operation()), why);
  }
  reads_ = all.other == kNobody;
  readsShort_ = all.insists != kNobody;
  readsBeside_ = all.readBeside;
  if (Code code = reads_ ? WL_OK : reserveStages(deadline)) return code;
  settled_ = true;
  return WL_OK;
}

Code PeerAccess::choose(bool isShort, bool* staged, Deadline& deadline) {
  Code code = WL_OK;
  if (isStaged(isShort) && !areReserved_) code = reserveStages(deadline);
  *staged = isStaged(isShort);
  return code;
}

Code PeerAccess::reserveStages(Deadline& deadline) {
  unsigned char* own = block().stageArea(rank_);
  wl_error_t error = blankError();
  bool isOwn = reserveShared(own, block().stageAreaBytes(), &error) == WL_OK;
  // Data of ranks on other hosts arrives in their staging buffers on this host.
  for (uint32_t rank = 0; isOwn && rank < ranks_; ++rank) {
    if (!comm_.group().isBeside(rank))
      isOwn = reserveShared(block().stageArea(rank), block().stageAreaBytes(), &error) == WL_OK;
  }
  if (!isOwn && !reads_) return comm_.failures().publishResource(error.message);
  if (!isOwn) Text(why_, sizeof why_).add("%s", error.message);
  if (Code code = tell(&StageLine::reserved, isOwn ? kReserved : kLacked, deadline)) return code;
  areReserved_ = Told::look(block(), ranks_, rank_).lacks == kNobody;
  readsShort_ = !areReserved_;
  // No rank will use it.
  if (isOwn && !areReserved_) releaseShared(own, block().stageAreaBytes());
  return WL_OK;
}

Code PeerAccess::tell(ToldWord word, uint32_t value, Deadline& deadline) {
  (line(rank_).*word).store(value, std::memory_order_release);
  if (hosts_ != nullptr) hosts_->tell(line(rank_).*word);
  comm_.waits().waiter().ring();
  agreeing_ = word;
  Code code = WL_OK;
  for (uint32_t rank = 0; rank < ranks_ && code == WL_OK; ++rank) {
    const auto isTold = [&] { return hasTold(rank); };
    code = comm_.waits().wait(isTold, rank, deadline);
  }
  agreeing_ = nullptr;
  return code;
}

bool PeerAccess::hasTold(uint32_t rank) const {
  return (line(rank).*agreeing_).load(std::memory_order_acquire) != 0;
}

int32_t PeerAccess::form(char* why, size_t room) const {
  return formAsTold(block(), ranks_, rank_, why_, why, room);
}

int32_t formAsTold(const ControlBlock& block, uint32_t ranks, uint32_t own, const char* ownWhy,
                   char* why, size_t room) {
  const PeerAccess::Told all = PeerAccess::Told::look(block, ranks, own);
  if (!all.areThere) {
    std::snprintf(why, room, "ranks agree when an operation first names memory outside windows");
    return WL_PEER_MEMORY_OPEN;
  }
  if (all.other == kNobody) {
    Text text(why, room);
    text.add("every process may read the others' by process_vm_readv");
    if (all.lacks != kNobody) {
      text.add(", short parts of collectives too: rank %u has no memory for a stage", all.lacks);
      if (all.lacks == own) text.add(": %s", ownWhy);
    } else if (all.insists == kNobody) {
      text.add("; short parts of collectives go through stages");
    }
    return WL_PEER_MEMORY_READV;
  }
  if (all.insists != kNobody) {
    writeRefused(all, own, ownWhy, why, room);
    return WL_PEER_MEMORY_REFUSED;
  }
  const bool isOwn = all.other == own;
  if (all.otherSays == kSpans) {
    std::snprintf(why, room, "ranks live on several hosts");
  } else if (all.otherSays == kStages) {
    std::snprintf(why, room, "WINDLASS_PEER_MEMORY is stage in the process of rank %u", all.other);
  } else {
    std::snprintf(why, room, "the process of rank %u can't read all others'%s%s", all.other,
                  isOwn ? ": " : "", isOwn ? ownWhy : "");
  }
  return WL_PEER_MEMORY_STAGE;
}

Code PeerAccess::read(uint32_t from, void* to, const PeerMemory::Run* runs, uint32_t count,
                      Deadline& deadline) {
  const int failed = memories_[from]->read(to, runs, count);
  if (failed == 0) {
    const uint32_t process = process_[from];
    if (std::find(unconfirmed_.begin(), unconfirmed_.end(), process) == unconfirmed_.end())
      unconfirmed_.push_back(process);
    return WL_OK;
  }
  // A process loses its memory some time before its end shows: while it ends, or earlier if the
  // system is short of memory. If only the first thread has ended, reads by the process's number
  // fail too.
  const bool isGone = memories_[from]->isGone();
  for (const int64_t start = clockNs(); !memories_[from]->hasEnded();) {
    const int64_t now = clockNs();
    if (!isGone || now - start > PeerMemory::kLongestEndNs)
      return comm_.failures().publishUnread(from, failed);
    if (Code code = comm_.waits().ended(deadline, now)) return code;
    usleep(PeerMemory::kEndPauseUs);
  }
  return comm_.failures().publishLost(from);
}

Code PeerAccess::read(uint32_t from, unsigned char* to, const FarBox& box, uint64_t at,
                      uint64_t count, Deadline& deadline) {
  PeerMemory::Run runs[PeerMemory::kMostRuns];
  uint32_t listed = 0;
  uint64_t bytes = 0;
  Code code = WL_OK;
  const auto readAll = [&] {
    if (listed > 0 && code == WL_OK) code = read(from, to, runs, listed, deadline);
    to += bytes;
    bytes = 0;
    listed = 0;
  };
  box.forEachRun(at, count, [&](uint64_t address, uint64_t length) {
    if (listed == PeerMemory::kMostRuns) {
      readAll();
      if (code == WL_OK) code = comm_.waits().ended(deadline, clockNs());
    }
    runs[listed++] = {address, length};
    bytes += length;
  });
  readAll();
  return code;
}

Code PeerAccess::confirm() {
  for (const uint32_t process : unconfirmed_)
    if (memories_[process]->hasEnded()) return comm_.failures().publishLost(process);
  unconfirmed_.clear();
  return WL_OK;
}

}  // namespace windlass
