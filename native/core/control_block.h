// SPDX-License-Identifier: Apache-2.0
// What the ranks of one communicator share: plain data in one stretch of memory, which each process
// maps where it likes, and in which everything has its offset. Per-rank lines have one writer and
// are polled by all, so that memory that is touched grows with the rank count.
//
// An operation with sequence s uses entry[s & 1] of each rank. A rank enters s only when every peer
// has entered s - 1, hence has left s - 2: nobody reads the slot that it overwrites.
//
// Ranks count operations in 64 bits, of which 56 are ever used. ENTER, written at every operation,
// states the low 32 of them and is compared as they wrap. Words that some operations leave alone
// state all 56 and are compared as numbers: 0, as they start, or left for any number of operations,
// they read as what is not reached yet.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/base/error.h"
#include "native/core/offload_line.h"
#include "windlass/kernel.h"
#include "windlass/windlass.h"

namespace windlass {

constexpr size_t kLine = 64;

// What every rank of an operation must agree on; compared as two words. A one-sided operation is
// described likewise, and compared with nothing.
struct Descriptor {
  // operation | dtype << 8 | reduce op << 16 | algorithm << 24 | on a stream << 31 | root << 32
  uint64_t what;
  // elements, bytes of a window, the fingerprint of a plan or of counts, or a signal's value;
  // all-to-all-v: 1 where parts are packed as they come, 0 where each receiver states its own
  uint64_t count;

  static Descriptor of(wl_operation operation, uint64_t count, int32_t dtype = 0,
                       int32_t reduceOp = 0, int32_t algorithm = 0, int32_t root = 0) {
    return {static_cast<uint64_t>(operation) | static_cast<uint64_t>(dtype) << 8 |
                static_cast<uint64_t>(reduceOp) << 16 | static_cast<uint64_t>(algorithm) << 24 |
                static_cast<uint64_t>(static_cast<uint32_t>(root)) << 32,
            count};
  }
  wl_operation operation() const { return static_cast<wl_operation>(what & 0xff); }
  int32_t dtype() const { return static_cast<int32_t>(what >> 8 & 0xff); }
  int32_t reduceOp() const { return static_cast<int32_t>(what >> 16 & 0xff); }
  int32_t algorithm() const { return static_cast<int32_t>(what >> 24 & 0x7f); }
  // Put on a stream, which all ranks do or none.
  Descriptor onStream() const { return {what | kOnStream, count}; }
  bool isOnStream() const { return (what & kOnStream) != 0; }
  // What a rank sends to a peer must be what that peer expects from it.
  bool pairsParts() const { return operation() == WL_OP_ALL_TO_ALL_V && count == 0; }
  int32_t root() const { return static_cast<int32_t>(what >> 32); }  // or the one peer
  int32_t rows() const { return root(); }  // of a part, where parts are matrices
  bool operator==(const Descriptor& other) const {
    return what == other.what && count == other.count;
  }

