// SPDX-License-Identifier: Apache-2.0
// The host side of Ascend devices against the stand-in of their runtime: which calls it makes, in
// which order and with what; that whichever of them fails, every rank is told and nothing stays
// behind; and that bytes get where kernels put them.
#include "native/ascend/acl/device.h"
#include "tests/native/acl/stand_in.h"

namespace windlass::acl {
namespace host_side_test {

constexpr uint64_t kPage = uint64_t{64} << 10;  // a page of the stand-in

std::string text(const wl_error_t& error) {
  return error.message;
}

// Result of one rank.
struct Outcome {
  Code code = WL_OK;
  wl_error_t error = blankError();
};

// Runs body(rank, device, exchange, error) on a thread for each rank, with device `rank` open.
template <class Body>
std::vector<Outcome> onRanks(const StandIn& standIn, uint32_t ranks, Body&& body) {
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::thread> threads;
  Exchange shared(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome& own = outcomes[rank];
      Device device;
      own.code = device.open(standIn.acl, static_cast<int32_t>(rank), nullptr, &own.error);
      ASSERT_EQ(own.code, WL_OK) << text(own.error);
      Exchange::Seat seat(shared, rank);
      own.code = body(rank, device, seat, &own.error);
      // Nobody gives back what a peer still uses.
      int32_t said = own.code;
      std::vector<int32_t> everyones(ranks);
      EXPECT_EQ(seat.all(&said, everyones.data(), sizeof said, nullptr), WL_OK);
      wl_error_t closing = blankError();
      const Code closed = device.close(&closing);
      if (own.code == WL_OK && closed != WL_OK) own = {closed, closing};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

TEST(AclLibrary, SaysWhatItLookedForAndWhere) {
  Acl acl;
  wl_error_t error = blankError();
  ASSERT_EQ(Acl::open("/nonexistent/toolkit", &acl, &error), WL_UNSUPPORTED);
  for (const char* said : {"libascendcl.so", "ASCEND_HOME_PATH is /nonexistent/toolkit",
                           "/nonexistent/toolkit/lib64/libascendcl.so", "dynamic linker"}) {
    EXPECT_NE(text(error).find(said), std::string::npos) << said << " in " << error.message;
  }
  ASSERT_EQ(Acl::open(nullptr, &acl, &error), WL_UNSUPPORTED);
  EXPECT_NE(text(error).find("ASCEND_HOME_PATH is not set"), std::string::npos) << error.message;
  EXPECT_EQ(acl.aclInit, nullptr);
}

TEST(AclLibrary, NamesTheCallThatAnotherLibraryLacks) {
  Acl acl;
  wl_error_t error = blankError();
  const std::string home = StandIn::home("acl_empty");
  EXPECT_EQ(Acl::open(home.c_str(), &acl, &error), WL_UNSUPPORTED);
  EXPECT_NE(text(error).find("lacks aclInit"), std::string::npos) << error.message;
  EXPECT_EQ(acl.aclrtMalloc, nullptr);
  EXPECT_EQ(dlopen((home + "/lib64/libascendcl.so").c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(AclDevices, AreThoseThatTheProcessSees) {
  uint32_t number = 0;
  wl_error_t error = blankError();
  EXPECT_EQ(driverDevice(nullptr, 3, &number, &error), WL_OK);
  EXPECT_EQ(number, 3u);
  EXPECT_EQ(driverDevice("", 5, &number, &error), WL_OK);
  EXPECT_EQ(number, 5u);
  EXPECT_EQ(driverDevice("4,6,2", 1, &number, &error), WL_OK);
  EXPECT_EQ(number, 6u);
  EXPECT_EQ(driverDevice("4,6,2", 2, &number, &error), WL_OK);
  EXPECT_EQ(number, 2u);
  for (const char* wrong : {"4,6,2", "4,,2", "x", "4;6;2;1", "4,6,2,-1"}) {
    EXPECT_EQ(driverDevice(wrong, 3, &number, &error), WL_INVALID_ARGUMENT) << wrong;
    EXPECT_NE(text(error).find(wrong), std::string::npos) << error.message;
  }
  EXPECT_EQ(driverDevice(nullptr, -1, &number, &error), WL_INVALID_ARGUMENT);
}

using Lines = std::vector<std::string>;

TEST(AclCalls, OfADeviceComeInOrder) {
  const StandIn& standIn = StandIn::fresh();
  wl_error_t error = blankError();
  {
    Device device;
    ASSERT_EQ(device.open(standIn.acl, 3, nullptr, &error), WL_OK) << error.message;
    void* memory = nullptr;
    uint64_t back = 0;
    const uint64_t sent = 0x1234567890abcdef;
    ASSERT_EQ(device.allocate(4096, &memory, &error), WL_OK);
    ASSERT_EQ(device.zero(memory, 4096, &error), WL_OK);
    ASSERT_EQ(device.fromDevice(&back, memory, sizeof back, &error), WL_OK);
    EXPECT_EQ(back, 0u);
    ASSERT_EQ(device.toDevice(memory, &sent, sizeof sent, &error), WL_OK);
    ASSERT_EQ(device.fromDevice(&back, memory, sizeof back, &error), WL_OK);
    EXPECT_EQ(back, sent);
    ASSERT_EQ(device.free(memory, &error), WL_OK);
    ASSERT_EQ(device.close(&error), WL_OK) << error.message;
  }
  EXPECT_EQ(standIn.held(), 0);
  Lines lines = standIn.log(3);
  EXPECT_EQ(lines, (Lines{"aclrtCreateStream", "aclrtMalloc 4096 0", "aclrtMemset 4096 0 4096",
                          "aclrtMemcpy 8 8 2", "aclrtMemcpy 8 8 1", "aclrtMemcpy 8 8 2",
                          "aclrtFree", "aclrtDestroyStream", "aclrtResetDevice 3"}));
  EXPECT_EQ(standIn.log(-1), (Lines{"aclInit null", "aclrtSetDevice 3"}));
}

TEST(AclCalls, OfAWindowComeInOrder) {
  const StandIn& standIn = StandIn::fresh();
  standIn.processes();
  const auto outcomes =
      onRanks(standIn, 3, [](uint32_t, Device& device, AllRanks& exchange, wl_error_t* error) {
        DeviceWindow window;
        const Code code = window.make(device, exchange, 100, error);
        if (code != WL_OK) return code;
        EXPECT_EQ(window.bytes(), kPage);
        return window.close(error);
      });
  for (const Outcome& one : outcomes) ASSERT_EQ(one.code, WL_OK) << text(one.error);
  EXPECT_EQ(standIn.held(), 0);
  EXPECT_EQ(
      standIn.log(1),
      (Lines{"aclrtCreateStream", "aclrtDeviceGetBareTgid",
             "aclrtMemGetAllocationGranularity device 1 type 1, 0",
             "aclrtMallocPhysical 65536 device 1 type 1, kinds 0 0 0, 0",
             "aclrtReserveMemAddress 65536 0 null 0", "aclrtMapMem 65536 0 0",
             "aclrtMemSetAccess 65536 1:1:3",
             // The memory is zero before the handle is announced, and only the named processes may
             // read it.
             "aclrtMemset 65536 0 65536", "aclrtMemExportToShareableHandle 0 0",
             "aclrtMemSetPidToShareableHandle 1000 1002",
             // Each peer, from the next one on.
             "aclrtDeviceCanAccessPeer 1 2", "aclrtDeviceEnablePeerAccess 2 0",
             "aclrtDevicePeerAccessStatus 1 2", "aclrtDevicePeerAccessStatus 1 2",
             "aclrtMemImportFromShareableHandle 1", "aclrtReserveMemAddress 65536 0 null 0",
             "aclrtMapMem 65536 0 0", "aclrtMemSetAccess 65536 1:1:3",
             "aclrtDeviceCanAccessPeer 1 0", "aclrtDeviceEnablePeerAccess 0 0",
             "aclrtDevicePeerAccessStatus 1 0", "aclrtDevicePeerAccessStatus 1 0",
             "aclrtMemImportFromShareableHandle 1", "aclrtReserveMemAddress 65536 0 null 0",
             "aclrtMapMem 65536 0 0", "aclrtMemSetAccess 65536 1:1:3",
             // The context, and all of it in reverse.
             "aclrtMalloc 1056 0", "aclrtMemcpy 1056 1056 1", "aclrtFree", "aclrtUnmapMem",
             "aclrtReleaseMemAddress", "aclrtFreePhysical", "aclrtUnmapMem",
             "aclrtReleaseMemAddress", "aclrtFreePhysical", "aclrtUnmapMem",
             "aclrtReleaseMemAddress", "aclrtFreePhysical", "aclrtDestroyStream",
             "aclrtResetDevice 1"}));
}

TEST(AclCalls, OfOneProcessExportNothing) {
  const StandIn& standIn = StandIn::fresh();
  const auto outcomes =
      onRanks(standIn, 2, [](uint32_t rank, Device& device, AllRanks& exchange, wl_error_t* error) {
        DeviceWindow window;
        Code code = window.make(device, exchange, kPage, error);
        if (code != WL_OK) return code;
        // Its own part as it is, at the address that the peer has for it too.
        EXPECT_NE(window.part(rank), window.part(1 - rank));
        auto* theirs = static_cast<unsigned char*>(window.part(1 - rank));
        theirs[7] = static_cast<unsigned char>(rank + 1);
        int32_t done = 0;
        int32_t all[2];
        code = exchange.all(&done, all, sizeof done, error);
        EXPECT_EQ(static_cast<unsigned char*>(window.part(rank))[7], 2 - rank);
        // Nobody unmaps before the peer has looked.
        if (code == WL_OK) code = exchange.all(&done, all, sizeof done, error);
        const Code closed = window.close(error);
        return code == WL_OK ? closed : code;
      });
  for (const Outcome& one : outcomes) ASSERT_EQ(one.code, WL_OK) << text(one.error);
  EXPECT_EQ(standIn.held(), 0);
  for (const std::string& line : standIn.log(0)) {
    EXPECT_EQ(line.find("Shareable"), std::string::npos) << line;
    if (line.find("aclrtMemSetAccess") == 0) {
      EXPECT_EQ(line, "aclrtMemSetAccess 65536 0:1:3 1:1:3");
    }
  }
}

// A kernel of the test: each rank writes a word of its own into every part. It uses only the
// context.
struct Arguments {
  uint64_t word;
};

const StandIn* launching = nullptr;

AclError launchWords(uint32_t blocks, AclStream stream, void* context, void* arguments) {
  EXPECT_EQ(blocks, 4u);
  launching->enqueue(
      stream,
      [](void* of, void* with) {
        const auto& all = *static_cast<const DeviceContext*>(of);
        for (uint32_t rank = 0; rank < all.rankCount; ++rank) {
          reinterpret_cast<uint64_t*>(all.windowsIn[rank])[all.rankId] =
              static_cast<const Arguments*>(with)->word;
        }
      },
      context, arguments);
  return kAclOk;
}

// Runs a kernel and waits until it has ended. After limitNs the device runs no other one.
Code run(Device& device, Device::Launch launch, uint32_t blocks, void* context,
         const void* arguments, uint64_t bytes, int64_t limitNs, wl_error_t* error) {
  Code code = device.start("words", launch, blocks, context, arguments, bytes, error);
  if (code != WL_OK) return code;
  code = device.await("words", limitNs, error);
  if (code != WL_OK) device.giveUp();
  return code;
}

TEST(AclKernels, ReachEveryPartByTheContext) {
  constexpr uint32_t kRanks = 4;
  const StandIn& standIn = StandIn::fresh();
  standIn.processes();
  launching = &standIn;
  const auto outcomes = onRanks(
      standIn, kRanks, [](uint32_t rank, Device& device, AllRanks& exchange, wl_error_t* error) {
        DeviceWindow window;
        Code code = window.make(device, exchange, 3 * kPage - 5, error);
        if (code != WL_OK) return code;
        EXPECT_EQ(window.bytes(), 3 * kPage);
        const Arguments arguments = {0x1111 * (rank + 1ull)};
        code = run(device, launchWords, 4, window.context(), &arguments, sizeof arguments,
                   60'000'000'000, error);
        int32_t said = code;
        int32_t all[kRanks];
        const Code met = exchange.all(&said, all, sizeof said, error);
        uint64_t words[kRanks + 1] = {};
        const Code read = device.fromDevice(words, window.part(rank), sizeof words, error);
        for (uint32_t of = 0; of < kRanks; ++of) EXPECT_EQ(words[of], 0x1111 * (of + 1ull));
        EXPECT_EQ(words[kRanks], 0u);
        exchange.all(&said, all, sizeof said, nullptr);
        const Code closed = window.close(error);
        return code != WL_OK ? code : met != WL_OK ? met : read != WL_OK ? read : closed;
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.code, WL_OK) << text(one.error);
  EXPECT_EQ(standIn.held(), 0);
}

TEST(AclKernels, ThatDoNotEndAreAPassedDeadlineAndTheDeviceTakesNoOther) {
  const StandIn& standIn = StandIn::fresh();
  launching = &standIn;
  Device device;
  wl_error_t error = blankError();
  ASSERT_EQ(device.open(standIn.acl, 0, nullptr, &error), WL_OK) << error.message;
  standIn.isStuck(0, 1);
  const Arguments arguments = {1};
  EXPECT_EQ(run(device, launchWords, 4, nullptr, &arguments, sizeof arguments, 2'500'000,
                &error),
            WL_DEADLINE_EXCEEDED);
  EXPECT_NE(text(error).find("words did not end on device 0 within 3 ms"), std::string::npos)
      << error.message;
  standIn.isStuck(0, 0);
  EXPECT_EQ(run(device, launchWords, 4, nullptr, &arguments, sizeof arguments, 2'500'000,
                &error),
            WL_DEVICE);
  EXPECT_EQ(device.close(&error), WL_OK);
  EXPECT_EQ(standIn.held(), 0);
}

// Each call of rank 1 fails in turn. That rank names the call and the number. The others fail too,
// or had the window already. Nothing stays behind except the object that the failed call should
// have freed.
TEST(AclFailures, OfEachCallAreToldToAllAndLeaveNothing) {
  constexpr uint32_t kRanks = 3;
  constexpr int kError = 507899;
  int failed = 0;
  int undone = 0;
  for (int fails = 1; fails <= 100; ++fails) {
    const StandIn& standIn = StandIn::fresh();
    standIn.processes();
    launching = &standIn;
    // The stream is there before the first call of a window.
    const int number = fails + 1;
    standIn.fail(1, number, kError);
    std::vector<int> isMade(kRanks);
    const auto outcomes = onRanks(
        standIn, kRanks, [&](uint32_t rank, Device& device, AllRanks& exchange, wl_error_t* error) {
          DeviceWindow window;
          Code code = window.make(device, exchange, 100, error);
          if (code == WL_OK) {
            isMade[rank] = 1;
            const Arguments arguments = {7};
            code = run(device, launchWords, 4, window.context(), &arguments, sizeof arguments,
                       60'000'000'000, error);
            int32_t said = code;
            int32_t all[kRanks];
            exchange.all(&said, all, sizeof said, nullptr);
          }
          const Code closed = window.close(code == WL_OK ? error : nullptr);
          return code == WL_OK ? closed : code;
        });
    if (standIn.calls(1) < number) {
      for (const Outcome& one : outcomes) EXPECT_EQ(one.code, WL_OK) << text(one.error);
      break;
    }
    const std::string line = standIn.call(1, number);
    const std::string call = line.substr(0, line.find(' '));
    SCOPED_TRACE("call " + std::to_string(number) + " of rank 1: " + line);
    EXPECT_EQ(outcomes[1].code, WL_DEVICE);
    EXPECT_NE(text(outcomes[1].error).find(call + " of device 1 returned 507899: EZ9999"),
              std::string::npos)
        << outcomes[1].error.message;
    for (const uint32_t rank : {0u, 2u}) {
      EXPECT_EQ(isMade[rank], isMade[1]);
      EXPECT_EQ(outcomes[rank].code, isMade[1] != 0 ? WL_OK : WL_DEVICE);
      if (isMade[1] == 0) {
        EXPECT_NE(text(outcomes[rank].error).find("rank 1 could not make its part"),
                  std::string::npos)
            << outcomes[rank].error.message;
      }
    }
    ++failed;
    // The object that the failed call should have freed stays, and so do the objects that depend on
    // it.
    const bool givesBack = call == "aclrtFree" || call == "aclrtUnmapMem" ||
                           call == "aclrtReleaseMemAddress" || call == "aclrtFreePhysical" ||
                           call == "aclrtDestroyStream" || call == "aclrtResetDevice";
    undone += givesBack ? 1 : 0;
    EXPECT_EQ(standIn.held() > 0, givesBack);
  }
  // All calls of the windows' test except the first, and the four that run a kernel. Among those
  // that free: three parts of three, the context, the arguments, the stream and the device.
  EXPECT_EQ(failed, 43);
  EXPECT_EQ(undone, 13);
  StandIn::fresh();
}

TEST(AclFailures, OfAStartAreToldAndLeaveNothing) {
  const struct {
    int on;
    int call;
    const char* name;
  } kFails[] = {{-1, 1, "aclInit"}, {-1, 2, "aclrtSetDevice"}, {4, 1, "aclrtCreateStream"}};
  for (const auto& [on, call, name] : kFails) {
    const StandIn& standIn = StandIn::fresh();
    standIn.fail(on, call, 100000);
    Device device;
    wl_error_t error = blankError();
    EXPECT_EQ(device.open(standIn.acl, 4, nullptr, &error), WL_DEVICE);
    EXPECT_NE(text(error).find(std::string(name) + " of device 4 returned 100000"),
              std::string::npos)
        << error.message;
    EXPECT_EQ(standIn.held(), 0) << name;
    // The device can be opened after that.
    EXPECT_EQ(device.open(standIn.acl, 4, nullptr, &error), WL_OK) << error.message;
    EXPECT_EQ(device.close(&error), WL_OK) << error.message;
    EXPECT_EQ(standIn.held(), 0) << name;
  }
}

TEST(AclFailures, DevicesThatDoNotReachOneAnotherAreRefusedOnAllRanks) {
  const StandIn& standIn = StandIn::fresh();
  standIn.processes();
  standIn.reaches(0);
  const auto outcomes =
      onRanks(standIn, 2, [](uint32_t, Device& device, AllRanks& exchange, wl_error_t* error) {
        DeviceWindow window;
        EXPECT_EQ(window.make(device, exchange, kPage, error), WL_UNSUPPORTED);
        // It is as it was, and can be asked again.
        return window.make(device, exchange, kPage, error);
      });
  for (const Outcome& one : outcomes) {
    EXPECT_EQ(one.code, WL_UNSUPPORTED);
    EXPECT_NE(text(one.error).find("can't reach device"), std::string::npos) << text(one.error);
  }
  EXPECT_EQ(standIn.held(), 0);
}

TEST(AclFailures, WindowsOfDifferentSizesAreAMismatch) {
  const StandIn& standIn = StandIn::fresh();
  standIn.processes();
  const auto outcomes = onRanks(
      standIn, 2, [](uint32_t rank, Device& device, AllRanks& exchange, wl_error_t* error) {
        DeviceWindow window;
        return window.make(device, exchange, (rank + 1) * kPage, error);
      });
  for (const Outcome& one : outcomes) {
    EXPECT_EQ(one.code, WL_MISMATCH);
    EXPECT_NE(text(one.error).find("a window of "), std::string::npos) << text(one.error);
  }
  EXPECT_EQ(standIn.held(), 0);
}

// Peers that state the same as rank 0, except that rank 2 lives in a process of its own.
class Echo final : public AllRanks {
 public:
  Echo(uint32_t ranks, int32_t process) : ranks_(ranks), process_(process) {}
  uint32_t rank() const override { return 0; }
  uint32_t ranks() const override { return ranks_; }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t*) override {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      auto* theirs = static_cast<unsigned char*>(everyones) + rank * bytes;
      std::memcpy(theirs, own, bytes);
      // After the code and the device.
      if (rank == 2) std::memcpy(theirs + 8, &process_, sizeof process_);
    }
    return WL_OK;
  }
  uint32_t firstBeside(uint32_t rank) const override { return rank == 2 ? 2 : 0; }
  bool goesOn() override { return true; }

 private:
  const uint32_t ranks_;
  const int32_t process_;
};

TEST(AclFailures, WhatAWindowCannotHoldIsRefusedBeforeAnythingIsMade) {
  const StandIn& standIn = StandIn::fresh();
  Device device;
  wl_error_t error = blankError();
  ASSERT_EQ(device.open(standIn.acl, 0, nullptr, &error), WL_OK) << error.message;
  const int before = standIn.held();
  const auto make = [&](uint32_t ranks, uint64_t bytes) {
    Echo exchange(ranks, 4321);
    DeviceWindow window;
    return window.make(device, exchange, bytes, &error);
  };
  EXPECT_EQ(make(65, kPage), WL_UNSUPPORTED);
  EXPECT_NE(text(error).find("65 ranks"), std::string::npos) << error.message;
  EXPECT_EQ(make(2, 0), WL_INVALID_ARGUMENT);
  EXPECT_EQ(make(2, ~uint64_t{0}), WL_INVALID_ARGUMENT);
  EXPECT_EQ(make(3, kPage), WL_UNSUPPORTED);
  EXPECT_NE(text(error).find("of which one has several"), std::string::npos) << error.message;
  EXPECT_EQ(standIn.held(), before);
  for (const std::string& line : standIn.log(0)) {
    EXPECT_EQ(line.find("aclrtMallocPhysical"), std::string::npos);
  }
}

}  // namespace host_side_test
}  // namespace windlass::acl
