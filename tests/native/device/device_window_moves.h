// SPDX-License-Identifier: Apache-2.0
// One-sided moves of ranks as threads on windows in the memory of any GPUs, bit for bit.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"
#include "tests/native/cuda/driver.h"

namespace windlass_test {

using Bytes = std::vector<uint8_t>;

// One object for each rank.
class Handles {
 public:
  explicit Handles(LocalRanks& ranks) : handles_(static_cast<size_t>(ranks.size())) {}
  ~Handles() {
    for (wl_window_t* window : handles_) wl_window_free(window);
  }
  Handles(const Handles&) = delete;

  int32_t make(wl_comm_t* comm, int rank, uint64_t bytes, Error* error) {
    return wl_device_window_create(comm, bytes, 0, &(*this)[rank], error);
  }
  wl_window_t*& operator[](int rank) { return handles_[static_cast<size_t>(rank)]; }
  uint8_t* at(int rank, uint64_t offset) {
    return static_cast<uint8_t*>(wl_window_address((*this)[rank], rank)) + offset;
  }

 private:
  std::vector<wl_window_t*> handles_;
};

// Memory that holds the bytes that a rank sends.
enum class Local { kHost, kDevice, kWindow };

// Each rank has device rank % devices; the same choices on every rank.
inline void moveViews(int size, int devices, uint64_t firstSeed) {
  LocalRanks ranks(size);
  constexpr uint64_t kInbox = 20'000'000;
  const uint64_t source = kInbox * static_cast<uint64_t>(size);
  Windows signals(ranks, 0, 1);
  Handles windows(ranks);
  const std::vector<std::vector<int64_t>> shapes = {
      {},           {0},          {1},          {13},           {9, 7},
      {3, 0, 2},    {33, 5, 2},   {2, 3, 4, 5}, {700, 30, 3},   {3, 900'000},
      {3, 900'000}, {3, 900'000}, {100'000},    {2, 1, 3, 1, 2}};
  ranks.run([&](int rank, wl_comm_t* comm) {
    const int device = rank % devices;
    Error error;
    ASSERT_EQ(windows.make(comm, rank, source + kInbox, &error), WL_OK) << error.message;
    Bytes first(64'000, 1);
    gpus::fromDevice(device, first.data(), windows.at(rank, 0), first.size());
    ASSERT_EQ(first, Bytes(first.size(), 0));
    std::mt19937_64 random(firstSeed);
    uint32_t round = 0;
    for (const int dtype : {WL_U8, WL_BF16, WL_F32, WL_C64}) {
      const auto elementBytes = static_cast<size_t>(wl_dtype_size(dtype));
      for (const auto& shape : shapes) {
        // More bytes than one pass through a staging buffer takes.
        const bool isLarge = shape.size() == 2 && shape[1] > 1000;
        if (isLarge && dtype != WL_F32) continue;
        ++round;
        const View local(shape, isLarge || random() % 2 == 0, random);
        const View remote(shape, random() % 2 == 0, random);
        const auto lies = static_cast<Local>(round % 3);
        const int step = static_cast<int>(random() % static_cast<uint64_t>(size));
        const int to = (rank + step) % size;
        const int from = (rank - step + size) % size;
        const auto stampOf = [&](int sender, size_t i) {
          return static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(sender), 0, i));
        };
        Bytes own(local.elements * elementBytes), theirs(own.size());
        for (size_t i = 0; i < own.size(); ++i) {
          own[i] = stampOf(rank, i);
          theirs[i] = stampOf(from, i);
        }
        Bytes plain(own.size());
        std::optional<gpus::Memory<uint8_t>> there;
        if (lies == Local::kDevice) there.emplace(device, own.size());
        uint8_t* const out = lies == Local::kHost     ? plain.data()
                             : lies == Local::kDevice ? there->data()
                                                      : windows.at(rank, source);
        const auto write = [&](const Bytes& all) {
          if (lies == Local::kHost) plain = all;
          if (lies != Local::kHost) gpus::toDevice(device, out, all.data(), all.size());
        };
        const auto read = [&] {
          Bytes all = plain;
          if (lies != Local::kHost) gpus::fromDevice(device, all.data(), out, all.size());
          return all;
        };
        write(own);
        uint8_t* inbox = windows.at(rank, static_cast<uint64_t>(from) * kInbox);
        Bytes expected(remote.elements * elementBytes, 0xa5);
        gpus::toDevice(device, inbox, expected.data(), expected.size());
        moveSlowly(expected.data(), remote, theirs.data(), local, elementBytes);
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;

        const auto where = [&] {
          return "devices " + std::to_string(devices) + ", local lies " +
                 std::to_string(static_cast<int>(lies)) + ", dtype " + std::to_string(dtype) +
                 ", shape " + testing::PrintToString(shape) + ", local strides " +
                 testing::PrintToString(local.strides) + ", remote strides " +
                 testing::PrintToString(remote.strides);
        };
        const wl_tensor_t outbox =
            remote.tensor(windows.at(rank, static_cast<uint64_t>(rank) * kInbox), dtype);
        const wl_tensor_t sent = local.tensor(out, dtype);
        ASSERT_EQ(WL_OK, wl_put(comm, windows[rank], &sent, to, &outbox, &error)) << error.message;
        write(Bytes(own.size(), 0x11));
        ASSERT_EQ(WL_OK, signals.notify(rank, to, 0, round, &error)) << error.message;
        ASSERT_EQ(WL_OK, signals.wait(rank, from, 0, round, &error)) << error.message;
        Bytes come(expected.size());
        gpus::fromDevice(device, come.data(), inbox, come.size());
        ASSERT_TRUE(come == expected) << where();

        // The received bytes are equal to the sent ones, and the rest is unchanged.
        Bytes whole(own.size(), 0x11);
        moveSlowly(whole.data(), local, own.data(), local, elementBytes);
        ASSERT_EQ(WL_OK, wl_get(comm, windows[rank], &sent, to, &outbox, &error)) << error.message;
        ASSERT_TRUE(read() == whole) << where();
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      }
    }
  });
}

inline wl_tensor_t row(void* data, int32_t dtype, const int64_t* count) {
  static const int64_t kOne = 1;
  return {sizeof(wl_tensor_t), dtype, 1, 0, data, count, &kOne};
}

// Small integers, whose sums are exact in any order.
template <class T>
void addFromAll(int size, int devices, int32_t dtype, bool isOnHost) {
  constexpr int64_t kCount = 1237;
  constexpr int kTimes = 3;
  LocalRanks ranks(size);
  Handles windows(ranks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const int device = rank % devices;
    Error error;
    ASSERT_EQ(windows.make(comm, rank, 2 * kCount * sizeof(T), &error), WL_OK) << error.message;
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    std::vector<T> own(kCount);
    for (int64_t i = 0; i < kCount; ++i) own[static_cast<size_t>(i)] = static_cast<T>(rank + i % 5);
    const gpus::Memory<T> there(device, kCount);
    there.write(own);
    const wl_tensor_t local = row(isOnHost ? own.data() : there.data(), dtype, &kCount);
    // Every other element, of the last rank.
    const int64_t step = 2;
    wl_tensor_t sums = local;
    sums.data = windows.at(rank, 0);
    sums.strides = &step;
    for (int times = 0; times < kTimes; ++times) {
      ASSERT_EQ(WL_OK, wl_accumulate(comm, windows[rank], &local, size - 1, &sums, &error))
          << error.message;
    }
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    if (rank != size - 1) return;
    std::vector<T> found(2 * kCount), expected(2 * kCount, T{0});
    gpus::fromDevice(device, found.data(), windows.at(rank, 0), found.size() * sizeof(T));
    for (int64_t i = 0; i < kCount; ++i) {
      expected[static_cast<size_t>(2 * i)] =
          static_cast<T>(kTimes * (size * (size - 1) / 2 + size * (i % 5)));
    }
    ASSERT_TRUE(found == expected) << "dtype " << dtype;
  });
}

inline void addAllDTypes(int size, int devices, bool isOnHost) {
  addFromAll<float>(size, devices, WL_F32, isOnHost);
  addFromAll<int32_t>(size, devices, WL_I32, isOnHost);
  addFromAll<int8_t>(size, devices, WL_I8, isOnHost);
}

}  // namespace windlass_test
