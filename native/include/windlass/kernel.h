// SPDX-License-Identifier: Apache-2.0
// What a kernel author sees: the plain data a kernel is launched with. Kernels include this header
// and native/isa alone, and that of transfers windlass/chunk.h; the runtime fills these structs in
// and runs the phases.
//
// A kernel is a struct of static functions:
//
//   void     plan(Launch&)                 sets pieces and pieceBytes; the same on every rank
//   uint32_t phases(launch)                at most kMostPhases
//   uint32_t blocks(launch, rank)          items of one phase that belong to `rank`
//   uint32_t needs(launch, rank, block, k) peer whose ENTER (k = 0) or phase k - 1 the item needs
//                                          beside the owner's: a rank, kEveryRank or kNobody
//   void     phase(launch, rank, block, k) moves data; never waits, never fails
//   uint32_t leavesAfter(launch, rank)     who must be done before `rank` returns: a rank,
//                                          kEveryRank or kNobody
//   bool     agrees(launch)                only where inputs, of at most 16 bytes, ride with ENTER
//                                          and say whether anything moves: asked once all ranks
//                                          have entered; false: no item runs
//   constexpr bool kEager                  true: a small input is copied into the control block on
//                                          ENTER, so that nobody acknowledges
//
// An item (rank, block, k) runs once, on any thread of the communicator, after the owner's ENTER
// and what `needs` names. What the item wrote is visible to whoever waited for its rank to be done.
//
// RankArgs name memory that lasts until their rank returns. So `plan`, `phases`, `needs` and
// `leavesAfter` read none of it, since a peer may ask them when the rank has left. `blocks` reads
// that of `rank` alone, and is asked by that rank, by one that has begun an item of it, or while no
// rank may leave. `phase` reads that of its own rank, and of those that wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Marks what a target's cores run, and the host too. A build for cores of their own defines it.
#ifndef WL_CORE
#define WL_CORE
#endif
// The same of a function that does less than a call of it would cost.
#define WL_CORE_INLINE WL_CORE inline __attribute__((always_inline))
// The same of a function that is compiled by itself, where one with all in it took too long.
#ifndef WL_CORE_APART
#define WL_CORE_APART WL_CORE
#endif

namespace windlass {

// Numbers equal wl_dtype and wl_reduce_op of windlass.h (static_asserts in native/abi).
enum class DType : int32_t {
  kBool = 0,
  kU8 = 1,
  kI8 = 2,
  kF8E5M2 = 3,
  kF8E4M3 = 4,
  kF8E8M0 = 5,
  kI16 = 6,
  kU16 = 7,
  kF16 = 8,
  kBF16 = 9,
  kI32 = 10,
  kU32 = 11,
  kF32 = 12,
  kF64 = 13,
  kI64 = 14,
  kU64 = 15,
  kC64 = 16,
  kF8E4M3FNUZ = 17,
  kF8E5M2FNUZ = 18,
};
constexpr int32_t kDTypeCount = 19;

enum class ReduceOp : int32_t { kSum = 0, kMax = 1, kMin = 2, kProduct = 3, kAvg = 4 };
constexpr int32_t kReduceOpCount = 5;

constexpr uint32_t kMaxDims = 16;

// Elements of a row that share a scale where it is quantised.
constexpr uint32_t kQuantBlock = 128;
WL_CORE constexpr uint64_t quantBlocks(uint64_t elements) {
  return (elements + kQuantBlock - 1) / kQuantBlock;
}

// Where a destination's lines go: streaming ones pass the caches by, which saves the read of each
// line before it is written and suits what nobody reads soon. A call that streams ends with SFENCE.
// kByOperation streams where the operation in whose phase it stands moves more than caches hold.
enum class Stores { kCached, kStreaming, kByOperation };

// Bytes from one signal of the device executor to the next: each alone in its line.
constexpr size_t kDeviceLineBytes = 64;

// Of a group whose ranks are devices: a device's table of windows has no more.
constexpr uint32_t kMostDeviceRanks = 64;

// Threads of a core of a GPU.
constexpr uint32_t kCudaThreads = 256;
// Of those, that a multiprocessor has room for at a time.
constexpr uint32_t kCudaCores = 2;

// What a target has.
struct Limits {
  const char* name;
  uint64_t streamingBytes;  // from which what one core writes outgrows its caches
  uint64_t tileBytes;       // of on-core memory that a kernel's tiles are placed in
  // Each rank is a device of its own, on which the device executor runs all operations, and which
  // reaches windows of its peers alone.
  bool isolatesRanks;
  // Of a rank's device, to which the host hands each operation; 0: the host itself runs kernels.
  uint32_t offloadCores;
  uint32_t mostRanks;
  // Dtypes that casts take and give, and that reductions take: 1 << dtype of each.
  uint32_t casts;
  uint32_t reduces;
  bool quantises;  // it has TQUANT

