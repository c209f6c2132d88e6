// SPDX-License-Identifier: Apache-2.0
// TFOLD_WEIGHTED and TQUANT on every vector path against one element at a time, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "native/base/dtype.h"
#include "tests/native/isa/reference.h"

namespace windlass {
namespace scaled_test {

constexpr int64_t kCounts[] = {0, 1, 5, 64, 127, 128, 129, 1023, 1025, 4096, 5000};

std::vector<unsigned char> randomRow(DType dtype, int64_t count, std::mt19937_64& random) {
  std::vector<unsigned char> row(static_cast<size_t>(count) * sizeOf(dtype));
  for (size_t at = 0; at < row.size(); at += sizeOf(dtype)) {
    const uint64_t code = reference::randomElement(dtype, random);
    std::memcpy(&row[at], &code, sizeOf(dtype));
  }
  return row;
}

template <typename To, typename From>
To bitsAs(From from) {
  To to = 0;
  std::memcpy(&to, &from, sizeof to < sizeof from ? sizeof to : sizeof from);
  return to;
}

float asF32(DType dtype, uint64_t code) {
  return bitsAs<float>(static_cast<uint32_t>(reference::cast(dtype, DType::kF32, code)));
}

// Rounded to the dtype; a NaN is the canonical one.
uint64_t rounded(DType dtype, float value) {
  if (dtype == DType::kF32 && std::isnan(value)) return 0x7fc00000u;
  return reference::cast(DType::kF32, dtype, bitsAs<uint32_t>(value));
}

uint64_t weighedSum(DType dtype, const std::vector<uint64_t>& codes,
                    const std::vector<float>& weights) {
  if (dtype == DType::kF64) {
    double sum = 0;
    for (size_t s = 0; s < codes.size(); ++s) {
      const double product = static_cast<double>(weights[s]) * bitsAs<double>(codes[s]);
      sum = s == 0 ? product : sum + product;
    }
    return std::isnan(sum) ? 0x7ff8000000000000u : bitsAs<uint64_t>(sum);
  }
  float sum = 0;
  for (size_t s = 0; s < codes.size(); ++s) {
    const float product = weights[s] * asF32(dtype, codes[s]);
    sum = s == 0 ? product : sum + product;
  }
  return rounded(dtype, sum);
}

TEST(Scaled, SumsOfWeightedRowsMatchReference) {
  const uint64_t seed = reference::testSeed();
  SCOPED_TRACE("WINDLASS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const auto& format : reference::kFormats) {
    const DType dtype = format.dtype;
    const size_t bytes = sizeOf(dtype);
    for (const size_t sources : {0, 1, 2, 6, 70}) {
      for (const int64_t count : kCounts) {
        if (reference::few() && count > 129 && random() % 4 != 0) continue;
        std::vector<std::vector<unsigned char>> src;
        std::vector<float> weights;
        for (size_t s = 0; s < sources; ++s) {
          src.push_back(randomRow(dtype, count, random));
          weights.push_back(asF32(DType::kF32, reference::randomElement(DType::kF32, random)));
        }
        std::vector<uint64_t> wanted;
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          std::vector<uint64_t> codes;
          for (const auto& each : src)
            codes.push_back(reference::loadElement(&each[i * bytes], bytes));
          wanted.push_back(weighedSum(dtype, codes, weights));
        }
        const auto row = [&](uint32_t s) { return src[s].data(); };
        for (const auto& [path, table] : reference::availablePaths()) {
          for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
            std::vector<unsigned char> out(static_cast<size_t>(count) * bytes + 4, 0xa5);
            std::vector<unsigned char> second = out;
            const auto target = [&](uint32_t d) { return d == 0 ? out.data() : second.data(); };
            const auto weight = [&](uint32_t s) { return weights[s]; };
            const auto terms = static_cast<uint32_t>(sources);
            TFOLD_WEIGHTED(rowsAt(1, target), rowsAt(terms, row), weightsAt(terms, weight), count,
                           dtype, stores, *table);
            std::vector<unsigned char> first = out;
            TFOLD_WEIGHTED(rowsAt(2, target), rowsAt(terms, row), weightsAt(terms, weight), count,
                           dtype, stores, *table);
            ASSERT_EQ(first, out);
            ASSERT_EQ(first, second);
            for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
              ASSERT_EQ(reference::loadElement(&out[i * bytes], bytes), wanted[i])
                  << format.name << ", element " << i << " of " << count << " of " << sources
                  << " rows on " << nameOf(path);
            }
            for (size_t i = out.size() - 4; i < out.size(); ++i) ASSERT_EQ(out[i], 0xa5);
          }
        }
      }
    }
  }
}

TEST(Scaled, QuantisedBlocksMatchTheirFormula) {
  const uint64_t seed = reference::testSeed();
  SCOPED_TRACE("WINDLASS_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const size_t bytes = sizeOf(dtype);
    for (const int64_t count : kCounts) {
      std::vector<unsigned char> src = randomRow(dtype, count, random);
      // A block of zeros, and others of numbers that are alike.
      for (size_t at = 0; at < src.size() / 3; ++at) src[at] = at < 128 * bytes ? 0 : 0x3d;
      const size_t blocks = quantBlocks(static_cast<uint64_t>(count));
      for (const auto& [path, table] : reference::availablePaths()) {
        std::vector<std::vector<unsigned char>> out(3);
        std::vector<std::vector<float>> scales(3, std::vector<float>(blocks + 1, -7.0f));
        for (auto& each : out) each.assign(static_cast<size_t>(count) + 4, 0xa5);
        const auto row = [&](uint32_t d) { return out[d].data(); };
        const auto scale = [&](uint32_t d) { return scales[d].data(); };
        TQUANT(rowsAt(3, row), rowsAt(3, scale), src.data(), count, dtype, Stores::kCached, *table);
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
          const size_t block = i / kQuantBlock * kQuantBlock;
          float largest = 1e-4f;
          for (size_t k = block; k < block + kQuantBlock && k < static_cast<size_t>(count); ++k) {
            const float value = asF32(dtype, reference::loadElement(&src[k * bytes], bytes));
            if (std::fabs(value) > largest) largest = std::fabs(value);
          }
          const float expected = largest / 448.0f;
          const float value = asF32(dtype, reference::loadElement(&src[i * bytes], bytes));
          const uint64_t code = rounded(DType::kF8E4M3, value * (1.0f / expected));
          for (size_t d = 0; d < out.size(); ++d) {
            ASSERT_EQ(scales[d][i / kQuantBlock], expected) << i << " on " << nameOf(path);
            ASSERT_EQ(out[d][i], code) << i << " of " << count << " on " << nameOf(path);
          }
        }
        for (size_t d = 0; d < out.size(); ++d) {
          ASSERT_EQ(scales[d][blocks], -7.0f);
          ASSERT_EQ(out[d][static_cast<size_t>(count)], 0xa5);
        }
      }
    }
  }
}

}  // namespace scaled_test
}  // namespace windlass
