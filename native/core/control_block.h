// SPDX-License-Identifier: Apache-2.0
// Data that the ranks of one communicator share. It is plain data in one stretch of memory, which
// each process maps at any address and in which everything has an offset. Per-rank lines have one
// writer and all ranks poll them, so that the memory in use grows with the rank count.
//
// An operation with sequence s uses entry[s & 1] of each rank. A rank enters s only after every
// peer has entered s - 1, and so has left s - 2. Therefore no rank reads the slot that it
// overwrites.
//
// Ranks count operations in 64 bits, of which 56 are ever used. ENTER, written at every operation,
// states the low 32 bits, and ranks compare it as it wraps. Words that some operations do not write
// state all 56 bits, and ranks compare them as numbers. A word that is 0, as at the start, or was
// not written for any number of operations, reads as not reached yet.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/base/error.h"
#include "native/core/offload_line.h"
#include "windlass/kernel.h"
#include "windlass/windlass.h"

namespace windlass {

constexpr size_t kLine = 64;

// Values of an operation that all ranks must agree on, compared as two words. A one-sided operation
// has a descriptor too, which is compared with nothing.
struct Descriptor {
  // operation | dtype << 8 | reduce op << 16 | algorithm << 24 | on a stream << 31 | number << 32
  uint64_t what;
  // Elements, bytes of a window, the fingerprint of a plan or of counts, or a signal's value. For
  // all-to-all-v: 1 if the output is packed in order of rank, 0 if each receiver states its own
  // counts.
  uint64_t count;

  static Descriptor of(wl_operation operation, uint64_t count, int32_t dtype = 0,
                       int32_t reduceOp = 0, int32_t algorithm = 0, int32_t number = 0) {
    return {static_cast<uint64_t>(operation) | static_cast<uint64_t>(dtype) << 8 |
                static_cast<uint64_t>(reduceOp) << 16 | static_cast<uint64_t>(algorithm) << 24 |
                static_cast<uint64_t>(static_cast<uint32_t>(number)) << 32,
            count};
  }
  // Operation without elements that has a number.
  static Descriptor numbered(wl_operation operation, uint64_t count, uint32_t number) {
    return of(operation, count, 0, 0, 0, static_cast<int32_t>(number));
  }
  wl_operation operation() const { return static_cast<wl_operation>(what & 0xff); }
  int32_t dtype() const { return static_cast<int32_t>(what >> 8 & 0xff); }
  int32_t reduceOp() const { return static_cast<int32_t>(what >> 16 & 0xff); }
  int32_t algorithm() const { return static_cast<int32_t>(what >> 24 & 0x7f); }
  // Put on a stream. Either all ranks do this or none.
  Descriptor onStream() const { return {what | kOnStream, count}; }
  bool isOnStream() const { return (what & kOnStream) != 0; }
  // True if the part that a rank sends to a peer must be the part that the peer expects from it.
  bool pairsParts() const { return operation() == WL_OP_ALL_TO_ALL_V && count == 0; }
  // The operation's own number. Each operation has at most one of those that follow.
  int32_t number() const { return static_cast<int32_t>(what >> 32); }
  int32_t root() const { return number(); }
  int32_t rows() const { return number(); }  // rows of a part, if parts are matrices
  uint32_t peer() const { return static_cast<uint32_t>(number()); }      // one-sided operation
  uint32_t kernel() const { return static_cast<uint32_t>(number()); }    // launch
  uint32_t members() const { return static_cast<uint32_t>(number()); }   // subset
  uint32_t transfer() const { return static_cast<uint32_t>(number()); }  // transfer
  bool routesAnew() const { return number() == 1; }                      // expert dispatch
  bool operator==(const Descriptor& other) const {
    return what == other.what && count == other.count;
  }