  constexpr bool hasCast(DType from, DType to) const {
    return from == to || (casts >> static_cast<int>(from) & casts >> static_cast<int>(to) & 1) != 0;
  }
  constexpr bool hasReduce(DType dtype) const {
    return (reduces >> static_cast<int>(dtype) & 1) != 0;
  }
};

WL_CORE constexpr uint64_t sizeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kF8E5M2:
    case DType::kF8E4M3:
    case DType::kF8E8M0:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
      return 1;
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI32:
    case DType::kU32:
    case DType::kF32:
      return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
    case DType::kC64:
      return 8;
  }
  return 0;
}

// A strided view of typed memory: `shape` and `strides` (elements) hold `ndim` values. ndim 0 is
// one element.
struct StridedView {
  void* data;
  DType dtype;
  uint32_t ndim;
  const int64_t* shape;
  const int64_t* strides;
};

constexpr uint32_t kMostPhases = 254;
constexpr uint32_t kNobody = 0xffffffffu;
constexpr uint32_t kEveryRank = 0xfffffffeu;

// How ranks name memory to one another: an offset into one of the windows of the rank that states
// it. Window 0 is that rank's address space, window 1 its communicator's control block.
constexpr uint32_t kAddressSpace = 0;
constexpr uint32_t kControlBlock = 1;
struct Place {
  static constexpr uint32_t kOffsetBits = 48;  // more than an address in user space has
  uint64_t word;                               // 0: none

  WL_CORE static constexpr Place of(uint32_t window, uint64_t offset) {
    return {uint64_t{window} << kOffsetBits | offset};
  }
  WL_CORE constexpr uint32_t window() const { return static_cast<uint32_t>(word >> kOffsetBits); }
  WL_CORE static constexpr uint64_t offsetOf(uint64_t word) {
    return word & ((uint64_t{1} << kOffsetBits) - 1);
  }
  WL_CORE constexpr uint64_t offset() const { return offsetOf(word); }
  WL_CORE constexpr bool isNone() const { return word == 0; }
  // Of memory outside windows, which no other process maps.
  WL_CORE constexpr bool isOrdinary() const { return !isNone() && window() == kAddressSpace; }
};

// Where a process finds a window: a segment for each rank.
struct WindowBase {
  uint64_t base;
  uint64_t stride;

  WL_CORE constexpr uint64_t segment(uint32_t rank) const { return base + rank * stride; }
};

// What a rank states when it enters an operation.
struct RankArgs {
  Place in;
  Place out;
  Place aux;  // the operation's own: a PartTable, or a transfer's ChunkTable
};

