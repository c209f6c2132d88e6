// SPDX-License-Identifier: Apache-2.0
// Data that ranks exchange about the tokens of experts, and that the kernels
// kernels/expert_dispatch.h and kernels/expert_combine.h use: a table of each rank, and the buffer
// with its experts' rows. It is plain data, in windows.
#pragma once

#include <cstdint>

#include "windlass/kernel.h"

namespace windlass {

// Values that are the same on all ranks. Expert e is on rank e / expertsOf(), and its number there
// is the remainder.
struct ExpertShape {
  uint32_t ranks;
  uint32_t experts;    // number of all ranks' experts; every rank has the same share
  uint32_t topK;       // most experts of a token
  uint32_t alignment;  // an expert's rows begin at a multiple of it
  uint64_t hidden;     // elements of a row
  uint64_t tokens;     // most tokens that a rank brings
  uint64_t rows;       // rows that a rank has room for
  DType dtype;         // dtype of tokens
  uint32_t quantised;  // 1: rows are f8e4m3 with scales; 0: rows are unchanged tokens

  WL_CORE uint32_t expertsOf() const { return experts / ranks; }
  WL_CORE uint64_t slots() const { return tokens * topK; }
  WL_CORE uint64_t tokenBytes() const { return hidden * sizeOf(dtype); }
  WL_CORE uint64_t rowBytes() const { return quantised != 0 ? hidden : tokenBytes(); }
  WL_CORE uint64_t scaleBytes() const {
    return quantised != 0 ? quantBlocks(hidden) * sizeof(float) : 0;
  }
  // The first row from `row` on at which an expert's rows may begin.
  WL_CORE uint64_t aligned(uint64_t row) const {
    return (row + alignment - 1) / alignment * alignment;
  }
};

// The token of an expert's row, and the weight of the expert's result.
struct ExpertRecord {
  int32_t rank;  // -1: unused row between the rows of two experts
  int32_t token;
  int32_t slot;  // index among the token's experts
  float weight;
};

// Layout of the buffer with the rows of a rank's experts: offsets of its parts.
struct ExpertBuffer {
  uint64_t scales;
  uint64_t records;
  uint64_t bytes;

  WL_CORE explicit ExpertBuffer(const ExpertShape& shape)
      : scales(wholeLines(shape.rows * shape.rowBytes())),
        records(scales + wholeLines(shape.rows * shape.scaleBytes())),
        bytes(records + wholeLines(shape.rows * sizeof(ExpertRecord))) {}
};

// A rank's RankArgs::aux: the destinations of its tokens, and the rows of its experts. Peers read
// only the counts. Arrays follow in memory.
struct ExpertTable {
  static constexpr uint32_t kTokensAtOnce = 16;  // in one item
  static constexpr int32_t kNone = -1;
  // States of the table. kEmpty: it holds nothing. kNoted: counts, experts and records of this
  // rank's tokens. kRouted: also the rows of these tokens.
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kNoted = 1;
  static constexpr uint32_t kRouted = 2;

  ExpertShape shape;
  uint64_t tokens;  // tokens that the rank brings
  uint32_t state;
  uint32_t number;     // number of the table, which ranks compare
  // A rank whose experts get more rows than it has room for, so that nothing moves; or kNone.
  int32_t fullRank;
  uint32_t reserved;
  uint64_t needed;     // rows that fullRank needs

  // Number of this rank's tokens for each expert.
  WL_CORE int32_t* counts() { return reinterpret_cast<int32_t*>(this + 1); }
  WL_CORE const int32_t* counts() const { return const_cast<ExpertTable*>(this)->counts(); }
  // Row of the next token of each expert, while rows are assigned.
  WL_CORE int32_t* next() { return counts() + shape.experts; }
  // The first row of each of this rank's experts, and its number of rows.
  WL_CORE int32_t* starts() { return next() + shape.experts; }
  WL_CORE int32_t* gets() { return starts() + shape.expertsOf(); }
  // Indexed by token and slot: the expert or kNone, its row there, and the record that is written
  // with the token.
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

// Most experts of one token.
constexpr uint32_t kMostTopK = 64;

}  // namespace windlass