 private:
  static constexpr uint64_t kOnStream = uint64_t{1} << 31;
};

// An eager input is copied on ENTER. Up to kInlineBytes it travels in the ENTER's own line,
// otherwise in the rank's eager area.
constexpr uint64_t kInlineBytes = 16;

// ENTER: `sequence` is stored with release after the rest is set.
struct alignas(kLine) Entry {
  std::atomic<uint32_t> sequence;  // low 32 bits
  std::atomic<int32_t> core;       // on which the rank entered
  Descriptor descriptor;
  RankArgs args;
  unsigned char inlined[kInlineBytes];
};

// The items of a rank in one phase.
//
// next = low 16 bits of the sequence << 48 | phase << 40 | blocks taken from the front << 20 |
// blocks left. The rank that advances it by compare-and-swap runs that block. The owner takes from
// the front and others from the back, so that each rank accesses the same memory repeatedly.
// `finished` counts blocks that have run.
//
// If items are claimed, every rank writes its own line before its ENTER. A peer reads it only
// between that ENTER and its own exit. It therefore sees the word of that operation or of the next
// one, which 16 bits tell apart. This holds even after many operations that did not write the line.
struct alignas(kLine) Work {
  std::atomic<uint64_t> next;
  std::atomic<uint32_t> finished;
};
constexpr uint32_t kMostBlocks = (1u << 20) - 1;
// Steps that are added to `next`.
constexpr uint64_t kTakeFront = (uint64_t{1} << 20) - 1;
constexpr uint64_t kTakeBack = ~uint64_t{0};

constexpr uint64_t workWord(uint64_t sequence, uint32_t phase, uint32_t blocks) {
  return sequence << 48 | uint64_t{phase} << 40 | blocks;
}

// A phase of an operation, or the number of its completed phases.
constexpr uint64_t phaseWord(uint64_t sequence, uint32_t phase) {
  return sequence << 8 | phase;
}
constexpr uint64_t sequenceOf(uint64_t phaseWord) {
  return phaseWord >> 8;
}
constexpr uint32_t phaseOf(uint64_t phaseWord) {
  return static_cast<uint32_t>(phaseWord & 0xff);
}
static_assert(kMostPhases <= 0xff, "phases fit a byte");

// DONE: the phaseWord of the phases in which all of this rank's items have run.
struct alignas(kLine) Done {
  std::atomic<uint64_t> word;
};

// True if ranks count the operation. They do not count a rank's own operation, or one that follows
// a failure.
constexpr bool takesSequence(int32_t operation) {
  return operation != WL_OP_SHRINK &&
         (operation < WL_OP_FIRST_ONE_SIDED || operation > WL_OP_LAST_ONE_SIDED);
}

// Read by diagnostics, close() and deferred release.
struct alignas(kLine) State {
  std::atomic<uint32_t> busy;      // 1 while a thread is inside an operation
  std::atomic<uint32_t> sequence;  // low 32 bits
  std::atomic<int32_t> operation;
  std::atomic<int32_t> awaited;  // rank, -1 nobody, -2 several
  std::atomic<int32_t> core;     // on which this rank last began an operation
  std::atomic<uint32_t> closing;
  std::atomic<uint32_t> left;       // 1 after close: the rank enters nothing any more
  std::atomic<uint32_t> running;    // threads of this rank inside a claimed item of any rank
  std::atomic<uint32_t> contested;  // times that a wait found another thread busy on its core
  std::atomic<int32_t> movingCore;  // on which this rank last began a claimed item in a wait
  std::atomic<uint64_t> item;       // the last claimed item that it began, valid while `running`
  std::atomic<int64_t> movedNs;     // when it last ended a claimed item in a wait
};

// A claimed item, as a state line names it. 0: none yet.
struct Item {
  uint32_t owner;
  uint32_t phase;
  uint32_t block;