 private:
  static constexpr uint64_t kOnStream = uint64_t{1} << 31;
};

// An eager input, which is copied on ENTER, rides in the ENTER's own line up to kInlineBytes, a
// larger one in the rank's eager area.
constexpr uint64_t kInlineBytes = 16;

// ENTER: `sequence` is stored with release once the rest is set.
struct alignas(kLine) Entry {
  std::atomic<uint32_t> sequence;  // its low 32 bits
  std::atomic<int32_t> core;       // on which the rank entered
  Descriptor descriptor;
  RankArgs args;
  unsigned char inlined[kInlineBytes];
};

// The items of a rank in one phase. next = low 16 bits of the sequence << 48 | phase << 40 | blocks
// taken from the front << 20 | blocks left; whoever advances it by compare-and-swap runs that
// block. The owner takes from the front and others from the back, so that each touches the same
// memory time and again. finished counts blocks that have run.
//
// Where items are claimed, every rank writes its own line before its ENTER, and a peer looks only
// from then on until it leaves itself. It sees that operation's word or the next one's, which 16
// bits tell apart, however long other operations left the line alone before.
struct alignas(kLine) Work {
  std::atomic<uint64_t> next;
  std::atomic<uint32_t> finished;
};
constexpr uint32_t kMostBlocks = (1u << 20) - 1;
// Added to the word.
constexpr uint64_t kTakeFront = (uint64_t{1} << 20) - 1;
constexpr uint64_t kTakeBack = ~uint64_t{0};

constexpr uint64_t workWord(uint64_t sequence, uint32_t phase, uint32_t blocks) {
  return sequence << 48 | uint64_t{phase} << 40 | blocks;
}

// A phase of an operation, or how many phases of it are over.
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

// Whether ranks count the operation: one that is a rank's own is not, nor one that follows a
// failure.
constexpr bool takesSequence(int32_t operation) {
  return operation != WL_OP_SHRINK &&
         (operation < WL_OP_FIRST_ONE_SIDED || operation > WL_OP_LAST_ONE_SIDED);
}

// What diagnostics, close() and deferred release look at.
struct alignas(kLine) State {
  std::atomic<uint32_t> busy;      // 1 while a thread is inside an operation
  std::atomic<uint32_t> sequence;  // its low 32 bits
  std::atomic<int32_t> operation;
  std::atomic<int32_t> awaited;  // rank, -1 nobody, -2 several
  std::atomic<int32_t> core;     // on which this rank last began an operation
  std::atomic<uint32_t> closing;
  std::atomic<uint32_t> left;       // 1 once closed: enters nothing any more
  std::atomic<uint32_t> running;    // threads of this rank inside a claimed item, whoever's it is
  std::atomic<uint32_t> contested;  // times that a wait found another thread busy on its core
  std::atomic<int32_t> movingCore;  // on which this rank last began a claimed item in a wait
  std::atomic<uint64_t> item;       // while `running`: the claimed item that it began last
  std::atomic<int64_t> movedNs;     // when it last ended one in a wait
};

// A claimed item, as a state line names it; 0: none yet.
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

// One futex word a rank. A sleeper sets `sleeping`, looks again, then sleeps on `ring`.
struct alignas(kLine) Doorbell {
  std::atomic<uint32_t> ring;
  std::atomic<uint32_t> sleeping;
};

// What a rank of a group that spans processes tells of its ordinary memory, which peers in other
// processes read themselves or find in its stage: native/peer/peer_access.h. Each has two halves,
// by the parity of a round; rounds are counted over all operations.
struct alignas(kLine) StageLine {
  std::atomic<uint64_t> probe;     // PeerMemory::probeAddress() of its process, which has joined
  std::atomic<uint32_t> answer;    // what it says of the others' memory; 0: nothing yet
  std::atomic<uint32_t> reserved;  // whether its stage may be touched, as it says; 0: nothing yet
  std::atomic<uint64_t> filled;    // rounds that this rank has filled its half for
  std::atomic<uint64_t> taken;     // rounds of which it has read all that it needs
  // Rounds of two levels, over all operations (native/hosts/two_levels.h). As this rank's host has
  // it: for which it has shown its input, and of which it has taken the result.
  std::atomic<uint64_t> shown;
  std::atomic<uint64_t> used;
  // For which it has passed its lane on; and of which its lane's result has come to this host.
  std::atomic<uint64_t> passed;
  std::atomic<uint64_t> came;
};
static_assert(sizeof(StageLine) == kLine, "what a rank tells is one line");

// What a rank has for one reader in the operation of a transfer: its part of either half of the
// stage, by turns.
struct StagePair {
  std::atomic<uint64_t> filled;  // times, over all operations
  std::atomic<uint64_t> taken;
  uint64_t bytes[2];  // in each half
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

// What no operation looks at: who a rank is, and whether it lives.
struct alignas(kLine) Member {
  std::atomic<uint32_t> joined;  // 1 once it has a handle, or had one: a rank joins once
  std::atomic<uint32_t> lost;    // 1 once its process is gone: it touches nothing any more
  std::atomic<uint32_t> beats;   // goes on while its process lives, where somebody watches
  std::atomic<uint32_t> shrink;  // what it says in a shrink: Agreement::came() and what follows
  // Its process, once it has joined, where ranks live in several.
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> pidNamespace;
  std::atomic<uint64_t> started;
  uint32_t former;  // its rank in the communicator that this one is a part of; kNobody: of none
  uint32_t host;    // where its process runs
  // Whether it has joined on another host than this block's, of whose processes it has numbers
  // alone.
  bool isElsewhere() const {
    return pid.load(std::memory_order_acquire) != 0 &&
           pidNamespace.load(std::memory_order_relaxed) == 0;
  }
  // Over hosts: in which Agreement its own was when it said what it says in a shrink; 1 once its
  // process, of another host, has said that the communicator has failed.
  std::atomic<uint64_t> agreement;
  std::atomic<uint32_t> saysFailed;
};
static_assert(sizeof(Member) == kLine, "who a rank is, is one line");

// How far the ranks of a failed communicator have come in making the next one: one word, which
// moves by compare-and-swap from kOpen to kProposed, and from there to kAgreed, which stands, or to
// a later round's kOpen. Each host has one. native/core/shrink/shrink.h.
struct Agreement {
  enum Step : uint32_t { kOpen, kProposed, kAgreed };
  Step step;
  uint32_t round;  // up to kMostRounds
  uint32_t maker;  // the rank that proposes
  // The number that the memory of the new one has in its process, if it has one: that of `maker`,
  // or on another host of the lowest rank there that is proposed; -1: not yet.
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
  // A rank's own word: it waits in that round; it is a member of what the round proposes, and its
  // process has opened the memory and, over hosts, a wire; it holds it, so that it can be used; it
  // will not take part. 0: it never came.
  static uint32_t came(uint32_t round) { return (round + 1) << 2; }
  static uint32_t opened(uint32_t round) { return came(round) | 1; }
  static uint32_t holds(uint32_t round) { return came(round) | 2; }
  static constexpr uint32_t kGaveUp = ~0u;

