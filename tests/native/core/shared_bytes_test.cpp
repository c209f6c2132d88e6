// SPDX-License-Identifier: Apache-2.0
// The search for common bytes of two views, against sets of addresses.
#include "native/base/extent.h"

#include <numeric>
#include <set>

#include "tests/native/core/windows.h"

namespace windlass_test {
namespace shared_bytes_test {

constexpr windlass::DType kDTypes[] = {windlass::DType::kU8, windlass::DType::kI16,
                                       windlass::DType::kF32};

// A box of a tensor in `memory`, its dimensions in random order.
struct Cut {
  Cut(uint8_t* memory, std::mt19937_64& random) {
    const auto upTo = [&](int64_t most) {
      return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
    };
    view.dtype = kDTypes[random() % 3];
    const auto width = static_cast<int64_t>(windlass::sizeOf(view.dtype));
    uint8_t* data = memory + width * (upTo(8) - 1);
    int64_t stride = 1;
    for (size_t d = 3; d-- > 0;) {
      const int64_t extent = upTo(6);
      shape[d] = upTo(extent);
      strides[d] = stride;
      data += width * stride * (upTo(extent - shape[d] + 1) - 1);
      stride *= extent;
    }
    const size_t a = random() % 3, b = random() % 3;
    std::swap(shape[a], shape[b]);
    std::swap(strides[a], strides[b]);
    view.data = data;
  }
  windlass::StridedView get() const {
    return {view.data, view.dtype, 3, shape, strides};
  }
  std::set<const uint8_t*> bytes() const {
    std::set<const uint8_t*> all;
    const auto width = static_cast<int64_t>(windlass::sizeOf(view.dtype));
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < shape[2]; ++k)
          for (int64_t b = 0; b < width; ++b)
            all.insert(static_cast<const uint8_t*>(view.data) +
                       (i * strides[0] + j * strides[1] + k * strides[2]) * width + b);
    return all;
  }

  windlass::StridedView view = {};
  int64_t shape[3];
  int64_t strides[3];
};

TEST(SharedBytes, AgreesWithSetsOfAddresses) {
  alignas(8) static uint8_t memory[2048];
  std::mt19937_64 random(seed());
  int shared = 0;
  for (int round = 0; round < 5000 / slow(); ++round) {
    const Cut a(memory, random), b(memory, random);
    const std::set<const uint8_t*> ofA = a.bytes();
    const std::set<const uint8_t*> ofB = b.bytes();
    const bool expected = std::any_of(ofA.begin(), ofA.end(),
                                      [&](const uint8_t* byte) { return ofB.count(byte) > 0; });
    ASSERT_EQ(expected, windlass::shareBytes(a.get(), b.get())) << "round " << round;
    ASSERT_EQ(expected, windlass::shareBytes(b.get(), a.get())) << "round " << round;
    shared += expected;
  }
  EXPECT_GT(shared, 100 / slow());
  EXPECT_LT(shared, 4900 / slow());
}

TEST(SharedBytes, LargeInterleavedViewsAreSettledAtOnce) {
  // [100000, 3, 16], of which a view is one of the middle's; never touched.
  auto* const memory = reinterpret_cast<uint8_t*>(uint64_t{1} << 32);
  const int64_t shape[] = {100'000, 16};
  const int64_t strides[] = {48, 1};
  const auto part = [&](int index) {
    return windlass::StridedView{memory + 32 * index, windlass::DType::kBF16, 2, shape, strides};
  };
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_EQ(i == j, windlass::shareBytes(part(i), part(j)));
}

TEST(SharedBytes, OfNothingAreNoneAndOfMoreThanMemoryHoldsCountAsShared) {
  const int64_t none[] = {4, 0}, some[] = {4, 2}, rows[] = {2, 1}, beyond[] = {INT64_MAX / 8, 1};
  alignas(8) uint8_t memory[64] = {};
  const auto view = [&](const int64_t* shape, const int64_t* strides) {
    return windlass::StridedView{memory, windlass::DType::kF32, 2, shape, strides};
  };
  EXPECT_FALSE(windlass::shareBytes(view(none, rows), view(some, rows)));
  EXPECT_FALSE(windlass::shareBytes(view(some, rows), view(none, rows)));
  EXPECT_TRUE(windlass::shareBytes(view(some, rows), view(some, rows)));
  EXPECT_TRUE(windlass::shareBytes(view(some, beyond), view(some, rows)));
  const wl_tensor_t tensor = {sizeof(wl_tensor_t), WL_F32, 2, 0, memory, some, rows};
  EXPECT_EQ(1, wl_tensors_overlap(&tensor, &tensor));
  EXPECT_EQ(0, wl_tensors_overlap(&tensor, nullptr));
  Error error;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_tensor_copy(&tensor, &tensor, &error));
  EXPECT_TRUE(contains(error.message, "source (f32[4, 2]) overlaps target (f32[4, 2])"));
}

}  // namespace shared_bytes_test
}  // namespace windlass_test
