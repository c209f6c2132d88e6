// SPDX-License-Identifier: Apache-2.0
// What a rank's GPU does with tensors of its caller's on any GPU, over the stand-in for NVIDIA's
// driver: hashes as the processor takes them of the same memory, bits that are cleared, of those
// elements alone, and moves to and from windows of the host.
#include <algorithm>
#include <map>
#include <string>

#include "native/memory/device.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"
#include "tests/native/cuda/failing_calls.h"
#include "tests/native/cuda/no_memory.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test {
namespace device_tensors_test {

using Bytes = std::vector<uint8_t>;

class DeviceTensors : public testing::Test {
 protected:
  DeviceTensors() { gpus::reset(); }
  ~DeviceTensors() override { gpus::reset(); }
};

// One of more bytes than a piece, by rows and by elements; then small ones.
const std::vector<std::vector<int64_t>> kShapes = {
    {3, 900'000}, {900'000, 3}, {}, {0}, {1}, {13}, {9, 7}, {3, 0, 2}, {33, 5, 2}, {2, 1, 3, 1, 2}};

TEST_F(DeviceTensors, AreHashedAndClearedWhicheverGpuHasThem) {
  std::mt19937_64 random(seed());
  gpus::devices(2);
  LocalRanks ranks(1);
  ranks.run([&](int, wl_comm_t* comm) {
    Error error;
    for (const bool isStrided : {false, true}) {
      for (const int device : {0, 1}) {
        for (const int dtype : {WL_U8, WL_BF16, WL_F32, WL_C64}) {
          for (const auto& shape : kShapes) {
            const bool isLarge = shape.size() == 2 && shape[0] * shape[1] > 1000;
            if (isLarge && dtype != WL_F32) continue;
            const auto size = static_cast<size_t>(wl_dtype_size(dtype));
            const View view(shape, isStrided, random);
            const size_t bytes = view.elements * size;
            auto* const memory = gpus::tensor<uint8_t>(device, bytes);
            for (size_t i = 0; i < bytes; ++i) memory[i] = static_cast<uint8_t>(random() | 1);
            const auto where = [&] {
              return "device " + std::to_string(device) + ", dtype " + std::to_string(dtype) +
                     ", shape " + testing::PrintToString(shape) + ", strides " +
                     testing::PrintToString(view.strides);
            };
            const wl_tensor_t tensor = view.tensor(memory, dtype);
            const wl_tensor_t* const source = &tensor;
            uint64_t expected = 0, found = 1;
            ASSERT_EQ(wl_tensor_hash(&source, 1, WL_SUM, dtype, dtype, 5, &expected, &error), WL_OK)
                << error.message;
            ASSERT_EQ(wl_device_hash(comm, &tensor, 5, &found, &error), WL_OK)
                << error.message << where();
            ASSERT_EQ(found, expected) << where();

            Bytes cleared(memory, memory + bytes);
            const Bytes zeros(bytes);
            moveSlowly(cleared.data(), view, zeros.data(), view, size);
            ASSERT_EQ(wl_device_clear(comm, &tensor, &error), WL_OK) << error.message << where();
            ASSERT_EQ(std::memcmp(memory, cleared.data(), bytes), 0) << where();
          }
        }
      }
    }
  });
}

// No more of the host's memory than a piece takes, however large the tensor.
TEST_F(DeviceTensors, ComeToTheHostPieceByPiece) {
  constexpr int64_t kCount = 20'000'000;
  static const int64_t kShape[] = {kCount, 1};
  static const int64_t kStrides[] = {1, 2};
  LocalRanks ranks(1);
  ranks.run([&](int, wl_comm_t* comm) {
    Error error;
    auto* const memory = gpus::tensor<uint8_t>(0, kCount);
    const wl_tensor_t tensor = {sizeof tensor, WL_U8, 2, 0, memory, kShape, kStrides};
    uint64_t hash = 0;
    ASSERT_EQ(wl_device_hash(comm, &tensor, 0, &hash, &error), WL_OK) << error.message;
  });
  uint64_t bytes = 0;
  for (const std::string& line : gpus::log()) {
    if (line.rfind("cuMemcpyDtoHAsync ", 0) != 0) continue;
    const uint64_t length = std::stoull(line.substr(18));
    EXPECT_LE(length, windlass::kDeviceStageBytes);
    bytes += length;
  }
  EXPECT_EQ(bytes, static_cast<uint64_t>(kCount));
}

TEST_F(DeviceTensors, OfTheHostAreRefusedAndTheCommunicatorLives) {
  static const int64_t kFew = 16;
  static const int64_t kStep = 1;
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<float> own(kFew, 3);
    const wl_tensor_t tensor = {sizeof tensor, WL_F32, 1, 0, own.data(), &kFew, &kStep};
    uint64_t hash = 0;
    if (rank == 1) {
      EXPECT_EQ(wl_device_clear(comm, &tensor, &error), WL_UNSUPPORTED);
      EXPECT_TRUE(contains(error.message, "is in no device's memory that the driver knows"));
      EXPECT_EQ(wl_device_hash(comm, &tensor, 0, &hash, &error), WL_UNSUPPORTED);
      EXPECT_EQ(own, std::vector<float>(kFew, 3));
    }
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

// One that was freed, or is another process's, and one of fewer elements than its name says.
TEST_F(DeviceTensors, OfNoMemoryAreRefusedAndTheCommunicatorLives) {
  static const int64_t kFew = 100;
  static const int64_t kStep = 1;
  const NoMemory none;
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    auto* const isShort = gpus::tensor<float>(0, kFew - 1);
    std::fill_n(isShort, kFew - 1, 3.0f);
    const auto isRefused = [&](void* memory, const char* because) {
      const wl_tensor_t tensor = {sizeof tensor, WL_F32, 1, 0, memory, &kFew, &kStep};
      uint64_t hash = 0;
      EXPECT_EQ(wl_device_clear(comm, &tensor, &error), WL_INVALID_ARGUMENT);
      EXPECT_TRUE(contains(error.message, "rank 1: ")) << error.message;
      EXPECT_TRUE(contains(error.message, because)) << error.message;
      EXPECT_EQ(error.operation, WL_OP_PUT);
      ASSERT_EQ(error.faulty_rank_count, 1);
      EXPECT_EQ(error.faulty_ranks[0], 1);
      EXPECT_EQ(wl_device_hash(comm, &tensor, 0, &hash, &error), WL_INVALID_ARGUMENT);
    };
    if (rank == 1) {
      isRefused(none.begin(), "nor mapped in this process");
      isRefused(isShort, "which has 396 from there on");
    }
    EXPECT_EQ(std::count(isShort, isShort + kFew - 1, 3.0f), kFew - 1);
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

// All ranks get the error, whichever call fails.
TEST_F(DeviceTensors, AFailureOfAnyCallIsToldToAll) {
  static const int64_t kShape[] = {40, 7};
  static const int64_t kStrides[] = {9, 1};
  const auto use = [&](std::vector<int32_t>* codes) {
    codes->assign(2, WL_OK);
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      int32_t& code = (*codes)[static_cast<size_t>(rank)];
      uint64_t hash = 0;
      // On its own device, and on another.
      for (const int device : {rank, 1 - rank}) {
        auto* const memory = gpus::tensor<float>(device, 40 * 9);
        const wl_tensor_t tensor = {sizeof tensor, WL_F32, 2, 0, memory, kShape, kStrides};
        if (code == WL_OK) code = wl_device_hash(comm, &tensor, 0, &hash, &error);
        if (code == WL_OK) code = wl_device_clear(comm, &tensor, &error);
      }
      if (code == WL_OK) code = callBarrier(comm, 0, &error);
    });
  };
  gpus::devices(2);
  std::vector<int32_t> codes;
  use(&codes);
  ASSERT_EQ(codes, std::vector<int32_t>(2, WL_OK));
  std::map<std::string, int> calls;
  for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
  for (const char* made :
       {"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuMemcpy2DAsync", "cuLaunchKernel"})
    EXPECT_GT(calls.count(made), 0u) << made;
  for (const auto& [call, count] : calls) {
    // Other tests cover the calls that open devices and those that look at memory.
    const bool moves = call.rfind("cuMemcpy", 0) == 0 || call == "cuLaunchKernel" ||
                       call == "cuPointerGetAttribute" || call == "cuMemGetAddressRange";
    for (const int number : callsToFail(moves ? count : 1, Failing::kLast)) {
      gpus::reset();
      gpus::devices(2);
      gpus::failCall(call, number, 719);
      use(&codes);
      if (moves) {
        EXPECT_EQ(codes, std::vector<int32_t>(2, WL_DEVICE)) << call << ' ' << number;
      }
      EXPECT_EQ(codes[0], codes[1]) << call << ' ' << number;
    }
  }
}

// ---- and windows of the host --------------------------------------------------------------------

constexpr int kRanks = 3;

// A window of each rank.
struct HostWindows {
  std::vector<wl_window_t*> handles = std::vector<wl_window_t*>(kRanks);

