// SPDX-License-Identifier: Apache-2.0
// Ranks of several hosts in forked processes, which a test looks on, kills, stops and cuts off: it
// is none of them.
#pragma once

#include <dlfcn.h>
#include <execinfo.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "tests/native/core/forks.h"

namespace windlass_test {

constexpr int kMostSeats = 16;

struct HostSpread {
  int hosts;
  int processes;  // of each host
  int threads;    // ranks of each process

  int all() const { return hosts * processes; }
  int ranks() const { return all() * threads; }
  int processOf(int rank) const { return rank / threads; }
  int hostOf(int rank) const { return processOf(rank) / processes; }
  std::vector<int32_t> ranksOf(int process) const {
    std::vector<int32_t> own;
    for (int rank = process * threads; rank < (process + 1) * threads; ++rank) own.push_back(rank);
    return own;
  }
  std::vector<int32_t> ranksOfHost(int host) const {
    std::vector<int32_t> own;
    for (int rank = 0; rank < ranks(); ++rank)
      if (hostOf(rank) == host) own.push_back(rank);
    return own;
  }
};

inline void PrintTo(const HostSpread& spread, std::ostream* out) {
  *out << spread.hosts << " hosts of " << spread.processes << " processes of " << spread.threads
       << " ranks";
}

// How a rank's calls ended.
struct Seen {
  std::atomic<int32_t> code{-1};  // once the rest is there; -1: they have not
  int64_t atNs = 0;
  std::vector<int32_t> faultyRanks() const {
    return {named, named + std::min<int32_t>(count, kMostSeats)};
  }
  int32_t count = 0;
  int32_t named[kMostSeats] = {};
  char message[WL_ERROR_MESSAGE] = {};
};

// A host counts as lost after this silence. It is longer than two busy threads delay a third.
constexpr int64_t kSilenceNs = 1'000 * kMs;

// Memory that all processes and the test share.
struct HostBoard {
  std::atomic<uint32_t> rounds[kMostSeats];  // that each rank's calls have ended
  std::atomic<uint32_t> versions[kMostSeats];  // that each rank has
  std::atomic<int> wrong;
  std::atomic<int> torn;  // ranks whose last version isn't there as a whole
  Seen seen[kMostSeats];
  uint64_t nameBytes[kMostSeats];
  uint8_t names[kMostSeats][4096];
  wl_process_t processes[kMostSeats];
  std::atomic<int> arrived[3];
  std::atomic<int> gathered;  // ranks, where a test has some of them wait for one another
  std::atomic<int64_t> beganNs;  // when the first of them went on; 0: none has
  std::atomic<bool> fellInUcx[kMostSeats];  // processes
};

// Flag of this process, set where UCX aborts it.
inline std::atomic<bool>* noteOfFall = nullptr;

// UCX with its assertions built in, as Debian's 1.13 is, ends a process whose peer dies while the
// two connect: in wireup_ep.c, `pending_count == 0`. Any other abort is this library's.
inline void noteFallInUcx(std::atomic<bool>* note) {
  noteOfFall = note;
  void* first[1];
  backtrace(first, 1);  // loads what it needs
  std::signal(SIGABRT, [](int) {
    void* frames[64];
    const int count = backtrace(frames, 64);
    for (int i = 0; i < count; ++i) {
      Dl_info info;
      if (dladdr(frames[i], &info) != 0 && std::strstr(info.dli_fname, "/libucp.so") != nullptr)
        *noteOfFall = true;
    }
    std::signal(SIGABRT, SIG_DFL);
  });
}

// Objects of this process that end with a group: open files (with sockets and shared memory),
// threads, and mappings of shared memory.
struct Holding {
  long files = 0;
  long threads = 0;
  long mappings = 0;

  bool operator==(const Holding& other) const {
    return files == other.files && threads == other.threads && mappings == other.mappings;
  }
  static Holding now() {
    const auto entries = [](const char* folder) {
      return std::distance(std::filesystem::directory_iterator(folder), {});
    };
    Holding held;
    held.files = entries("/proc/self/fd") - 1;  // the folder's
    held.threads = entries("/proc/self/task");
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      held.mappings += line.find("/memfd:") != std::string::npos ? 1 : 0;
    return held;
  }
};

// One rank, in its own thread.
struct Seat {
  int rank;
  wl_comm_t* comm;
  HostBoard& board;

