// SPDX-License-Identifier: Apache-2.0
// Windows of ranks in several processes against the stand-in for the driver of GPUs: each part goes
// to each process once, and a failure of any call is told to all and leaves nothing. Threads play
// the processes; tests/native/offload has real ones.
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "native/memory/file_offer.h"
#include "tests/native/cuda/given_back.h"
#include "tests/native/cuda/on_ranks.h"
#include "tests/native/memory/failing_allocation.h"

namespace windlass::cuda {
namespace peer_parts_test {

namespace gpus = windlass_test::gpus;
using windlass_test::callsToFail;
using windlass_test::Failing;
using windlass_test::FailingAllocation;

constexpr uint32_t kRanks = 5;
constexpr uint32_t kProcesses = 2;

int openFiles() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    count += file.exists() || file.is_symlink() ? 1 : 0;
  return count;
}

// Every rank writes to its own place of every part, and reads there what all wrote to its own.
Code reduceInParts(uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
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
    for (const Outcome& one : onRanks(kRanks, devices, reduceInParts, kProcesses))
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
    const std::vector<int> numbers = callsToFail(calls[call], Failing::kBoth);
    for (size_t attempt = 0; attempt < 2 * numbers.size(); ++attempt) {
      const int number = numbers[attempt / 2];
      const bool isDone = attempt % 2 == 1;
      if (isDone && !gpus::givesBack(call)) continue;
      gpus::reset();
      gpus::devices(3);
      gpus::failOnce(call, number, isDone);
      const int before = openFiles();
      uint32_t told = 0;
      int named = 0;
      for (const Outcome& one : onRanks(kRanks, 3, makeWindow, kProcesses)) {
        told += one.code == WL_OK ? 0 : 1;
        named += says(one.error, std::string(call) + " of device") ? 1 : 0;
        // Who isn't told waits long, and loses its peer then.
        if (one.code != WL_OK) {
          EXPECT_EQ(one.code, WL_DEVICE) << one.error.message;
        }
      }
      EXPECT_EQ(named, 1) << call << " " << number;
      // Each rank does this without the others.
      const bool isOfOpening = std::string(call).rfind("cuDevice", 0) == 0;
      if (!gpus::givesBack(call)) {
        EXPECT_TRUE(told == kRanks || (told == 1 && isOfOpening)) << call << " " << number;
      }
      EXPECT_TRUE(gpus::isGivenBack(call, isDone)) << call << " " << number;
      // The rest is a file of the stand-in.
      if (gpus::held().empty()) {
        EXPECT_EQ(openFiles(), before) << call << " " << number;
      }
    }
  }
}

