// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, each with its device behind the stand-in for NVIDIA's driver, without the
// communicator that they have elsewhere.
#pragma once

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "native/base/clock.h"
#include "native/device/cuda/rank_device.h"
#include "tests/cuda/image.h"
#include "tests/native/acl/stand_in.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass::cuda {

constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kPage = uint64_t{64} << 10;  // of the stand-in
constexpr uint64_t kStageBytes = uint64_t{2} << 20;  // of the memory that copies go through

inline testing::AssertionResult says(const wl_error_t& error, const std::string& part) {
  if (std::strstr(error.message, part.c_str()) != nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << error.message << "\" does not say \"" << part << '"';
}

struct Outcome {
  Code code = WL_OK;
  wl_error_t error = blankError();
};

// A rank as threads have it that are dealt out to so many processes, in what they say.
class Seat final : public AllRanks {
 public:
  Seat(acl::Exchange& shared, uint32_t rank, uint32_t processes)
      : seat_(shared, rank), processes_(processes) {}
  uint32_t rank() const override { return seat_.rank(); }
  uint32_t ranks() const override { return seat_.ranks(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    return seat_.all(own, everyones, bytes, error);
  }
  uint32_t firstBeside(uint32_t rank) const override { return rank % processes_; }
  bool goesOn() override { return clockNs() < endNs_; }

 private:
  acl::Exchange::Seat seat_;
  const uint32_t processes_;
  const int64_t endNs_ = clockNs() + 60'000 * kMs;  // none waits so long
};

// Runs body(rank, device, exchange, error) on a thread for each rank, with its device open, of
// `devices`.
template <class Body>
std::vector<Outcome> onRanks(uint32_t ranks, uint32_t devices, Body&& body,
                             uint32_t processes = 1) {
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::thread> threads;
  acl::Exchange shared(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome& own = outcomes[rank];
      CudaRankDevice device(kStandInImage);
      Seat seat(shared, rank, processes);
      std::vector<int32_t> everyones(ranks);
      own.code = device.open(rank % devices, &own.error);
      int32_t said = own.code;
      EXPECT_EQ(seat.all(&said, everyones.data(), sizeof said, nullptr), WL_OK);
      bool areOpen = true;
      for (const int32_t code : everyones) areOpen = areOpen && code == WL_OK;
      if (areOpen) own.code = body(rank, device, seat, &own.error);
      // Nobody gives back what a peer still uses.
      said = own.code;
      EXPECT_EQ(seat.all(&said, everyones.data(), sizeof said, nullptr), WL_OK);
      wl_error_t closing = blankError();
      Code closed = device.closeWindow(&closing);
      const Code code = device.close(closed == WL_OK ? &closing : nullptr);
      if (closed == WL_OK) closed = code;
      if (own.code == WL_OK && closed != WL_OK) own = {closed, closing};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

inline Code makeWindow(uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
  return device.makeWindow(exchange, 100, error);
}

}  // namespace windlass::cuda
