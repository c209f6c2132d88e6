// SPDX-License-Identifier: Apache-2.0
// What a process sees of a group that has none of its ranks: while they wait, are stopped and are
// dead; and of memory in which anything may stand.
#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "native/core/control_block.h"
#include "native/memory/shared_memory.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/forked_rank.h"

namespace windlass_test {
namespace report_test {

class Report {
 public:
  Report(const wl_process_t& owner, int32_t number) {
    code_ = wl_report_open(&owner, number, &report_, &error_);
  }
  Report(Report&& other) noexcept : code_(other.code_), error_(other.error_) {
    std::swap(report_, other.report_);
  }
  ~Report() { wl_report_close(report_); }

  int32_t code() const { return code_; }
  const Error& error() const { return error_; }
  const wl_report_t* get() const { return report_; }

  wl_report_group_t group() const {
    wl_report_group_t group = {};
    group.struct_size = sizeof group;
    EXPECT_EQ(WL_OK, wl_report_about(report_, &group));
    return group;
  }
  wl_rank_state_t state(int32_t rank) const {
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    EXPECT_EQ(WL_OK, wl_report_state(report_, rank, &state));
    return state;
  }
  std::vector<wl_record_t> records(int32_t rank) const {
    std::vector<wl_record_t> records(WL_RECORDS);
    records[0].struct_size = sizeof(wl_record_t);
    const int32_t count = wl_report_recorded(report_, rank, records.data(), WL_RECORDS);
    EXPECT_GE(count, 0);
    records.resize(static_cast<size_t>(std::max(0, count)));
    return records;
  }

