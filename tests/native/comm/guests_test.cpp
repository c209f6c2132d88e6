// SPDX-License-Identifier: Apache-2.0
// Ranks in processes of their own, which meet by the C ABI alone, and what the others learn of one
// that dies, stops or closes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "native/comm/group.h"
#include "tests/native/comm/local_ranks.h"

namespace {

// Signals end a reservation of more bytes, as a timer's do on kernels that let them.
std::atomic<int64_t> uninterrupted{INT64_MAX};
std::atomic<int> interruptions{0};
constexpr int kTooMany = 100'000;

}  // namespace

extern "C" int fallocate(int file, int mode, off_t offset, off_t length) {
  if (length <= uninterrupted)
    return static_cast<int>(syscall(SYS_fallocate, file, mode, offset, length));
  errno = ++interruptions < kTooMany ? EINTR : ENOSPC;
  return -1;
}

namespace windlass_test {
namespace {

constexpr uint64_t kSegment = 1 << 20;
constexpr int kRanks = 3;

wl_group_config_t configOf(int ranks) {
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.first_sequence = 0xffffff00u;
  config.deadline_ns = 20'000 * kMs;
  return config;
}

wl_process_t self() {
  wl_process_t process = {};
  process.struct_size = sizeof process;
  Error error;
  if (wl_process_self(&process, &error) != WL_OK) std::abort();
  return process;
}

// What the parent hands to its children: the memory, and a place where each tells of itself.
struct Meeting {
  std::atomic<int> ready[kRanks];
  wl_process_t processes[kRanks];
};

class Memory {
 public:
  Memory() {
    const wl_group_config_t config = configOf(kRanks);
    Error error;
    if (wl_group_block_bytes(&config, &blockBytes_, &error) != WL_OK) std::abort();
    const uint64_t bytes = blockBytes_ + kRanks * kSegment + 4096;
    if (wl_memory_share(bytes, &file_, &error) != WL_OK) std::abort();
    map();
    if (wl_group_lay_out(&config, memory_, blockBytes_, &error) != WL_OK) std::abort();
  }
  ~Memory() {
    wl_memory_unmap(memory_, bytes_);
    close(file_);
  }

  // The parent's mapping is not the child's.
  void map() {
    void* memory = nullptr;
    Error error;
    if (wl_memory_map(file_, &memory, &bytes_, &error) != WL_OK) std::abort();
    memory_ = static_cast<unsigned char*>(memory);
  }

  Meeting& meeting() const { return *reinterpret_cast<Meeting*>(memory_ + bytes_ - 4096); }
  uint32_t* segment(int rank) const {
    return reinterpret_cast<uint32_t*>(memory_ + blockBytes_ + rank * kSegment);
  }
  wl_group_t* attach() const {
    wl_group_t* group = nullptr;
    Error error;
    if (wl_group_attach(memory_, blockBytes_, &group, &error) != WL_OK) std::abort();
    if (wl_group_add_window(group, memory_ + blockBytes_, kSegment, kSegment, &error) != WL_OK)
      std::abort();
    return group;
  }

 private:
  uint64_t blockBytes_ = 0;
  uint64_t bytes_ = 0;
  int32_t file_ = -1;
  unsigned char* memory_ = nullptr;
};

// One rank in a process of its own, joined, that watches all others.
struct Guest {
  Guest(Memory& shared, int own, int64_t silenceNs) : rank(own), memory(shared) {
    memory.map();
    Meeting& meeting = memory.meeting();
    meeting.processes[rank] = self();
    meeting.ready[rank] = 1;
    group = memory.attach();
    Error error;
    if (wl_group_join(group, rank, &comm, &error) != WL_OK) std::abort();
    for (int32_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      while (meeting.ready[peer] == 0) usleep(100);
      const wl_process_t& process = meeting.processes[peer];
      if (wl_group_watch(group, &process, &peer, 1, silenceNs, &error) != WL_OK) std::abort();
    }
  }
  ~Guest() {
    wl_comm_free(comm);
    wl_group_release(group);
  }

