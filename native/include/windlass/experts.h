// SPDX-License-Identifier: Apache-2.0
// What ranks tell one another of the tokens that experts get, and the kernels that move them,
// kernels/expert_dispatch.h and kernels/expert_combine.h: a table of each rank, and the buffer that
// its experts' rows lie in; plain data, in windows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// What is the same on all ranks. Expert e is rank e / expertsOf()'s, its number there the
// remainder.
struct ExpertShape {
  uint32_t ranks;
  uint32_t experts;    // of all ranks, as many of each
  uint32_t topK;       // experts of a token, at most
  uint32_t alignment;  // an expert's rows begin at a multiple of it
  uint64_t hidden;     // elements of a row
  uint64_t tokens;     // that a rank brings, at most
  uint64_t rows;       // that a rank has room for
  DType dtype;         // of tokens
  uint32_t quantised;  // 1: rows are f8e4m3 over scales, else they are tokens as they are

  WL_CORE uint32_t expertsOf() const { return experts / ranks; }
  WL_CORE uint64_t slots() const { return tokens * topK; }
  WL_CORE uint64_t tokenBytes() const { return hidden * sizeOf(dtype); }
  WL_CORE uint64_t rowBytes() const { return quantised != 0 ? hidden : tokenBytes(); }
  WL_CORE uint64_t scaleBytes() const {
    return quantised != 0 ? quantBlocks(hidden) * sizeof(float) : 0;
  }
  // The first row at or behind `row` at which an expert's may begin.
  WL_CORE uint64_t aligned(uint64_t row) const {
    return (row + alignment - 1) / alignment * alignment;
  }
};

// Whose token a row of an expert is, and what its expert's answer is multiplied by.
struct ExpertRecord {
  int32_t rank;  // -1: nobody's, between the rows of two experts
  int32_t token;
  int32_t slot;  // which of the token's experts
  float weight;
};

// Where a rank's experts have their rows: offsets into its buffer.
struct ExpertBuffer {
  uint64_t scales;
  uint64_t records;
  uint64_t bytes;

  WL_CORE explicit ExpertBuffer(const ExpertShape& shape)
      : scales(wholeLines(shape.rows * shape.rowBytes())),
        records(scales + wholeLines(shape.rows * shape.scaleBytes())),
        bytes(records + wholeLines(shape.rows * sizeof(ExpertRecord))) {}
};

// A rank's RankArgs::aux: where its tokens go, and what comes to its experts. Peers read the
// counts, and of its own rank alone is the rest. Arrays follow in memory.
struct ExpertTable {
  static constexpr uint32_t kTokensAtOnce = 16;  // in one item
  static constexpr int32_t kNone = -1;
  // States: nothing; counts, experts and records of this rank's tokens; and their rows too.
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kNoted = 1;
  static constexpr uint32_t kRouted = 2;

  ExpertShape shape;
  uint64_t tokens;  // that it brings
  uint32_t state;
  uint32_t number;     // of the table, which ranks compare
  int32_t fullRank;    // kNone, or one whose experts get more rows than it has room for: none moves
  uint32_t reserved;
  uint64_t needed;     // rows of that one

  // Tokens of this rank for each expert.
  WL_CORE int32_t* counts() { return reinterpret_cast<int32_t*>(this + 1); }
  WL_CORE const int32_t* counts() const { return const_cast<ExpertTable*>(this)->counts(); }
  // For each expert the row that its next token gets, while rows are given out.
  WL_CORE int32_t* next() { return counts() + shape.experts; }
  // The first row of each of this rank's experts, and how many it has.
  WL_CORE int32_t* starts() { return next() + shape.experts; }
  WL_CORE int32_t* gets() { return starts() + shape.expertsOf(); }
  // By token and slot: the expert or kNone, its row there, and what goes there beside the token.
  WL_CORE int32_t* expertOf() { return gets() + shape.expertsOf(); }
  WL_CORE int32_t* rowOf() { return expertOf() + shape.slots(); }
  WL_CORE ExpertRecord* recordOf() {
    return reinterpret_cast<ExpertRecord*>(rowOf() + shape.slots());
  }
  WL_CORE static uint64_t bytes(const ExpertShape& shape) {
    const uint64_t words = 2 * (uint64_t{shape.experts} + shape.expertsOf() + shape.slots());
    return wholeLines(sizeof(ExpertTable) + words * sizeof(int32_t) +
                      shape.slots() * sizeof(ExpertRecord));
  }

  WL_CORE uint32_t blocks() const {
    const uint64_t count = (tokens + kTokensAtOnce - 1) / kTokensAtOnce;
    return count == 0 ? 1 : static_cast<uint32_t>(count);
  }
  WL_CORE uint64_t firstToken(uint32_t block) const { return uint64_t{block} * kTokensAtOnce; }
  WL_CORE uint64_t endToken(uint32_t block) const {
    const uint64_t end = firstToken(block) + kTokensAtOnce;
    return end < tokens ? end : tokens;
  }
};
static_assert(sizeof(ExpertTable) % sizeof(uint64_t) == 0, "arrays follow");

// Experts of one token, at most.
constexpr uint32_t kMostTopK = 64;

}  // namespace windlass
