// SPDX-License-Identifier: Apache-2.0
// The table that a library of kernels exports, as plain data: names and arguments of its kernels,
// and the functions that windlass/kernel.h lists. windlass/kernel_library.h makes one. Windlass
// checks the whole table against these rules when it loads the library.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

constexpr uint32_t kKernelTableMagic = 0x4b4c4457;  // "WDLK"
constexpr uint32_t kKernelTableVersion = 4;
constexpr uint32_t kMostKernels = 256;  // kernels of a library
constexpr uint32_t kMostArguments = 32;
constexpr uint32_t kMostItems = 1u << 20;  // items of a rank, in all phases of a launch
// Bytes of a kernel's or argument's name, including the NUL.
constexpr uint32_t kMostNameBytes = 64;

// One argument of a kernel. Names are words of letters, digits and _.
struct ArgumentEntry {
  enum Kind : uint32_t {
    kTensor,       // this rank's tensor, in memory of any kind
    kDistributed,  // at the same offset in one window on every rank
    kScalar,       // i32, i64, f32 or f64
  };
  static constexpr int32_t kAny = -1;

  const char* name;
  uint32_t kind;
  int32_t dtype;       // a DType; or kAny for a tensor whose dtype the kernel checks
  uint32_t isWritten = 0;   // 1: the kernel writes this tensor
  int32_t ndim = kAny;      // dimensions of a tensor, or kAny
  int32_t like = kAny;      // an earlier tensor, with the same dtype, that determines the size
  uint32_t timesRanks = 0;  // 1: it has ranks times as many elements as `like`; 0: as many

  // The following functions return the same argument with one change.
  constexpr ArgumentEntry written() const { return {name, kind, dtype, 1, ndim, like, timesRanks}; }
  constexpr ArgumentEntry dimensions(int32_t count) const {
    return {name, kind, dtype, isWritten, count, like, timesRanks};
  }
  constexpr ArgumentEntry sizedLike(int32_t earlier) const {
    return {name, kind, dtype, isWritten, ndim, earlier, timesRanks};
  }
  constexpr ArgumentEntry sizedLikeAllOf(int32_t earlier) const {
    return {name, kind, dtype, isWritten, ndim, earlier, 1};
  }
};

namespace checked {
struct RunRecorder;  // native/isa/checked/profile.h
}

// Checks the cores of one rank in one launch against the rules of the target.
struct KernelSession;

// For targets that check: the library itself checks its kernels.
struct SessionEntry {
  // `line` is one of the rank's cores, `reach` is the memory that they may access, and `recorder`,
  // which outlives the session, receives the counts. nullptr: no memory is left.
  KernelSession* (*open)(const char* kernel, const Launch&, const InLine& line, const Reach* reach,
                         size_t count, const checked::RunRecorder* recorder);
  // Called on one thread. `over`: all cores have ended; otherwise they may go on. Returns nullptr,
  // or a line for each breach of a rule, valid until the next verdict. *faultyRank is the rank
  // whose core broke a rule first. Throws std::bad_alloc.
  const char* (*verdict)(KernelSession*, bool over, uint32_t* faultyRank);
  void (*close)(KernelSession*);
};

// One kernel. The host calls its functions before anything moves, except `phase`, `goOn` and
// `session`.
struct KernelEntry {
  const char* name;
  const ArgumentEntry* arguments;
  uint32_t argumentCount;
  uint32_t reserved;
  // nullptr, or the reason why the kernel cannot do the launch; the same on every rank.
  const char* (*refuses)(const Launch&);
  void (*plan)(Launch&);
  uint32_t (*phases)(const Launch&);
  uint32_t (*blocks)(const Launch&, uint32_t rank);
  uint32_t (*needs)(const Launch&, uint32_t rank, uint32_t block, uint32_t phase);
  uint32_t (*leavesAfter)(const Launch&, uint32_t rank);
  void (*phase)(const Launch&, uint32_t rank, uint32_t block, uint32_t phase);
  // runInLine of windlass/in_line.h. Without a session on targets that check nothing.
  bool (*goOn)(KernelSession*, const Launch&, const InLine&, Position&);
  const SessionEntry* session;  // nullptr: the target checks nothing
};

struct KernelTable {
  uint32_t magic;
  uint32_t version;
  uint64_t fingerprint;  // fingerprint of the headers that it was compiled with
  char target[16];
  uint32_t kernelCount;
  uint32_t reserved;
  const KernelEntry* kernels;
  // A file of nvcc with these kernels, in the same order. nullptr: the target has no GPUs.
  const unsigned char* image;
  const uint64_t* imageBytes;
};

// The start of such a file.
struct FatBinary {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t bytes;  // bytes after the header
};
constexpr uint32_t kFatBinaryMagic = 0xba55ed50u;

// The symbol that a library exports: a KernelTable.
constexpr const char* kKernelTableSymbol = "windlass_kernel_table";

}  // namespace windlass