  int rank;
  Memory& memory;
  wl_group_t* group = nullptr;
  wl_comm_t* comm = nullptr;
};

// Runs the body in a process for each rank; what it returns is 0 where it found nothing wrong. The
// results: a signal as -1.
template <class Body>
std::vector<int> inProcesses(int64_t silenceNs, Body&& body,
                             const std::function<void(const std::vector<pid_t>&)>& meanwhile = {}) {
  Memory memory;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      int result = 0;
      {
        Guest guest(memory, rank, silenceNs);
        result = body(guest);
      }
      _exit(result);
    }
    children.push_back(child);
  }
  if (meanwhile) meanwhile(children);
  std::vector<int> results;
  for (const pid_t child : children) {
    int status = 0;
    const int64_t start = wl_clock_ns();
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (wl_clock_ns() - start > 60'000 * kMs) kill(child, SIGKILL);
      usleep(1000);
    }
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return results;
}

// 0, or the line of the first check that fails.
#define CHECK_IN_CHILD(condition) \
  if (!(condition)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), 1

TEST(Guests, MeetByTheCAbiAndMoveWhatLiesInWindows) {
  const std::vector<int> results = inProcesses(0, [](Guest& guest) {
    Error error;
    constexpr uint64_t kCount = 5'000;
    uint32_t* own = guest.memory.segment(guest.rank);
    for (int round = 0; round < 20; ++round) {
      for (uint64_t i = 0; i < kCount; ++i)
        own[i] = static_cast<uint32_t>(round * 1'000'000 + guest.rank * 100'000 + i);
      uint32_t* out = own + kCount;
      CHECK_IN_CHILD(allGather(guest.comm, own, out, kCount, WL_U32, 0, &error) == WL_OK);
      for (int from = 0; from < kRanks; ++from) {
        for (uint64_t i = 0; i < kCount; ++i) {
          CHECK_IN_CHILD(out[from * kCount + i] ==
                         static_cast<uint32_t>(round * 1'000'000 + from * 100'000 + i));
        }
      }
    }
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

// A rank that has closed is missed by nobody, whatever becomes of its process.
TEST(Guests, EndAfterTheyHaveClosedWithoutHarmToOthers) {
  const std::vector<int> results = inProcesses(0, [](Guest& guest) {
    Error error;
    CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_OK);
    if (guest.rank == 1) {
      CHECK_IN_CHILD(wl_comm_close(guest.comm, &error) == WL_OK);
      return 0;
    }
    usleep(200'000);
    CHECK_IN_CHILD(wl_comm_status(guest.comm, &error) == WL_OK);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(Guests, ADeathEndsEveryWaitAtOnceAndNamesTheRank) {
  const std::vector<int> results = inProcesses(0, [](Guest& guest) {
    Error error;
    auto* died = reinterpret_cast<std::atomic<int64_t>*>(guest.memory.segment(0));
    CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_OK);
    if (guest.rank == 1) {
      usleep(50'000);
      *died = wl_clock_ns();
      raise(SIGKILL);
    }
    CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_PEER_LOST);
    const int64_t tookNs = wl_clock_ns() - *died;
    CHECK_IN_CHILD(error.culprit_count == 1 && error.culprits[0] == 1);
    const std::string expected =
        "process " + std::to_string(guest.memory.meeting().processes[1].pid) + " has ended: rank 1";
    CHECK_IN_CHILD(std::strstr(error.message, expected.c_str()) != nullptr);
    CHECK_IN_CHILD(std::strstr(error.message, "finished barrier") != nullptr);
    // Some ms on an idle machine.
    CHECK_IN_CHILD(tookNs < (kSlow > 1 ? 2'000 : 500) * kMs);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -1, 0}), results);
}

// Nobody waits for the memory of an operation in which only the dead are.
TEST(Guests, TheDeadTouchNothingAnyMore) {
  const std::vector<int> results = inProcesses(0, [&](Guest& guest) {
    Error error;
    CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_OK);
    if (guest.rank == 1) {
      std::thread killer([] {
        usleep(50'000);
        raise(SIGKILL);
      });
      wl_barrier(guest.comm, 0, &error);
      killer.join();
    }
    const int64_t start = wl_clock_ns();
    while (wl_comm_status(guest.comm, &error) == WL_OK && wl_clock_ns() - start < 10'000 * kMs)
      usleep(100);
    CHECK_IN_CHILD(error.code == WL_PEER_LOST);
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    CHECK_IN_CHILD(wl_comm_state(guest.comm, 1, &state) == WL_OK && state.busy == 1);
    CHECK_IN_CHILD(wl_comm_quiescent(guest.comm) == 1);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -1, 0}), results);
}

TEST(Guests, AStoppedProcessIsSilentAndNamed) {
  const std::vector<int> results = inProcesses(
      1'000 * kMs,
      [](Guest& guest) {
        Error error;
        CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_OK);
        if (guest.rank == 2) raise(SIGSTOP);
        CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_PEER_LOST);
        CHECK_IN_CHILD(error.culprit_count == 1 && error.culprits[0] == 2);
        CHECK_IN_CHILD(std::strstr(error.message, "is silent since 1") != nullptr);
        return 0;
      },
      [](const std::vector<pid_t>& children) {
        int status = 0;
        waitpid(children[2], &status, WUNTRACED);
        // Long enough to be seen, then it learns it as well.
        usleep(3'000'000);
        kill(children[2], SIGCONT);
      });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(Guests, AProcessThatEndedBeforeItWasWatchedIsLostAtOnce) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  wl_process_t process = self();
  const uint64_t own = process.started;
  process.pid = child;
  Memory memory;
  wl_group_t* group = memory.attach();
  wl_comm_t* comm = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_group_join(group, 0, &comm, &error)) << error.message;
  const int32_t rank = 2;
  // Of that number, but started at another time: its number went to another one.
  process.started = own + 1'000'000;
  ASSERT_EQ(WL_OK, wl_group_watch(group, &process, &rank, 1, 0, &error)) << error.message;
  EXPECT_EQ(WL_PEER_LOST, wl_comm_status(comm, &error));
  EXPECT_EQ(2, error.culprits[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  wl_comm_free(comm);
  wl_group_release(group);
}

// Their records stay as they are, half written.
TEST(Guests, ThatDieInWritingARecordLeaveOthersTheirs) {
  windlass::GroupConfig config;
  config.ranks = 2;
  const std::shared_ptr<windlass::Group> group = windlass::Group::create(config);
  group->shared().failing = 3;
  group->publishFailure(windlass::errorOf(WL_ABORTED, "the first"));
  ASSERT_NE(nullptr, group->failure());
  EXPECT_STREQ("the first", group->failure()->message);
  group->publishFailure(windlass::errorOf(WL_ABORTED, "the second"));
  EXPECT_STREQ("the first", group->failure()->message);

  const std::shared_ptr<windlass::Group> all = windlass::Group::create(config);
  all->shared().failing = windlass::kFailureRecords - 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      all->publishFailure(windlass::errorOf(WL_ABORTED, "one of many"));
      ASSERT_NE(nullptr, all->failure());
      EXPECT_TRUE(contains(all->failure()->message, "while they wrote why"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One more file than the limit allows: nobody is taken for dead, and later the watch works.
TEST(Guests, AreNotLostWhereTheyCannotBeLookedAt) {
  Memory memory;
  wl_group_t* group = memory.attach();
  wl_comm_t* comm = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_group_join(group, 0, &comm, &error)) << error.message;
  const wl_process_t process = self();
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = dup(0);
  close(next);
  const int32_t ranks[] = {1, 2};
  for (const int free : {0, 1, 2, 3}) {
    const rlimit few = {static_cast<rlim_t>(next + free), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const int32_t code = wl_group_watch(group, &process, ranks, 1, 0, &error);
    setrlimit(RLIMIT_NOFILE, &before);
    // What sees the namespace needs no file of its own.
    EXPECT_EQ(WL_RESOURCE, code) << free << " free: " << error.message;
  }
  EXPECT_EQ(WL_OK, wl_group_watch(group, &process, ranks, 1, 0, &error)) << error.message;
  EXPECT_EQ(WL_OK, wl_comm_status(comm, &error)) << error.message;
  wl_comm_free(comm);
  wl_group_release(group);
}

// Two processes, as far as the group can tell.
TEST(Guests, AreRefusedWhereTheyAreNotWhatOthersAgreedOn) {
  Memory memory;
  wl_group_t* group = memory.attach();
  wl_comm_t* comm = nullptr;
  wl_comm_t* again = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_group_join(group, 1, &comm, &error)) << error.message;
  wl_group_t* other = memory.attach();
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(other, 1, &again, &error));
  EXPECT_TRUE(contains(error.message, "rank 1 joined already"));
  // Nor once the first is gone: peers would take its successor's words for those of before.
  wl_comm_free(comm);
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(other, 1, &again, &error));
  uint32_t* segment = memory.segment(0);
  EXPECT_EQ(WL_OK, wl_group_add_window(other, segment, 4096, 4096, &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(other, 2, &again, &error));
  EXPECT_TRUE(contains(error.message, "this process added 2 windows"));
  wl_group_t* third = memory.attach();
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_EQ(WL_RESOURCE, wl_group_add_window(third, segment, 4096, 4096, &error));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(contains(error.message, "cannot tell which memory window 1 is"));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_add_window(third, segment + 1024, 4096, 4096, &error));
  EXPECT_TRUE(contains(error.message, "window 1 is other memory"));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_add_window(third, segment, 4096, 2048, &error));
  EXPECT_EQ(WL_OK, wl_group_join(third, 2, &again, &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_add_window(third, segment, 4096, 4096, &error));
  EXPECT_TRUE(contains(error.message, "before ranks join"));
  wl_comm_free(again);
  for (wl_group_t* each : {group, other, third}) wl_group_release(each);
}

TEST(Guests, PublishWhatOnlyTheySee) {
  const std::vector<int> results = inProcesses(0, [](Guest& guest) {
    Error error;
    CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_OK);
    if (guest.rank == 0) {
      const int32_t culprits[] = {1, 2};
      CHECK_IN_CHILD(wl_group_fail(guest.group, WL_PEER_LOST, culprits, 2, "host b is silent",
                                   &error) == WL_OK);
    }
    CHECK_IN_CHILD(wl_barrier(guest.comm, 0, &error) == WL_PEER_LOST);
    CHECK_IN_CHILD(error.culprit_count == 2 && error.culprits[1] == 2);
    CHECK_IN_CHILD(std::strstr(error.message, "host b is silent") != nullptr);
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(Guests, ShareMemoryInPiecesWhereSignalsInterruptTheWhole) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  Error error;
  int32_t file = -1;
  uninterrupted = 1 << 20;
  const int code = wl_memory_share(kBytes, &file, &error);
  uninterrupted = INT64_MAX;
  ASSERT_EQ(WL_OK, code) << error.message;
  EXPECT_GT(interruptions, 0);
  struct stat found = {};
  ASSERT_EQ(0, fstat(file, &found));
  EXPECT_EQ(kBytes, static_cast<uint64_t>(found.st_size));
  EXPECT_EQ(kBytes / 512, static_cast<uint64_t>(found.st_blocks)) << "all of it is reserved";
  close(file);
}

TEST(Guests, ShareNoMemoryWhereSignalsInterruptEveryAttempt) {
  Error error;
  int32_t file = 7;
  interruptions = 0;
  uninterrupted = 0;
  const int code = wl_memory_share(1 << 20, &file, &error);
  uninterrupted = INT64_MAX;
  EXPECT_EQ(WL_RESOURCE, code);
  EXPECT_EQ(-1, file);
  EXPECT_EQ(1000, interruptions);
  EXPECT_NE(nullptr, std::strstr(error.message, "signals interrupted the thread 1000 times"))
      << error.message;
}

TEST(Guests, AreToldWhatTheyGotWrong) {
  Error error;
  int32_t file = -1;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_share(0, &file, &error));
  EXPECT_EQ(WL_RESOURCE, wl_memory_share(uint64_t{1} << 45, &file, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "35184372088832 bytes")) << error.message;
  EXPECT_NE(nullptr, std::strstr(error.message, "are free, says ")) << error.message;
  EXPECT_EQ(-1, file);

  void* memory = nullptr;
  uint64_t bytes = 0;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_map(-1, &memory, &bytes, &error));
  const int shrinking = memfd_create("windlass-test", MFD_CLOEXEC);
  ASSERT_EQ(0, ftruncate(shrinking, 4096));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_map(shrinking, &memory, &bytes, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "may shrink")) << error.message;
  close(shrinking);

  ASSERT_EQ(WL_OK, wl_memory_share(1 << 20, &file, &error)) << error.message;
  EXPECT_NE(0, ftruncate(file, 0)) << "what peers map never shrinks";
  ASSERT_EQ(WL_OK, wl_memory_map(file, &memory, &bytes, &error)) << error.message;
  EXPECT_EQ(uint64_t{1} << 20, bytes);
  wl_group_t* group = nullptr;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(memory, bytes, &group, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "lay it out first")) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(memory, 100, &group, &error));
  wl_group_config_t config = configOf(4);
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_lay_out(&config, memory, 4096, &error));
  ASSERT_EQ(WL_OK, wl_group_lay_out(&config, memory, bytes, &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_lay_out(&config, memory, bytes, &error));
  EXPECT_TRUE(contains(error.message, "a control block already"));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_attach(memory, 64 << 10, &group, &error))
      << error.message;
  ASSERT_EQ(WL_OK, wl_group_attach(memory, bytes, &group, &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_add_window(group, memory, 10, 20, &error));
  wl_process_t other = self();
  const int32_t ranks[] = {1, 4};
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &other, ranks, 2, 0, &error));
  EXPECT_NE(nullptr, std::strstr(error.message, "ranks[1] is 4, not 0 to 3")) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &other, ranks, 1, 1000, &error));
  wl_process_t unfilled = {};
  unfilled.struct_size = sizeof unfilled;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &unfilled, ranks, 1, 0, &error));
  EXPECT_TRUE(contains(error.message, "process->pid is 0")) << error.message;
  other.pid_namespace += 1;
  EXPECT_EQ(WL_UNSUPPORTED, wl_group_watch(group, &other, ranks, 1, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_fail(group, WL_OK, ranks, 1, "nothing", &error));
  wl_group_release(group);
  wl_memory_unmap(memory, bytes);
  close(file);

  config = configOf(2);
  ASSERT_EQ(WL_OK, wl_group_create(&config, &group, &error)) << error.message;
  const wl_process_t own = self();
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_watch(group, &own, ranks, 1, 0, &error));
  wl_group_release(group);
}

// The limit of a file's size would end the process by a signal.
TEST(Guests, ALimitOnFilesIsAnError) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    Error error;
    int32_t file = -1;
    const int32_t code = wl_memory_share(1 << 20, &file, &error);
    _exit(code == WL_RESOURCE && std::strstr(error.message, "ulimit -f") != nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace windlass_test
