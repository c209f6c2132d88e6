// SPDX-License-Identifier: Apache-2.0
// XXH64 against published values and, over strided views, pieces of any length, casts and folds,
// against a plain transcription of its specification over packed bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "native/hash/xxh64.h"
#include "windlass/windlass.h"

namespace hash_test {

using Bytes = std::vector<uint8_t>;

uint64_t rotl(uint64_t x, int r) {
  return (x << r) | (x >> (64 - r));
}

// doc/xxhash_spec.md, steps 1 to 6, byte by byte.
uint64_t reference(const Bytes& in, uint64_t seed) {
  const uint64_t p1 = 11400714785074694791u, p2 = 14029467366897019727u, p3 = 1609587929392839161u,
                 p4 = 9650029242287828579u, p5 = 2870177450012600261u;
  const auto word = [&](size_t at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint64_t{in[at + static_cast<size_t>(i)]} << (8 * i);
    return value;
  };
  const auto round = [&](uint64_t acc, uint64_t lane) { return rotl(acc + lane * p2, 31) * p1; };
  size_t at = 0;
  uint64_t acc = seed + p5;
  if (in.size() >= 32) {
    uint64_t lane[4] = {seed + p1 + p2, seed + p2, seed, seed - p1};
    for (; in.size() - at >= 32; at += 32)
      for (size_t i = 0; i < 4; ++i) lane[i] = round(lane[i], word(at + 8 * i, 8));
    acc = rotl(lane[0], 1) + rotl(lane[1], 7) + rotl(lane[2], 12) + rotl(lane[3], 18);
    for (const uint64_t each : lane) acc = (acc ^ round(0, each)) * p1 + p4;
  }
  acc += in.size();
  for (; in.size() - at >= 8; at += 8) acc = rotl(acc ^ round(0, word(at, 8)), 27) * p1 + p4;
  for (; in.size() - at >= 4; at += 4) acc = rotl(acc ^ word(at, 4) * p1, 23) * p2 + p3;
  for (; at < in.size(); ++at) acc = rotl(acc ^ in[at] * p5, 11) * p1;
  acc = (acc ^ acc >> 33) * p2;
  acc = (acc ^ acc >> 29) * p3;
  return acc ^ acc >> 32;
}

TEST(Xxh64, GivesPublishedValues) {
  // First values of the README and of the sanity test of the xxHash repository.
  const struct {
    const char* text;
    uint64_t hash;
  } published[] = {{"", 0xef46db3751d8e999u},
                   {"a", 0xd24ec4f1a98c6e5bu},
                   {"abc", 0x44bc2cf5ad770999u},
                   {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1u}};
  for (const auto& each : published) {
    windlass::Xxh64 hash(0);
    hash.update(each.text, std::strlen(each.text));
    EXPECT_EQ(each.hash, hash.value()) << each.text;
    EXPECT_EQ(each.hash, reference(Bytes(each.text, each.text + std::strlen(each.text)), 0));
  }
}

TEST(Xxh64, TakesPiecesOfAnyLength) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    Bytes bytes(random() % 400);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const uint64_t hashSeed = random();
    windlass::Xxh64 hash(hashSeed);
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = std::min<size_t>(bytes.size() - at, random() % 70);
      hash.update(bytes.data() + at, piece);
      at += piece;
    }
    ASSERT_EQ(reference(bytes, hashSeed), hash.value()) << bytes.size() << " bytes";
  }
}

wl_tensor_t tensorOf(int32_t dtype, void* data, const std::vector<int64_t>& shape,
                     const std::vector<int64_t>& strides) {
  return {sizeof(wl_tensor_t), dtype,         static_cast<uint32_t>(shape.size()), 0, data,
          shape.data(),        strides.data()};
}

std::vector<int64_t> packed(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t next = 1;
  for (size_t d = shape.size(); d-- > 0; next *= std::max<int64_t>(1, shape[d])) strides[d] = next;
  return strides;
}

