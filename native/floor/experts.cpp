// SPDX-License-Identifier: Apache-2.0
// The floor of a dispatch to experts and a combine. Also the local permutation and weighting that
// an exchange of parts needs instead of these operations.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "native/base/target.h"
#include "native/floor/guarded.h"
#include "native/floor/threads.h"
#include "windlass/experts.h"
#include "windlass/windlass.h"

namespace windlass::floor {
namespace {

// A token, its sum and its rows.
struct Token {
  std::byte* token;
  std::byte* sum;
  std::vector<std::byte*> rows;
};

// Tokens, rows and sums of all ranks, and the job of each thread.
struct Traffic {
  std::unique_ptr<Window> memory;
  std::vector<Job<Token>> jobs;
  uint64_t rows = 0;
};

Traffic route(const wl_experts_t& experts, const int32_t* ids, std::size_t threads) {
  const uint64_t rowBytes = experts.hidden * sizeOf(static_cast<DType>(experts.dtype));
  const uint64_t tokens = uint64_t{experts.ranks} * experts.tokens;
  const uint64_t slots = tokens * experts.top_k;
  const uint32_t each = experts.experts / experts.ranks;
  std::vector<uint64_t> counts(experts.experts);
  for (uint64_t slot = 0; slot < slots; ++slot)
    if (ids[slot] >= 0) ++counts[static_cast<uint32_t>(ids[slot])];
  // Next free row of each expert in its rank's buffer.
  std::vector<uint64_t> next(experts.experts);
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < experts.ranks; ++rank) {
    uint64_t row = 0;
    for (uint32_t e = rank * each; e < (rank + 1) * each; ++e) {
      next[e] = row;
      row += counts[e];
    }
    most = std::max(most, row);
  }
  Traffic traffic;
  const uint64_t tokensAt = wholeLines(most * rowBytes);
  const uint64_t sumsAt = tokensAt + wholeLines(experts.tokens * rowBytes);
  traffic.memory = segments(sumsAt + experts.tokens * rowBytes, experts.ranks);
  traffic.rows = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  traffic.jobs.resize(threads);
  for (uint64_t at = 0; at < tokens; ++at) {
    const uint64_t rank = at / experts.tokens;
    std::byte* own = bytesOf(*traffic.memory, rank) + at % experts.tokens * rowBytes;
    Token token = {own + tokensAt, own + sumsAt, {}};
    for (uint64_t slot = at * experts.top_k; slot < (at + 1) * experts.top_k; ++slot) {
      if (ids[slot] < 0) continue;
      const auto expert = static_cast<uint32_t>(ids[slot]);
      std::byte* rows = bytesOf(*traffic.memory, expert / each);
      token.rows.push_back(rows + next[expert]++ * rowBytes);
    }
    Job<Token>& job = traffic.jobs[at * threads / tokens];
    job.inputs.push_back({token.token, rowBytes});
    job.parts.push_back(std::move(token));
  }
  return traffic;
}

double measureExperts(const wl_experts_t& experts, const int32_t* ids, int32_t iterations) {
  const std::vector<int> cores = coresToUse();
  Traffic traffic = route(experts, ids, cores.size());
  const auto dtype = static_cast<DType>(experts.dtype);
  const auto elements = static_cast<int64_t>(experts.hidden);
  const uint64_t rowBytes = experts.hidden * sizeOf(dtype);
  const Stores stores = storesOf(traffic.rows * rowBytes, cores.size());
  const double dispatch =
      measure(traffic.jobs, cores, iterations, patternOf(dtype), [&](const Token& token) {
        StridedView rows[kMostTopK];
        for (std::size_t i = 0; i < token.rows.size(); ++i)
          rows[i] = rowOf(token.rows[i], dtype, elements);
        if (token.rows.empty()) return;
        kTarget.move(rows, static_cast<uint32_t>(token.rows.size()),
                     rowOf(token.token, dtype, elements), dtype, stores);
      });
  for (Job<Token>& job : traffic.jobs) {
    for (const Token& token : job.parts) {
      for (const std::byte* row : token.rows) checkEqual(row, token.token, rowBytes);
    }
    job.inputs.clear();
  }
  const std::vector<float> weights(kMostTopK, 1.0f);
  const double combine =
      measure(traffic.jobs, cores, iterations, patternOf(dtype), [&](const Token& token) {
        kTarget.foldWeighted(token.sum, reinterpret_cast<const void* const*>(token.rows.data()),
                             weights.data(), static_cast<uint32_t>(token.rows.size()), elements,
                             dtype, stores);
      });
  return dispatch + combine;
}

}  // namespace
}  // namespace windlass::floor

