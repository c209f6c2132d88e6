// SPDX-License-Identifier: Apache-2.0
// Calls of NVIDIA's driver that don't return, over the stand-in for it: whichever it is, on one
// rank, all ranks come back and name it, closing ends too, and nothing is given back that the call
// may touch. What waits for the call instead ends with the process, which has a minute. Each in a
// process of its own, since a device that does so takes nothing else.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "native/device/kept_devices.h"
#include "native/device/offload.h"
#include "tests/native/core/forks.h"
#include "tests/native/cuda/stand_in.h"
#include "tests/native/device/stream_programs.h"

namespace windlass_test {
namespace held_calls_test {

constexpr int kRanks = 3;
// Deadline of ranks that nothing holds. No test waits so long.
constexpr int64_t kLongNs = 60'000 * kMs;
// Deadline of ranks if a call of one is held. A machine on which ranks arrive later gets more.
constexpr int64_t kDeadlineNs = 1'600 * kMs;
constexpr int64_t kMostDeadlineNs = 26'000 * kMs;
constexpr size_t kAtOnce = 8;

// Runs one rank, and returns whether the result was the expected one.
using Step = std::function<int32_t(int rank, wl_comm_t* comm, int64_t deadlineNs, Error* error)>;

struct Held {
  std::string name;
  int devices;
  Step prepare;  // before the call is held
  Step run;
  bool makesWindow = false;
};

int32_t reduce(int rank, wl_comm_t* comm, int64_t deadlineNs, Error* error) {
  std::vector<int32_t> in(1000, rank);
  std::vector<int32_t> out(in.size());
  return allReduce(comm, in.data(), out.data(), in.size(), WL_I32, WL_SUM, WL_TWO_PHASE,
                   deadlineNs, error);
}

int32_t reduceOnDevice(int rank, wl_comm_t* comm, int64_t deadlineNs, Error* error, int devices) {
  auto* const in = gpus::tensor<int32_t>(rank % devices, 1000);
  return allReduce(comm, in, in + 500, 500, WL_I32, WL_SUM, WL_TWO_PHASE, deadlineNs, error);
}

int32_t makeWindow(int, wl_comm_t* comm, int64_t deadlineNs, Error* error) {
  wl_window_t* window = nullptr;
  const int32_t code = wl_device_window_create(comm, 4096, deadlineNs, &window, error);
  wl_window_free(window);
  return code;
}

// Calls of one run without a held call, except calls that are made once a process and calls that
// free objects as the communicator closes.
std::vector<std::string> callsOf(const Held& held) {
  gpus::reset();
  gpus::devices(held.devices);
  std::map<std::string, int> calls;
  {
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      if (!held.prepare) return;
      EXPECT_EQ(held.prepare(rank, comm, kLongNs, &error), WL_OK) << error.message;
    });
    const size_t before = gpus::log().size();
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      EXPECT_EQ(held.run(rank, comm, kLongNs, &error), WL_OK) << error.message;
    });
    const std::vector<std::string> log = gpus::log();
    for (size_t i = before; i < log.size(); ++i) ++calls[log[i].substr(0, log[i].find(' '))];
  }
  for (const char* once : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) calls.erase(once);
  // Threads of the window make these calls, before any rank makes its part.
  for (const char* other : {"cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuDeviceGet",
                            "cuMemUnmap", "cuMemRelease", "cuMemAddressFree"})
    if (held.makesWindow) calls.erase(other);
  std::vector<std::string> names;
  for (const auto& [name, count] : calls) names.push_back(name);
  return names;
}

constexpr int kLate = 99;

