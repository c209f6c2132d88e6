// SPDX-License-Identifier: Apache-2.0
// The interface for kernel authors: the plain data that a kernel is launched with. Kernels include
// only this header and native/isa; kernels of transfers also include windlass/chunk.h. The runtime
// fills in these structs and runs the phases.
//
// A kernel is a struct of static functions:
//
//   void     plan(Launch&)                 sets pieces and pieceBytes; the same on every rank
//   uint32_t phases(launch)                at most kMostPhases
//   uint32_t blocks(launch, rank)          items of one phase that belong to `rank`
//   uint32_t needs(launch, rank, block, k) peer whose ENTER (k = 0) or phase k - 1 the item needs
//                                          in addition to the owner's: a rank, kEveryRank or
//                                          kNobody
//   void     phase(launch, rank, block, k) moves data; never waits, never fails
//   uint32_t leavesAfter(launch, rank)     ranks that must be done before `rank` returns: a rank,
//                                          kEveryRank or kNobody
//   bool     agrees(launch)                optional, for inputs of at most 16 bytes that travel
//                                          with ENTER and decide if data moves. Called after all
//                                          ranks have entered; false: no item runs
//   constexpr bool kEager                  true: a small input is copied into the control block on
//                                          ENTER, so that no rank acknowledges it
//
// An item (rank, block, k) runs once, on any thread of the communicator, after the owner's ENTER
// and what `needs` names. Its writes are visible to every rank that waited for the owner to be
// done.
//
// RankArgs name memory that is valid until their rank returns. A peer may call `plan`, `phases`,
// `needs` and `leavesAfter` after the rank has left, so they read none of this memory. `blocks`
// reads only the memory of `rank`. It is called by that rank, by a rank that has begun an item of
// it, or while no rank may leave. `phase` reads the memory of its own rank, and of ranks that wait
// for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Marks functions that both a target's cores and the host run. A build for separate cores defines
// it.
#ifndef WL_CORE
#define WL_CORE
#endif
// WL_CORE for a function whose body costs less than a call.
#define WL_CORE_INLINE WL_CORE inline __attribute__((always_inline))
// WL_CORE for a function that is compiled separately, because the compiler is too slow if
// everything is inlined.
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

enum class ReduceOp : int32_t {
  kSum = 0,
  kMax = 1,
  kMin = 2,
  kProduct = 3,
  kAvg = 4,
  kAnd = 5,
  kOr = 6,
  kXor = 7,
  kPremultipliedSum = 8,
};
constexpr int32_t kReduceOpCount = 9;
constexpr bool isBitwise(ReduceOp op) {
  return op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor;
}

constexpr uint32_t kMaxDims = 16;

// Elements of a row that share a scale if the row is quantised.
constexpr uint32_t kQuantBlock = 128;
WL_CORE constexpr uint64_t quantBlocks(uint64_t elements) {
  return (elements + kQuantBlock - 1) / kQuantBlock;
}

// Kind of stores to a destination. Streaming stores bypass the caches. This saves the read of each
// line before it is written, and suits data that no rank reads soon. A call that streams ends with
// SFENCE. kByOperation streams if the current operation moves more data than the caches hold.
enum class Stores { kCached, kStreaming, kByOperation };

// Bytes between two signals of the in-line executor, so that each has its own line.
constexpr size_t kCoreLineBytes = 64;

// Most ranks of a group whose ranks are devices, which is the size of a device's table of windows.
constexpr uint32_t kMostDeviceRanks = 64;

// Threads of a core of a GPU.
constexpr uint32_t kCudaThreads = 256;
// Cores that a multiprocessor can run at a time.
constexpr uint32_t kCudaCores = 2;

// Properties of a target.
struct Limits {
  const char* name;
  uint64_t streamingBytes;  // bytes written by one core from which they exceed its caches
  uint64_t tileBytes;       // on-core memory for a kernel's tiles
  // Each rank is a device of its own, which an emulator plays. The in-line executor runs all its
  // operations, and it reaches only the windows of its peers.
  bool isolatesRanks;
  // Cores of a rank's device, to which the host hands each operation. 0: the host itself runs
  // kernels.
  uint32_t offloadCores;
  uint32_t mostRanks;
  // Dtypes that casts convert between, and that reductions accept: a bit 1 << dtype for each.
  uint32_t casts;
  uint32_t reduces;
  bool quantises;  // the target has TQUANT
  bool combinesBits;  // the target has bitwise instructions