using namespace windlass;
using namespace windlass::floor;

int32_t wl_floor_experts(const wl_experts_t* experts, const int32_t* ids, int32_t iterations,
                         double* median_us, wl_error_t* error) {
  return guarded(error, [&] {
    require(experts != nullptr && ids != nullptr && median_us != nullptr,
            "experts, ids, median_us: NULL");
    wl_experts_layout_t layout = {};
    layout.struct_size = sizeof layout;
    if (int32_t code = wl_experts_lay_out(experts, &layout, error); code != WL_OK)
      throw Refused(static_cast<wl_code>(code), error == nullptr ? "experts" : error->message);
    require(experts->quantised == 0, "experts.quantised: not 0");
    require(iterations >= 1, "iterations: less than 1");
    const uint64_t slots = uint64_t{experts->ranks} * experts->tokens * experts->top_k;
    for (uint64_t slot = 0; slot < slots; ++slot)
      require(ids[slot] >= -1 && ids[slot] < static_cast<int32_t>(experts->experts),
              "ids: one is no expert's");
    *median_us = measureExperts(*experts, ids, iterations);
  });
}

int32_t wl_floor_permute(void* dst, const void* src, const int32_t* order, uint64_t rows,
                         uint64_t row_bytes, wl_error_t* error) {
  return guarded(error, [&] {
    require(dst != nullptr && src != nullptr && order != nullptr, "dst, src, order: NULL");
    const auto bytes = static_cast<int64_t>(row_bytes);
    const Stores stores = storesOf(rows * row_bytes, 1);
    auto* to = static_cast<std::byte*>(dst);
    const auto* from = static_cast<const std::byte*>(src);
    for (uint64_t row = 0; row < rows; ++row) {
      const std::byte* in = from + static_cast<uint64_t>(order[row]) * row_bytes;
      const StridedView out = rowOf(to + row * row_bytes, DType::kU8, bytes);
      kTarget.move(&out, 1, rowOf(in, DType::kU8, bytes), DType::kU8, stores);
    }
  });
}

int32_t wl_floor_weigh(void* dst, const void* src, const int32_t* order, const float* weights,
                       uint64_t tokens, uint32_t top_k, uint64_t hidden, int32_t dtype,
                       wl_error_t* error) {
  return guarded(error, [&] {
    require(dst != nullptr && src != nullptr && order != nullptr && weights != nullptr,
            "dst, src, order, weights: NULL");
    require(top_k <= kMostTopK, "top_k: more than WL_MAX_TOP_K");
    require(isDType(dtype) && isFloat(static_cast<DType>(dtype)), "dtype: no float");
    const auto of = static_cast<DType>(dtype);
    const uint64_t rowBytes = hidden * sizeOf(of);
    const Stores stores = storesOf(tokens * rowBytes, 1);
    for (uint64_t token = 0; token < tokens; ++token) {
      const void* rows[kMostTopK];
      for (uint32_t k = 0; k < top_k; ++k) {
        const auto row = static_cast<uint64_t>(order[token * top_k + k]);
        rows[k] = static_cast<const std::byte*>(src) + row * rowBytes;
      }
      kTarget.foldWeighted(static_cast<std::byte*>(dst) + token * rowBytes, rows,
                           weights + token * top_k, top_k, static_cast<int64_t>(hidden), of,
                           stores);
    }
  });
}