 private:
  wl_report_t* report_ = nullptr;
  int32_t code_;
  Error error_;
};

wl_process_t named(int32_t pid) {
  wl_process_t process = {};
  process.struct_size = sizeof process;
  Error error;
  EXPECT_EQ(WL_OK, wl_process_named(pid, &process, &error)) << error.message;
  return process;
}

std::vector<int32_t> numbersOf(const wl_process_t& process, int32_t expected, Error* error) {
  std::vector<int32_t> numbers(WL_REPORT_GROUPS);
  uint64_t count = 0;
  EXPECT_EQ(expected, wl_report_find(&process, numbers.data(), WL_REPORT_GROUPS, &count, error))
      << error->message;
  numbers.resize(count);
  return numbers;
}

std::vector<int32_t> numbersOf(const wl_process_t& process) {
  Error error;
  return numbersOf(process, WL_OK, &error);
}

// The groups that a process has, each once.
std::vector<Report> groupsOf(const wl_process_t& process) {
  std::vector<Report> groups;
  std::set<uint64_t> ids;
  for (const int32_t number : numbersOf(process)) {
    Report report(process, number);
    if (report.code() == WL_OK && ids.insert(report.group().id).second)
      groups.push_back(std::move(report));
  }
  return groups;
}

bool waitsFor(const Report& report, int32_t rank, int32_t awaited) {
  const wl_rank_state_t state = report.state(rank);
  const std::vector<wl_record_t> records = report.records(rank);
  return state.busy == 1 && (state.awaited == awaited || state.awaited == -2) && !records.empty() &&
         records[0].code == WL_RECORD_INSIDE && records[0].operation == WL_OP_ALL_GATHER;
}

// Ranks 0 and 1 wait for rank 2, which is stopped, then killed.
TEST(Report, ShowsRanksThatWaitAreStoppedAndAreDead) {
  const std::vector<int> results = inProcesses(
      0,
      [](ForkedRank& forked) {
        Error error;
        auto* stops = reinterpret_cast<std::atomic<uint32_t>*>(forked.segment(0));
        CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
        if (forked.rank == 2) {
          *stops = 1;
          raise(SIGSTOP);
        }
        while (*stops == 0) usleep(100);
        uint32_t* own = forked.segment(forked.rank);
        const int32_t code =
            callCollective(forked.comm, WL_OP_ALL_GATHER, own + 1024, 64, own + 2048, 192, WL_U32,
                           0, WL_AUTO, 0, 1, 0, &error);
        CHECK_IN_CHILD(code == WL_PEER_LOST);
        // Others look until then.
        while (*stops != 2) usleep(100);
        return 0;
      },
      [](const std::vector<pid_t>& children) {
        int status = 0;
        waitpid(children[2], &status, WUNTRACED);
        const wl_process_t first = named(children[0]);
        const wl_process_t last = named(children[2]);
        EXPECT_EQ(WL_PROCESS_RUNS, wl_process_look(&first));
        EXPECT_EQ(WL_PROCESS_STOPPED, wl_process_look(&last));
        std::set<uint64_t> ids;
        for (const pid_t child : children) {
          // Each process has it, and nothing else of the kind.
          const std::vector<Report> groups = groupsOf(named(child));
          ASSERT_EQ(1u, groups.size());
          ids.insert(groups[0].group().id);
        }
        EXPECT_EQ(1u, ids.size());
        std::vector<Report> groups = groupsOf(last);
        const Report& report = groups[0];
        EXPECT_EQ(kRanks, report.group().ranks);
        EXPECT_EQ(0u, report.group().parent);
        EXPECT_LT(wl_clock_ns() - report.group().made_ns, 60'000 * kMs);
        for (int32_t rank = 0; rank < kRanks; ++rank) {
          EXPECT_EQ(children[static_cast<size_t>(rank)], report.state(rank).pid);
          EXPECT_EQ(1, report.state(rank).joined);
          EXPECT_EQ(-1, report.state(rank).former);
          EXPECT_EQ(0, report.state(rank).closed + report.state(rank).lost);
        }
        EXPECT_TRUE(await([&] { return waitsFor(report, 0, 2) && waitsFor(report, 1, 2); }));
        const std::vector<wl_record_t> records = report.records(2);
        ASSERT_LE(2u, records.size());
        EXPECT_EQ(WL_OP_WINDOW, records[1].operation);
        EXPECT_STREQ("barrier", records[0].text);
        EXPECT_EQ(WL_OK, records[0].code);
        const int64_t ago = wl_clock_ns() - report.records(0)[0].entered_ns;
        EXPECT_GE(ago, 0);
        EXPECT_LT(ago, 60'000 * kMs);
        Error error;
        EXPECT_EQ(WL_OK, wl_report_failure(report.get(), &error));
        wl_peer_memory_t memory = {};
        memory.struct_size = sizeof memory;
        EXPECT_EQ(WL_OK, wl_report_peer_memory(report.get(), &memory, &error));
        EXPECT_EQ(WL_PEER_MEMORY_OPEN, memory.form);

        kill(children[2], SIGKILL);
        EXPECT_TRUE(await([&] { return wl_process_look(&last) == WL_PROCESS_ENDED; }));
        EXPECT_TRUE(await([&] { return wl_report_failure(report.get(), &error) != WL_OK; }));
        EXPECT_EQ(WL_PEER_LOST, error.code);
        EXPECT_EQ(2, error.faulty_ranks[0]);
        EXPECT_TRUE(contains(error.message, "has ended: rank 2 is lost"));
        EXPECT_EQ(1, report.state(2).lost);
        EXPECT_TRUE(numbersOf(last, WL_PEER_LOST, &error).empty());
        EXPECT_TRUE(contains(error.message, "has ended"));
        EXPECT_EQ(WL_PEER_LOST, Report(last, 3).code());
        for (const pid_t child : {children[0], children[1]}) kill(child, SIGKILL);
        EXPECT_TRUE(await([&] { return wl_process_look(&first) == WL_PROCESS_ENDED; }));
        // It stays as it was last.
        EXPECT_EQ(WL_PEER_LOST, wl_report_failure(report.get(), &error));
        EXPECT_EQ(records.size(), report.records(2).size());
      });
  EXPECT_EQ((std::vector<int>{-SIGKILL, -SIGKILL, -SIGKILL}), results);
}

// Splits are there too, until all of a process's handles are gone.
TEST(Report, ShowsSplitsAndWhereTheyComeFrom) {
  const std::vector<int> results = inProcesses(
      0,
      [](ForkedRank& forked) {
        Error error;
        wl_comm_t* half = nullptr;
        CHECK_IN_CHILD(wl_comm_split(forked.comm, forked.rank == 1 ? -1 : 0, -forked.rank, 0, &half,
                                     &error) == WL_OK);
        auto* over = reinterpret_cast<std::atomic<uint32_t>*>(forked.segment(0));
        if (forked.rank == 0) {
          CHECK_IN_CHILD(groupsOf(self()).size() == 2);
          const std::vector<Report> groups = groupsOf(self());
          const bool isSecond = groups[0].group().parent == 0;
          const wl_report_group_t whole = groups[isSecond ? 0 : 1].group();
          const Report& part = groups[isSecond ? 1 : 0];
          CHECK_IN_CHILD(whole.ranks == 3 && part.group().ranks == 2);
          CHECK_IN_CHILD(part.group().parent == whole.id && part.group().id != whole.id);
          CHECK_IN_CHILD(part.group().made_ns > whole.made_ns);
          CHECK_IN_CHILD(part.state(0).former == 2 && part.state(1).former == 0);
          *over = 1;
        }
        while (*over == 0) usleep(100);
        CHECK_IN_CHILD(groupsOf(self()).size() == (forked.rank == 1 ? 1 : 2));
        if (half != nullptr) wl_comm_free(half);
        CHECK_IN_CHILD(groupsOf(self()).size() == 1);
        return 0;
      });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(Report, NamesWhatItCannotLookInto) {
  Error error;
  wl_process_t own = self();
  EXPECT_EQ(WL_PROCESS_RUNS, wl_process_look(&own));
  wl_process_t process = own;
  process.started += 1;
  EXPECT_EQ(WL_PROCESS_ENDED, wl_process_look(&process));
  numbersOf(process, WL_PEER_LOST, &error);
  process = own;
  process.pid_namespace += 1;
  EXPECT_EQ(WL_PROCESS_UNKNOWN, wl_process_look(&process));
  numbersOf(process, WL_UNSUPPORTED, &error);
  EXPECT_TRUE(contains(error.message, "lives in another pid namespace"));
  EXPECT_EQ(WL_PEER_LOST, wl_process_named(999'999'999, &process, &error));
  EXPECT_TRUE(contains(error.message, "there is no process 999999999"));

  // A file that is not memory, may shrink, or is empty.
  int pipes[2] = {};
  ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
  EXPECT_EQ(WL_INVALID_ARGUMENT, Report(own, pipes[0]).code());
  const int shrinking = memfd_create("windlass", MFD_CLOEXEC);
  ASSERT_EQ(0, ftruncate(shrinking, 1 << 20));
  EXPECT_EQ(WL_INVALID_ARGUMENT, Report(own, shrinking).code());
  int32_t file = -1;
  ASSERT_EQ(WL_OK, windlass::shareMemory(1 << 20, &file, &error)) << error.message;
  const std::vector<int32_t> numbers = numbersOf(own);
  for (const int32_t number : {shrinking, file})
    EXPECT_EQ(1, std::count(numbers.begin(), numbers.end(), number));
  EXPECT_EQ(0, std::count(numbers.begin(), numbers.end(), pipes[0]));
  const Report empty(own, file);
  EXPECT_EQ(WL_INVALID_ARGUMENT, empty.code());
  EXPECT_TRUE(contains(empty.error().message, "no control block of this library"));
  EXPECT_EQ(WL_RESOURCE, Report(own, 99'999).code());
  for (const int open : {pipes[0], pipes[1], shrinking, file}) close(open);
}

TEST(Report, TellsAnotherUserWhoMayLook) {
  if (getuid() != 0) GTEST_SKIP() << "this user can't become another one";
  const wl_process_t own = self();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setuid(kNobody) != 0) _exit(2);
    std::vector<int32_t> numbers(WL_REPORT_GROUPS);
    uint64_t count = 0;
    Error error;
    const int32_t code =
        wl_report_find(&own, numbers.data(), WL_REPORT_GROUPS, &count, &error);
    std::fprintf(stderr, "%s\n", error.message);
    _exit(code == WL_RESOURCE && std::strstr(error.message, "look as the user that it runs as") ? 0
                                                                                               : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Memory that its owner has laid out, in which anything may stand by the time it is looked at.
class Scribbled {
 public:
  explicit Scribbled(int ranks) {
    wl_group_config_t config = configOf(ranks);
    Error error;
    if (wl_group_share(&config, &file_, &error) != WL_OK) std::abort();
    bytes_ = static_cast<uint64_t>(lseek(file_, 0, SEEK_END));
    memory_ = static_cast<unsigned char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~Scribbled() {
    munmap(memory_, bytes_);
    close(file_);
  }
  int32_t file() const { return file_; }
  uint64_t bytes() const { return bytes_; }
  unsigned char* memory() const { return memory_; }

 private:
  int32_t file_ = -1;
  uint64_t bytes_;
  unsigned char* memory_;
};

// Reads everything that a report offers.
void readAll(const Report& report, int32_t ranks) {
  Error error;
  report.group();
  const int32_t code = wl_report_failure(report.get(), &error);
  EXPECT_GE(code, WL_OK);
  EXPECT_LE(code, WL_INTERNAL);
  if (code != WL_OK) {
    EXPECT_GE(error.faulty_rank_count, 0);
    EXPECT_LT(std::strlen(error.message), static_cast<size_t>(WL_ERROR_MESSAGE));
  }
  wl_peer_memory_t memory = {};
  memory.struct_size = sizeof memory;
  EXPECT_EQ(WL_OK, wl_report_peer_memory(report.get(), &memory, &error));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const wl_rank_state_t state = report.state(rank);
    EXPECT_GE(state.awaited, -2);
    EXPECT_LT(state.awaited, ranks);
    EXPECT_LT(state.former, WL_MAX_RANKS);
    for (const wl_record_t& record : report.records(rank)) {
      EXPECT_LT(std::strlen(record.text), static_cast<size_t>(WL_RECORD_TEXT));
      EXPECT_GE(record.entered_ns, 0);
      EXPECT_GE(record.left_ns, 0);
    }
  }
}

TEST(Report, TrustsNothingThatStandsInTheMemory) {
  constexpr int kMost = 5;
  std::mt19937_64 random(seed());
  const wl_process_t own = self();
  int opened = 0;
  for (int round = 0; round < std::min(400 / slow(), repetitions(20, 400)) + 20; ++round) {
    const Scribbled memory(1 + static_cast<int>(random() % kMost));
    const Report before(own, memory.file());
    ASSERT_EQ(WL_OK, before.code()) << before.error().message;
    const int32_t ranks = before.group().ranks;
    auto* words = reinterpret_cast<uint64_t*>(memory.memory());
    const uint64_t count = memory.bytes() / 8;
    // The first word says that it is laid out, and the next ones how.
    const uint64_t first = round % 4 == 0 ? 1 : 1 + sizeof(windlass::GroupConfig) / 8;
    const uint64_t stretch = round % 2 == 0 ? count : 4096;
    for (uint64_t i = 0; i < std::min<uint64_t>(stretch, count) * (round % 3 + 1) / 3; ++i) {
      const uint64_t at = first + random() % (std::min(stretch, count) - first);
      const uint64_t kinds[] = {random(), 0, ~uint64_t{0}, uint64_t{1} << random() % 64,
                                random() % 64, uint64_t{1} << 63};
      words[at] = kinds[random() % 6];
    }
    readAll(before, ranks);
    const Report after(own, memory.file());
    EXPECT_TRUE(after.code() == WL_OK || after.code() == WL_INVALID_ARGUMENT);
    if (after.code() != WL_OK) continue;
    ++opened;
    readAll(after, after.group().ranks);
  }
  EXPECT_GT(opened, 5);
}

// Its memory can't be written by it.
TEST(Report, MapsToReadAlone) {
  const Scribbled memory(2);
  const Report report(self(), memory.file());
  ASSERT_EQ(WL_OK, report.code()) << report.error().message;
  std::ifstream maps("/proc/self/maps");
  int toRead = 0;
  for (std::string line; std::getline(maps, line);) {
    const bool isShared = line.find("/memfd:windlass") != std::string::npos;
    if (isShared && line.find(" r--s ") != std::string::npos) ++toRead;
  }
  EXPECT_EQ(1, toRead);
}

}  // namespace report_test
}  // namespace windlass_test
