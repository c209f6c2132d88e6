// SPDX-License-Identifier: Apache-2.0
// Expert dispatch: each rank's tokens reach the experts that its router chose. A row of an expert
// is a token of one rank; rows are in the order of experts, then of ranks, then of tokens.
//
// args     in   the rank's tokens, which only the rank reads
//          out  the rank's ExpertBuffer; every rank that sends it tokens writes it
//          aux  ExpertTable: experts and weights of each token, and counts of each expert
// phases   two. First, each rank assigns rows to its tokens from the counts of all ranks, summed in
//          row order, and finds where its own experts' rows begin. Then it writes each of its
//          tokens to all its rows; it reads and quantises the token once. If a rank has too little
//          room, every rank computes this, and nothing moves. A rank whose tokens have rows from
//          an earlier dispatch keeps them.
// signals  ENTER of every rank before counts are read; a rank's first phase before its second; DONE
//          of every rank before return, since they read this rank's counts and write its rows
// order    DONE releases rows, scales and records, which a rank's wait for it acquires
#pragma once

#include "kernels/bytes.h"
#include "kernels/fold.h"
#include "windlass/experts.h"

namespace windlass {

struct ExpertItems : Items {
  WL_CORE static ExpertTable& table(const Launch& launch, uint32_t rank) {
    return *launch.at<ExpertTable>(rank, launch.of(rank).aux);
  }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return table(launch, rank).blocks();
  }
};

struct ExpertDispatch : ExpertItems {
  WL_CORE static constexpr uint32_t phases(const Launch&) { return 2; }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t k) {
    return k == 0 ? kEveryRank : kNobody;
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    ExpertTable& own = table(launch, rank);
    if (k == 0) {
      if (block == 0 && own.state == ExpertTable::kNoted) route(launch, rank, own);
      if (block == 0) markGaps(launch, rank, own);
    } else if (own.fullRank == ExpertTable::kNone) {
      for (uint64_t t = own.firstToken(block); t < own.endToken(block); ++t)
        send(launch, rank, own, t);
    }
  }

  // Computes where the tokens of every rank go, by expert, and those of this rank, by token.
  WL_CORE static void route(const Launch& launch, uint32_t rank, ExpertTable& own) {
    const ExpertShape& shape = own.shape;
    own.fullRank = ExpertTable::kNone;
    for (uint32_t to = 0; to < shape.ranks; ++to) {
      uint64_t row = 0;
      for (uint32_t e = 0; e < shape.expertsOf(); ++e) {
        const uint32_t expert = to * shape.expertsOf() + e;
        const uint64_t start = shape.aligned(row);
        row = start;
        for (uint32_t from = 0; from < shape.ranks; ++from) {
          if (from == rank) own.next()[expert] = static_cast<int32_t>(row);
          row += static_cast<uint64_t>(table(launch, from).counts()[expert]);
        }
        if (to != rank) continue;
        own.starts()[e] = static_cast<int32_t>(start);
        own.gets()[e] = static_cast<int32_t>(row - start);
      }
      row = shape.aligned(row);
      if (row <= shape.rows || own.fullRank != ExpertTable::kNone) continue;
      own.fullRank = static_cast<int32_t>(to);
      own.needed = row;
    }
    if (own.fullRank != ExpertTable::kNone) return;
    const uint64_t slots = own.tokens * shape.topK;
    for (uint64_t slot = 0; slot < slots; ++slot) {
      const int32_t expert = own.expertOf()[slot];
      own.rowOf()[slot] = expert < 0 ? ExpertTable::kNone : own.next()[expert]++;
    }
  }

  // Marks the rows after each of this rank's experts as unused.
  WL_CORE static void markGaps(const Launch& launch, uint32_t rank, ExpertTable& own) {
    if (own.fullRank != ExpertTable::kNone) return;
    auto* const records =
        reinterpret_cast<ExpertRecord*>(launch.out(rank) + ExpertBuffer(own.shape).records);
    for (uint32_t e = 0; e < own.shape.expertsOf(); ++e) {
      const auto end = static_cast<uint64_t>(own.starts()[e] + own.gets()[e]);
      for (uint64_t row = end; row < own.shape.aligned(end); ++row)
        records[row] = {ExpertTable::kNone, ExpertTable::kNone, ExpertTable::kNone, 0.0f};
    }
  }

  WL_CORE static void send(const Launch& launch, uint32_t rank, ExpertTable& own, uint64_t token) {
    const ExpertShape& shape = own.shape;
    const ExpertBuffer buffer(shape);
    uint8_t* buffers[kMostTopK];
    uint64_t rows[kMostTopK];
    const ExpertRecord* records[kMostTopK];
    uint32_t count = 0;
    for (uint64_t slot = token * shape.topK; slot < (token + 1) * shape.topK; ++slot) {
      const int32_t expert = own.expertOf()[slot];
      if (expert < 0) continue;
      const uint32_t to = static_cast<uint32_t>(expert) / shape.expertsOf();
      buffers[count] = launch.out(to);
      rows[count] = static_cast<uint64_t>(own.rowOf()[slot]);
      records[count++] = own.recordOf() + slot;
    }
    if (count == 0) return;
    const auto elements = static_cast<int64_t>(shape.hidden);
    const uint8_t* in = launch.in(rank) + token * shape.tokenBytes();
    const auto row = [&](uint32_t i) { return buffers[i] + rows[i] * shape.rowBytes(); };
    FoldTile tile;
    TASSIGN(tile, 0);
    if (shape.quantised != 0) {
      const auto scale = [&](uint32_t i) {
        return buffers[i] + buffer.scales + rows[i] * shape.scaleBytes();
      };
      TQUANT(rowsAt(count, row), rowsAt(count, scale), in, elements, shape.dtype, tile);
    } else {
      const int64_t one = 1;
      const auto view = [&](uint32_t i) {
        return StridedView{row(i), shape.dtype, 1, &elements, &one};
      };
      const StridedView source = {const_cast<uint8_t*>(in), shape.dtype, 1, &elements, &one};
      TMOVE_CVT(viewsAt(count, view), source, shape.dtype, tile);
    }
    for (uint32_t i = 0; i < count; ++i) {
      uint8_t* to = buffers[i] + buffer.records + rows[i] * sizeof(ExpertRecord);
      put({to, reinterpret_cast<const uint8_t*>(records[i]), sizeof(ExpertRecord)});
    }
  }
};

}  // namespace windlass