  uint64_t word() const { return uint64_t{owner + 1} << 28 | uint64_t{phase} << 20 | block; }
  static Item of(uint64_t word) {
    return {static_cast<uint32_t>(word >> 28) - 1, static_cast<uint32_t>(word >> 20 & 0xff),
            static_cast<uint32_t>(word & kMostBlocks)};
  }
};

// One futex word per rank. A rank that goes to sleep sets `sleeping`, checks again, then sleeps on
// `ring`.
struct alignas(kLine) Doorbell {
  std::atomic<uint32_t> ring;
  std::atomic<uint32_t> sleeping;
};

// State of a rank's ordinary memory, in a group that spans processes. Peers in other processes read
// that memory themselves or find it in the rank's staging buffer: see native/peer/peer_access.h. A
// staging buffer has two halves, used by the parity of a round. Rounds are counted over all
// operations.
struct alignas(kLine) StageLine {
  std::atomic<uint64_t> probe;     // PeerMemory::probeAddress() of its joined process
  std::atomic<uint32_t> answer;    // what it reports on the others' memory; 0: nothing yet
  std::atomic<uint32_t> reserved;  // its staging buffer has memory or lacks it; 0: not known yet
  std::atomic<uint64_t> filled;    // rounds that this rank has filled its half for
  std::atomic<uint64_t> taken;     // rounds in which it has read all that it needs
  // Rounds of two levels, over all operations (native/peer/two_levels.h). shown: rounds for which
  // this rank has shown its input on its host. used: rounds whose result it has taken.
  std::atomic<uint64_t> shown;
  std::atomic<uint64_t> used;
  // passed: rounds for which the rank has passed its lane on. came: rounds whose lane result has
  // arrived at this host.
  std::atomic<uint64_t> passed;
  std::atomic<uint64_t> came;
};
static_assert(sizeof(StageLine) == kLine, "what a rank tells is one line");

// Data of a rank for one reader in a transfer: the reader's part of either half of the staging
// buffer, in turn.
struct StagePair {
  std::atomic<uint64_t> filled;  // times, over all operations
  std::atomic<uint64_t> taken;
  uint64_t bytes[2];  // size of the part in each half
};

struct RankLines {
  Entry entry[2];
  Work work;
  Done done;
  State state;
  Doorbell bell;
};
static_assert(sizeof(RankLines) == 6 * kLine, "one line each");

static_assert(sizeof(Entry) == kLine, "an ENTER is one line");

// Identity of a rank, and whether it lives. Operations do not read it.
struct alignas(kLine) Member {
  std::atomic<uint32_t> joined;  // 1 after it got a handle: a rank joins once
  std::atomic<uint32_t> lost;    // 1 after its process ended: it accesses nothing any more
  std::atomic<uint32_t> beats;   // heartbeat: increases while its process lives and watches others
  std::atomic<uint32_t> shrink;  // its word in a shrink: Agreement::came() and the following ones
  // Its process, after it has joined, if ranks live in several processes.
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> pidNamespace;
  std::atomic<uint64_t> started;
  uint32_t former;  // its rank in the parent communicator; kNobody: no parent
  uint32_t host;    // host of its process
  // True if it has joined on a host other than this block's. Its process ids are not valid here.
  bool isElsewhere() const {
    return pid.load(std::memory_order_acquire) != 0 &&
           pidNamespace.load(std::memory_order_relaxed) == 0;
  }
  // For several hosts. agreement: its own Agreement when it wrote its word in a shrink. saysFailed:
  // 1 after its process, on another host, has reported that the communicator failed.
  std::atomic<uint64_t> agreement;
  std::atomic<uint32_t> saysFailed;
};
static_assert(sizeof(Member) == kLine, "who a rank is, is one line");

// How far the ranks of a failed communicator are in making the next one. The word moves by
// compare-and-swap from kOpen to kProposed. From there it moves to kAgreed, which is final, or to
// kOpen of a later round. Each host has one. See native/core/shrink/shrink.h.
struct Agreement {
  enum Step : uint32_t { kOpen, kProposed, kAgreed };
  Step step;
  uint32_t round;  // up to kMostRounds
  uint32_t maker;  // the rank that proposes
  // File number of the new one's memory in the process that made it. That process is the one of
  // `maker`, or on another host the one of the lowest proposed rank there. -1: not made yet, or no
  // file because all ranks live in one process.
  int32_t file;

