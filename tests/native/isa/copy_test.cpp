// SPDX-License-Identifier: Apache-2.0
// Copies of bytes, at all places that source and target may have within a line and a page of one
// another, beside one that goes byte by byte. What lies around the target stays.
#include <gtest/gtest.h>

#include <vector>

#include "native/base/copy.h"

namespace copy_test {

constexpr uint64_t kPage = 4096;
constexpr unsigned char kAround = 0xa5;

using Copy = void (*)(void* to, const void* from, uint64_t bytes) noexcept;

void expectCopies(Copy copy, uint64_t to, uint64_t from, uint64_t bytes) {
  std::vector<unsigned char> source(3 * kPage + bytes);
  std::vector<unsigned char> target(source.size(), kAround);
  for (uint64_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<unsigned char>(i * 37 + i / 256 + from);
  const auto pageOf = [](std::vector<unsigned char>& of) {
    return -reinterpret_cast<uint64_t>(of.data()) % kPage;
  };
  const uint64_t toAt = pageOf(target) + to;
  const uint64_t fromAt = pageOf(source) + from;
  copy(&target[toAt], &source[fromAt], bytes);
  for (uint64_t i = 0; i < target.size(); ++i) {
    const bool isInside = i >= toAt && i < toAt + bytes;
    ASSERT_EQ(target[i], isInside ? source[fromAt + i - toAt] : kAround)
        << bytes << " bytes from " << from << " to " << to << " in their pages, at byte " << i;
  }
}

class CopyMemory : public testing::TestWithParam<Copy> {};

TEST_P(CopyMemory, CopiesBetweenAnyTwoPlaces) {
  for (const uint64_t bytes : {0u, 1u, 63u, 64u, 65u, 2047u, 2048u, 2049u, 4096u, 9001u}) {
    for (uint64_t to = 0; to < 130; to += bytes > 4000 ? 13 : 5) {
      for (uint64_t from = 0; from < 130; from += bytes > 4000 ? 11 : 7) {
        expectCopies(GetParam(), to, from, bytes);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CopyMemory,
                         testing::Values(windlass::copyMemory, windlass::streamMemory));

TEST(SlowToCopy, IsATargetLessThanALineBehindInItsPage) {
  std::vector<unsigned char> two(4 * kPage);
  unsigned char* const page = two.data() + -reinterpret_cast<uint64_t>(two.data()) % kPage;
  EXPECT_FALSE(windlass::isSlowToCopy(page, page));
  EXPECT_FALSE(windlass::isSlowToCopy(page + kPage, page));
  EXPECT_TRUE(windlass::isSlowToCopy(page + 1, page));
  EXPECT_TRUE(windlass::isSlowToCopy(page + kPage + 63, page));
  EXPECT_TRUE(windlass::isSlowToCopy(page + 5, page + kPage - 10));
  EXPECT_FALSE(windlass::isSlowToCopy(page + kPage + 64, page));
  EXPECT_FALSE(windlass::isSlowToCopy(page, page + 1));
}

}  // namespace copy_test
