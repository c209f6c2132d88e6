// SPDX-License-Identifier: Apache-2.0
// Windows of ranks in several processes against the stand-in for the driver of GPUs: each part goes
// to each process once, and a failure of any call is told to all and leaves nothing. Threads play
// the processes; tests/native/offload has real ones.
#include <filesystem>
#include <map>

#include "native/window/file_offer.h"
#include "tests/native/cuda/on_ranks.h"

namespace windlass::cuda {
namespace {

namespace gpus = windlass_test::gpus;

constexpr uint32_t kRanks = 5;
constexpr uint32_t kProcesses = 2;

int openFiles() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    count += file.exists() || file.is_symlink() ? 1 : 0;
  return count;
}

// Every rank writes to its own place of every part, and reads there what all wrote to its own.
Code meetInParts(uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
  Code code = device.makeWindow(exchange, 5000, error);
  if (code != WL_OK) return code;
  for (uint32_t peer = 0; code == WL_OK && peer < kRanks; ++peer) {
    const uint64_t word = 1000 * rank + peer + 1;
    auto* there = static_cast<uint64_t*>(device.part(peer)) + rank;
    code = device.toDevice(there, &word, sizeof word, error);
  }
  int32_t said = code;
  int32_t everyones[kRanks];
  EXPECT_EQ(exchange.all(&said, everyones, sizeof said, nullptr), WL_OK);
  uint64_t come[kRanks] = {};
  if (code == WL_OK) code = device.fromDevice(come, device.part(rank), sizeof come, error);
  for (uint32_t peer = 0; peer < kRanks; ++peer) EXPECT_EQ(come[peer], 1000 * peer + rank + 1);
  return code;
}

TEST(CudaPeerParts, AreMappedOnceInEachProcess) {
  for (const uint32_t devices : {1u, 2u, 3u}) {
    gpus::reset();
    gpus::devices(static_cast<int>(devices));
    const int before = openFiles();
    for (const Outcome& one : onRanks(kRanks, devices, meetInParts, kProcesses))
      EXPECT_EQ(one.code, WL_OK) << one.error.message;
    EXPECT_EQ(gpus::countCalls("cuMemExportToShareableHandle"), 5);
    // Ranks 0, 2 and 4 of one, and 1 and 3 of the other.
    EXPECT_EQ(gpus::countCalls("cuMemImportFromShareableHandle"), 2 + 3);
    EXPECT_EQ(gpus::countCalls("cuMemMap"), 5 + 5);
    EXPECT_EQ(gpus::held(), "");
    EXPECT_EQ(openFiles(), before);
  }
}

TEST(CudaPeerParts, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  gpus::reset();
  gpus::devices(3);
  onRanks(kRanks, 3, makeWindow, kProcesses);
  std::map<std::string, int> calls;
  for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
  for (const char* call :
       {"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuMemMap", "cuMemCreate",
        "cuMemAddressReserve", "cuMemSetAccess", "cuMemRelease", "cuMemUnmap", "cuMemAddressFree",
        "cuDeviceGetAttribute", "cuDeviceGet", "cuMemcpyAsync"}) {
    ASSERT_GE(calls[call], 1) << call;
    for (int number = 1; number <= std::min(calls[call], 12); ++number) {
      gpus::reset();
      gpus::devices(3);
      gpus::failCall(call, number, 719);
      const int before = openFiles();
      const int64_t startNs = clockNs();
      uint32_t told = 0;
      int named = 0;
      for (const Outcome& one : onRanks(kRanks, 3, makeWindow, kProcesses)) {
        told += one.code == WL_OK ? 0 : 1;
        named += says(one.error, std::string(call) + " of device") ? 1 : 0;
        if (one.code != WL_OK) {
          EXPECT_EQ(one.code, WL_DEVICE) << one.error.message;
        }
      }
      EXPECT_EQ(named, 1) << call << " " << number;
      EXPECT_LT(clockNs() - startNs, 1'500 * kMs) << call << " " << number;
      // Which each rank does by itself.
      const bool isOfOpening = std::string(call).rfind("cuDevice", 0) == 0;
      const bool gives = call == std::string("cuMemRelease") || call == std::string("cuMemUnmap") ||
                         call == std::string("cuMemAddressFree");
      if (!gives) {
        EXPECT_TRUE(told == kRanks || (told == 1 && isOfOpening)) << call << " " << number;
        EXPECT_EQ(gpus::held(), "") << call << " " << number;
        EXPECT_EQ(openFiles(), before) << call << " " << number;
      }
    }
  }
}

TEST(CudaPeerParts, ThatCannotLeaveTheirProcessAreRefused) {
  gpus::reset();
  gpus::exports(false);
  for (const Outcome& one : onRanks(3, 1, makeWindow, kProcesses)) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_TRUE(says(one.error, "device 0's memory can't go to other processes") ||
                says(one.error, "could not make its part"));
  }
  EXPECT_EQ(gpus::held(), "");
  for (const Outcome& one : onRanks(3, 1, makeWindow)) EXPECT_EQ(one.code, WL_OK);
}

TEST(CudaPeerParts, ThatPeersDoNotReachAreRefused) {
  gpus::reset();
  gpus::devices(2);
  gpus::losesCopies(true);
  for (const Outcome& one : onRanks(2, 2, makeWindow, kProcesses)) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_TRUE(says(one.error, "whatever the driver says"));
  }
  EXPECT_EQ(gpus::held(), "");
}