// An exchange of a rank whose `number`-th allocation after the round `after` fails.
class ShortOfMemory final : public AllRanks {
 public:
  ShortOfMemory(AllRanks& whole, int after, int number)
      : whole_(whole), after_(after), number_(number) {}
  uint32_t rank() const override { return whole_.rank(); }
  uint32_t ranks() const override { return whole_.ranks(); }
  uint32_t firstBeside(uint32_t rank) const override { return whole_.firstBeside(rank); }
  bool goesOn() override { return whole_.goesOn(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    end();
    const Code code = whole_.all(own, everyones, bytes, error);
    if (++rounds_ == after_) failing_.emplace(number_);
    return code;
  }
  void end() {
    hasFailed_ = hasFailed_ || (failing_.has_value() && FailingAllocation::happened());
    failing_.reset();
  }
  bool hasFailed() const { return hasFailed_; }

 private:
  AllRanks& whole_;
  const int after_;
  const int number_;
  int rounds_ = 0;
  bool hasFailed_ = false;
  std::optional<FailingAllocation> failing_;
};

TEST(CudaPeerParts, ARankThatLacksMemoryIsNamedToAll) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the stand-in for the driver loses what it had where its own allocation fails, "
                  "which AddressSanitizer tells; builds without it run this";
#endif
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer makes each run ten times as long.
  const int step = std::getenv("WINDLASS_TEST_LONG") == nullptr ? 5 : 1;
#else
  const int step = 1;
#endif
  // Nothing needs memory after the third round and after the last one.
  for (const int after : {1, 2, 4, 5}) {
    int fails = 0;
    for (int number = 1;; number += step) {
      gpus::reset();
      bool hasFailed = false;
      const auto make = [&](uint32_t rank, CudaRankDevice& device, AllRanks& whole,
                            wl_error_t* error) {
        ShortOfMemory exchange(whole, rank == 1 ? after : 0, number);
        const Code code = device.makeWindow(exchange, 5000, error);
        exchange.end();
        if (rank == 1) hasFailed = exchange.hasFailed();
        return code;
      };
      const std::vector<Outcome> outcomes = onRanks(kRanks, 1, make, kProcesses);
      for (const Outcome& one : outcomes)
        EXPECT_EQ(one.code, hasFailed ? WL_RESOURCE : WL_OK) << after << " " << number;
      if (!hasFailed) break;
      EXPECT_TRUE(says(outcomes[1].error, "out of memory")) << outcomes[1].error.message;
      EXPECT_TRUE(says(outcomes[0].error, "rank 1 could not make")) << outcomes[0].error.message;
      ++fails;
    }
    EXPECT_GT(fails, 0) << after;
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

// A single rank that goes on for some time.
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

socklen_t addressOf(uint64_t socket, sockaddr_un* address) {
  address->sun_family = AF_UNIX;
  const int length = std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                                   "windlass-%016llx", static_cast<unsigned long long>(socket));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// Connections to that offer of which nothing is heard; whether all came about.
bool connectSilently(uint64_t offer, int count, std::vector<OpenFile>* all) {
  sockaddr_un address = {};
  const socklen_t bytes = addressOf(offer, &address);
  const int64_t endNs = clockNs() + 60'000 * kMs;
  for (int i = 0; i < count; ++i) {
    OpenFile one(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    while (connect(one.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
      if (errno != EAGAIN || clockNs() > endNs) return false;
      sched_yield();
    }
    all->push_back(std::move(one));
  }
  return true;
}

bool isDropped(const OpenFile& socket, int withinMs) {
  pollfd polled = {socket.number(), POLLIN, 0};
  char byte = 0;
  return poll(&polled, 1, withinMs) == 1 && recv(socket.number(), &byte, 1, 0) <= 0;
}

TEST(FileOffers, AreNotHeldUpByThoseThatSayNothing) {
  const int before = openFiles();
  {
    Alone alone(60'000 * kMs);
    wl_error_t error = blankError();
    FileOffer offer;
    ASSERT_EQ(offer.open(0, &error), WL_OK) << error.message;
    const int opened = openFiles();
    std::vector<OpenFile> silent;
    ASSERT_TRUE(connectSilently(offer.name().socket, 200, &silent));
    FileRequest request;
    OpenFile come;
    ASSERT_EQ(request.ask(offer.name(), 3, alone, &error), WL_OK) << error.message;
    ASSERT_EQ(request.take(alone, &come, &error), WL_OK) << error.message;
    EXPECT_EQ(offer.give(1, alone, &error), WL_OK) << error.message;
    // No more than so many are kept, and those not for long.
    EXPECT_LE(openFiles() - opened, 200 + static_cast<int>(FileOffer::kMostSilent) + 3);
    for (const OpenFile& one : silent) EXPECT_TRUE(isDropped(one, 30'000));
  }
  EXPECT_EQ(openFiles(), before);
}

// The sockets of offers that there are, by the names that any user of the machine sees.
std::vector<uint64_t> offersOfThisMachine() {
  std::vector<uint64_t> all;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.find("@windlass-");
    if (at == std::string::npos) continue;
    all.push_back(std::stoull(line.substr(at + 10), nullptr, 16));
  }
  return all;
}

// Ranks whose parts have 200 silent connections each before anybody takes them.
class Flooded final : public AllRanks {
 public:
  explicit Flooded(AllRanks& whole) : whole_(whole) {}
  uint32_t rank() const override { return whole_.rank(); }
  uint32_t ranks() const override { return whole_.ranks(); }
  uint32_t firstBeside(uint32_t rank) const override { return whole_.firstBeside(rank); }
  bool goesOn() override { return whole_.goesOn(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    const Code code = whole_.all(own, everyones, bytes, error);
    if (++rounds_ != 3 || rank() != 0) return code;
    const std::vector<uint64_t> offers = offersOfThisMachine();
    EXPECT_GE(offers.size(), kRanks);
    for (const uint64_t offer : offers) EXPECT_TRUE(connectSilently(offer, 200, &silent_));
    return code;
  }

 private:
  AllRanks& whole_;
  int rounds_ = 0;
  std::vector<OpenFile> silent_;
};

TEST(CudaPeerParts, AreTakenInTimeWhereOthersConnectAndSayNothing) {
  gpus::reset();
  const auto reduceParts = [](uint32_t rank, CudaRankDevice& device, AllRanks& whole,
                              wl_error_t* error) {
    Flooded exchange(whole);
    return reduceInParts(rank, device, exchange, error);
  };
  for (const Outcome& one : onRanks(kRanks, 1, reduceParts, kProcesses))
    EXPECT_EQ(one.code, WL_OK) << one.error.message;
}

TEST(FileOffers, DropOtherUsersAtOnce) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user for a while";
  Alone alone(60'000 * kMs);
  wl_error_t error = blankError();
  FileOffer offer;
  ASSERT_EQ(offer.open(0, &error), WL_OK) << error.message;
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(1);
    // Sooner than who says nothing is, unless this machine is busy each time.
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::vector<OpenFile> one;
      if (!connectSilently(offer.name().socket, 1, &one)) _exit(2);
      const int64_t startNs = clockNs();
      if (!isDropped(one[0], 30'000)) _exit(3);
      if (clockNs() - startNs < FileOffer::kSilenceNs / 2) _exit(0);
    }
    _exit(4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

TEST(FileOffers, GoToThoseThatKnowTheirSecret) {
  const int before = openFiles();
  {
    Alone alone(60'000 * kMs);
    wl_error_t error = blankError();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const OpenFile out(ends[0]);
    const OpenFile in(ends[1]);
    FileOffer offer;
    ASSERT_EQ(offer.open(out.number(), &error), WL_OK) << error.message;
    FileOfferName wrong = offer.name();
    ++wrong.secret;
    FileRequest stranger;
    FileRequest another;
    FileRequest one;
    ASSERT_EQ(stranger.ask(wrong, 0, alone, &error), WL_OK) << error.message;
    ASSERT_EQ(another.ask(offer.name(), 0, alone, &error), WL_OK) << error.message;
    ASSERT_EQ(one.ask(offer.name(), 0, alone, &error), WL_OK) << error.message;
    ASSERT_EQ(offer.give(2, alone, &error), WL_OK) << error.message;
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
  ASSERT_EQ(offer.open(0, &error), WL_OK) << error.message;
  EXPECT_EQ(offer.give(1, alone, &error), WL_PEER_LOST);
  // Who offers says nothing.
  const FileOfferName silent = {static_cast<uint64_t>(clockNs()), 2};
  const OpenFile listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  const socklen_t bytes = addressOf(silent.socket, &address);
  ASSERT_EQ(bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(listen(listener.number(), 1), 0);
  FileRequest request;
  Alone asks(60'000 * kMs);
  ASSERT_EQ(request.ask(silent, 3, asks, &error), WL_OK) << error.message;
  OpenFile come;
  Alone other(100 * kMs);
  EXPECT_EQ(request.take(other, &come, &error), WL_PEER_LOST);
  EXPECT_TRUE(says(error, "rank 3's part of the window did not come"));
}

TEST(FileOffers, ThatNobodyMakesAreNamed) {
  wl_error_t error = blankError();
  FileRequest request;
  Alone brief(50 * kMs);
  EXPECT_EQ(request.ask({1, 2}, 3, brief, &error), WL_PEER_LOST);
  Alone alone(60'000 * kMs);
  EXPECT_EQ(request.ask({1, 2}, 3, alone, &error), WL_UNSUPPORTED);
  EXPECT_TRUE(says(error, "rank 3's part of the window can't be reached"));
  EXPECT_TRUE(says(error, "network namespace"));
}

}  // namespace peer_parts_test
}  // namespace windlass::cuda