  // Of two hosts' words: whether they speak of one proposal.
  bool isOf(const Agreement& other) const {
    return round == other.round && maker == other.maker && step != kOpen && other.step != kOpen;
  }
};
static_assert(WL_MAX_RANKS <= 0xfff + 1, "a rank fits the word");

// What a rank tells over hosts of what its round proposes, as soon as it knows the members:
// native/core/shrink/shrink_notes.h. A page, which it alone writes.
struct ShrinkNote {
  static constexpr uint32_t kMostNameBytes = 3560;

  uint64_t digest;  // of the rest, as far as the name goes
  uint32_t round;
  uint32_t maker;
  uint32_t nameBytes;  // 0: another rank of its process names the wire
  uint32_t unused;
  uint64_t members[WL_MAX_RANKS / 64];  // a bit for each
  unsigned char name[kMostNameBytes];   // of its process's wire
};
static_assert(sizeof(ShrinkNote) == 4096, "a note is one page");

// To one rank, at the least, of what a rank copies for all.
constexpr uint64_t kEagerWords = 4;

// What decides the protocol of a communicator, agreed when its ranks meet.
struct GroupConfig {
  uint32_t ranks = 1;
  uint32_t cores = 1;
  uint64_t firstSequence = 1;  // at least 1
  // Threads that a rank's long operations run on, its own included; 0: as many as cores allow.
  uint32_t blocks = 0;
  // Cores of a rank that the device executor runs operations on; 0: the cpu executor runs them.
  uint32_t deviceCores = 0;
  // Cores of each rank's device, to which the host hands operations; 0: the host runs them.
  uint32_t offloadCores = 0;
  int64_t deadlineNs = 60'000'000'000;
  uint64_t streamingBytes = 0;  // of all ranks' bytes, from which an operation outgrows the caches
  // Waits may adjust threads that were not adopted, too.
  bool adjustsThreads = false;
  // Ranks live in several processes, each of which reaches the others' windows alone.
  bool spansProcesses = false;
  // On so many hosts, each of which has such a block; more than one: ranks span processes too.
  uint32_t hosts = 1;
  // How many times as much, as a power of two, rides with ENTER as where ranks share memory:
  // between hosts what is not there at once takes several messages.
  uint32_t eagerShift = 0;

