// SPDX-License-Identifier: Apache-2.0
// Tokens that go to experts and back, of which every byte is known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/native/core/comms.h"
#include "tests/native/cuda/driver.h"

namespace windlass_test {

constexpr int kOnHost = -1;  // in place of a device

// Bytes that a rank brings, on the host or on a device.
class BroughtBytes {
 public:
  BroughtBytes(int device, size_t bytes) : host_(device == kOnHost ? bytes : 0) {
    if (device != kOnHost) there_.emplace(device, bytes);
  }
  void* data() { return there_ ? there_->data() : host_.data(); }
  void write(const std::vector<uint8_t>& all) { there_ ? there_->write(all) : (void)(host_ = all); }
  std::vector<uint8_t> read() const { return there_ ? there_->read() : host_; }

 private:
  std::vector<uint8_t> host_;
  std::optional<gpus::Memory<uint8_t>> there_;
};

struct ExpertCase {
  int32_t dtype = WL_F32;
  uint32_t hidden = 40;
  int topK = 2;
  int experts = 2;  // of a rank
  uint32_t alignment = 4;
  bool isQuantised = false;
};

inline void PrintTo(const ExpertCase& one, std::ostream* out) {
  *out << "dtype " << one.dtype << ", "  << one.hidden << " elements, " << one.topK << " of "
       << one.experts << " experts a rank, rows by " << one.alignment
       << (one.isQuantised ? ", quantised" : "");
}

// Token t of rank r goes to experts t + r, and on from there by equal steps, but some to the first
// of them alone and some to none; what experts make of it is itself. Elements are integers of 3
// bits, and weights come to 2, a half or nothing: any dtype has the sums.
class ExpertExchange {
 public:
  explicit ExpertExchange(int ranks, const ExpertCase& of = {}) : ranks_(ranks), case_(of) {
    experts_.struct_size = sizeof experts_;
    experts_.dtype = of.dtype;
    experts_.ranks = static_cast<uint32_t>(ranks);
    experts_.experts = static_cast<uint32_t>(allExperts());
    experts_.top_k = static_cast<uint32_t>(of.topK);
    experts_.alignment = of.alignment;
    experts_.quantised = of.isQuantised ? 1 : 0;
    experts_.hidden = of.hidden;
    experts_.tokens = kTokens;
    experts_.rows = static_cast<uint64_t>(of.topK * ranks * kTokens) +
                    of.alignment * static_cast<uint64_t>(of.experts);
    layout_.struct_size = sizeof layout_;
    Error error;
    if (wl_experts_lay_out(&experts_, &layout_, &error) != WL_OK) {
      std::fprintf(stderr, "%s\n", error.message);
      std::abort();
    }
  }

  // Runs the exchange of one rank `times` times with the same table, which keeps its rows. Returns
  // the first wrong result, or nothing. Rows of experts lie on one device or the host, tokens on
  // another.
  std::string run(wl_comm_t* comm, int rowsOn, int tokensOn, int times) const {
    const int rank = wl_comm_rank(comm);
    const int count = tokensOf(rank);
    std::vector<uint8_t> tokens, summed;
    std::vector<int32_t> ids;
    std::vector<float> weights;
    for (int t = 0; t < count; ++t) {
      double whole = 0;
      for (int k = 0; k < case_.topK; ++k) {
        ids.push_back(expertOf(rank, t, k));
        weights.push_back(weight(k));
        whole += ids.back() < 0 ? 0 : weight(k);
      }
      for (uint32_t i = 0; i < case_.hidden; ++i) {
        add(&tokens, case_.dtype, value(rank, t, i));
        add(&summed, case_.dtype, whole * value(rank, t, i) + 0.0);  // never -0
      }
    }
    BroughtBytes in(tokensOn, tokens.size()), out(tokensOn, tokens.size());
    BroughtBytes buffer(rowsOn, layout_.buffer_bytes);
    in.write(tokens);
    std::vector<uint64_t> table(layout_.table_bytes / 8);
    const auto size = static_cast<uint64_t>(count);
    Error error;
    if (wl_experts_route(comm, &experts_, table.data(), 0, size, ids.data(), WL_I32, weights.data(),
                         &error) != WL_OK)
      return error.message;
    std::vector<uint8_t> outputs;
    const std::vector<uint8_t> expected = bufferOf(rank, &outputs);
    // A buffer's own rows, but where those are quantised.
    BroughtBytes made(rowsOn, case_.isQuantised ? outputs.size() : 0);
    if (case_.isQuantised) made.write(outputs);
    for (int i = 0; i < times; ++i) {
      buffer.write(std::vector<uint8_t>(layout_.buffer_bytes, 0xff));
      if (wl_experts_dispatch(comm, table.data(), buffer.data(), in.data(), size, 0, &error) !=
          WL_OK)
        return error.message;
      if (const size_t at = firstUnlike(buffer.read(), expected); at < expected.size())
        return "rank " + std::to_string(rank) + " got other rows, scales or records: byte " +
               std::to_string(at) + " of " + std::to_string(expected.size());
      out.write(std::vector<uint8_t>(tokens.size(), 0xff));
      BroughtBytes& rows = case_.isQuantised ? made : buffer;
      if (wl_experts_combine(comm, table.data(), rows.data(), case_.dtype, out.data(), size, 0,
                             &error) != WL_OK)
        return error.message;
      if (const size_t at = firstUnlike(out.read(), summed); at < summed.size())
        return "rank " + std::to_string(rank) + " got another sum: byte " + std::to_string(at) +
               " of " + std::to_string(summed.size());
    }
    return "";
  }

