// SPDX-License-Identifier: Apache-2.0
// The floor moves the right bytes (it compares them itself and fails otherwise) and refuses what it
// cannot measure.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "windlass/windlass.h"

namespace floor_test {

struct Floor {
  int32_t code;
  double micros;
  std::string message;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int32_t kIterations = 3;
const std::vector<int32_t> kRanks = {2, 5};
#else
constexpr int32_t kIterations = 20;
const std::vector<int32_t> kRanks = {1, 2, 3, 4, 7, 16};
#endif

Floor measure(int32_t operation, int32_t ranks, uint64_t bytes, int32_t iterations = kIterations) {
  wl_error_t error{};
  error.struct_size = sizeof error;
  wl_floor_config_t config{sizeof config, operation, ranks, iterations, bytes};
  Floor floor{WL_OK, -1, ""};
  floor.code = wl_floor_measure(&config, &floor.micros, &error);
  floor.message = error.message;
  return floor;
}

Floor copy(uint64_t bytes, int32_t from, int32_t to, uint32_t copies = 1) {
  wl_error_t error{};
  error.struct_size = sizeof error;
  Floor floor{WL_OK, -1, ""};
  floor.code = wl_floor_copy(nullptr, 0, bytes, copies, from, to, kIterations, &floor.micros,
                             &error);
  floor.message = error.message;
  return floor;
}

class FloorOf : public testing::TestWithParam<std::tuple<int32_t, int32_t, uint64_t>> {};

TEST_P(FloorOf, MovesItsBytes) {
  const auto [operation, ranks, bytes] = GetParam();
  const Floor floor = measure(operation, ranks, bytes);
  EXPECT_EQ(floor.code, WL_OK) << floor.message;
  EXPECT_GT(floor.micros, 0);
}

INSTANTIATE_TEST_SUITE_P(Operations, FloorOf,
                         testing::Combine(testing::Values(WL_OP_ALL_TO_ALL, WL_OP_BROADCAST,
                                                          WL_OP_ALL_GATHER),
                                          testing::ValuesIn(kRanks),
                                          testing::Values(1, 4, 63, 64, 65, 4096, 5001, 100000)));

INSTANTIATE_TEST_SUITE_P(Sums, FloorOf,
                         testing::Combine(testing::Values(WL_OP_REDUCE_SCATTER, WL_OP_ALL_REDUCE),
                                          testing::ValuesIn(kRanks),
                                          testing::Values(4, 60, 64, 68, 4096, 5004, 100000)));

// Writes nothing outside the memory, and refuses memory that is a byte too short.
TEST(FloorOfACopy, TakesMemoryOfTheCaller) {
  constexpr uint64_t kBytes = 1000;
  constexpr uint64_t kNeeded = 3 * 1024;
  std::vector<unsigned char> memory(64 + kNeeded + 64, 0xa5);
  unsigned char* own = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  const auto measured = [&](unsigned char* at, uint64_t bytes, std::string* message) {
    wl_error_t error{};
    error.struct_size = sizeof error;
    double micros = -1;
    const int32_t code = wl_floor_copy(at, bytes, kBytes, 2, WL_F32, WL_BF16, kIterations, &micros,
                                       &error);
    *message = error.message;
    EXPECT_EQ(micros > 0, code == WL_OK);
    return code;
  };
  std::string message;
  EXPECT_EQ(WL_OK, measured(own, kNeeded, &message)) << message;
  EXPECT_EQ(memory.end(), std::find_if(memory.begin() + (own - memory.data()) + kNeeded,
                                       memory.end(), [](unsigned char c) { return c != 0xa5; }));
  EXPECT_EQ(WL_INVALID_ARGUMENT, measured(own, kNeeded - 1, &message));
  EXPECT_NE(std::string::npos, message.find("memory_bytes")) << message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, measured(own - 1, kNeeded, &message));
  EXPECT_EQ(WL_OK, measured(own - 1, kNeeded + 1, &message)) << message;
}

TEST(FloorOfACopy, MovesAndCasts) {
  for (const int32_t to : {WL_F64, WL_F32, WL_F16, WL_BF16, WL_F8E4M3, WL_F8E5M2}) {
    for (const uint64_t bytes : {4u, 64u, 68u, 4100u, 1u << 20}) {
      for (const uint32_t copies : {1u, 3u}) {
        const Floor floor = copy(bytes, WL_F32, to, copies);
        EXPECT_EQ(floor.code, WL_OK) << floor.message;
        EXPECT_GT(floor.micros, 0);
      }
    }
  }
  EXPECT_EQ(copy(24, WL_C64, WL_C64).code, WL_OK);
}

TEST(Floor, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(measure(WL_OP_BARRIER, 2, 64).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_REDUCE, 2, 64).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_ALL_REDUCE, 2, 6).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_REDUCE_SCATTER, 2, 63).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_ALL_TO_ALL, 0, 64).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_ALL_TO_ALL, -1, 64).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_ALL_TO_ALL, 2, 0).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_ALL_TO_ALL, 2, UINT64_MAX).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(measure(WL_OP_ALL_TO_ALL, 2, 64, 0).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(0, WL_F32, WL_F32).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(6, WL_F32, WL_F32).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(64, WL_F32, WL_I32).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(64, -1, WL_F32).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(64, WL_F32, WL_DTYPE_COUNT).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(64, WL_F32, WL_F32, 0).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(copy(64, WL_F32, WL_F32, WL_MAX_RANKS).code, WL_INVALID_ARGUMENT);
  EXPECT_EQ(wl_floor_measure(nullptr, nullptr, nullptr), WL_INVALID_ARGUMENT);
  EXPECT_NE(measure(WL_OP_ALL_TO_ALL, 2, 0).message, "");
}

}  // namespace floor_test