// So many bytes, up to the end of a 64-byte line.
WL_CORE constexpr uint64_t wholeLines(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// About equal pieces, of about `wanted` bytes each, into which `bytes` bytes are cut: 1 to `most`.
WL_CORE constexpr uint32_t pieceCount(uint64_t bytes, uint64_t wanted, uint32_t most) {
  const uint64_t count = bytes / wanted;
  return count < 1 ? 1 : (count > most ? most : static_cast<uint32_t>(count));
}

// A run of bytes of a buffer.
struct Part {
  uint64_t start;
  uint64_t bytes;

  // Piece `index` of `count` about equal ones, whole 64-byte lines each but the last.
  WL_CORE Part piece(uint32_t index, uint32_t count) const {
    const uint64_t size = wholeLines((bytes + count - 1) / count);
    const uint64_t first = index * size < bytes ? index * size : bytes;
    const uint64_t left = bytes - first;
    return {start + first, left < size ? left : size};
  }
};

// RankArgs::aux of an operation whose parts differ in size. Unlike any other it lasts, as the
// RankArgs themselves do, until the rank enters the operation after the next. The parts of each
// rank follow in memory.
struct PartTable {
  uint64_t largest;  // bytes of the largest part of the input, or of the output where that is one
  uint64_t room;     // bytes of the output, where its parts follow from the inputs of all ranks
  uint64_t needed;   // bytes of those
  int32_t refused;   // not 0 once any rank needs more than its room; atomic

  // The part of this rank's input, or of its output, that is `rank`'s; unset where that is one.
  WL_CORE Part& in(uint32_t rank) { return parts()[2 * rank]; }
  WL_CORE Part& out(uint32_t rank) { return parts()[2 * rank + 1]; }
  WL_CORE const Part& in(uint32_t rank) const { return const_cast<PartTable*>(this)->in(rank); }
  WL_CORE const Part& out(uint32_t rank) const { return const_cast<PartTable*>(this)->out(rank); }
  static constexpr size_t bytes(uint32_t ranks) {
    return sizeof(PartTable) + size_t{2} * ranks * sizeof(Part);
  }

 private:
  WL_CORE Part* parts() { return reinterpret_cast<Part*>(this + 1); }
};

// Whether elements of that dtype are T's, or words of their size.
template <class T>
WL_CORE constexpr bool isOf(DType dtype) {
  const bool isFloat = dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
                       dtype == DType::kF64;
  if (sizeof(T) != sizeOf(dtype)) return false;
  if constexpr (std::is_floating_point<T>::value) return isFloat;
  if constexpr (std::is_integral<T>::value && std::is_signed<T>::value) return !isFloat;
  return true;
}

// What is done with a tile that can't be: with two numbers that say what exactly.
struct TileMisuse {
  enum What : uint32_t {
    kPlaced,   // at byte a; it fits up to byte b
    kSized,    // of a valid rows and b valid columns
    kUnalike,  // by an instruction that takes tiles of one size
    kMoved,    // by TLOAD or TSTORE, of a tensor of another size
    kShapes,   // TPUT or TGET of two shapes
  };
  What what;
  int64_t a, b;
};
// What a library's kernel does with an argument, or a tile, that can't be done with it.
struct Misuse {
  enum What : uint32_t { kNoSuchArgument, kNotScalar, kNotTensor, kOtherType, kTile };
  What what;
  uint32_t argument;
  uint64_t bytes;  // of the type that it takes elements or the scalar for
  TileMisuse tile;
};
// Takes them, from any thread, of the launch whose it is.
struct Misuses {
  void (*tell)(const Misuses*, const Misuse&);
};

// An argument of a launch of a library's kernel.
struct Argument {
  DType dtype;
  uint32_t ndim;      // of a tensor, which is contiguous
  uint64_t word;      // of a scalar: its bits; of a tensor: its address, that of rank 0's part
                      // where every rank has one
  uint64_t stride;    // from one rank's part to the next's, in bytes; 0: this rank's alone
  // Where the parts of all ranks lie, where those may lie anywhere, as on GPUs; else nullptr.
  const uint64_t* apart;
  uint64_t elements;  // of a tensor
  int64_t shape[kMaxDims];
  uint32_t number;
  bool isScalar;
  const Misuses* misuses;  // nullptr: nobody looks how it is used

  // Where the rank's part of it begins; as bytes, or as elements of its dtype.
  template <class T>
  WL_CORE T* at(uint32_t rank) const {
    if (misuses != nullptr) {
      if (isScalar) tell(Misuse::kNotTensor, 0);
      if constexpr (!std::is_void<T>::value) {
        if (!isScalar && sizeof(T) > 1 && !isOf<std::remove_const_t<T>>(dtype))
          tell(Misuse::kOtherType, sizeof(T));
      }
    }
#if defined(WINDLASS_TARGET_CUDA)
    if (apart != nullptr) return reinterpret_cast<T*>(apart[rank]);
#endif
    return reinterpret_cast<T*>(word + rank * stride);
  }
  template <class T>
  WL_CORE T scalar() const {
    static_assert(sizeof(T) <= sizeof word, "a scalar is a word at most");
    if (misuses != nullptr) {
      if (!isScalar) tell(Misuse::kNotScalar, 0);
      if (isScalar && !isOf<T>(dtype)) tell(Misuse::kOtherType, sizeof(T));
    }
    T value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
  }
  // As a matrix: the last dimension, and all before it together.
  WL_CORE int64_t columns() const { return ndim == 0 ? 1 : shape[ndim - 1]; }
  WL_CORE int64_t rows() const {
    return columns() == 0 ? 0 : static_cast<int64_t>(elements) / columns();
  }
  WL_CORE void tell(Misuse::What what, uint64_t bytes) const {
    misuses->tell(misuses, {what, number, bytes, {}});
  }
};

struct KernelEntry;  // windlass/kernel_table.h

// What a launch of a library's kernel takes: the same on every rank, but for where tensors lie that
// are a rank's own.
struct KernelCall {
  const KernelEntry* kernel;
  const Argument* arguments;  // and one behind the last, of nothing
  uint32_t count;
  const Misuses* misuses;  // or nullptr

  WL_CORE const Argument& argument(uint32_t index) const {
    if (index < count) return arguments[index];
    if (misuses != nullptr) misuses->tell(misuses, {Misuse::kNoSuchArgument, index, 0, {}});
    return arguments[count];
  }
};

// One operation, as every rank sees it.
struct Launch {
  uint32_t ranks;
  uint32_t root;  // or the rows of a part, where that is a matrix
  DType dtype;
  ReduceOp op;
  // The unit: all-to-all, scatter: from one rank to one peer; broadcast, all-reduce, reduce: the
  // buffer; all-gather, gather, reduce-scatter: one rank's part.
  uint64_t bytes;
  uint32_t phases;               // of a transfer, whose kernel takes its caller's word
  bool streams;                  // what all ranks move outgrows the caches of their cores
  uint32_t pieces;               // into which a unit is cut
  uint64_t pieceBytes;           // of every piece but the last
  const unsigned char* entries;  // rank 0's RankArgs; of a library's kernel: nullptr
  size_t entryStride;            // bytes from one rank's to the next's
  const WindowBase* windows;     // of this process
  const KernelCall* call;        // of a library's kernel: where its memory lies; or nullptr

  WL_CORE const Argument& argument(uint32_t index) const { return call->argument(index); }
  WL_CORE const RankArgs& of(uint32_t rank) const {
    return *reinterpret_cast<const RankArgs*>(entries + rank * entryStride);
  }
  // What `rank` names by the place, in this process. Where ranks share an address space nearly all
  // places lie there, and a branch that is foreseen is faster than two loads behind the place's.
  template <class T>
  WL_CORE T* at(uint32_t rank, Place place) const {
    if (place.window() == kAddressSpace) return reinterpret_cast<T*>(place.offset());
    return reinterpret_cast<T*>(windows[place.window()].segment(rank) + place.offset());
  }
  WL_CORE uint32_t rows() const { return root; }
  WL_CORE const uint8_t* in(uint32_t rank) const { return at<const uint8_t>(rank, of(rank).in); }
  WL_CORE uint8_t* out(uint32_t rank) const { return at<uint8_t>(rank, of(rank).out); }
  WL_CORE PartTable& parts(uint32_t rank) const { return *at<PartTable>(rank, of(rank).aux); }
  WL_CORE uint64_t pieceStart(uint32_t piece) const { return piece * pieceBytes; }
  WL_CORE uint64_t pieceLength(uint32_t piece) const {
    const uint64_t start = pieceStart(piece);
    const uint64_t left = bytes > start ? bytes - start : 0;
    return left < pieceBytes ? left : pieceBytes;
  }
  // Cuts a unit into pieces of about `wanted` bytes, whole 64-byte lines each.
  WL_CORE void cut(uint64_t wanted, uint32_t most) {
    pieces = pieceCount(bytes, wanted, most);
    pieceBytes = wholeLines(pieces == 1 ? bytes : (bytes + pieces - 1) / pieces);
  }
};

// When a kernel's looks at signals have to end, on targets that check: the host's answer for an
// operation in progress, from any thread.
enum class Ending : uint32_t { kNone, kFailure, kDeadline };
struct Patience {
  Ending (*ending)(const void* operation) = nullptr;  // nullptr: never
  const void* operation = nullptr;
};

// Of the lines in which a rank is told, the one of core `core` of rank `rank` of `ranks`: at one
// place however many cores an operation takes, since ranks may have some in flight that differ in
// it. Those of a core lie side by side.
WL_CORE constexpr size_t lineIndex(uint32_t core, uint32_t rank, uint32_t ranks) {
  return size_t{core} * ranks + rank;
}

// One core of a rank in one operation, as the device executor runs it: windlass/in_line.h.
struct InLine {
  uint32_t rank;
  uint32_t core;
  uint32_t cores;       // of each rank
  uint32_t sequence;    // of the operation
  bool sharesCores;     // ranks exceed cores: relax() gives the core up
  uint32_t looks;       // at one signal, at most, before the core says that it waits
  unsigned char* lines;  // rank 0's
  size_t lineStride;     // bytes from one rank's to the next's
  const uint64_t* apart = nullptr;  // of each rank, where they lie anywhere
  Patience patience = {};

  // Where core `ofCore` of rank `of`, one of `ranks`, signals to rank `owner`.
  WL_CORE int32_t* line(uint32_t owner, uint32_t of, uint32_t ofCore, uint32_t ranks) const {
    unsigned char* const first = apart == nullptr ? lines + owner * lineStride
                                                  : reinterpret_cast<unsigned char*>(apart[owner]);
    return reinterpret_cast<int32_t*>(first + lineIndex(ofCore, of, ranks) * kDeviceLineBytes);
  }
  // What a core states once `phases` phases of this operation are over.
  WL_CORE uint32_t word(uint32_t phases) const { return sequence << 8 | phases; }
};

// Memory that the cores of a rank may touch in an operation: what lies in a window every rank may,
// the rest its rank alone. Targets that check accesses go by it.
struct Reach {
  uint32_t rank;
  const void* data;
  uint64_t bytes;
  bool isWindow;
  const char* unwritten = nullptr;  // the argument that it is, where its kernel doesn't write it
};

// What one rank reads of another's input, or of its output.
struct Pulled {
  uint64_t from;   // offset in that
  uint64_t into;   // in the reader's output
  uint64_t bytes;  // 0: nothing
};

// One phase of an operation in which every rank writes its own output alone.
struct PullPhase {
  bool folds;      // what a rank reads of all ranks, the same of each, is folded in ascending rank
  bool apart;      // each reader reads its own part; else all that read a rank read the same of it
  bool ofOutputs;  // what is read are the outputs of the phase before
  bool byColumns;  // what is read of a rank are launch.rows() rows, which become its columns
};

// How a collective runs where ranks can't write one another's memory: kernels/pull.h.
struct PullForm {
  static constexpr uint32_t kMostPhases = 2;

  uint32_t phases;
  PullPhase phase[kMostPhases];
  // What rank `to` reads of rank `from` in phase k. Asked by all ranks, once all have entered and
  // all phases before are over; of parts of one size, which no other rank states, at any time.
  Pulled (*pulled)(const Launch& launch, uint32_t from, uint32_t to, uint32_t k);
  // What `rank` does before phase 0 is over; nullptr: nothing.
  void (*lead)(const Launch& launch, uint32_t rank);
  // Every rank's output becomes the fold of all inputs, which are as large: it may run in two
  // levels where ranks live on several hosts.
  bool reducesForAll = false;
};

// How far a core has come in it. `left`: its rank may be left.
struct Position {
  uint32_t phase = 0;
  uint32_t block = 0;
  bool begun = false;
  bool left = false;
  // Where cores of all ranks begin together: it has said that it has begun, and seen all others.
  bool told = false;
  bool met = false;
};

// Kernel K on inputs so small that each rides with its rank's ENTER: nobody waits for who reads it.
// K writes its own rank's output alone.
template <class K>
struct Eager : K {
  static constexpr bool kEager = true;
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
  // The last item, which is the rank's own where K has one for each peer, runs first: nobody has to
  // have entered for it.
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t block,
                                uint32_t phase) {
    return K::needs(launch, rank, turned(launch, rank, block), phase);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t phase) {
    K::phase(launch, rank, turned(launch, rank, block), phase);
  }

 private:
  WL_CORE static uint32_t turned(const Launch& launch, uint32_t rank, uint32_t block) {
    return (block == 0 ? K::blocks(launch, rank) : block) - 1;
  }
};

}  // namespace windlass
