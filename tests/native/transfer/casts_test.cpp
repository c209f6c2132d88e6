// SPDX-License-Identifier: Apache-2.0
// Casts of all codes of f32 as transfers make them, to each narrow dtype, against the reference: on
// a device its own instructions make them. The long form takes all 2^32, else a code in 4099.
#include <cstring>
#include <vector>

#include "native/base/dtype.h"
#include "native/base/target.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/isa/reference.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace casts_test {

using windlass::DType;

constexpr uint64_t kCodes = uint64_t{1} << 32;
constexpr int64_t kElements = int64_t{1} << 20;  // of a transfer

// The codes of the next rank, in the narrow dtype.
class Narrowed {
 public:
  Narrowed(DType to, int rank, wl_comm_t* comm)
      : to_(to), bytes_(windlass::sizeOf(to)), codes_(kElements), casts_(kElements * bytes_) {
    Words sources, targets;
    addBinding(WL_F32, codes_.data(), kElements * 4, {kElements}, {1}, &sources);
    addBinding(static_cast<int32_t>(to), casts_.data(), casts_.size(), {kElements}, {1}, &targets);
    const Words chunks = {
        0, 0, WL_F32, WL_SUM, 1, 1, kElements, 0, (rank + 1) % wl_comm_size(comm), 0, 0};
    const wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, 1);
    Error error;
    EXPECT_EQ(wl_transfer_create(comm, &config, 0, &transfer_, &error), WL_OK) << error.message;
  }
  ~Narrowed() {
    wl_transfer_free(transfer_);
  }
  Narrowed(const Narrowed&) = delete;
  Narrowed& operator=(const Narrowed&) = delete;

  // The codes of this rank and, of the next one, what comes of them.
  void move(uint64_t own, uint64_t theirs, uint64_t step) {
    for (size_t i = 0; i < kElements; ++i) codes_[i] = codeAt(own, i, step);
    Error error;
    ASSERT_EQ(wl_transfer_run(transfer_, ++version_, 0, &error), WL_OK) << error.message;
    for (size_t i = 0; i < kElements; ++i) {
      uint64_t cast = 0;
      std::memcpy(&cast, &casts_[i * bytes_], bytes_);
      const uint64_t code = codeAt(theirs, i, step);
      ASSERT_EQ(cast, windlass::reference::cast(DType::kF32, to_, code))
          << "of f32 " << std::hex << code << " to " << windlass::nameOf(to_);
    }
  }

 private:
  static uint32_t codeAt(uint64_t first, uint64_t i, uint64_t step) {
    return static_cast<uint32_t>(first + i * step);
  }

  const DType to_;
  const uint64_t bytes_;
  std::vector<uint32_t> codes_;
  std::vector<uint8_t> casts_;
  wl_transfer_t* transfer_ = nullptr;
  uint64_t version_ = 0;
};

TEST(Casts, OfF32ToEachNarrowDType) {
  if (isChecked() && std::strcmp(wl_target(), "cuda") != 0)
    GTEST_SKIP() << "the checked targets have their own tables";
  constexpr uint64_t kOnce = static_cast<uint64_t>(kElements);
  // Each rank has its own part of the codes, some more of which than they are once.
  const int ranks = longForm() ? 8 : 2;
  const uint64_t step = longForm() ? 1 : 4099;
  const uint64_t together = kOnce * static_cast<uint64_t>(ranks);
  const uint64_t rounds = (kCodes / step + together - 1) / together;
  for (const DType to : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    if (!windlass::canCast(DType::kF32, to)) continue;
    LocalRanks group(ranks);
    group.run([&](int rank, wl_comm_t* comm) {
      Narrowed own(to, rank, comm);
      for (uint64_t round = 0; round < rounds && !testing::Test::HasFatalFailure(); ++round) {
        const auto first = [&](int of) {
          return (round * together + static_cast<uint64_t>(of) * kOnce) * step;
        };
        own.move(first(rank), first((rank + 1) % ranks), step);
      }
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace casts_test
}  // namespace windlass_test