  ~HostWindows() {
    for (wl_window_t* window : handles) wl_window_free(window);
  }
  int32_t make(wl_comm_t* comm, int rank, uint64_t bytes, Error* error) {
    return wl_window_create(comm, bytes, 0, &(*this)[rank], error);
  }
  wl_window_t*& operator[](int rank) { return handles[static_cast<size_t>(rank)]; }
  uint8_t* at(int rank, uint64_t offset) {
    return static_cast<uint8_t*>(wl_window_address((*this)[rank], rank)) + offset;
  }
};

// Rank r puts to rank r + 1, and gets it back.
void moveViews(int devices, uint64_t firstSeed) {
  gpus::reset();
  gpus::devices(devices);
  LocalRanks ranks(kRanks);
  HostWindows windows;
  constexpr uint64_t kInbox = 20'000'000;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, kInbox, &error), WL_OK) << error.message;
    std::mt19937_64 random(firstSeed);  // the same choices on every rank
    uint32_t round = 0;
    for (const int dtype : {WL_U8, WL_BF16, WL_F32, WL_C64}) {
      const auto size = static_cast<size_t>(wl_dtype_size(dtype));
      for (const auto& shape : kShapes) {
        const bool isLarge = shape.size() == 2 && shape[0] * shape[1] > 1000;
        if (isLarge && dtype != WL_F32) continue;
        ++round;
        const View local(shape, random() % 2 == 0, random);
        const View remote(shape, isLarge || random() % 2 == 0, random);
        const int to = (rank + 1) % kRanks, from = (rank + kRanks - 1) % kRanks;
        const auto stampsOf = [&](int sender) {
          Bytes all(local.elements * size);
          for (size_t i = 0; i < all.size(); ++i)
            all[i] = static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(sender), 0, i));
          return all;
        };
        // Its own device, and another one.
        const int device = (rank + static_cast<int>(round % 2)) % devices;
        const Bytes own = stampsOf(rank);
        auto* const out = gpus::tensor<uint8_t>(device, own.size());
        std::memcpy(out, own.data(), own.size());
        Bytes expected(remote.elements * size, 0xa5);
        std::memset(windows.at(rank, 0), 0xa5, expected.size());
        moveSlowly(expected.data(), remote, stampsOf(from).data(), local, size);
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;

        const auto where = [&] {
          return "devices " + std::to_string(devices) + ", round " + std::to_string(round) +
                 ", dtype " + std::to_string(dtype) + ", shape " + testing::PrintToString(shape) +
                 ", local strides " + testing::PrintToString(local.strides) + ", remote strides " +
                 testing::PrintToString(remote.strides);
        };
        const wl_tensor_t inbox = remote.tensor(windows.at(rank, 0), dtype);
        const wl_tensor_t sent = local.tensor(out, dtype);
        ASSERT_EQ(WL_OK, wl_device_put(comm, windows[rank], &sent, to, &inbox, &error))
            << error.message << where();
        std::memset(out, 0x11, own.size());
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        ASSERT_EQ(std::memcmp(windows.at(rank, 0), expected.data(), expected.size()), 0) << where();

        // The received bytes are equal to the sent ones, and the rest is unchanged.
        Bytes whole(own.size(), 0x11);
        moveSlowly(whole.data(), local, own.data(), local, size);
        ASSERT_EQ(WL_OK, wl_device_get(comm, windows[rank], &sent, to, &inbox, &error))
            << error.message << where();
        ASSERT_EQ(std::memcmp(out, whole.data(), whole.size()), 0) << where();
        ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      }
    }
  });
}