  // Says how the rank's calls ended.
  void sees(int32_t code, const wl_error_t& error) const {
    Seen& seen = board.seen[rank];
    seen.atNs = wl_clock_ns();
    seen.count = error.faulty_rank_count;
    std::copy_n(error.faulty_ranks, std::min(kMostSeats, WL_ERROR_FAULTY_RANKS), seen.named);
    std::snprintf(seen.message, sizeof seen.message, "%s", error.message);
    seen.code = code;
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// How often a test makes a fault: `most` times in the long form, `usual` otherwise, and a fifth of
// that under a sanitizer, which sees the same accesses each time.
inline int faultRounds(int usual, int most) {
  if (longForm()) return most;
  return kSanitized ? (usual + 4) / 5 : usual;
}

class HostCrew {
 public:
  static constexpr int64_t kDeadlineNs = 60'000 * kMs;

  // lateNs: by which the first host connects later than the others.
  HostCrew(const HostSpread& spread, int64_t silenceNs, const std::function<void(Seat&)>& body,
           int64_t lateNs = 0)
      : spread_(spread) {
    if (spread.ranks() > kMostSeats) std::abort();
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = spread.ranks();
    config.first_sequence = 0xffffff00u;
    config.deadline_ns = kDeadlineNs;
    config.blocks = 1;
    std::vector<int32_t> hosts;
    for (int rank = 0; rank < spread.ranks(); ++rank) hosts.push_back(spread.hostOf(rank));
    config.hosts = hosts.data();
    std::vector<int32_t> files(static_cast<size_t>(spread.hosts), -1);
    for (int32_t& file : files) {
      Error error;
      EXPECT_EQ(WL_OK, wl_group_share(&config, &file, &error)) << error.message;
    }
    forks_.emplace(spread.all(), [&](int process) {
      noteFallInUcx(&board_->fellInUcx[process]);
      enterHost(process / spread_.processes);
      Holding before = Holding::now();
      before.files -= spread_.hosts;
      {
        wl_group_t* group = nullptr;
        check(wl_group_attach(files[static_cast<size_t>(process / spread_.processes)], &group,
                              &error_));
        for (const int32_t file : files) wl_file_close(file);
        connect(group, process, silenceNs, process < spread_.processes ? lateNs : 0);
        OwnRanks own(group, spread_.ranksOf(process));
        own.run([&](int rank, wl_comm_t*& comm) {
          Seat seat = {rank, comm, *board_};
          body(seat);
        });
      }
      const Holding after = Holding::now();
      if (after == before) return 0;
      std::fprintf(stderr, "process %d keeps %ld files, %ld threads, %ld mappings\n", process,
                   after.files - before.files, after.threads - before.threads,
                   after.mappings - before.mappings);
      return 1;
    });
    for (const int32_t file : files) wl_file_close(file);
  }
  HostCrew(const HostCrew&) = delete;
  HostCrew& operator=(const HostCrew&) = delete;

  HostBoard& board() { return *board_; }
  pid_t pid(int process) const { return forks_->pids()[static_cast<size_t>(process)]; }

  // Waits until all ranks have ended that many rounds. Returns false if that takes too long.
  bool awaitRounds(uint32_t least) {
    return await([&] {
      for (int rank = 0; rank < spread_.ranks(); ++rank)
        if (board_->rounds[rank] < least) return false;
      return true;
    }, 120'000 * kMs);
  }
  // Number of rounds of the rank that is ahead.
  uint32_t mostRounds() const {
    return *std::max_element(board_->rounds, board_->rounds + spread_.ranks());
  }
  // Waits until these ranks have reported how their calls ended.
  bool awaitSeen(const std::vector<int32_t>& ranks) {
    return await([&] {
      for (const int32_t rank : ranks)
        if (board_->seen[rank].code < 0 && !fellInUcx(rank)) return false;
      return true;
    }, 2 * kDeadlineNs);
  }
  bool fellInUcx(int32_t rank) const { return board_->fellInUcx[spread_.processOf(rank)]; }
  // Whether nothing of it is left but its status.
  bool hasEnded(int process) const {
    std::ifstream stat("/proc/" + std::to_string(pid(process)) + "/stat");
    std::string number, name, state;
    stat >> number >> name >> state;
    return state == "Z";
  }
  void signal(int process, int number) const { signalAll(process, 1, number); }
  void signalHost(int host, int number) const {
    signalAll(host * spread_.processes, spread_.processes, number);
  }
  // How the processes ended; none lasts longer than the deadline, and what closing takes. Nothing
  // is wrong, unless more are gone than the test wanted.
  std::vector<int> end(bool isAsWanted = true) {
    std::vector<int> ends = forks_->wait(kDeadlineNs + 10'000 * kMs);
    EXPECT_EQ(0, forks_->late()) << "processes hung";
    if (isAsWanted) {
      EXPECT_EQ(0, board_->wrong);
    }
    EXPECT_EQ(0, board_->torn);
    // Nobody has one before all have the one before it.
    const auto versions = std::minmax_element(board_->versions, board_->versions + spread_.ranks());
    EXPECT_LE(*versions.second, *versions.first + 1);
    return ends;
  }

 private:
  // Sends the signal. After SIGSTOP, returns when all threads have stopped. A thread that waits for
  // its core could still receive from peers.
  void signalAll(int first, int count, int number) const {
    for (int process = first; process < first + count; ++process) kill(pid(process), number);
    for (int process = first; process < first + count && number == SIGSTOP; ++process) {
      siginfo_t about;
      EXPECT_EQ(0, waitid(P_PID, static_cast<id_t>(pid(process)), &about,
                          WSTOPPED | WEXITED | WNOWAIT));
    }
  }

  void check(int32_t code) const {
    if (code == WL_OK) return;
    std::fprintf(stderr, "%s\n", error_.message);
    _exit(1);
  }
  void arriveAndWait(int turn) {
    ++board_->arrived[turn];
    while (board_->arrived[turn] < spread_.all()) usleep(100);
  }
  void connect(wl_group_t* group, int process, int64_t silenceNs, int64_t lateNs) {
    const std::vector<int32_t> own = spread_.ranksOf(process);
    check(wl_group_open_wire(group, own.data(), static_cast<uint32_t>(own.size()), &error_));
    check(wl_group_wire_name(group, board_->names[process], sizeof board_->names[process],
                             &board_->nameBytes[process], &error_));
    board_->processes[process] = self();
    arriveAndWait(0);
    std::vector<uint8_t> all;
    for (int i = 0; i < spread_.all(); ++i)
      all.insert(all.end(), board_->names[i], board_->names[i] + board_->nameBytes[i]);
    usleep(static_cast<useconds_t>(lateNs / 1000));
    check(wl_group_connect(group, all.data(), board_->nameBytes,
                           static_cast<uint32_t>(spread_.all()), silenceNs, &error_));
    arriveAndWait(1);
    for (int i = 0; i < spread_.all(); ++i) {
      if (i != process && i / spread_.processes == process / spread_.processes)
        watch(group, board_->processes[i], spread_.ranksOf(i), 0);
    }
    arriveAndWait(2);
  }

  const HostSpread spread_;
  const Shared<HostBoard> board_;
  Error error_;
  std::optional<Forks> forks_;  // the first to go
};

// Asks for the flags of a host's link, a namespace's, or has it go down or up.
template <class Ask>
inline bool askLink(int host, Ask&& ask) {
  bool isDone = false;
  std::thread([&] {
    enterHost(host);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq link = {};
    std::snprintf(link.ifr_name, sizeof link.ifr_name, "%s",
                  std::getenv("WINDLASS_UCX_NET_DEVICES"));
    isDone = ask(socket, link);
    close(socket);
  }).join();
  return isDone;
}

inline bool setLink(int host, bool isUp) {
  return askLink(host, [&](int socket, ifreq& link) {
    if (ioctl(socket, SIOCGIFFLAGS, &link) != 0) return false;
    link.ifr_flags = static_cast<short>(isUp ? link.ifr_flags | IFF_UP : link.ifr_flags & ~IFF_UP);
    return ioctl(socket, SIOCSIFFLAGS, &link) == 0;
  });
}

// Output of a command that fails.
inline std::optional<std::string> refusalOf(const std::string& command) {
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return "no shell";
  std::string said;
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output))
    said += c == '\n' ? ' ' : static_cast<char>(c);
  if (pclose(output) == 0) return std::nullopt;
  return command + ": " + said;
}

// UCX takes a device once the kernel says that it runs. The kernel acts on what became of links
// once a second, and drops packets until it has.
inline bool awaitLink(int host) {
  const bool runs = askLink(host, [&](int socket, ifreq& link) {
    return await([&] {
      return ioctl(socket, SIOCGIFFLAGS, &link) == 0 && (link.ifr_flags & IFF_RUNNING) != 0;
    }, 10'000 * kMs);
  });
  usleep(1'100'000);
  return runs;
}

}  // namespace windlass_test
