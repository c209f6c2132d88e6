// SPDX-License-Identifier: Apache-2.0
// A process that ends while its threads use wires: UCX's destructors run meanwhile.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "native/hosts/ucx/wire.h"
#include "tests/native/core/forks.h"

namespace windlass_test {
namespace host_ending_test {

using windlass::Wire;

constexpr int kWell = 1;

// True in a process that ends while UCX is in use: what UCX then holds is no leak.
bool endsEarly = false;

#if defined(__SANITIZE_ADDRESS__)
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return endsEarly; }
#endif

std::function<int()>& atEnd() {
  static auto* const body = new std::function<int()>;
  return *body;
}

// Ends this process by exit(0), and runs `body` once all destructors have run. The process ends
// with its result.
[[noreturn]] void endWith(std::function<int()> body) {
  atEnd() = std::move(body);
  endsEarly = true;
  struct sigaction action = {};
  action.sa_handler = [](int) { syscall(SYS_exit_group, atEnd()()); };
  sigaction(SIGSYS, &action, nullptr);
  // A signal in place of exit_group(0).
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(100);
  std::exit(0);
}

class Ends final : public windlass::WireEnds {
 public:
  std::function<void()> onMessage = [] {};

 private:
  void arrived(Run, Run) override { onMessage(); }
  void lost(uint32_t, const char*) override {}
  void lackMemory() override {}
};

// Two wires, each connected to the other. They are never freed.
struct Pair {
  Ends ends;
  std::unique_ptr<Wire> wires[2];
};

windlass::Code open(Ends& ends, std::unique_ptr<Wire>* wire) {
  Error error;
  return windlass::openWire({"lo", nullptr, nullptr}, ends, wire, &error);
}

Pair& makePair() {
  auto* const pair = new Pair;
  Error error;
  std::vector<unsigned char> names[2];
  for (int i = 0; i < 2; ++i) {
    if (open(pair->ends, &pair->wires[i]) != WL_OK) _exit(100);
    if (pair->wires[i]->address(&names[i], &error) != WL_OK) _exit(100);
  }
  for (int i = 0; i < 2; ++i) {
    uint32_t peer = 0;
    const std::vector<unsigned char>& name = names[1 - i];
    if (pair->wires[i]->connect(name.data(), name.size(), &peer, &error) != WL_OK) _exit(100);
  }
  return *pair;
}

bool send(Wire& wire) {
  static const unsigned char bytes[4'000] = {};
  const Wire::Part part = {bytes, sizeof bytes};
  return wire.send(0, &part, 1, nullptr);
}

// Each thread uses one of the wires.
void drive(Pair& pair, bool sends) {
  for (std::unique_ptr<Wire>& each : pair.wires) {
    std::thread([&wire = *each, sends] {
      for (;;) {
        if (sends) [[maybe_unused]] const bool isSent = send(wire);
        wire.progress();
        wire.arm();
      }
    }).detach();
  }
}

// Calls of UCX that come after its destructors end the process by a signal, mostly.
TEST(HostEnding, WhileThreadsOpenAndCloseWires) {
  const int rounds = longForm() ? 100 : 5;
  for (int round = 0; round < rounds; ++round) {
    Forks forks(1, [](int) {
      static std::atomic<int> opened{0};
      for (int i = 0; i < 2; ++i) {
        std::thread([] {
          auto& ends = *new Ends;
          for (std::unique_ptr<Wire> wire;; wire.reset()) opened += open(ends, &wire) == WL_OK;
        }).detach();
      }
      if (!await([] { return opened > 2; })) return 100;
      endWith([] {
        usleep(50'000);
        return kWell;
      });
    });
    ASSERT_EQ(std::vector<int>{kWell}, forks.wait(20'000 * kMs));
  }
}

TEST(HostEnding, WiresDoNothingAfterIt) {
  Forks forks(1, [](int) {
    Pair& pair = makePair();
    static std::atomic<int> arrived{0};
    pair.ends.onMessage = [] { ++arrived; };
    static std::unique_ptr<Wire> spare;
    if (open(pair.ends, &spare) != WL_OK) return 100;
    drive(pair, true);
    if (!await([] { return arrived > 10; })) return 100;
    endWith([&pair] {
      const int before = arrived;
      usleep(20'000);
      if (arrived != before) return 2;
      Error error;
      Wire& wire = *pair.wires[0];
      std::vector<unsigned char> name;
      uint64_t into = 0;
      const auto unread = std::make_shared<std::atomic<uint32_t>>(0);
      std::unique_ptr<Wire> late;
      if (open(pair.ends, &late) != WL_CLOSED || late != nullptr) return 3;
      if (wire.address(&name, &error) != WL_CLOSED) return 4;
      const bool isSent = send(wire) && wire.get({0, 0, 0}, &into, sizeof into, unread);
      if (!isSent || *unread != 1 || wire.isLost(0)) return 5;
      if (wire.progress() != 0 || wire.flush(1'000 * kMs)) return 6;
      spare.reset();
      return kWell;
    });
  });
  ASSERT_EQ(std::vector<int>{kWell}, forks.wait(20'000 * kMs));
}

// Two wires whose threads are inside UCX as the process ends, by one of them or not.
void endInside(bool byItself, int64_t leastNs, int64_t mostNs) {
  Forks forks(1, [=](int) {
    Pair& pair = makePair();
    static std::atomic<bool> isInside{false};
    static int64_t begun = 0;
    const auto end = [=] {
      begun = wl_clock_ns();
      endWith([=] {
        const int64_t tookNs = wl_clock_ns() - begun;
        return tookNs >= leastNs && tookNs < mostNs ? kWell : 2;
      });
    };
    pair.ends.onMessage = [=] {
      if (byItself) end();
      isInside = true;
      for (;;) pause();
    };
    if (!send(*pair.wires[0])) return 100;
    drive(pair, false);
    if (byItself) {
      for (;;) pause();
    }
    if (!await([] { return isInside.load(); })) return 100;
    end();
    return 100;
  });
  ASSERT_EQ(std::vector<int>{kWell}, forks.wait(20'000 * kMs));
}

TEST(HostEnding, ByTheThreadThatIsInside) { endInside(true, 0, 900 * kMs); }

TEST(HostEnding, WaitsForAThreadThatIsInsideForASecond) {
  endInside(false, 900 * kMs, 10'000 * kMs);
}

}  // namespace host_ending_test
}  // namespace windlass_test