  static constexpr uint32_t kMostRounds = 0xffff;

  uint64_t word() const {
    return uint64_t{step} << 62 | uint64_t{round} << 44 | uint64_t{maker} << 32 |
           static_cast<uint32_t>(file);
  }
  static Agreement of(uint64_t word) {
    return {static_cast<Step>(word >> 62), static_cast<uint32_t>(word >> 44 & kMostRounds),
            static_cast<uint32_t>(word >> 32 & 0xfff), static_cast<int32_t>(word)};
  }
  // A rank's own word. came: it waits in that round. opened: it is a member of the proposal, and
  // its process has opened the memory and, on several hosts, a wire. holds: it holds the memory,
  // which can be used. kGaveUp: it will not take part. 0: it never joined.
  static uint32_t came(uint32_t round) { return (round + 1) << 2; }
  static uint32_t opened(uint32_t round) { return came(round) | 1; }
  static uint32_t holds(uint32_t round) { return came(round) | 2; }
  static constexpr uint32_t kGaveUp = ~0u;

  // True if the words of two hosts are about one proposal.
  bool isOf(const Agreement& other) const {
    return round == other.round && maker == other.maker && step != kOpen && other.step != kOpen;
  }
};
static_assert(WL_MAX_RANKS <= 0xfff + 1, "a rank fits the word");

// A rank's note to other hosts about its round's proposal, written when it knows the members:
// native/core/shrink/shrink_notes.h. One page, which only this rank writes.
struct ShrinkNote {
  static constexpr uint32_t kMostNameBytes = 3560;

  uint64_t digest;  // hash of the rest, up to the end of the name
  uint32_t round;
  uint32_t maker;
  uint32_t nameBytes;  // 0: another rank of its process names the wire
  uint32_t unused;
  uint64_t members[WL_MAX_RANKS / 64];  // one bit per member
  unsigned char name[kMostNameBytes];   // name of its process's wire
};
static_assert(sizeof(ShrinkNote) == 4096, "a note is one page");

// Least number of words for each rank in data that a rank copies for all ranks.
constexpr uint64_t kEagerWords = 4;

// Settings that select the protocol of a communicator. Ranks agree on them when they meet.
struct GroupConfig {
  uint32_t ranks = 1;
  uint32_t cores = 1;
  uint64_t firstSequence = 1;  // at least 1
  // Threads that run a rank's long operations, its own included. 0: as many as cores allow.
  uint32_t blocks = 0;
  // Cores of a rank on which host threads run kernels in line. 0: the cpu executor runs operations.
  uint32_t inLineCores = 0;
  // Cores of each rank's device, to which the host hands operations. 0: the host runs them.
  uint32_t offloadCores = 0;
  int64_t deadlineNs = 60'000'000'000;
  uint64_t streamingBytes = 0;  // bytes of all ranks from which an operation exceeds the caches
  // Waits may adjust threads that were not adopted, too.
  bool adjustsThreads = false;
  // Ranks live in several processes, each of which reaches only the windows of the others.
  bool spansProcesses = false;
  // Number of hosts, each of which has such a block. With more than one, ranks also span processes.
  uint32_t hosts = 1;
  // Factor, as a power of two, by which the eager limit grows on several hosts. There, data that
  // does not travel with ENTER takes several messages.
  uint32_t eagerShift = 0;

  // Sets the number of hosts. On several hosts, a waiting rank lets others run, because it does not
  // know how many of them have a core.
  void spread(uint32_t over) {
    hosts = over;
    eagerShift = over > 1 ? 4 : 0;
    if (over > 1 && cores >= ranks) cores = ranks - 1;
  }