  // On so many. Where they are several, a rank that waits lets others run: it doesn't know how many
  // of them have a core.
  void spread(uint32_t over) {
    hosts = over;
    eagerShift = over > 1 ? 4 : 0;
    if (over > 1 && cores >= ranks) cores = ranks - 1;
  }

  // More ranks than cores: waits give up the core at once, and whoever arrives last opens an
  // operation whose inputs are not eager.
  bool oversubscribed() const { return ranks > cores; }
  // Up to how much input a rank copies on ENTER. Where ranks exceed cores a copy costs less than
  // the acknowledgements, which take another turn of all threads.
  uint64_t eagerBytes() const { return uint64_t{oversubscribed() ? 64u : 4u} << 10; }
  // Room for it, and for some words to each rank.
  uint64_t eagerRoomBytes() const {
    const uint64_t words = ranks * kEagerWords * sizeof(uint64_t);
    return eagerBytes() < words ? words : eagerBytes();
  }
  // Bytes of one half of a rank's stage, a line or more for each rank: all of them together take
  // 4 MiB at most up to 64 ranks, and 64 KiB a rank from there.
  uint64_t stageHalfBytes() const {
    if (!spansProcesses) return 0;
    constexpr uint64_t kMost = uint64_t{512} << 10;
    const uint64_t share = (uint64_t{4} << 20) / ranks / 4096 * 4096;
    const uint64_t least = ranks <= 1024 ? uint64_t{64} << 10 : uint64_t{WL_MAX_RANKS} * kLine;
    return share < least ? least : share > kMost ? kMost : share;
  }
  // Of it, for each reader where they read different things.
  uint64_t stagePartBytes() const { return stageHalfBytes() / ranks / kLine * kLine; }
  // Bytes of the device executor's signals to one rank: a line for each core of each rank.
  size_t deviceLineBytes() const { return size_t{ranks} * deviceCores * kDeviceLineBytes; }
};

// Records of failures that threads write at once: the first whole one stands. One whose writer dies
// stays as it is; the last is whole from the start, and says that all others' did.
constexpr uint32_t kFailureRecords = 9;

// Windows that a communicator which spans processes may have at once, the address space and its
// control block included.
constexpr uint32_t kMostWindows = 64;

// Lines that all ranks write.
struct SharedLines {
  std::atomic<uint64_t> layout;                    // of what library, once the rest is there
  GroupConfig config;                              // written before any rank but the maker's looks
  int64_t madeTicks;                               // when that was, in CPU ticks
  int64_t madeNs;                                  // and as clockNs() has it
  uint64_t id;      // tells it from all others of this host, where ranks live in several processes
  uint64_t parent;  // that of the communicator whose ranks made it; 0: none
  alignas(kLine) std::atomic<uint64_t> arrivals;   // ranks that entered, over all operations
  alignas(kLine) std::atomic<uint64_t> released;   // last sequence that all ranks may leave
  std::atomic<uint64_t> openPhase;                 // phaseWord of the items that may run
  alignas(kLine) std::atomic<uint32_t> remaining;  // ranks with items of it still to finish
  alignas(kLine) std::atomic<uint32_t> sleepers;   // ranks inside the sleeping wait
  alignas(kLine) std::atomic<uint32_t> leavers;    // ranks that closed
  alignas(kLine) std::atomic<uint32_t> failed;     // of the record that stands, from 1; 0: none
  std::atomic<uint32_t> failing;                   // threads that took a record to write
  std::atomic<int64_t> contestedNs;  // when a rank last met a thread that computes; 0: never
  std::atomic<uint64_t> shrink;      // Agreement
  std::atomic<uint32_t> holding;     // of a communicator that shrink makes: ranks that hold it
  // Ranks that have not dropped the window of that number, of those that ranks make together.
  alignas(kLine) std::atomic<uint32_t> holders[kMostWindows];
  alignas(kLine) wl_error_t records[kFailureRecords];
};

class FlightRecorder;

// Where in a page stages and eager inputs begin. Long memory of malloc() begins at 16, and UCX puts
// some bytes before what it sends: no copy between either and this isSlowToCopy().
constexpr uint64_t kInPage = 2 * kLine;

// Where each part of a control block lies. A process has one for each block that it maps.
class ControlBlock {
 public:
  static uint64_t bytes(const GroupConfig& config);
  // Of them, the last ones, which hold the stages: each rank reserves its own when one needs it.
  static uint64_t stageBytes(const GroupConfig& config);