// 0, or how much is wrong; kLate where a rank came to its deadline before the call was held, and
// nothing else is wrong.
int holdOne(const Held& held, const std::string& call, int64_t deadlineNs) {
  gpus::reset();
  gpus::devices(held.devices);
  windlass::callLimitNs = deadlineNs / 4;
  std::atomic<int> wrong{0};
  std::atomic<bool> isLate{false};
  bool isStuck = false;
  const auto check = [&](bool is, const char* what, const char* message) {
    if (is) return;
    ++wrong;
    std::fprintf(stderr, "%s, %s: %s: %s\n", held.name.c_str(), call.c_str(), what, message);
  };
  {
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      if (held.prepare)
        check(held.prepare(rank, comm, kLongNs, &error) == WL_OK, "prepared", error.message);
    });
    gpus::hold(call, gpus::countCalls(call) + 1);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      int32_t code = held.run(rank, comm, deadlineNs, &error);
      // Who had its result before learns of it next.
      if (code == WL_OK) code = reduce(rank, comm, deadlineNs, &error);
      check(code == WL_DEVICE || code == WL_DEADLINE_EXCEEDED, "code", error.message);
      const bool isTold =
          contains(error.message, call) && contains(error.message, "not return from");
      if (code == WL_DEADLINE_EXCEEDED && !isTold) {
        isLate = true;
      } else {
        check(isTold, "told", error.message);
      }
    });
    isStuck = gpus::holds() > 0;
    if (!isStuck) isLate = true;
  }
  for (const char* gives : {"cuMemUnmap", "cuMemFree", "cuMemFreeHost", "cuStreamDestroy",
                            "cuMemAddressFree", "cuModuleUnload", "cuDevicePrimaryCtxRelease"}) {
    if (isStuck && call != gives)
      check(gpus::countCalls(gives) == 0, "nothing is given back", gives);
  }
  // The device takes no other work either, and the returning call writes nothing.
  {
    LocalRanks ranks(kRanks);
    std::atomic<int> refused{0};
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      if (reduce(rank, comm, kLongNs, &error) == WL_OK) return;
      refused += contains(error.message, "driver does not return from") ? 1 : 0;
    });
    if (!isLate) check(refused == kRanks, "refused", "");
  }
  gpus::letGo();
  usleep(20'000);
  return wrong > 0 ? std::min(wrong.load(), kLate - 1) : isLate ? kLate : 0;
}

std::vector<Held> all() {
  std::vector<Held> programs;
  for (const int devices : {1, 2}) {
    const std::string on = " on " + std::to_string(devices);
    programs.push_back({"the first collective" + on, devices, nullptr, reduce});
    programs.push_back({"a collective" + on, devices, reduce, reduce});
  }
  const Step onDevices = [](int rank, wl_comm_t* comm, int64_t deadlineNs, Error* error) {
    return reduceOnDevice(rank, comm, deadlineNs, error, 2);
  };
  programs.push_back({"tensors there", 2, reduce, onDevices});
  programs.push_back({"a window", 2, nullptr, makeWindow, true});
  return programs;
}

class GpusHeld : public testing::Test {
 protected:
  GpusHeld() { gpus::reset(); }
  ~GpusHeld() override { gpus::reset(); }
};

TEST_F(GpusHeld, ACallThatDoesNotReturnIsNamedByAllInTime) {
  const std::vector<Held> programs = all();
  struct One {
    const Held* held;
    std::string call;
    int end = -1;
  };
  std::vector<One> left;
  for (const Held& held : programs) {
    const std::vector<std::string> calls = callsOf(held);
    EXPECT_GE(calls.size(), 5u) << held.name;
    for (const std::string& call : calls) left.push_back({&held, call});
  }
  for (int64_t deadlineNs = kDeadlineNs; deadlineNs <= kMostDeadlineNs; deadlineNs *= 4) {
    for (size_t first = 0; first < left.size(); first += kAtOnce) {
      const size_t count = std::min(kAtOnce, left.size() - first);
      Forks forks(static_cast<int>(count), [&](int i) {
        const One& one = left[first + static_cast<size_t>(i)];
        return holdOne(*one.held, one.call, deadlineNs);
      });
      const std::vector<int> ends = forks.wait(120'000 * kMs);
      for (size_t i = 0; i < count; ++i) left[first + i].end = ends[i];
    }
    for (const One& one : left) {
      if (one.end != 0 && one.end != kLate)
        ADD_FAILURE() << one.held->name << ", " << one.call << ": " << one.end;
    }
    const auto isDecided = [](const One& one) { return one.end != kLate; };
    left.erase(std::remove_if(left.begin(), left.end(), isDecided), left.end());
  }
  for (const One& one : left)
    ADD_FAILURE() << one.held->name << ", " << one.call << ": no deadline was long enough";
}

// Runs body() in a process of its own, where it returns 0, and ends as programs do.
void inAProcess(const std::function<int()>& body) {
  Forks forks(1, [&](int) { return body(); });
  EXPECT_EQ(forks.wait(60'000 * kMs), std::vector<int>{0});
}

// Call that a window makes before any rank makes its part.
TEST_F(GpusHeld, AWindowWhoseAddressesDontComeIsRefusedInTime) {
  inAProcess([] {
    windlass::callLimitNs = 300 * kMs;
    std::atomic<int> right{0};
    {
      LocalRanks ranks(kRanks);
      gpus::hold("cuMemAddressReserve", 1);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        right += makeWindow(rank, comm, kLongNs, &error) == WL_DEVICE &&
                         contains(error.message, "does not return from cuMemAddressReserve")
                     ? 1
                     : 0;
      });
    }
    return right == kRanks && gpus::holds() == 1 ? 0 : 1;
  });
}

TEST_F(GpusHeld, AWindowThatIsNotGivenBackIsKept) {
  inAProcess([] {
    std::atomic<int> right{0};
    const uint64_t kept = windlass::KeptDevices::windows();
    {
      LocalRanks ranks(kRanks);
      gpus::hold("cuMemUnmap", 1);
      std::vector<wl_window_t*> windows(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        wl_window_t*& own = windows[static_cast<size_t>(rank)];
        right += wl_device_window_create(comm, 4096, kLongNs, &own, &error) == WL_OK ? 1 : 0;
      });
      windlass::callLimitNs = 300 * kMs;
      ranks.run([&](int rank, wl_comm_t*) { wl_window_free(windows[static_cast<size_t>(rank)]); });
    }
    const bool isKept = windlass::KeptDevices::windows() == kept + 1;
    return right == kRanks && isKept ? 0 : 1;
  });
}