  // True if there are more ranks than cores. Then waits yield the core at once, and the last
  // arriver opens an operation whose inputs are not eager.
  bool oversubscribed() const { return ranks > cores; }
  // Largest input that a rank copies on ENTER. If ranks exceed cores, a copy costs less than the
  // acknowledgements, which take another turn of all threads.
  uint64_t eagerBytes() const { return uint64_t{oversubscribed() ? 64u : 4u} << 10; }
  // Room for an eager input, and for some words to each rank.
  uint64_t eagerRoomBytes() const {
    const uint64_t words = ranks * kEagerWords * sizeof(uint64_t);
    return eagerBytes() < words ? words : eagerBytes();
  }
  // Bytes of one half of a rank's staging buffer, at least a line per rank. Up to 64 ranks, one
  // half of each rank takes at most 4 MiB in all. With up to 1024 ranks, a half takes 64 KiB. With
  // more, it has a line for each of WL_MAX_RANKS.
  uint64_t stageHalfBytes() const {
    if (!spansProcesses) return 0;
    constexpr uint64_t kMost = uint64_t{512} << 10;
    const uint64_t share = (uint64_t{4} << 20) / ranks / 4096 * 4096;
    const uint64_t least = ranks <= 1024 ? uint64_t{64} << 10 : uint64_t{WL_MAX_RANKS} * kLine;
    return share < least ? least : share > kMost ? kMost : share;
  }
  // Bytes of a half for each reader, if readers read different data.
  uint64_t stagePartBytes() const { return stageHalfBytes() / ranks / kLine * kLine; }
  // Bytes of the in-line executor's signals to one rank: a line for each core of each rank.
  size_t coreLineBytes() const { return size_t{ranks} * inLineCores * kCoreLineBytes; }
};

// Failure records that threads write at the same time: the first complete one stands. If a writer
// dies, its record stays incomplete. The last record is complete from the start and says that all
// the others failed.
constexpr uint32_t kFailureRecords = 9;

// Most windows of a communicator that spans processes, including the address space and its control
// block.
constexpr uint32_t kMostWindows = 64;

// Lines that all ranks write.
struct SharedLines {
  std::atomic<uint64_t> layout;  // layout of the library that made the block; set last
  GroupConfig config;  // written before any rank but the maker's reads it
  int64_t madeTicks;                               // creation time in CPU ticks
  int64_t madeNs;                                  // creation time from clockNs()
  uint64_t id;      // unique on this host, if ranks live in several processes
  uint64_t parent;  // id of the communicator whose ranks made this one; 0: none
  alignas(kLine) std::atomic<uint64_t> arrivals;   // ranks that entered, over all operations
  alignas(kLine) std::atomic<uint64_t> released;   // last sequence that all ranks may leave
  std::atomic<uint64_t> openPhase;                 // phaseWord of the items that may run
  alignas(kLine) std::atomic<uint32_t> remaining;  // ranks with items of it still to finish
  alignas(kLine) std::atomic<uint32_t> sleepers;   // ranks inside the sleeping wait
  alignas(kLine) std::atomic<uint32_t> leavers;    // ranks that closed
  alignas(kLine) std::atomic<uint32_t> failed;  // number of the record that stands, from 1; 0: none
  std::atomic<uint32_t> failing;                   // threads that took a record to write
  std::atomic<int64_t> contestedNs;  // when a rank last met a thread that computes; 0: never
  std::atomic<uint64_t> shrink;      // Agreement
  std::atomic<uint32_t> holding;     // for a communicator that shrink makes: ranks that hold it
  // For each window that ranks make together: ranks that have not dropped it.
  alignas(kLine) std::atomic<uint32_t> holders[kMostWindows];
  alignas(kLine) wl_error_t records[kFailureRecords];
};

class FlightRecorder;

// Offset in a page of staging buffers and eager inputs. Long memory of malloc() begins at 16, and
// UCX puts some bytes before a message. With this offset, isSlowToCopy() is false for copies
// between them.
constexpr uint64_t kInPage = 2 * kLine;

// Addresses of the parts of a control block. A process has one ControlBlock for each block that it
// maps.
class ControlBlock {
 public:
  static uint64_t bytes(const GroupConfig& config);
  // Bytes of all staging buffers, which are at the end of the control block. A rank reserves memory
  // for its own when any rank first needs it.
  static uint64_t stageBytes(const GroupConfig& config);