 private:
  static constexpr int kTokens = 37;
  static constexpr uint32_t kBlock = 128;  // elements of a scale
  static constexpr double kScale = 7.0 / 448;

  static int tokensOf(int rank) { return rank % 5 == 3 ? 0 : kTokens - rank; }
  // The largest of each block is 7.
  static double value(int rank, int token, uint32_t i) {
    const int of = (7 * rank + 3 * token + static_cast<int>(i % 1000)) % 15 - 7;
    return i % kBlock == 0 ? (of < 0 ? -7 : 7) : of;
  }
  float weight(int k) const {
    return k == 0 ? 0.5f : 1.5f / static_cast<float>(case_.topK - 1);
  }
  int allExperts() const { return ranks_ * case_.experts; }
  int expertOf(int rank, int token, int k) const {
    if (token % 7 == 6 || (token % 5 == 4 && k > 0)) return -1;
    return (token + rank + k * std::max(allExperts() / case_.topK, 1)) % allExperts();
  }

  // A number that the dtype has.
  static void add(std::vector<uint8_t>* to, int32_t dtype, double number) {
    const auto append = [&](const void* code, size_t bytes) {
      const auto* first = static_cast<const uint8_t*>(code);
      to->insert(to->end(), first, first + bytes);
    };
    if (dtype == WL_F64) return append(&number, sizeof number);
    const auto single = static_cast<float>(number);
    if (dtype == WL_F32) return append(&single, sizeof single);
    const int exponentBits = dtype == WL_BF16 ? 8 : dtype == WL_F8E4M3 ? 4 : 5;
    const int bytes = dtype == WL_BF16 || dtype == WL_F16 ? 2 : 1;
    const int mantissaBits = 8 * bytes - 1 - exponentBits;
    uint32_t code = 0;
    if (number != 0) {
      int exponent = 0;
      const double mantissa = 2 * std::frexp(std::fabs(number), &exponent) - 1;
      const int biased = exponent - 1 + (1 << (exponentBits - 1)) - 1;
      code = static_cast<uint32_t>(biased << mantissaBits) |
             static_cast<uint32_t>(std::ldexp(mantissa, mantissaBits)) |
             (number < 0 ? 1u << (8 * bytes - 1) : 0u);
    }
    append(&code, static_cast<size_t>(bytes));
  }

  static size_t firstUnlike(const std::vector<uint8_t>& found, const std::vector<uint8_t>& wanted) {
    return static_cast<size_t>(
        std::mismatch(found.begin(), found.end(), wanted.begin()).first - found.begin());
  }

  // Expected contents of the rank's buffer of 0xff bytes after a dispatch, and the outputs of its
  // experts.
  std::vector<uint8_t> bufferOf(int rank, std::vector<uint8_t>* outputs) const {
    struct Record {
      int32_t rank, token, slot;
      float weight;
    };
    std::vector<uint8_t> all(layout_.buffer_bytes, 0xff);
    const auto elementBytes = static_cast<size_t>(wl_dtype_size(case_.dtype));
    outputs->assign(experts_.rows * case_.hidden * elementBytes, 0xff);
    size_t row = 0;
    const auto record = [&](const Record& of) {
      std::memcpy(&all[layout_.records_at + row * sizeof of], &of, sizeof of);
      ++row;
    };
    const auto fill = [&](int from, int token) {
      std::vector<uint8_t> sent, whole;
      for (uint32_t i = 0; i < case_.hidden; ++i) {
        const double element = value(from, token, i);
        add(&whole, case_.dtype, element);
        if (case_.isQuantised) add(&sent, WL_F8E4M3, element / kScale);
      }
      std::copy(whole.begin(), whole.end(),
                outputs->begin() + static_cast<long>(row * whole.size()));
      if (!case_.isQuantised) sent = whole;
      std::copy(sent.begin(), sent.end(), all.begin() + static_cast<long>(row * sent.size()));
      if (!case_.isQuantised) return;
      const size_t blocks = (case_.hidden + kBlock - 1) / kBlock;
      const std::vector<float> scales(blocks, static_cast<float>(kScale));
      std::memcpy(&all[layout_.scales_at + row * blocks * 4], scales.data(), blocks * 4);
    };
    for (int expert = case_.experts * rank; expert < case_.experts * (rank + 1); ++expert) {
      for (int from = 0; from < ranks_; ++from) {
        for (int t = 0; t < tokensOf(from); ++t) {
          for (int k = 0; k < case_.topK; ++k) {
            if (expertOf(from, t, k) != expert) continue;
            fill(from, t);
            record({from, t, k, weight(k)});
          }
        }
      }
      while (row % case_.alignment != 0) record({-1, -1, -1, 0.0f});
    }
    return all;
  }

  const int ranks_;
  const ExpertCase case_;
  wl_experts_t experts_ = {};
  wl_experts_layout_t layout_ = {};
};

}  // namespace windlass_test
