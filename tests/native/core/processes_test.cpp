// SPDX-License-Identifier: Apache-2.0
// Ranks in two processes, forked, over memory that both inherit and map at different addresses.
// Neither may touch the range where the other one has it.
#include <sys/mman.h>
#include <unistd.h>

#include "native/core/collectives.h"
#include "native/core/control_block.h"
#include "native/core/shared/object_operations.h"
#include "native/transfer/transfer.h"
#include "tests/native/core/comms.h"
#include "tests/native/core/forks.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace processes_test {

using windlass::Comm;
using windlass::ControlBlock;
using windlass::Group;
using windlass::GroupConfig;

constexpr int kProcesses = 2;
constexpr uint64_t kWindow = uint64_t{4} << 20;  // of each rank

struct Shape {
  uint32_t ranks;
  uint32_t cores;
  uint32_t deviceCores;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.ranks << " ranks, " << shape.cores << " cores, " << shape.deviceCores
       << " device cores";
}

// A control block and a window in one file.
class SharedFile {
 public:
  explicit SharedFile(const GroupConfig& config)
      : blockBytes_(ControlBlock::bytes(config)), bytes_(blockBytes_ + config.ranks * kWindow) {
    file_ = memfd_create("windlass-test", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) std::abort();
    for (void*& range : ranges_) {
      range = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (range == MAP_FAILED) std::abort();
    }
    void* memory = map(nullptr, 0);
    ControlBlock::make(memory, config);
    munmap(memory, bytes_);
  }
  ~SharedFile() {
    for (void* range : ranges_) munmap(range, bytes_);
    close(file_);
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Attaches the group as process `process` maps it.
  std::shared_ptr<Group> attach(int process) const {
    void* memory = map(ranges_[process], MAP_FIXED);
    std::shared_ptr<Group> group = Group::attach(memory, nullptr, windlass::PeerMemoryUse::kAuto);
    group->windows().hold(windlass::kControlBlock + 1, nullptr,
                      static_cast<unsigned char*>(memory) + blockBytes_, kWindow, kWindow);
    return group;
  }

 private:
  void* map(void* where, int flags) const {
    void* memory = mmap(where, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file_, 0);
    if (memory == MAP_FAILED) std::abort();
    return memory;
  }

  uint64_t blockBytes_;
  uint64_t bytes_;
  int file_;
  void* ranges_[kProcesses];
};

GroupConfig groupConfigOf(const Shape& shape) {
  GroupConfig config;
  config.ranks = shape.ranks;
  config.cores = shape.cores;
  config.blocks = 1;
  config.inLineCores = shape.deviceCores;
  config.streamingBytes = uint64_t{1} << 40;
  config.deadlineNs = 20'000 * kMs;
  config.spansProcesses = true;
  Group::suitTarget(&config);
  return config;
}

// Runs the body on every rank, half of them in each of two processes; what it returns counts
// failures. How the processes ended.
std::vector<int> inTwoProcesses(const Shape& shape,
                                const std::function<int(Comm&, uint32_t* window)>& body) {
  const SharedFile file(groupConfigOf(shape));
  Forks forks(kProcesses, [&](int process) {
    const std::shared_ptr<Group> group = file.attach(process);
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (uint32_t rank = process; rank < shape.ranks; rank += kProcesses) {
      Error error;
      if (group->claim(rank, &error) != WL_OK) std::abort();
    }
    for (uint32_t rank = process; rank < shape.ranks; rank += kProcesses) {
      threads.emplace_back([&, rank] {
        Comm comm(group, rank);
        const auto& window = group->windows().table()[windlass::kControlBlock + 1];
        failures += body(comm, reinterpret_cast<uint32_t*>(window.segment(rank)));
        comm.close(nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return failures.load();
  });
  return forks.wait(120'000 * kMs);
}

const std::vector<int> kAllWell = {0, 0};

// Element `i` of the input of `rank` to an operation. The expected result of any operation follows
// from it.
uint32_t valueOf(uint32_t round, uint32_t rank, uint64_t i) {
  return (round * 2654435761u + rank * 40503u + static_cast<uint32_t>(i) * 2246822519u) | 1u;
}

// One rank's calls of every collective, on elements of its window.
class EveryCollective {
 public:
  EveryCollective(Comm& comm, uint32_t* window)
      : comm_(comm), n_(comm.group().ranks()), me_(comm.rank()), in_(window),
        out_(window + kWindow / 8) {}

  int failures() const { return failures_; }

  void run(uint32_t round, uint64_t count) {
    round_ = round;
    count_ = count;
    const uint32_t root = round % n_;
    const bool atRoot = me_ == root;
    for (const int32_t algorithm : {WL_PUSH, WL_PULL}) {
      check(WL_OP_ALL_TO_ALL, algorithm, n_ * count,
            [&](uint64_t i) { return own(i / count, me_ * count + i % count); });
    }
    check(WL_OP_BROADCAST, WL_AUTO, count, [&](uint64_t i) { return own(root, i); });
    check(WL_OP_ALL_GATHER, WL_AUTO, n_ * count,
          [&](uint64_t i) { return own(i / count, i % count); });
    const uint64_t columns = count / static_cast<uint64_t>(rowsOf(count));
    check(WL_OP_ALL_GATHER_DIM, WL_AUTO, n_ * count, [&](uint64_t i) {
      return own(i / columns % n_, i / columns / n_ * columns + i % columns);
    });
    check(WL_OP_REDUCE_SCATTER, WL_AUTO, count,
          [&](uint64_t i) { return sum(me_ * count + i); });
    check(WL_OP_REDUCE_SCATTER_DIM, WL_AUTO, count, [&](uint64_t i) {
      return sum(i / columns * n_ * columns + me_ * columns + i % columns);
    });
    check(WL_OP_SCAN, WL_AUTO, count, [&](uint64_t i) { return sum(i, me_ + 1); });
    check(WL_OP_EXCLUSIVE_SCAN, WL_AUTO, count, [&](uint64_t i) { return sum(i, me_); });
    for (const int32_t algorithm :
         {WL_AUTO, WL_ONE_PHASE, WL_TWO_PHASE, WL_RING, WL_BIDIRECTIONAL_RING}) {
      check(WL_OP_ALL_REDUCE, algorithm, count, [&](uint64_t i) { return sum(i); });
    }
    check(WL_OP_SCATTER, WL_AUTO, count, [&](uint64_t i) { return own(root, me_ * count + i); });
    check(WL_OP_GATHER, WL_AUTO, atRoot ? n_ * count : 0,
          [&](uint64_t i) { return own(i / count, i % count); });
    check(WL_OP_REDUCE, WL_AUTO, atRoot ? count : 0, [&](uint64_t i) { return sum(i); });
    parts();
    error_ = Error();
    expect("barrier", runBarrier(comm_, 0, &error_) == WL_OK);
  }

 private:
  // Rank r's part of anything has r % 3 elements more than `count`.
  uint64_t part(uint64_t rank) const { return count_ + rank % 3; }
  uint64_t before(uint64_t rank) const {
    uint64_t sum = 0;
    for (uint64_t r = 0; r < rank; ++r) sum += part(r);
    return sum;
  }

  void parts() {
    std::vector<int64_t> counts, received(n_);
    for (uint32_t rank = 0; rank < n_; ++rank) counts.push_back(static_cast<int64_t>(part(rank)));
    const std::vector<int64_t> mine(n_, static_cast<int64_t>(part(me_)));
    const uint64_t inOut = n_ * part(me_);
    const auto from = [&](uint64_t i) {
      return own(i / part(me_), before(me_) + i % part(me_));
    };
    wl_call_t call = allToAllVOf(in_, 0, counts.data(), nullptr, out_, inOut, mine.data(), nullptr,
                                 WL_U32, 0);
    call.received_counts = received.data();
    check("all-to-all-v", inOut,
          [&] { return windlass::allToAllV(comm_, call, &error_, nullptr); }, from);
    check("all-to-all-v, packed", inOut,
          [&] { return windlass::allToAllVPacked(comm_, call, &error_); }, from);
    expect("its counts", received == mine);
    check("all-gather-v", before(n_),
          [&] {
            const wl_call_t gather =
                allGatherVOf(in_, part(me_), out_, before(n_), counts.data(), WL_U32, 0);
            return windlass::allGatherV(comm_, gather, &error_, nullptr);
          },
          [&](uint64_t i) {
            uint64_t rank = 0;
            while (i >= part(rank)) i -= part(rank++);
            return own(rank, i);
          });
    check("reduce-scatter-v", part(me_),
          [&] {
            const wl_call_t scatter = reduceScatterVOf(in_, before(n_), out_, part(me_),
                                                       counts.data(), WL_U32, WL_SUM, 0);
            return windlass::reduceScatterV(comm_, scatter, &error_, nullptr);
          },
          [&](uint64_t i) { return sum(before(me_) + i); });
  }

  uint32_t own(uint64_t rank, uint64_t i) const {
    return valueOf(round_, static_cast<uint32_t>(rank), i);
  }
  uint32_t sum(uint64_t i) const { return sum(i, n_); }
  // Of the first ranks.
  uint32_t sum(uint64_t i, uint32_t ranks) const {
    uint32_t sum = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) sum += own(rank, i);
    return sum;
  }

  template <class Expected>
  void check(wl_operation operation, int32_t algorithm, uint64_t elements, Expected&& expected) {
    check(wl_operation_name(operation), elements,
          [&] {
            return runCollective(comm_, operation, in_, out_, count_, algorithm, round_ % n_,
                                 &error_);
          },
          expected);
  }

  template <class Run, class Expected>
  void check(const char* what, uint64_t elements, Run&& run, Expected&& expected) {
    for (uint64_t i = 0; i < n_ * (count_ + 3); ++i) in_[i] = own(me_, i);
    std::fill(out_, out_ + elements, 0xeeeeeeee);
    error_ = Error();
    if (!expect(what, run() == WL_OK)) return;
    uint64_t right = 0;
    while (right < elements && out_[right] == expected(right)) ++right;
    expect(what, right == elements);
  }

  bool expect(const char* what, bool holds) {
    if (holds) return true;
    ++failures_;
    std::printf("rank %u, %s of %llu, round %u: %s\n", me_, what,
                static_cast<unsigned long long>(count_), round_, error_.message);
    std::fflush(stdout);
    return false;
  }

  Comm& comm_;
  const uint32_t n_;
  const uint32_t me_;
  uint32_t* const in_;
  uint32_t* const out_;
  uint32_t round_ = 0;
  uint64_t count_ = 0;
  Error error_;
  int failures_ = 0;
};

class Processes : public testing::TestWithParam<Shape> {};

TEST_P(Processes, RunEveryCollectiveThatNamesWindowsAlone) {
  EXPECT_EQ(kAllWell, inTwoProcesses(GetParam(), [](Comm& comm, uint32_t* window) {
              EveryCollective all(comm, window);
              for (uint32_t round = 0; round < 3; ++round) {
                for (const uint64_t count : {1, 257, 5000, 40'000}) all.run(round, count);
              }
              return all.failures();
            }));
}

// Registers a transfer in which each rank takes what all ranks have at `from`, side by side at
// `into`. 0, or the code of its failure.
int registerGather(Comm& comm, const uint32_t* from, uint32_t* into, int64_t count,
                   windlass::Transfer* transfer, Error* error) {
  const auto n = static_cast<int64_t>(comm.group().ranks());
  const Words source = rowBinding(from, count), target = rowBinding(into, n * count);
  const Words chunks = gatherChunks(n, count);
  const wl_transfer_config_t config =
      configOf(source, 1, target, 1, chunks, static_cast<uint64_t>(n));
  return windlass::Transfer::create(comm, config, 0, transfer, error);
}

TEST_P(Processes, RunTransfersBetweenWindows) {
  EXPECT_EQ(kAllWell, inTwoProcesses(GetParam(), [](Comm& comm, uint32_t* window) {
              uint64_t wrong = 0;
              for (const int64_t count : {5, 3000, 80'000}) {
                uint32_t* into = window + kWindow / 8;
                const auto all = static_cast<uint64_t>(comm.group().ranks()) *
                                 static_cast<uint64_t>(count);
                Error error;
                windlass::Transfer transfer(comm);
                if (registerGather(comm, window, into, count, &transfer, &error) != WL_OK) {
                  std::printf("%s\n", error.message);
                  return 1;
                }
                for (uint32_t version = 1; version <= (kSlow > 1 ? 5 : 30); ++version) {
                  for (int64_t i = 0; i < count; ++i)
                    window[i] = valueOf(version, comm.rank(), static_cast<uint64_t>(i));
                  std::fill(into, into + all, 0);
                  // Alternates between a version that all ranks state and one that a single rank
                  // names.
                  int64_t named = comm.rank() == 0 ? int64_t{version} : WL_ANY_VERSION;
                  const int code = version % 2 == 0 ? transfer.run(version, 0, &error)
                                                    : transfer.move(1, &named, 0, &error);
                  wrong += version % 2 == 1 && named != version;
                  if (code != WL_OK) {
                    std::printf("%s\n", error.message);
                    return 1;
                  }
                  const auto each = static_cast<uint64_t>(count);
                  for (uint64_t i = 0; i < all; ++i)
                    wrong += into[i] != valueOf(version, static_cast<uint32_t>(i / each), i % each);
                  uint64_t moved = 0;
                  transfer.moved(static_cast<int32_t>(comm.rank()), &moved, 1);
                  wrong += moved != 4 * all;
                }
                if (runBarrier(comm, 0, &error) != WL_OK) return 1;
              }
              if (wrong != 0) std::printf("%llu wrong\n", static_cast<unsigned long long>(wrong));
              return wrong == 0 ? 0 : 1;
            }));
}

TEST_P(Processes, NameARankOfTheOtherOneThatNeverComes) {
  EXPECT_EQ(kAllWell, inTwoProcesses(GetParam(), [](Comm& comm, uint32_t*) {
              if (comm.rank() == 1) {
                const int64_t start = wl_clock_ns();
                while (comm.group().failure() == nullptr && wl_clock_ns() - start < 10'000 * kMs)
                  usleep(1000);
                return 0;
              }
              Error error;
              const int code = runBarrier(comm, 500 * kMs, &error);
              const bool named = code == WL_DEADLINE_EXCEEDED && error.faulty_rank_count == 1 &&
                                 error.faulty_ranks[0] == 1;
              if (!named) std::printf("%s\n", error.message);
              return named ? 0 : 1;
            }));
}

TEST_P(Processes, MakeWindowsAndParts) {
  EXPECT_EQ(kAllWell, inTwoProcesses(GetParam(), [](Comm& comm, uint32_t*) {
              int failures = 0;
              const auto useWindow = [&](Comm& in, uint32_t round) {
                Error error;
                std::shared_ptr<windlass::Window> window;
                const windlass::NewWindow asked = {WL_OP_WINDOW, kWindow};
                if (windlass::createWindow(in, asked, 0, &window, &error) != WL_OK) {
                  std::printf("%s\n", error.message);
                  ++failures;
                  return;
                }
                EveryCollective all(in, static_cast<uint32_t*>(window->address(in.rank())));
                for (const uint64_t count : {1u, 6u, 3'000u}) all.run(round, count);
                failures += all.failures();
              };
              for (uint32_t round = 0; round < 4 && failures == 0; ++round) {
                useWindow(comm, round);
                // Ranks of one process, of both, and all.
                const uint32_t colors[] = {comm.rank() % kProcesses, comm.rank() / 2, 0, 1};
                Error error;
                std::shared_ptr<Group> group;
                uint32_t rank = 0;
                const windlass::Split split = {WL_OP_SPLIT, static_cast<int32_t>(colors[round]),
                                               -static_cast<int32_t>(comm.rank()), 0, 0};
                if (windlass::splitGroup(comm, split, 0, &group, &rank, &error) != WL_OK) {
                  std::printf("%s\n", error.message);
                  return failures + 1;
                }
                Comm part(group, rank);
                useWindow(part, round);
                part.close(nullptr);
              }
              return failures;
            }));
}

// ThreadSanitizer does not see how the other process orders what threads of this one do: one
// thread each there.
std::vector<Shape> shapes() {
  std::vector<Shape> all = {{2, 64, 0}, {2, 1, 0}, {2, 64, 1}};
#if !defined(__SANITIZE_THREAD__)
  all.insert(all.end(), {{4, 64, 0}, {5, 1, 0}, {4, 64, 3}});
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Processes, testing::ValuesIn(shapes()));

}  // namespace processes_test
}  // namespace windlass_test
