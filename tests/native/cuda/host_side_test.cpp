// SPDX-License-Identifier: Apache-2.0
// The host side of GPUs against the stand-in for their driver: which calls it makes, in which order
// and with what; that whichever of them fails, every rank is told and nothing stays behind; and
// what comes of ranks that share a GPU, of which one does not come.
#include <filesystem>
#include <map>
#include <random>

#include "native/device/cuda/polling.h"
#include "tests/native/cuda/given_back.h"
#include "tests/native/cuda/no_memory.h"
#include "tests/native/cuda/on_ranks.h"
#include "tests/native/cuda/user_streams.h"

namespace windlass::cuda {
namespace host_side_test {

namespace gpus = windlass_test::gpus;
using windlass_test::callsToFail;
using windlass_test::Failing;
using Lines = std::vector<std::string>;

std::string folder(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../.." / name;
}
std::string driver() {
  return folder("cuda_stand_in") + "/libcuda.so.1";
}

TEST(CudaLibrary, SaysWhatItLookedFor) {
  Cuda cuda;
  wl_error_t error = blankError();
  EXPECT_EQ(Cuda::open("/nonexistent/libcuda.so.1", &cuda, &error), WL_UNSUPPORTED);
  EXPECT_TRUE(says(error, "NVIDIA's driver, /nonexistent/libcuda.so.1, does not open"));
  EXPECT_TRUE(says(error, "install the driver"));
  EXPECT_FALSE(cuda.cuInit.isFound());
}

TEST(CudaLibrary, NamesTheCallThatAnotherLibraryLacks) {
  Cuda cuda;
  wl_error_t error = blankError();
  const std::string empty = folder("cuda_empty") + "/libcuda.so.1";
  EXPECT_EQ(Cuda::open(empty.c_str(), &cuda, &error), WL_UNSUPPORTED);
  EXPECT_TRUE(says(error, "lacks cuInit: it is too old"));
  EXPECT_EQ(dlopen(empty.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(CudaLibrary, RefusesADriverThatIsTooOld) {
  gpus::reset();
  gpus::version(11080);
  Cuda cuda;
  wl_error_t error = blankError();
  EXPECT_EQ(Cuda::open(driver().c_str(), &cuda, &error), WL_UNSUPPORTED);
  EXPECT_TRUE(says(error, "is for CUDA 11.8: install a driver for CUDA 13.0 or later, 580"));
  EXPECT_FALSE(cuda.cuInit.isFound());
  gpus::reset();
  gpus::failCall("cuInit", 1, 35);
  EXPECT_EQ(Cuda::open(driver().c_str(), &cuda, &error), WL_UNSUPPORTED);
  EXPECT_TRUE(says(error, "cuInit of the driver returned an unknown error (35)"));
  EXPECT_TRUE(says(error, "580"));
}

TEST(CudaErrors, ComeToOursWithWhatToDo) {
  const std::map<CuResult, Code> known = {
      {2, WL_RESOURCE},      {35, WL_UNSUPPORTED},  {100, WL_UNSUPPORTED}, {101, WL_UNSUPPORTED},
      {200, WL_UNSUPPORTED}, {209, WL_UNSUPPORTED}, {217, WL_UNSUPPORTED}, {222, WL_UNSUPPORTED},
      {700, WL_DEVICE},      {701, WL_RESOURCE},    {702, WL_DEVICE},      {719, WL_DEVICE},
      {720, WL_RESOURCE},    {800, WL_UNSUPPORTED}, {801, WL_UNSUPPORTED}, {802, WL_RESOURCE},
      {803, WL_UNSUPPORTED}, {900, WL_UNSUPPORTED}, {908, WL_UNSUPPORTED}};
  for (const auto& [result, code] : known) {
    EXPECT_GE(meaningOf(result).first, 0) << result;
    EXPECT_EQ(meaningOf(result).code, code) << result;
  }
  for (CuResult result = 1; result < 1000; ++result) {
    const Meaning& meaning = meaningOf(result);
    EXPECT_TRUE((meaning.first <= result && result <= meaning.last) ||
                (meaning.first == -1 && meaning.code == WL_DEVICE));
    EXPECT_NE(*meaning.cure, 0);
  }
}

TEST(CudaCalls, OfARankComeInOrder) {
  gpus::reset();
  const auto outcomes =
      onRanks(1, 1, [](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
        Code code = device.makeWindow(exchange, 100, error);
        if (code != WL_OK) return code;
        EXPECT_EQ(device.partBytes(), kPage);
        uint64_t sent = 0x1234567890abcdef;
        uint64_t come = 1;
        code = device.fromDevice(&come, device.part(0), sizeof come, error);
        EXPECT_EQ(come, 0u);
        if (code == WL_OK) code = device.toDevice(device.part(0), &sent, sizeof sent, error);
        if (code == WL_OK) code = device.fromDevice(&come, device.part(0), sizeof come, error);
        EXPECT_EQ(come, sent);
        return code;
      });
  ASSERT_EQ(outcomes[0].code, WL_OK) << outcomes[0].error.message;
  EXPECT_EQ(gpus::held(), "");
  Lines lines = gpus::log();
  // The driver may be open from another test.
  while (!lines.empty() && lines.front().rfind("cuDeviceGet ", 0) != 0) lines.erase(lines.begin());
  EXPECT_EQ(lines,
            (Lines{"cuDeviceGet 0", "cuDeviceGetAttribute 75 0", "cuDeviceGetAttribute 76 0",
                   "cuDeviceGetAttribute 16 0", "cuDeviceGetAttribute 95 0",
                   "cuDeviceGetAttribute 102 0", "cuDevicePrimaryCtxRetain 0",
                   "cuCtxPushCurrent 0",
                   // All kernels are loaded before any runs.
                   "cuModuleLoadData", "cuModuleGetFunction windlass_run", "cuFuncGetAttribute 0",
                   "cuOccupancyMaxActiveBlocksPerMultiprocessor 256 0",
                   "cuStreamCreate 1", "cuMemHostAlloc 2097152 1", "cuEventCreate 2",
                   "cuMemHostAlloc 2097152 1", "cuEventCreate 2", "cuMemHostAlloc 4096 3",
                   "cuMemHostGetDevicePointer 0",
                   "cuDeviceGet 0", "cuMemGetAllocationGranularity device 0 type 1, 1",
                   "cuMemAddressReserve 65536 0 0 0",
                   // Of the grid.
                   "cuStreamCreate 1",
                   "cuMemAlloc " + std::to_string(sizeof(OffloadedOperation)),
                   "cuMemHostAlloc " + std::to_string(sizeof(OffloadedOperation)) + " 1",
                   "cuMemCreate 65536 device 0 type 1, kinds 1 0, 0", "cuMemMap 65536 0 0",
                   "cuMemSetAccess 65536 0:1:3", "cuMemsetD8Async 0 65536", "cuStreamQuery",
                   "cuMemcpyDtoHAsync 8", "cuEventRecord", "cuEventQuery",
                   "cuMemcpyHtoDAsync 8", "cuEventRecord", "cuEventQuery", "cuMemcpyDtoHAsync 8",
                   "cuEventRecord", "cuEventQuery",
                   // The calls that free everything, in reverse order.
                   "cuStreamDestroy", "cuMemFreeHost", "cuMemFree", "cuMemUnmap 65536",
                   "cuMemRelease", "cuMemAddressFree 65536", "cuMemFreeHost", "cuStreamDestroy",
                   "cuEventDestroy",
                   "cuMemFreeHost", "cuEventDestroy", "cuMemFreeHost", "cuModuleUnload",
                   "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease 0"}));
}

TEST(CudaCalls, RanksThatShareADeviceLoadItsKernelsOnce) {
  gpus::reset();
  gpus::devices(2);
  for (const Outcome& one : onRanks(5, 2, makeWindow))
    ASSERT_EQ(one.code, WL_OK) << one.error.message;
  EXPECT_EQ(gpus::countCalls("cuModuleLoadData"), 2);
  EXPECT_EQ(gpus::countCalls("cuDevicePrimaryCtxRetain"), 2);
  EXPECT_EQ(gpus::countCalls("cuCtxPushCurrent"), 5);
  EXPECT_EQ(gpus::countCalls("cuCtxPopCurrent"), 5);
  EXPECT_EQ(gpus::held(), "");
  int access = 0;
  for (const std::string& line : gpus::log()) {
    if (line.rfind("cuMemSetAccess", 0) != 0) continue;
    // Each device once.
    EXPECT_TRUE(line == "cuMemSetAccess 65536 0:1:3 1:1:3" ||
                line == "cuMemSetAccess 65536 1:1:3 0:1:3")
        << line;
    ++access;
  }
  EXPECT_EQ(access, 5);
}

// Makes everything that a rank's device needs.
Code makeAll(uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
  Code code = makeWindow(rank, device, exchange, error);
  if (code != WL_OK) return code;
  Streams& streams = device.streams();
  code = streams.open(error);
  const int32_t said = code;
  std::vector<int32_t> everyones(exchange.ranks());
  EXPECT_EQ(exchange.all(&said, everyones.data(), sizeof said, nullptr), WL_OK);
  for (const int32_t theirs : everyones)
    if (code == WL_OK && theirs != WL_OK) code = fail(error, WL_DEVICE, "a peer has no streams");
  if (code == WL_OK) code = streams.makeWindow(exchange, 100, error);
  void* stage = nullptr;
  return code == WL_OK ? device.stage(&stage, error) : code;
}

void failAll(uint32_t devices, const std::string& call, int number, bool isDone) {
  SCOPED_TRACE(call + " " + std::to_string(number) + (isDone ? ", which is done" : ""));
  gpus::reset();
  gpus::devices(static_cast<int>(devices));
  gpus::failOnce(call, number, isDone);
  int told = 0;
  int named = 0;
  for (const Outcome& one : onRanks(3, devices, makeAll)) {
    told += one.code == WL_OK ? 0 : 1;
    named += says(one.error, call + " of device") ? 1 : 0;
    if (one.code != WL_OK) {
      EXPECT_EQ(one.code, WL_DEVICE) << one.error.message;
    }
  }
  EXPECT_LE(named, 1);
  EXPECT_TRUE(named == 1 || told == 0);
  // Check this even where only freed objects are missing.
  EXPECT_TRUE(named == 1 || gpus::failures() == 0 || !gpus::givesBack(call));
  EXPECT_TRUE(gpus::isGivenBack(call, isDone));
}

TEST(CudaCalls, AFailureOfAnyIsToldToAllAndLeavesNothing) {
  for (const uint32_t devices : {1u, 2u}) {
    gpus::reset();
    gpus::devices(static_cast<int>(devices));
    for (const Outcome& one : onRanks(3, devices, makeAll))
      ASSERT_EQ(one.code, WL_OK) << one.error.message;
    std::map<std::string, int> calls;
    for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
    ASSERT_GT(calls.size(), 20u);
    calls.erase("cuInit");
    calls.erase("cuDriverGetVersion");
    for (const auto& [call, count] : calls) {
      // Looks are as many as come.
      const bool isLook = call == "cuStreamQuery" || call == "cuEventQuery";
      const Failing which = devices == 1 ? Failing::kFirst : Failing::kLast;
      for (const int number : callsToFail(isLook ? std::min(count, 4) : count, which))
        for (const bool isDone : gpus::waysToFail(call)) failAll(devices, call, number, isDone);
    }
  }
}

// An exchange whose third round ends early.
class Cut final : public AllRanks {
 public:
  explicit Cut(AllRanks& whole) : whole_(whole) {}
  uint32_t rank() const override { return whole_.rank(); }
  uint32_t ranks() const override { return whole_.ranks(); }
  uint32_t firstBeside(uint32_t rank) const override { return whole_.firstBeside(rank); }
  bool goesOn() override { return whole_.goesOn(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    if (++rounds_ == 3) return fail(error, WL_DEADLINE_EXCEEDED, "cut");
    return whole_.all(own, everyones, bytes, error);
  }

 private:
  AllRanks& whole_;
  int rounds_ = 0;
};

// A peer may still use the part of a rank that failed until the peer states otherwise.
TEST(CudaCalls, AFailedPartStaysWhereThePeersAreNotKnownToBePastIt) {
  gpus::reset();
  gpus::devices(2);
  gpus::failCall("cuMemSetAccess", 0, 719);
  const auto outcomes =
      onRanks(2, 2, [](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
        Cut cut(exchange);
        const Code code = device.makeWindow(cut, 100, error);
        int32_t said = 0;
        int32_t everyones[2];
        EXPECT_EQ(exchange.all(&said, everyones, sizeof said, nullptr), WL_OK);
        EXPECT_EQ(gpus::countCalls("cuMemUnmap"), 0);
        return code;
      });
  for (const Outcome& one : outcomes) {
    EXPECT_EQ(one.code, WL_DEVICE);
    EXPECT_TRUE(says(one.error, "cuMemSetAccess of device"));
  }
  EXPECT_EQ(gpus::countCalls("cuMemUnmap"), 2);
}

TEST(CudaDevices, OutOfMemorySaysWhatWasAskedAndWhatIsFree) {
  gpus::reset();
  const auto outcomes =
      onRanks(2, 1, [](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
        return device.makeWindow(exchange, uint64_t{1} << 38, error);
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.code, WL_RESOURCE);
  const bool isFirst = says(outcomes[0].error, "cuMemCreate");
  EXPECT_TRUE(says(outcomes[isFirst ? 0 : 1].error,
                   "cuMemCreate of device 0, asked for 274877906944 bytes where 268435456 of its "
                   "1073741824 are free, returned CUDA_ERROR_OUT_OF_MEMORY (2)"));
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaDevices, ThatAreTooOldAreRefused) {
  gpus::reset();
  gpus::major(7);
  for (const Outcome& one : onRanks(2, 1, makeWindow)) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_TRUE(says(one.error, "device 0 is of compute capability 7.x"));
  }
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaDevices, ThatDoNotReachOneAnotherAreRefused) {
  gpus::reset();
  gpus::devices(2);
  gpus::reaches(false);
  for (const Outcome& one : onRanks(2, 2, makeWindow)) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_TRUE(says(one.error, "says the driver"));
  }
  gpus::reaches(true);
  gpus::losesCopies(true);
  for (const Outcome& one : onRanks(2, 2, makeWindow)) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_TRUE(says(one.error, "whatever the driver says"));
  }
  // Nothing is copied between ranks of one device.
  for (const Outcome& one : onRanks(2, 1, makeWindow)) EXPECT_EQ(one.code, WL_OK);
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaDevices, AreZeroOnceTheirPeersHaveTriedThem) {
  gpus::reset();
  gpus::devices(2);
  const auto outcomes = onRanks(
      3, 2, [](uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
        Code code = device.makeWindow(exchange, 5000, error);
        std::vector<unsigned char> all(kPage, 1);
        if (code == WL_OK) code = device.fromDevice(all.data(), device.part(rank), kPage, error);
        for (const unsigned char byte : all) EXPECT_EQ(byte, 0);
        return code;
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.code, WL_OK) << one.error.message;
}

TEST(CudaDevices, RefuseMoreRanksThanTheyRunAtATime) {
  gpus::reset();
  gpus::blocks(2);
  for (const Outcome& one : onRanks(3, 1, makeWindow)) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_TRUE(says(one.error, "3 ranks share device 0, which runs 2 blocks"));
  }
  const auto outcomes =
      onRanks(2, 1, [](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
        const Code code = device.makeWindow(exchange, 100, error);
        EXPECT_EQ(device.coresAtOnce(64, nullptr), 1u);
        return code;
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.code, WL_OK) << one.error.message;
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaCopies, OfAnyLengthComeBack) {
  gpus::reset();
  const uint32_t seed = std::random_device{}();
  std::mt19937 random(seed);
  onRanks(1, 1, [&](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
    Code code = device.makeWindow(exchange, 8 * kStageBytes, error);
    for (const uint64_t bytes :
         {uint64_t{0}, uint64_t{1}, kStageBytes - 1, kStageBytes, kStageBytes + 1, 2 * kStageBytes,
          3 * kStageBytes + 5, 7 * kStageBytes + 12345}) {
      std::vector<uint32_t> sent(bytes / 4 + 1);
      for (uint32_t& word : sent) word = random();
      std::vector<uint32_t> come(sent.size(), 0);
      if (code == WL_OK) code = device.toDevice(device.part(0), sent.data(), bytes, error);
      if (code == WL_OK) code = device.fromDevice(come.data(), device.part(0), bytes, error);
      EXPECT_EQ(code, WL_OK) << error->message;
      EXPECT_EQ(std::memcmp(sent.data(), come.data(), bytes), 0) << bytes << ", seed " << seed;
    }
    return code;
  });
}

// Kernels of the primary context do not reach it.
TEST(CudaDevices, DoNotHaveWhatLiesInAnotherContextOfTheSameGpu) {
  gpus::reset();
  onRanks(1, 1, [&](uint32_t, CudaRankDevice& device, AllRanks&, wl_error_t* error) {
    auto* const own = gpus::tensor<float>(0, 10);
    auto* const theirs = gpus::tensor<float>(0, 10);
    gpus::isForeign(theirs);
    RankDevice::Lies lies = RankDevice::Lies::kHost;
    EXPECT_EQ(device.find({"it", own, 40}, &lies, error), WL_OK) << error->message;
    EXPECT_EQ(lies, RankDevice::Lies::kHere);
    EXPECT_EQ(device.find({"it", gpus::mappedTensor<float>(0, 10, 1), 40}, &lies, error), WL_OK);
    EXPECT_EQ(lies, RankDevice::Lies::kHere);
    EXPECT_EQ(device.find({"it", theirs, 40}, &lies, error), WL_OK) << error->message;
    EXPECT_EQ(lies, RankDevice::Lies::kOtherDevice);
    return WL_OK;
  });
  gpus::reset();
}

// The operating system may know nothing of memory that the driver has mapped for the processor.
TEST(CudaDevices, TakeTheDriversWordForPinnedMemoryAndLookAtItsEnd) {
  gpus::reset();
  onRanks(1, 1, [&](uint32_t, CudaRankDevice& device, AllRanks&, wl_error_t* error) {
    const windlass_test::NoMemory none;
    gpus::pin(none.begin(), 400);
    RankDevice::Lies lies = RankDevice::Lies::kHere;
    EXPECT_EQ(device.find({"it", none.begin(), 400}, &lies, error), WL_OK) << error->message;
    EXPECT_EQ(lies, RankDevice::Lies::kHost);
    EXPECT_EQ(device.find({"it", none.begin(), 401}, &lies, error), WL_INVALID_ARGUMENT);
    const std::string told = error->message;
    EXPECT_EQ(told.find("it, 401 bytes at 0x"), 0u) << told;
    EXPECT_NE(told.find("which ends before"), std::string::npos) << told;
    // A part of ordinary memory may be pinned.
    gpus::pin(none.before(800), 100);
    EXPECT_EQ(device.find({"it", none.before(800), 800}, &lies, error), WL_OK) << error->message;
    return WL_OK;
  });
  gpus::reset();
}

// The stand-in copies while somebody looks.
TEST(CudaCopies, ThatFailLeaveNoneInFlight) {
  gpus::reset();
  onRanks(1, 1, [&](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
    EXPECT_EQ(device.makeWindow(exchange, 4 * kStageBytes, error), WL_OK) << error->message;
    auto* const part = static_cast<unsigned char*>(device.part(0));
    const auto at = reinterpret_cast<uint64_t>(part);
    const auto failSecond = [](const char* call) {
      gpus::failCall(call, gpus::countCalls(call) + 2, 719);
    };
    const std::vector<unsigned char> sent(2 * kStageBytes, 7);
    failSecond("cuMemcpyHtoDAsync");
    EXPECT_EQ(device.toDevice(part, sent.data(), sent.size(), error), WL_DEVICE);
    EXPECT_EQ(std::memcmp(part, sent.data(), kStageBytes), 0);
    EXPECT_EQ(part[kStageBytes], 0);
    failSecond("cuMemcpyAsync");
    EXPECT_EQ(device.copyRows({{at + kStageBytes, at, 100, 1, 0, 0}, {at, at, 100, 1, 0, 0}},
                              error),
              WL_DEVICE);
    EXPECT_EQ(std::memcmp(part + kStageBytes, sent.data(), 100), 0);
    return WL_OK;
  });
  EXPECT_EQ(gpus::held(), "");
}

// Whichever look fails, nothing that was given is in flight once the call has returned.
TEST(CudaCopies, ThatAFailedLookHidesAreOverBeforeTheirMemoryGoes) {
  for (const int result : {2, 719}) {
    gpus::reset();
    onRanks(1, 1, [&](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
      const auto failNext = [&] {
        gpus::failCall("cuStreamQuery", gpus::countCalls("cuStreamQuery") + 1, result);
      };
      const Code expected = result == 2 ? WL_RESOURCE : WL_DEVICE;
      failNext();
      EXPECT_EQ(device.makeWindow(exchange, 4 * kStageBytes, error), expected);
      EXPECT_TRUE(says(*error, "cuStreamQuery of device 0"));
      EXPECT_EQ(device.makeWindow(exchange, 4 * kStageBytes, error), WL_OK) << error->message;
      auto* const part = static_cast<unsigned char*>(device.part(0));
      const auto at = reinterpret_cast<uint64_t>(part);
      const std::vector<unsigned char> sent(100, 7);
      EXPECT_EQ(device.toDevice(part, sent.data(), sent.size(), error), WL_OK);
      failNext();
      EXPECT_EQ(device.onDevices(part + kStageBytes, part, sent.size(), error), expected);
      EXPECT_EQ(std::memcmp(part + kStageBytes, sent.data(), sent.size()), 0);
      failNext();
      EXPECT_EQ(device.copyRows({{at + 2 * kStageBytes, at, 100, 1, 0, 0}}, error), expected);
      EXPECT_EQ(std::memcmp(part + 2 * kStageBytes, sent.data(), sent.size()), 0);
      MoveViews views = {};
      views.to = at + 3 * kStageBytes;
      views.from = at;
      views.ndim = 1;
      views.shape[0] = 100;
      views.toStrides[0] = views.fromStrides[0] = 1;
      failNext();
      EXPECT_EQ(device.move({DType(WL_U8), views}, error), expected);
      EXPECT_EQ(std::memcmp(part + 3 * kStageBytes, sent.data(), sent.size()), 0);
      EXPECT_EQ(device.lasting(), nullptr);
      return WL_OK;
    });
    EXPECT_EQ(gpus::held(), "");
  }
}

// If the driver does not confirm that copies have ended, no part of a rank is freed. Results 1 and
// 999, which may mean any error, do not confirm it.
TEST(CudaCopies, OfWhoseEndTheDriverDoesNotTellKeepAllParts) {
  for (const int result : {1, 2, 999}) {
    gpus::reset();
    const auto body = [&](uint32_t rank, CudaRankDevice& device, AllRanks& exchange,
                          wl_error_t* error) {
      gpus::failCall("cuStreamQuery", 0, result);
      const Code code = device.makeWindow(exchange, 100, error);
      EXPECT_STREQ(device.lasting(), "a copy") << rank << ", " << result;
      int32_t said = 0;
      int32_t everyones[2];
      EXPECT_EQ(exchange.all(&said, everyones, sizeof said, nullptr), WL_OK);
      EXPECT_EQ(gpus::countCalls("cuMemUnmap"), 0);
      gpus::failCall("", 0, 0);
      return code;
    };
    const auto outcomes = onRanks(2, 1, body);
    for (const Outcome& one : outcomes)
      EXPECT_EQ(one.code, result == 2 ? WL_RESOURCE : WL_DEVICE) << one.error.message;
    gpus::reset();
  }
}

// The barrier of `cores` cores of each of `ranks` ranks.
OffloadedOperation barrierOf(CudaRankDevice& device, uint32_t rank, uint32_t ranks,
                             uint32_t cores) {
  OffloadedOperation given = {};
  given.kernel = kBarrierKernel;
  given.launch.ranks = ranks;
  given.line = {rank, 0, cores, 1, false, 16, nullptr, 0};
  given.windowBytes = device.partBytes();
  for (uint32_t of = 0; of < ranks; ++of)
    given.lines[of] = given.windows[of] = reinterpret_cast<uint64_t>(device.part(of));
  given.stop = device.stopWord(0);
  given.stopValue = given.line.sequence;
  return given;
}

TEST(CudaGrid, IsLaunchedOnceForAllRanksOfADevice) {
  gpus::reset();
  gpus::devices(2);
  const auto outcomes = onRanks(
      5, 2, [](uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
        Code code = device.makeWindow(exchange, 1 << 16, error);
        if (code != WL_OK) return code;
        code = device.start("barrier", nullptr, barrierOf(device, rank, 5, 3), error);
        return code == WL_OK ? device.await("barrier", 20'000 * kMs, error) : code;
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.code, WL_OK) << one.error.message;
  Lines launches;
  for (const std::string& line : gpus::log())
    if (line.rfind("cuLaunch", 0) == 0) launches.push_back(line);
  std::sort(launches.begin(), launches.end());
  // Ranks 0, 2 and 4, and ranks 1 and 3.
  EXPECT_EQ(launches, (Lines{"cuLaunchCooperativeKernel 6 1 1, 256 1 1, 0",
                             "cuLaunchCooperativeKernel 9 1 1, 256 1 1, 0"}));
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaGrid, OfARankThatDoesNotComeIsNeverLaunched) {
  gpus::reset();
  onRanks(3, 1, [](uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
    const Code made = device.makeWindow(exchange, 1 << 16, error);
    EXPECT_EQ(made, WL_OK) << error->message;
    const OffloadedOperation given = barrierOf(device, rank, 3, 1);
    const auto synchronize = [&] {
      int32_t said = 0;
      int32_t everyones[3];
      EXPECT_EQ(exchange.all(&said, everyones, sizeof said, nullptr), WL_OK);
    };
    if (rank == 2) {
      synchronize();
      synchronize();
      EXPECT_EQ(device.start("barrier", nullptr, given, error), WL_DEVICE);
      EXPECT_TRUE(says(*error, "another rank that shares it has given up"));
      return WL_OK;
    }
    EXPECT_EQ(device.start("barrier", nullptr, given, error), WL_OK);
    // Neither gives up before the other one has joined.
    synchronize();
    EXPECT_EQ(device.await("barrier", 5 * kMs, error), WL_DEADLINE_EXCEEDED);
    EXPECT_TRUE(says(*error, "2 of its 3 ranks have come"));
    device.writeStop(given.stop, given.line.sequence, error);
    EXPECT_EQ(device.await("barrier", 20'000 * kMs, error), WL_DEVICE);
    EXPECT_TRUE(says(*error, "never began"));
    synchronize();
    return WL_OK;
  });
  EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 0);
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaGrid, ACopyWhoseLaunchFailedMayLast) {
  // Neither 600 nor 2 says that the device has failed; 719 does, and 0 that the copy has ended.
  for (const int result : {600, 2, 719, 0}) {
    gpus::reset();
    onRanks(2, 1, [&](uint32_t rank, CudaRankDevice& device, AllRanks& exchange,
                      wl_error_t* error) {
      EXPECT_EQ(device.makeWindow(exchange, 1 << 16, error), WL_OK) << error->message;
      EXPECT_EQ(device.lasting(), nullptr);
      int32_t said = 0;
      int32_t both[2];
      if (rank == 0) {
        EXPECT_EQ(device.start("barrier", nullptr, barrierOf(device, 0, 2, 1), error), WL_OK);
      }
      EXPECT_EQ(exchange.all(&said, both, sizeof said, error), WL_OK);
      if (rank == 1) {
        if (result != 0) gpus::failCall("cuStreamQuery", 0, result);
        // More cores than the device runs at a time, which its driver refuses.
        EXPECT_NE(device.start("barrier", nullptr, barrierOf(device, 1, 2, 1000), error), WL_OK);
        gpus::failCall("", 1, 0);
      }
      EXPECT_EQ(exchange.all(&said, both, sizeof said, error), WL_OK);
      const bool lasts = result == 600 || result == 2;
      EXPECT_STREQ(device.lasting(), lasts ? "a copy" : nullptr) << rank << ", " << result;
      gpus::held();  // lets the copy end, so that all can be given back
      return WL_OK;
    });
    EXPECT_EQ(gpus::held(), "");
  }
}

TEST(CudaStreams, WhatAStreamMayStillDoIsNotOver) {
  // 2: nobody says that the device has failed; 719: it has.
  for (const int result : {2, 719}) {
    gpus::reset();
    onRanks(1, 1, [&](uint32_t, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
      Streams& streams = device.streams();
      EXPECT_EQ(streams.open(error), WL_OK) << error->message;
      EXPECT_EQ(streams.makeWindow(exchange, 1 << 16, error), WL_OK) << error->message;
      windlass_test::UserStream stream(0);
      gpus::holdStream(stream.handle(), true);
      gpus::failCall("cuEventRecord", 0, result);
      uint64_t mark = 0;
      const auto* const in = gpus::tensor<unsigned char>(0, 1000);
      const Streams::Placed at = {stream.handle(), 0, 1};
      EXPECT_NE(streams.mark(at, {{streams.part(0), in, 1000}, {}, {}}, &mark, error), WL_OK);
      streams.withdraw(at);
      bool isOver = false;
      EXPECT_EQ(streams.isOver(1, &isOver, error), WL_OK) << error->message;
      EXPECT_EQ(isOver, result == 719);
      gpus::failCall("cuEventQuery", 0, 719);
      EXPECT_EQ(streams.isOver(1, &isOver, error), result == 2 ? WL_OK : WL_DEVICE);
      if (result == 2) {
        EXPECT_TRUE(isOver);
      }
      gpus::failCall("", 1, 0);
      gpus::holdStream(stream.handle(), false);
      stream.synchronize();
      EXPECT_EQ(streams.close(error), WL_OK) << error->message;
      return WL_OK;
    });
  }
}

TEST(CudaGrid, EndsWhereItsRanksAreToldToStop) {
  gpus::reset();
  gpus::isStuck(1, true);
  std::atomic<int> stopped{0};
  onRanks(2, 1, [&](uint32_t rank, CudaRankDevice& device, AllRanks& exchange, wl_error_t* error) {
    EXPECT_EQ(device.makeWindow(exchange, 1 << 16, error), WL_OK);
    const OffloadedOperation given = barrierOf(device, rank, 2, 2);
    EXPECT_EQ(device.start("barrier", nullptr, given, error), WL_OK);
    EXPECT_EQ(device.await("barrier", 20 * kMs, error), WL_DEADLINE_EXCEEDED);
    EXPECT_TRUE(says(*error, "barrier did not end on device 0"));
    device.writeStop(given.stop, given.line.sequence, error);
    if (++stopped == 2) gpus::isStuck(1, false);
    EXPECT_EQ(device.await("barrier", 20'000 * kMs, error), WL_OK) << error->message;
    return WL_OK;
  });
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaAbi, ListsDevices) {
  gpus::reset();
  gpus::devices(2);
  wl_error_t error = blankError();
  EXPECT_EQ(wl_cuda_find(&error), WL_OK) << error.message;
  uint32_t count = 0;
  EXPECT_EQ(wl_cuda_device_count(&count, &error), WL_OK);
  EXPECT_EQ(count, 2u);
  wl_cuda_device_t device = {};
  device.struct_size = sizeof device;
  ASSERT_EQ(wl_cuda_device(1, &device, &error), WL_OK) << error.message;
  EXPECT_STREQ(device.name, "Stand-in 1");
  EXPECT_EQ(device.major, 9);
  EXPECT_EQ(device.minor, 0);
  EXPECT_EQ(device.driver_version, 13000);
  EXPECT_EQ(device.multiprocessors, 16);
  EXPECT_EQ(device.total_bytes, uint64_t{1} << 30);
  EXPECT_EQ(device.free_bytes, uint64_t{1} << 28);
  EXPECT_EQ(wl_cuda_device(2, &device, &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(says(error, "there is no device 2: this process sees 2"));
  int32_t can = 0;
  EXPECT_EQ(wl_cuda_peer(0, 1, &can, &error), WL_OK);
  EXPECT_EQ(can, 1);
  gpus::reaches(false);
  EXPECT_EQ(wl_cuda_peer(0, 1, &can, &error), WL_OK);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(wl_cuda_peer(0, 7, &can, &error), WL_INVALID_ARGUMENT);
  EXPECT_EQ(gpus::held(), "");
}

TEST(CudaAbi, TakesMemoryBesideOtherMemoryOfADevice) {
  gpus::reset();
  gpus::devices(2);
  const auto beside = reinterpret_cast<uint64_t>(gpus::tensor<char>(1, 100));
  const auto make = [&](uint64_t of, uint64_t* address, wl_error_t* error) {
    *error = blankError();
    return wl_cuda_memory_alloc(of, 1000, address, error);
  };
  wl_error_t error = {};
  uint64_t address = 0;
  ASSERT_EQ(make(beside, &address, &error), WL_OK) << error.message;
  // The context of its device stays too.
  EXPECT_EQ(gpus::held(), "1 contexts, 2 allocations");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(reinterpret_cast<const char*>(address)[i], 0);
  uint64_t again = 0;
  EXPECT_EQ(make(address, &again, &error), WL_OK) << error.message;
  wl_cuda_memory_free(address);
  wl_cuda_memory_free(again);
  wl_cuda_memory_free(0);
  EXPECT_EQ(gpus::held(), "1 allocations");
  char here = 0;
  EXPECT_EQ(make(reinterpret_cast<uint64_t>(&here), &again, &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(says(error, "is in no device's memory"));
  gpus::failCall("cuMemAlloc", gpus::countCalls("cuMemAlloc") + 1, kCuOutOfMemory);
  EXPECT_EQ(make(beside, &again, &error), WL_RESOURCE);
  EXPECT_TRUE(says(error, "cuMemAlloc of a device's memory, asked for 1000 bytes where"))
      << error.message;
  for (const char* call : {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                           "cuPointerGetAttribute", "cuMemAlloc", "cuMemsetD8",
                           "cuStreamQuery"}) {
    gpus::reset();
    gpus::failCall(call, 1, 999);
    const auto there = reinterpret_cast<uint64_t>(gpus::tensor<char>(0, 100));
    EXPECT_EQ(make(there, &address, &error), WL_DEVICE) << call;
    EXPECT_TRUE(says(error, call)) << call << ": " << error.message;
    EXPECT_EQ(gpus::held(), "1 allocations") << call;
  }
}

TEST(CudaAbi, KeepsMemoryWhoseDeviceDoesNotEndToClearIt) {
  gpus::reset();
  const auto beside = reinterpret_cast<uint64_t>(gpus::tensor<char>(0, 100));
  gpus::failCall("cuStreamQuery", 0, kCuNotReady);
  const int64_t limitNs = copyLimitNs.exchange(20'000'000);
  wl_error_t error = blankError();
  uint64_t address = 0;
  EXPECT_EQ(wl_cuda_memory_alloc(beside, 1000, &address, &error), WL_DEVICE);
  copyLimitNs = limitNs;
  EXPECT_TRUE(says(error, "did not clear 1000 bytes within 20 ms")) << error.message;
  EXPECT_EQ(address, 0u);
  // The device may still write this memory.
  EXPECT_EQ(gpus::held(), "1 contexts, 2 allocations");
}

TEST(CudaAbi, LeavesNoContextWhateverFails) {
  for (const char* call : {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem",
                           "cuDriverGetVersion", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
                           "cuCtxPushCurrent", "cuMemGetInfo"}) {
    gpus::reset();
    gpus::failCall(call, 1, 999);
    wl_error_t error = blankError();
    wl_cuda_device_t device = {};
    device.struct_size = sizeof device;
    EXPECT_EQ(wl_cuda_device(0, &device, &error), WL_DEVICE) << call;
    EXPECT_TRUE(says(error, std::string(call) + " of "));
    EXPECT_EQ(gpus::held(), "") << call;
  }
}

}  // namespace host_side_test
}  // namespace windlass::cuda