  constexpr bool hasCast(DType from, DType to) const {
    return from == to || (casts >> static_cast<int>(from) & casts >> static_cast<int>(to) & 1) != 0;
  }
  constexpr bool hasReduce(DType dtype) const {
    return (reduces >> static_cast<int>(dtype) & 1) != 0;
  }
  constexpr bool hasReduce(DType dtype, ReduceOp op) const {
    return hasReduce(dtype) && (combinesBits || !isBitwise(op));
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
// it. Window 0 is that rank's address space, and window 1 its communicator's control block.
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
  // True for memory outside windows, which no other process maps.
  WL_CORE constexpr bool isOrdinary() const { return !isNone() && window() == kAddressSpace; }
};

// Address of a window in a process: a segment for each rank.
struct WindowBase {
  uint64_t base;
  uint64_t stride;

  WL_CORE constexpr uint64_t segment(uint32_t rank) const { return base + rank * stride; }
};

// Arguments that a rank states when it enters an operation.
struct RankArgs {
  Place in;
  Place out;
  // Depends on the operation: a PartTable, a transfer's ChunkTable, or in a premultiplied sum the
  // bits of the rank's factor, an f64.
  Place aux;
};

// Rounds up to the end of a 64-byte line.
WL_CORE constexpr uint64_t wholeLines(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Number of about equal pieces, of about `wanted` bytes each, into which `bytes` bytes are cut: 1
// to `most`.
WL_CORE constexpr uint32_t pieceCount(uint64_t bytes, uint64_t wanted, uint32_t most) {
  const uint64_t count = bytes / wanted;
  return count < 1 ? 1 : (count > most ? most : static_cast<uint32_t>(count));
}

// A run of bytes of a buffer.
struct Part {
  uint64_t start;
  uint64_t bytes;

  // Piece `index` of `count` about equal ones. Each is whole 64-byte lines, except the last.
  WL_CORE Part piece(uint32_t index, uint32_t count) const {
    const uint64_t size = wholeLines((bytes + count - 1) / count);
    const uint64_t first = index * size < bytes ? index * size : bytes;
    const uint64_t left = bytes - first;
    return {start + first, left < size ? left : size};
  }
};

// RankArgs::aux of an operation whose parts differ in size. Unlike other aux data it is valid, like
// the RankArgs themselves, until the rank enters the operation after the next. The parts of each
// rank follow in memory.
struct PartTable {
  // Size of the input's largest part, or of the output's if only the output has parts.
  uint64_t largest;
  uint64_t room;     // size of the output, if its parts follow from the inputs of all ranks
  uint64_t needed;   // bytes of the output that these parts need
  int32_t refused;   // not 0 after any rank needs more than its room; atomic

  // The part of this rank's input or output for `rank`. Unset if that buffer is one part.
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

// Returns true if T is the type of elements of that dtype, or a word of their size.
template <class T>
WL_CORE constexpr bool isOf(DType dtype) {
  const bool isFloat = dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
                       dtype == DType::kF64;
  if (sizeof(T) != sizeOf(dtype)) return false;
  if constexpr (std::is_floating_point<T>::value) return isFloat;
  if constexpr (std::is_integral<T>::value && std::is_signed<T>::value) return !isFloat;
  return true;
}

// An invalid use of a tile, with two numbers that give details.
struct TileMisuse {
  enum What : uint32_t {
    kPlaced,   // placed at byte a; it fits up to byte b
    kSized,    // made with a valid rows and b valid columns
    kUnalike,  // used by an instruction that requires tiles of one size
    kMoved,    // used by TLOAD or TSTORE with a tensor of another size
    kShapes,   // TPUT or TGET of two shapes
  };
  What what;
  int64_t a, b;
};
// An invalid use of an argument or a tile by a library's kernel.
struct Misuse {
  enum What : uint32_t { kNoSuchArgument, kNotScalar, kNotTensor, kOtherType, kTile };
  What what;
  uint32_t argument;
  uint64_t bytes;  // size of the type that the kernel uses for the elements or the scalar
  TileMisuse tile;
};
// Receives the misuses of one launch, from any thread.
struct Misuses {
  void (*tell)(const Misuses*, const Misuse&);
};

// An argument of a launch of a library's kernel.
struct Argument {
  DType dtype;
  uint32_t ndim;      // dimensions of a tensor, which is contiguous
  uint64_t word;      // a scalar's bits, or the address of a tensor or of rank 0's part of it
  uint64_t stride;    // bytes from one rank's part to the next's; 0: the tensor is only this rank's
  // Addresses of the parts of all ranks if they may be anywhere, as on GPUs. Otherwise nullptr.
  const uint64_t* apart;
  uint64_t elements;  // elements of a tensor
  int64_t shape[kMaxDims];
  uint32_t number;
  bool isScalar;
  const Misuses* misuses;  // nullptr: uses are not checked

  // Start of the rank's part, as bytes or as elements of its dtype.
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
  // Shape as a matrix: the last dimension, and all earlier dimensions combined.
  WL_CORE int64_t columns() const { return ndim == 0 ? 1 : shape[ndim - 1]; }
  WL_CORE int64_t rows() const {
    return columns() == 0 ? 0 : static_cast<int64_t>(elements) / columns();
  }
  WL_CORE void tell(Misuse::What what, uint64_t bytes) const {
    misuses->tell(misuses, {what, number, bytes, {}});
  }
};

struct KernelEntry;  // windlass/kernel_table.h

// Arguments of a launch of a library's kernel. They are the same on every rank, except for
// addresses of a rank's own tensors.
struct KernelCall {
  const KernelEntry* kernel;
  const Argument* arguments;  // with an empty one after the last
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
  uint32_t root;  // or the rows of a part that is a matrix
  DType dtype;
  ReduceOp op;
  // Size of the unit. For all-to-all and scatter, the data from one rank to one peer. For
  // broadcast, all-reduce and reduce, the buffer. For all-gather, gather and reduce-scatter, one
  // rank's part.
  uint64_t bytes;
  uint32_t phases;               // for a transfer, whose kernel uses its caller's value
  bool streams;                  // the data that all ranks move exceeds the caches of their cores
  uint32_t pieces;               // pieces of a unit
  uint64_t pieceBytes;           // size of every piece but the last
  const unsigned char* entries;  // rank 0's RankArgs; nullptr for a library's kernel
  size_t entryStride;            // bytes from one rank's to the next's
  const WindowBase* windows;     // windows of this process
  const KernelCall* call;        // arguments of a library's kernel, or nullptr

  WL_CORE const Argument& argument(uint32_t index) const { return call->argument(index); }
  WL_CORE const RankArgs& of(uint32_t rank) const {
    return *reinterpret_cast<const RankArgs*>(entries + rank * entryStride);
  }
  // Address in this process of the memory that `rank` names by `place`. If ranks share an address
  // space, most places are in window 0, and a predicted branch is faster than two dependent loads.
  template <class T>
  WL_CORE T* at(uint32_t rank, Place place) const {
    if (place.window() == kAddressSpace) return reinterpret_cast<T*>(place.offset());
    return reinterpret_cast<T*>(windows[place.window()].segment(rank) + place.offset());
  }
  WL_CORE uint32_t rows() const { return root; }
  WL_CORE const uint8_t* in(uint32_t rank) const { return at<const uint8_t>(rank, of(rank).in); }
  WL_CORE uint8_t* out(uint32_t rank) const { return at<uint8_t>(rank, of(rank).out); }
  WL_CORE PartTable& parts(uint32_t rank) const { return *at<PartTable>(rank, of(rank).aux); }
  // Factor of the rank's input in a premultiplied sum.
  WL_CORE double factor(uint32_t rank) const {
    double value;
    __builtin_memcpy(&value, &of(rank).aux.word, sizeof value);
    return value;
  }
  WL_CORE uint64_t pieceStart(uint32_t piece) const { return piece * pieceBytes; }
  WL_CORE uint64_t pieceLength(uint32_t piece) const {
    const uint64_t start = pieceStart(piece);
    const uint64_t left = bytes > start ? bytes - start : 0;
    return left < pieceBytes ? left : pieceBytes;
  }
  // Cuts a unit into pieces of about `wanted` bytes, in whole 64-byte lines.
  WL_CORE void cut(uint64_t wanted, uint32_t most) {
    pieces = pieceCount(bytes, wanted, most);
    pieceBytes = wholeLines(pieces == 1 ? bytes : (bytes + pieces - 1) / pieces);
  }
};

// On targets that check, the reason why a kernel's checks of signals must end. The host returns it
// for an operation in progress, from any thread.
enum class Ending : uint32_t { kNone, kFailure, kDeadline };
struct Patience {
  Ending (*ending)(const void* operation) = nullptr;  // nullptr: never
  const void* operation = nullptr;
};

// Index of the line of core `core` of rank `rank` of `ranks`, among the lines that signal to one
// rank. It does not depend on an operation's number of cores, since operations in flight may differ
// in it. The lines of a core are contiguous.
WL_CORE constexpr size_t lineIndex(uint32_t core, uint32_t rank, uint32_t ranks) {
  return size_t{core} * ranks + rank;
}

// One core of a rank in one operation of the in-line executor: windlass/in_line.h.
struct InLine {
  uint32_t rank;
  uint32_t core;
  uint32_t cores;       // cores of each rank
  uint32_t sequence;    // sequence of the operation
  bool sharesCores;     // ranks exceed cores: relax() yields the core
  uint32_t looks;       // most checks of one signal before the core reports that it waits
  unsigned char* lines;  // rank 0's lines
  size_t lineStride;     // bytes from one rank's to the next's
  const uint64_t* apart = nullptr;  // each rank's lines, if they may be anywhere
  Patience patience = {};

  // Line in which core `ofCore` of rank `of`, one of `ranks`, signals to rank `owner`.
  WL_CORE int32_t* line(uint32_t owner, uint32_t of, uint32_t ofCore, uint32_t ranks) const {
    unsigned char* const first = apart == nullptr ? lines + owner * lineStride
                                                  : reinterpret_cast<unsigned char*>(apart[owner]);
    return reinterpret_cast<int32_t*>(first + lineIndex(ofCore, of, ranks) * kCoreLineBytes);
  }
  // Value that a core writes after `phases` phases of this operation.
  WL_CORE uint32_t word(uint32_t phases) const { return sequence << 8 | phases; }
};

// Memory that the cores of a rank may access in an operation. Every rank may access memory in a
// window, and only its rank may access the rest. Targets that check accesses use it.
struct Reach {
  uint32_t rank;
  const void* data;
  uint64_t bytes;
  bool isWindow;
  const char* unwritten = nullptr;  // name of the argument if its kernel may not write it
};

// The part of another rank's input or output that a rank reads.
struct Pulled {
  uint64_t from;   // offset in the other rank's buffer
  uint64_t into;   // offset in the reader's output
  uint64_t bytes;  // 0: nothing
};

// One phase of an operation in which every rank writes only its own output.
struct PullPhase {
  bool folds;      // each rank reads the same bytes of all ranks and folds them in ascending rank
  bool apart;      // each reader reads its own part; otherwise all readers of a rank read the same
  bool ofOutputs;  // reads the outputs of the phase before
  // A part is a matrix of launch.rows() rows. It becomes columns of the output, or is columns of
  // the input if the phase folds.
  bool byColumns;
};

// How a collective runs if ranks cannot write one another's memory: kernels/pull.h.
struct PullForm {
  static constexpr uint32_t kMostPhases = 2;

  uint32_t phases;
  PullPhase phase[kMostPhases];
  // The part of rank `from` that rank `to` reads in phase k. All ranks call it, after all have
  // entered and all earlier phases are complete. For parts of one size, which no other rank states,
  // they may call it at any time.
  Pulled (*pulled)(const Launch& launch, uint32_t from, uint32_t to, uint32_t k);
  // Work of `rank` before phase 0 is complete. nullptr: none.
  void (*lead)(const Launch& launch, uint32_t rank);
  // Every rank's output becomes the fold of all inputs, which have the same size. It may run in two
  // levels if ranks live on several hosts.
  bool reducesForAll = false;
  // Number of ranks, from 0 on, whose data `rank` folds. nullptr: all ranks.
  uint32_t (*terms)(const Launch& launch, uint32_t rank) = nullptr;
};

// Progress of a core in an operation. `left`: its rank may leave.
struct Position {
  uint32_t phase = 0;
  uint32_t block = 0;
  bool begun = false;
  bool left = false;
  // For operations that cores of all ranks begin together. told: this core has reported its begin.
  // allBegan: all other cores have reported theirs.
  bool told = false;
  bool allBegan = false;
};

// Kernel K on inputs so small that each travels with its rank's ENTER. A rank does not wait for the
// readers of its input. K writes only its own rank's output.
template <class K>
struct Eager : K {
  static constexpr bool kEager = true;
  WL_CORE static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
  // The last item runs first. It is the rank's own if K has one for each peer, and needs no other
  // rank's ENTER.
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