TEST_F(DeviceTensors, MoveToAndFromWindowsOfTheHost) {
  const uint64_t firstSeed = seed();
  for (const int devices : {1, 2})
    moveViews(devices, firstSeed + static_cast<uint64_t>(devices));
}

const int64_t kCount = 1237;
const int64_t kOne = 1;
const int64_t kTwo = 2;

// Small integers, whose sums are exact in any order, to every other element of rank 1.
TEST_F(DeviceTensors, AreAddedToWindowsOfTheHost) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    LocalRanks ranks(kRanks);
    HostWindows windows;
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      ASSERT_EQ(windows.make(comm, rank, 8 * kCount, &error), WL_OK) << error.message;
      for (const int device : {rank % devices, (rank + 1) % devices}) {
        auto* const terms = gpus::tensor<float>(device, kCount);
        for (int64_t i = 0; i < kCount; ++i) terms[i] = static_cast<float>(rank + i % 5);
        const wl_tensor_t local = {sizeof local, WL_F32, 1, 0, terms, &kCount, &kOne};
        const wl_tensor_t sums = {sizeof sums,        WL_F32,  1,    0,
                                  windows.at(rank, 0), &kCount, &kTwo};
        ASSERT_EQ(wl_device_accumulate(comm, windows[rank], &local, 1, &sums, &error), WL_OK)
            << error.message;
      }
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      if (rank != 1) return;
      const auto* found = reinterpret_cast<const float*>(windows.at(1, 0));
      for (int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(found[2 * i], static_cast<float>(2 * (3 + 3 * (i % 5)))) << i;
        if (i + 1 < kCount) {
          ASSERT_EQ(found[2 * i + 1], 0) << i;
        }
      }
    });
  }
}