// Views of random shape, strides and dtype, single or folded, with and without casts: the hash is
// that of the packed bytes which wl_tensor_copy and wl_tensor_fold give.
TEST(TensorHash, IsThatOfThePackedElements) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int32_t floats[] = {WL_F64, WL_F32, WL_F16, WL_BF16, WL_F8E4M3, WL_F8E5M2};
  for (int round = 0; round < 600; ++round) {
    const bool casts = random() % 2 == 0;
    const int32_t from =
        casts ? floats[random() % 6] : static_cast<int32_t>(random() % WL_DTYPE_COUNT);
    const int32_t wire = casts ? floats[random() % 6] : from;
    const int32_t to = casts ? floats[random() % 6] : from;
    const bool folds = wl_dtype_can_reduce(from, WL_MAX) && random() % 3 == 0;
    const uint32_t count = folds ? 2 + static_cast<uint32_t>(random() % 3) : 1;

    // Often more than a tile, sometimes empty, in memory order or not.
    std::vector<int64_t> shape(random() % 5);
    int64_t room = int64_t{1} << (random() % 18);
    for (int64_t& extent : shape) {
      extent = random() % 40 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 97) % room;
      room = std::max<int64_t>(1, room / std::max<int64_t>(1, extent));
    }
    std::vector<int64_t> strides(shape.size());
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    int64_t span = 1;
    for (const size_t d : order) {
      strides[d] = span + static_cast<int64_t>(random() % 3 == 0 ? random() % 3 : 0);
      span = strides[d] * std::max<int64_t>(1, shape[d]);
    }
    const auto width = static_cast<size_t>(wl_dtype_size(from));
    int64_t numel = 1;
    for (const int64_t extent : shape) numel *= extent;

    std::vector<Bytes> memory(count);
    std::vector<wl_tensor_t> sources(count);
    std::vector<const wl_tensor_t*> pointers;
    for (uint32_t i = 0; i < count; ++i) {
      memory[i].resize((static_cast<size_t>(span) + 1) * width);
      for (uint8_t& byte : memory[i]) byte = static_cast<uint8_t>(random()) & (from == WL_BOOL);
      if (from != WL_BOOL)
        for (uint8_t& byte : memory[i]) byte = static_cast<uint8_t>(random());
      sources[i] = tensorOf(from, memory[i].data(), shape, strides);
      pointers.push_back(&sources[i]);
    }

    const std::vector<int64_t> dense = packed(shape);
    const auto room1 = static_cast<size_t>(numel) + 1;
    Bytes folded(room1 * width);
    wl_tensor_t step = tensorOf(from, folded.data(), shape, dense);
    wl_error_t error = {};
    error.struct_size = sizeof error;
    ASSERT_EQ(WL_OK, count > 1 ? wl_tensor_fold(&step, pointers.data(), count, WL_MAX, &error)
                               : wl_tensor_copy(&step, &sources[0], &error));
    Bytes wired(room1 * static_cast<size_t>(wl_dtype_size(wire)));
    wl_tensor_t onWire = tensorOf(wire, wired.data(), shape, dense);
    ASSERT_EQ(WL_OK, wl_tensor_copy(&onWire, &step, &error)) << error.message;
    Bytes arrived(room1 * static_cast<size_t>(wl_dtype_size(to)));
    wl_tensor_t target = tensorOf(to, arrived.data(), shape, dense);
    ASSERT_EQ(WL_OK, wl_tensor_copy(&target, &onWire, &error)) << error.message;
    arrived.resize(static_cast<size_t>(numel) * static_cast<size_t>(wl_dtype_size(to)));

    const uint64_t hashSeed = random();
    uint64_t hash = 0;
    ASSERT_EQ(WL_OK,
              wl_tensor_hash(pointers.data(), count, WL_MAX, wire, to, hashSeed, &hash, &error))
        << error.message;
    ASSERT_EQ(reference(arrived, hashSeed), hash)
        << "round " << round << ": " << count << " x dtype " << from << " -> " << wire << " -> "
        << to << ", " << numel << " elements";
  }
}

TEST(TensorHash, RefusesWhatItCannotHash) {
  float values[4] = {};
  const std::vector<int64_t> four = {4}, two = {2}, one = {1};
  const wl_tensor_t a = tensorOf(WL_F32, values, four, one);
  const wl_tensor_t b = tensorOf(WL_F32, values, two, one);
  const wl_tensor_t c = tensorOf(WL_I32, values, four, one);
  const wl_tensor_t* ab[] = {&a, &b};
  const wl_tensor_t* ac[] = {&a, &c};
  const wl_tensor_t* aa[] = {&a, &a};
  uint64_t hash = 0;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_tensor_hash(ab, 2, WL_SUM, WL_F32, WL_F32, 0, &hash, nullptr));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_tensor_hash(ac, 2, WL_SUM, WL_F32, WL_F32, 0, &hash, nullptr));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_tensor_hash(aa, 0, WL_SUM, WL_F32, WL_F32, 0, &hash, nullptr));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_tensor_hash(aa, 2, 99, WL_F32, WL_F32, 0, &hash, nullptr));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_tensor_hash(aa, 2, WL_SUM, WL_F32, 99, 0, &hash, nullptr));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            wl_tensor_hash(nullptr, 1, WL_SUM, WL_F32, WL_F32, 0, &hash, nullptr));
  EXPECT_EQ(WL_UNSUPPORTED, wl_tensor_hash(aa, 2, WL_SUM, WL_I32, WL_I32, 0, &hash, nullptr));
}

}  // namespace hash_test