// A rank by itself that goes on for a while.
class Alone final : public AllRanks {
 public:
  explicit Alone(int64_t limitNs) : endNs_(clockNs() + limitNs) {}
  uint32_t rank() const override { return 0; }
  uint32_t ranks() const override { return 1; }
  Code all(const void*, void*, uint64_t, wl_error_t*) override { return WL_OK; }
  uint32_t firstBeside(uint32_t) const override { return 0; }
  bool goesOn() override { return clockNs() < endNs_; }

 private:
  const int64_t endNs_;
};

TEST(FileOffers, GoToThoseThatKnowTheirSecret) {
  const int before = openFiles();
  {
    Alone alone(20'000 * kMs);
    wl_error_t error = blankError();
    FileOffer offer;
    ASSERT_EQ(offer.open(&error), WL_OK) << error.message;
    FileOfferName wrong = offer.name();
    ++wrong.secret;
    FileRequest stranger;
    FileRequest another;
    FileRequest one;
    ASSERT_EQ(stranger.ask(wrong, 0, alone, &error), WL_OK) << error.message;
    ASSERT_EQ(another.ask(offer.name(), 0, alone, &error), WL_OK) << error.message;
    ASSERT_EQ(one.ask(offer.name(), 0, alone, &error), WL_OK) << error.message;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const OpenFile out(ends[0]);
    const OpenFile in(ends[1]);
    ASSERT_EQ(offer.give(out.number(), 2, alone, &error), WL_OK) << error.message;
    offer.close();
    OpenFile come;
    EXPECT_EQ(stranger.take(alone, &come, &error), WL_PEER_LOST);
    EXPECT_EQ(another.take(alone, &come, &error), WL_OK) << error.message;
    EXPECT_EQ(one.take(alone, &come, &error), WL_OK) << error.message;
    EXPECT_NE(come.number(), out.number());
    ASSERT_EQ(write(in.number(), "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(read(come.number(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
  }
  EXPECT_EQ(openFiles(), before);
}

TEST(FileOffers, ThatNobodyTakesEndWithTheirTime) {
  Alone alone(100 * kMs);
  wl_error_t error = blankError();
  FileOffer offer;
  ASSERT_EQ(offer.open(&error), WL_OK) << error.message;
  EXPECT_EQ(offer.give(0, 1, alone, &error), WL_PEER_LOST);
  FileRequest request;
  Alone other(100 * kMs);
  ASSERT_EQ(request.ask(offer.name(), 3, other, &error), WL_OK) << error.message;
  OpenFile come;
  EXPECT_EQ(request.take(other, &come, &error), WL_PEER_LOST);
  EXPECT_TRUE(says(error, "rank 3's part of the window did not come"));
}

TEST(FileOffers, ThatNobodyMakesAreNamed) {
  wl_error_t error = blankError();
  FileRequest request;
  Alone brief(50 * kMs);
  EXPECT_EQ(request.ask({1, 2}, 3, brief, &error), WL_PEER_LOST);
  Alone alone(20'000 * kMs);
  EXPECT_EQ(request.ask({1, 2}, 3, alone, &error), WL_UNSUPPORTED);
  EXPECT_TRUE(says(error, "rank 3's part of the window can't be reached"));
  EXPECT_TRUE(says(error, "network namespace"));
}

}  // namespace
}  // namespace windlass::cuda