// Nobody waits for the thread that looks at what is on streams.
TEST_F(GpusHeld, ALookAtStreamsThatDoesNotReturnHoldsUpNoClose) {
  inAProcess([] {
    windlass::callLimitNs = 300 * kMs;
    std::atomic<int> right{0};
    {
      LocalRanks ranks(kRanks);
      Program program(kRanks, 1, 100);
      gpus::hold("cuEventQuery", 1);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        uint64_t ticket = 0;
        right += program.sum(comm, rank, &ticket, &error) == WL_OK ? 1 : 0;
      });
      right += await([] { return gpus::holds() == 1; }) ? 0 : -1;
    }
    return right == kRanks ? 0 : 1;
  });
}

TEST_F(GpusHeld, ALookAtStreamsThatDoesNotReturnIsToldToWhoAwaits) {
  inAProcess([] {
    windlass::callLimitNs = 300 * kMs;
    std::atomic<int> named{0};
    std::atomic<int> late{0};
    {
      // That deadline is how long a look may take; the operation has a longer one.
      LocalRanks ranks(kRanks, 500 * kMs);
      Program program(kRanks, 1, 100);
      gpus::hold("cuEventQuery", 1);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        uint64_t ticket = 0;
        int32_t code = program.sum(comm, rank, &ticket, &error, kLongNs);
        int32_t isOver = 0;
        const int64_t startNs = wl_clock_ns();
        while (code == WL_OK && isOver == 0 && wl_clock_ns() - startNs < 30'000 * kMs)
          code = wl_enqueued_await(comm, ticket, 50 * kMs, &isOver, &error);
        late += code == WL_OK && isOver == 0 ? 1 : 0;
        named += contains(error.message, "does not return from cuEventQuery") ? 1 : 0;
      });
    }
    if (late != 0 || named == 0) std::fprintf(stderr, "%d late, %d named\n", late + 0, named + 0);
    return late == 0 && named >= 1 ? 0 : 1;
  });
}

TEST_F(GpusHeld, ADriverThatDoesNotOpenIsNamedInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in which nothing is open yet
  const auto opens = [] {
    windlass::cuda::openLimitNs = 100 * kMs;
    gpus::hold("cuInit", 1);
    Error error;
    const int64_t startNs = wl_clock_ns();
    EXPECT_EQ(wl_cuda_find(&error), WL_DEVICE);
    EXPECT_TRUE(contains(error.message, "does not return from cuInit")) << error.message;
    EXPECT_LT(wl_clock_ns() - startNs, 30'000 * kMs);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(opens(), testing::ExitedWithCode(0), "");
}

// Though calls are held, and static objects of the process end.
TEST_F(GpusHeld, TheProcessEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends = [] {
    windlass::callLimitNs = 100 * kMs;
    gpus::hold("cuMemAlloc", 1);
    for (int64_t deadlineNs = kDeadlineNs; gpus::holds() == 0 && deadlineNs <= kMostDeadlineNs;
         deadlineNs *= 4) {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        EXPECT_NE(reduce(rank, comm, deadlineNs, &error), WL_OK);
      });
    }
    std::exit(testing::Test::HasFailure() || gpus::holds() != 1 ? 1 : 0);
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "");
}

}  // namespace held_calls_test
}  // namespace windlass_test