  ControlBlock() = default;
  // Over memory that make() filled in, in this process or another.
  explicit ControlBlock(void* memory);
  // Fills in zeroed memory of bytes(config). `former`, where it isn't nullptr, are the members in
  // the communicator that they come from, and `parent` its id. `hosts`: of each rank; nullptr: one.
  static void make(void* memory, const GroupConfig& config, const uint32_t* former = nullptr,
                   uint64_t parent = 0, const uint32_t* hosts = nullptr);
  static bool isLaidOut(const void* memory);
  // Whether `bytes` from there are a control block that make() filled in, as this library lays it
  // out.
  static Code check(const void* memory, uint64_t bytes, wl_error_t* error);
  // The same for who trusts nothing that stands there, and may only read it: *block lies within the
  // bytes whatever is written there later, and so does all of *config that is counted by.
  static Code open(const void* memory, uint64_t bytes, GroupConfig* config, ControlBlock* block,
                   wl_error_t* error);

  SharedLines& shared() const { return *reinterpret_cast<SharedLines*>(base_); }
  RankLines& lines(uint32_t rank) const { return lines_[rank]; }
  Member& member(uint32_t rank) const { return members_[rank]; }
  FlightRecorder& recorder(uint32_t rank) const;
  // By parity of the operation, like the entries.
  unsigned char* eager(uint32_t rank, uint64_t sequence) const {
    return eager_ + (2 * rank + (sequence & 1)) * eagerBytes_;
  }
  // Likewise, where `rank` states its parts in an operation that has them.
  PartTable& parts(uint32_t rank, uint64_t sequence) const {
    return *reinterpret_cast<PartTable*>(parts_ + (2 * rank + (sequence & 1)) * partsBytes_);
  }
  // Where ranks have devices.
  OffloadLine& offloadLine(uint32_t rank) const { return offloadLines_[rank]; }
  // Where ranks live on several hosts.
  ShrinkNote& note(uint32_t rank) const { return notes_[rank]; }
  // Where ranks live in several processes.
  StageLine& stageLine(uint32_t rank) const { return stageLines_[rank]; }
  StagePair& stagePair(uint32_t owner, uint32_t reader) const {
    return reinterpret_cast<StagePair*>(stage(owner, 0) + 2 * stageHalfBytes_)[reader];
  }
  unsigned char* stage(uint32_t rank, uint64_t round) const {
    return stageArea(rank) + kInPage + (round & 1) * stageHalfBytes_;
  }
  // Both of these, of one rank: whole pages.
  unsigned char* stageArea(uint32_t rank) const { return stages_ + rank * stageAreaBytes_; }
  uint64_t stageAreaBytes() const { return stageAreaBytes_; }
  // Signals of the device executor: rank 0's, then the others'.
  unsigned char* deviceLines() const { return deviceLines_; }

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
  unsigned char* deviceLines_ = nullptr;
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
