// SPDX-License-Identifier: Apache-2.0
// The table that a library of kernels exports, as plain data: what its kernels are called and take,
// and the functions that windlass/kernel.h lists. windlass/kernel_library.h makes one; whoever
// loads the library holds all that stands in it against these rules.
#pragma once

#include "windlass/kernel.h"

namespace windlass {

constexpr uint32_t kKernelTableMagic = 0x4b4c4457;  // "WDLK"
constexpr uint32_t kKernelTableVersion = 4;
constexpr uint32_t kMostKernels = 256;  // of a library
constexpr uint32_t kMostArguments = 32;
constexpr uint32_t kMostItems = 1u << 20;  // of a rank, in all phases of a launch
constexpr uint32_t kMostNameBytes = 64;  // of a kernel or an argument, the NUL included

// One argument of a kernel. Names are words of letters, digits and _.
struct ArgumentEntry {
  enum Kind : uint32_t {
    kTensor,       // of this rank, in memory of any kind
    kDistributed,  // that every rank has at one place of one window
    kScalar,       // i32, i64, f32 or f64
  };
  static constexpr int32_t kAny = -1;

  const char* name;
  uint32_t kind;
  int32_t dtype;       // a DType; of a tensor, kAny: the kernel looks which
  uint32_t isWritten;  // of a tensor: 1 where the kernel writes it
  int32_t ndim;        // of a tensor: how many dimensions it has, or kAny
  int32_t like;        // of a tensor: the earlier one that has its dtype and decides its size
  uint32_t timesRanks;  // 1: it has as many elements as that one for each rank; 0: as many

  // The same argument, but that ...
  constexpr ArgumentEntry written() const {
    ArgumentEntry entry = *this;
    entry.isWritten = 1;
    return entry;
  }
  constexpr ArgumentEntry dimensions(int32_t count) const {
    ArgumentEntry entry = *this;
    entry.ndim = count;
    return entry;
  }
  constexpr ArgumentEntry sizedLike(int32_t earlier) const {
    ArgumentEntry entry = *this;
    entry.like = earlier;
    return entry;
  }
  constexpr ArgumentEntry sizedLikeAllOf(int32_t earlier) const {
    ArgumentEntry entry = sizedLike(earlier);
    entry.timesRanks = 1;
    return entry;
  }
};

namespace checked {
struct RunRecorder;  // native/isa/checked/profile.h
}

// What holds the cores of one rank, in one launch, against what the target allows.
struct KernelSession;

// On targets that check: the library holds its kernels against the rules by itself.
struct SessionEntry {
  // `line` is one of the rank's cores, `reach` what they may touch, and `recorder`, which lasts,
  // takes what was counted. nullptr: no memory is left.
  KernelSession* (*open)(const char* kernel, const Launch&, const InLine& line, const Reach* reach,
                         size_t count, const checked::RunRecorder* recorder);
  // On one thread. `over`: all cores are; else they may go on. nullptr, or what is broken, a line
  // for each breach, which lasts until the next verdict; and whose core broke something first.
  // Throws std::bad_alloc.
  const char* (*verdict)(KernelSession*, bool over, uint32_t* culprit);
  void (*close)(KernelSession*);
};

// One kernel. But for `phase`, `goOn` and `session`, the host calls its functions, and before
// anything moves.
struct KernelEntry {
  const char* name;
  const ArgumentEntry* arguments;
  uint32_t argumentCount;
  uint32_t reserved;
  // nullptr, or why the kernel can't do what it is asked for; the same on every rank.
  const char* (*refuses)(const Launch&);
  void (*plan)(Launch&);
  uint32_t (*phases)(const Launch&);
  uint32_t (*blocks)(const Launch&, uint32_t rank);
  uint32_t (*needs)(const Launch&, uint32_t rank, uint32_t block, uint32_t phase);
  uint32_t (*leavesAfter)(const Launch&, uint32_t rank);
  void (*phase)(const Launch&, uint32_t rank, uint32_t block, uint32_t phase);
  // runInLine of windlass/in_line.h; on targets that check nothing without a session.
  bool (*goOn)(KernelSession*, const Launch&, const InLine&, Position&);
  const SessionEntry* session;  // nullptr: the target checks nothing
};

struct KernelTable {
  uint32_t magic;
  uint32_t version;
  uint64_t fingerprint;  // of the headers that it was compiled with
  char target[16];
  uint32_t kernelCount;
  uint32_t reserved;
  const KernelEntry* kernels;
  // The same kernels, in the same order, as a file of nvcc's; nullptr: the target has no GPUs.
  const unsigned char* image;
  const uint64_t* imageBytes;
};

// How such a file begins.
struct FatBinary {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t bytes;  // behind the header
};
constexpr uint32_t kFatBinaryMagic = 0xba55ed50u;

// The symbol that a library exports: a KernelTable.
constexpr const char* kKernelTableSymbol = "windlass_kernel_table";

}  // namespace windlass