  ControlBlock() = default;
  // Wraps memory that make() filled in, in this process or another.
  explicit ControlBlock(void* memory);
  // Fills in zeroed memory of bytes(config). `former` is nullptr or each member's rank in the
  // parent communicator, and `parent` is that communicator's id. `hosts` is the host of each rank,
  // or nullptr for one host.
  static void make(void* memory, const GroupConfig& config, const uint32_t* former = nullptr,
                   uint64_t parent = 0, const uint32_t* hosts = nullptr);
  // Checks that `bytes` from `memory` are a control block that make() filled in, with this
  // library's layout.
  static Code check(const void* memory, uint64_t bytes, wl_error_t* error);
  // Checks as check() does, for a process that trusts none of the content and may only read it.
  // *block and all counts in *config stay within the bytes, whatever other processes write later.
  static Code open(const void* memory, uint64_t bytes, GroupConfig* config, ControlBlock* block,
                   wl_error_t* error);

  SharedLines& shared() const { return *reinterpret_cast<SharedLines*>(base_); }
  RankLines& lines(uint32_t rank) const { return lines_[rank]; }
  Member& member(uint32_t rank) const { return members_[rank]; }
  FlightRecorder& recorder(uint32_t rank) const;
  // Indexed by parity of the operation, like the entries.
  unsigned char* eager(uint32_t rank, uint64_t sequence) const {
    return eager_ + (2 * rank + (sequence & 1)) * eagerBytes_;
  }
  // Parts that `rank` states in an operation, by parity of the operation.
  PartTable& parts(uint32_t rank, uint64_t sequence) const {
    return *reinterpret_cast<PartTable*>(parts_ + (2 * rank + (sequence & 1)) * partsBytes_);
  }
  // For ranks with devices.
  OffloadLine& offloadLine(uint32_t rank) const { return offloadLines_[rank]; }
  // For ranks on several hosts.
  ShrinkNote& note(uint32_t rank) const { return notes_[rank]; }
  // For ranks in several processes.
  StageLine& stageLine(uint32_t rank) const { return stageLines_[rank]; }
  StagePair& stagePair(uint32_t owner, uint32_t reader) const {
    return reinterpret_cast<StagePair*>(stage(owner, 0) + 2 * stageHalfBytes_)[reader];
  }
  unsigned char* stage(uint32_t rank, uint64_t round) const {
    return stageArea(rank) + kInPage + (round & 1) * stageHalfBytes_;
  }
  // Both halves of one rank's staging buffer, in whole pages.
  unsigned char* stageArea(uint32_t rank) const { return stages_ + rank * stageAreaBytes_; }
  uint64_t stageAreaBytes() const { return stageAreaBytes_; }
  // Signals of the in-line executor: rank 0's, then the other ranks'.
  unsigned char* coreLines() const { return coreLines_; }

  Place placeOf(const void* memory) const {
    return Place::of(kControlBlock,
                     static_cast<uint64_t>(static_cast<const unsigned char*>(memory) - base_));
  }
  uint64_t base() const { return reinterpret_cast<uint64_t>(base_); }

 private:
  ControlBlock(void* memory, const GroupConfig& config);

  unsigned char* base_ = nullptr;
  RankLines* lines_ = nullptr;
  Member* members_ = nullptr;
  FlightRecorder* recorders_ = nullptr;
  unsigned char* eager_ = nullptr;
  unsigned char* parts_ = nullptr;
  unsigned char* coreLines_ = nullptr;
  OffloadLine* offloadLines_ = nullptr;
  StageLine* stageLines_ = nullptr;
  ShrinkNote* notes_ = nullptr;
  unsigned char* stages_ = nullptr;
  uint64_t stageHalfBytes_ = 0;
  uint64_t stageAreaBytes_ = 0;
  uint64_t eagerBytes_ = 0;
  uint64_t partsBytes_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace windlass