TEST_F(DeviceTensors, OfNoMemoryAreNotPut) {
  const NoMemory none;
  LocalRanks ranks(kRanks);
  HostWindows windows;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, 8 * kCount, &error), WL_OK) << error.message;
    const wl_tensor_t local = {sizeof local, WL_F32, 1, 0, none.begin(), &kCount, &kOne};
    const wl_tensor_t there = {sizeof there, WL_F32, 1, 0, windows.at(rank, 0), &kCount, &kOne};
    if (rank == 1) {
      for (const auto move : {wl_device_put, wl_device_get}) {
        EXPECT_EQ(move(comm, windows[rank], &local, 2, &there, &error), WL_INVALID_ARGUMENT);
        EXPECT_TRUE(contains(error.message, "nor mapped in this process")) << error.message;
      }
    }
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

TEST_F(DeviceTensors, ThatNoDeviceHasAreNotPut) {
  LocalRanks ranks(kRanks);
  HostWindows windows;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, 8 * kCount, &error), WL_OK) << error.message;
    std::vector<float> own(kCount);
    const wl_tensor_t local = {sizeof local, WL_F32, 1, 0, own.data(), &kCount, &kOne};
    const wl_tensor_t there = {sizeof there, WL_F32, 1, 0, windows.at(rank, 0), &kCount, &kOne};
    if (rank == 1) {
      EXPECT_EQ(wl_device_put(comm, windows[rank], &local, 2, &there, &error), WL_UNSUPPORTED);
      EXPECT_TRUE(contains(error.message, "is in no device's memory")) << error.message;
    }
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

}  // namespace device_tensors_test
}  // namespace windlass_test
