// SPDX-License-Identifier: Apache-2.0
// Processes that are killed, and that are stopped and go on later, at any moment of everything that
// ranks do together: the others get the error, shrink, and go on. Prints how long a kill took to
// show.
#include "native/abi/handles.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/crew.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace faults_test {

constexpr uint64_t kWindow = uint64_t{4} << 20;  // of each rank

// Memory that one rank uses for its calls.
struct Work {
  Mate& mate;
  wl_window_t* window;
  wl_transfer_t* transfer;
  int64_t deadlineNs;
  uint32_t round;

  uint32_t* own() const { return at(mate.rank); }
  uint32_t* at(int rank) const { return static_cast<uint32_t*>(wl_window_address(window, rank)); }
  int size() const { return wl_comm_size(mate.comm); }
};

using Step = int32_t (*)(Work&, Error*);

int32_t barrierStep(Work& work, Error* error) {
  return callBarrier(work.mate.comm, work.deadlineNs, error);
}

int32_t smallStep(Work& work, Error* error) {
  return allGather(work.mate.comm, work.own(), work.own() + 16, 4, WL_U32, work.deadlineNs,
                   error);
}

int32_t largeStep(Work& work, Error* error) {
  constexpr uint64_t kCount = 100'000;
  return callCollective(work.mate.comm, WL_OP_ALL_REDUCE, work.own(), kCount, work.own() + kCount,
                        kCount, WL_U32, WL_SUM, WL_AUTO, 0, 0, work.deadlineNs, error);
}

int32_t transferStep(Work& work, Error* error) {
  return wl_transfer_run(work.transfer, work.round, work.deadlineNs, error);
}

// A part is used once, and dropped.
int32_t use(const Work& work, wl_comm_t* part, int32_t code, Error* error) {
  if (code == WL_OK && part != nullptr) code = callBarrier(part, work.deadlineNs, error);
  wl_comm_free(part);
  return code;
}

int32_t splitStep(Work& work, Error* error) {
  wl_comm_t* part = nullptr;
  const int32_t color = work.round % 2 == 0 ? 0 : work.mate.rank % 2;
  const int32_t code =
      wl_comm_split(work.mate.comm, color, -work.mate.rank, work.deadlineNs, &part, error);
  return use(work, part, code, error);
}

int32_t subgroupStep(Work& work, Error* error) {
  std::vector<int32_t> listed;
  for (int32_t rank = work.size() - 1; rank >= 0; --rank)
    if (rank != static_cast<int32_t>(work.round) % work.size()) listed.push_back(rank);
  wl_comm_t* part = nullptr;
  const auto count = static_cast<uint32_t>(listed.size());
  const int32_t code =
      wl_comm_subgroup(work.mate.comm, listed.data(), count, work.deadlineNs, &part, error);
  return use(work, part, code, error);
}

int32_t windowStep(Work& work, Error* error) {
  wl_window_t* window = nullptr;
  const int32_t code = wl_window_create(work.mate.comm, 1 << 16, work.deadlineNs, &window, error);
  wl_window_free(window);
  return code;
}

// A ring of signals.
int32_t signalStep(Work& work, Error* error) {
  const int32_t before = (work.mate.rank + work.size() - 1) % work.size();
  const int32_t after = (work.mate.rank + 1) % work.size();
  const int32_t code =
      wl_notify(work.mate.comm, work.window, after, kWindow - 4096, work.round + 1, error);
  return code != WL_OK ? code
                       : wl_wait(work.mate.comm, work.window, before, kWindow - 4096,
                                 work.round + 1, work.deadlineNs, error);
}

// A ring of messages: one that travels in its head, and one of ordinary memory that is read.
int32_t messageStep(Work& work, Error* error) {
  thread_local std::vector<uint32_t> memory(50'000);
  const int32_t before = (work.mate.rank + work.size() - 1) % work.size();
  const int32_t after = (work.mate.rank + 1) % work.size();
  const auto messageOf = [&](int32_t operation, int32_t peer, int32_t tag, uint64_t at) {
    wl_message_t message = {};
    message.struct_size = sizeof message;
    message.operation = operation;
    message.peer = peer;
    message.tag = tag;
    message.dtype = WL_U32;
    message.data = memory.data() + at;
    message.elements = tag == 0 ? 10 : 20'000;
    return message;
  };
  memory[0] = memory[10] = work.round + 1;
  wl_message_t messages[] = {
      messageOf(WL_OP_SEND, after, 0, 0), messageOf(WL_OP_SEND, after, 1, 10),
      messageOf(WL_OP_RECEIVE, before, 0, 20'010), messageOf(WL_OP_RECEIVE, before, 1, 20'020)};
  const int32_t code = wl_messages(work.mate.comm, messages, 4, work.deadlineNs, error);
  if (code == WL_OK) {
    EXPECT_OF_MATE(work.mate, memory[20'010] == work.round + 1);
    EXPECT_OF_MATE(work.mate, memory[20'020] == work.round + 1);
  }
  return code;
}

struct Kind {
  const char* name;
  Step step;
  bool makesParts;
  bool inItem;  // the victim is struck while it runs a claimed item
  bool stops;   // it is stopped there too, which takes long
};

const Kind kKinds[] = {
    {"barrier", barrierStep, false, false, true},
    {"all-gather of 16 B", smallStep, false, false, false},
    {"all-reduce of 400 kB", largeStep, false, false, true},
    {"all-reduce, in a claimed item", largeStep, false, true, true},
    {"transfer", transferStep, false, false, true},
    {"split", splitStep, true, false, true},
    {"subgroup", subgroupStep, true, false, false},
    {"window creation", windowStep, false, false, false},
    {"notify and wait", signalStep, false, false, false},
    {"messages around a ring", messageStep, false, false, true},
};

// Each rank gets what all have at the start of the window, side by side.
wl_transfer_t* registerGather(const Work& work) {
  constexpr int64_t kCount = 20'000;
  const int64_t n = work.size();
  const Words source = rowBinding(work.own(), kCount);
  const Words target = rowBinding(work.own() + kCount, n * kCount);
  const Words chunks = gatherChunks(n, kCount);
  const wl_transfer_config_t config =
      configOf(source, 1, target, 1, chunks, static_cast<uint64_t>(n));
  wl_transfer_t* transfer = nullptr;
  Error error;
  const int32_t code = wl_transfer_create(work.mate.comm, &config, 10'000 * kMs, &transfer, &error);
  if (code != WL_OK) std::fprintf(stderr, "%s\n", error.message);
  EXPECT_OF_MATE(work.mate, code == WL_OK);
  return transfer;
}

std::vector<int> survivors(const Crew& crew, int victim) {
  std::vector<int> ranks;
  for (int rank = 0; rank < crew.ranks(); ++rank)
    if (crew.processOf(rank) != victim) ranks.push_back(rank);
  return ranks;
}

int attempts() {
  return repetitions(1, 50);
}

// Ranks say how far they are: at work, with the error, in a new communicator, done.
enum At : int { kAtWork = 1, kFailed, kShrunk, kCounted };

void expectHeld(const Mate& mate, const Crew& crew, int victim, const Held& expected) {
  EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, mate.board.at[mate.rank], victim));
  if (mate.isFirst) {
    const bool same = await([&] { return Held::look().isWithin(expected); }, 5'000 * kMs);
    const Held now = Held::look();
    if (!same) {
      std::fprintf(stderr, "%d files, %d threads, %d mappings, more than %d, %d, %d\n", now.files,
                   now.threads, now.mappings, expected.files, expected.threads, expected.mappings);
    }
    EXPECT_OF_MATE(mate, same);
  }
  mate.board.at[mate.rank] = kCounted;
  EXPECT_OF_MATE(mate, mate.board.awaitAll(crew, kCounted, victim));
}

class Faults : public testing::TestWithParam<std::tuple<Crew, size_t>> {
 protected:
  const Crew crew = std::get<0>(GetParam());
  const Kind& kind = kKinds[std::get<1>(GetParam())];

  // Waits until the victim is in an item, or until the moment has passed.
  void awaitMoment(Muster& muster, int victim, int64_t momentUs) const {
    EXPECT_TRUE(muster.board().awaitAll(crew, kAtWork));
    usleep(static_cast<useconds_t>(momentUs));
    if (!kind.inItem) return;
    wl_group_t* group = muster.attach();
    const auto& state = group->group->lines(static_cast<uint32_t>(victim)).state;
    EXPECT_TRUE(await([&] { return state.running > 0; }, 20'000 * kMs));
    wl_group_release(group);
  }

  // Strikes at a random moment of its steps; the rest of the body runs with what failed it.
  template <class Rest>
  void strike(std::mt19937_64& random, int64_t deadlineNs, int signal, Rest&& rest,
              const std::function<void(Muster&, int victim)>& later) {
    const int victim = static_cast<int>(random() % static_cast<uint64_t>(crew.processes));
    const auto momentUs = static_cast<int64_t>(random() % 10'000);
    Muster muster(crew, 20'000 * kMs, 64);
    muster.run(
        [&](Mate& mate) {
          Error error;
          Work work = {mate, nullptr, nullptr, 0, 0};
          EXPECT_OF_MATE(mate, wl_window_create(mate.comm, kWindow, 0, &work.window, &error) ==
                                   WL_OK);
          if (kind.step == transferStep) work.transfer = registerGather(work);
          // A rank starts its threads with its first steps.
          for (; work.round < 2; ++work.round)
            EXPECT_OF_MATE(mate, kind.step(work, &error) == WL_OK);
          Held held = {};
          EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
          // Its control block and its window: what its first steps made goes a moment later.
          if (mate.isFirst) {
            EXPECT_OF_MATE(mate, await([&] {
              held = Held::look();
              return held.mappings == 2;
            }));
          }
          EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
          mate.board.at[mate.rank] = kAtWork;
          work.deadlineNs = deadlineNs;
          int32_t code = WL_OK;
          for (; code == WL_OK; ++work.round) code = kind.step(work, &error);
          mate.board.sawNs[mate.rank] = wl_clock_ns();
          rest(work, code, error, held, victim);
          wl_transfer_free(work.transfer);
          wl_window_free(work.window);
        },
        [&] {
          awaitMoment(muster, victim, momentUs);
          muster.board().struckNs = wl_clock_ns();
          kill(muster.pid(victim), signal);
          later(muster, victim);
        });
    EXPECT_EQ(0, muster.board().wrong) << "process " << victim << " after " << momentUs << " us";
  }

  // The rank goes on in a new communicator of the survivors.
  wl_comm_t* goOn(const Work& work, int victim, int64_t deadlineNs) const {
    const Mate& mate = work.mate;
    Error error;
    mate.board.at[mate.rank] = kFailed;
    wl_comm_t* shrunk = nullptr;
    const int32_t code = wl_comm_shrink(mate.comm, deadlineNs, &shrunk, &error);
    mate.board.shrunkNs[mate.rank] = wl_clock_ns();
    if (code != WL_OK) std::fprintf(stderr, "rank %d: %s\n", mate.rank, error.message);
    EXPECT_OF_MATE(mate, code == WL_OK);
    if (code != WL_OK) return nullptr;
    EXPECT_OF_MATE(mate, checkedGathers(mate, shrunk, survivors(crew, victim), 20'000, 2, &error) ==
                             WL_OK);
    mate.board.at[mate.rank] = kShrunk;
    return shrunk;
  }
};

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST_P(Faults, AKillShowsAtOnceAndTheOthersGoOn) {
  std::mt19937_64 random(seed() ^ std::hash<std::string>()(kind.name));
  std::vector<double> sawMs, shrunkMs;
  for (int attempt = 0; attempt < attempts() && !HasFailure(); ++attempt) {
    strike(
        random, 20'000 * kMs, SIGKILL,
        [&](Work& work, int32_t code, const Error& error, const Held& before, int victim) {
          const Mate& mate = work.mate;
          // A part that ended first returns Aborted.
          const bool isNamed = code == WL_PEER_LOST || (kind.makesParts && code == WL_ABORTED);
          if (!isNamed) std::fprintf(stderr, "%d: %s\n", code, error.message);
          EXPECT_OF_MATE(mate, isNamed);
          Error whole;
          EXPECT_OF_MATE(mate, await([&] {
            return wl_comm_status(mate.comm, &whole) == WL_PEER_LOST;
          }));
          EXPECT_OF_MATE(mate, whole.faulty_rank_count == crew.threads);
          EXPECT_OF_MATE(mate, crew.processOf(whole.faulty_ranks[0]) == victim);
          wl_comm_free(goOn(work, victim, 20'000 * kMs));
          // One pidfd less.
          expectHeld(mate, crew, victim, {before.files - 1, before.threads, before.mappings});
        },
        [&](Muster& muster, int victim) {
          const Board& board = muster.board();
          EXPECT_TRUE(board.awaitAll(crew, kShrunk, victim));
          for (const int rank : survivors(crew, victim)) {
            sawMs.push_back(static_cast<double>(board.sawNs[rank] - board.struckNs) / 1e6);
            shrunkMs.push_back(static_cast<double>(board.shrunkNs[rank] - board.struckNs) / 1e6);
          }
        });
  }
  ASSERT_FALSE(sawMs.empty());
  const double middle = median(sawMs), shrunk = median(shrunkMs);
  std::printf("%d x %d ranks, %s, %d kills: error after %.1f ms (median), %.1f ms (worst); new "
              "communicator after %.1f ms, %.1f ms\n",
              crew.processes, crew.threads, kind.name, attempts(), middle, sawMs.back(), shrunk,
              shrunkMs.back());
}

TEST_P(Faults, AStopEndsByTheDeadlineAndWhoComesBackIsLeftOut) {
  // Each kind stops in one of the two crews.
  const bool isTurn =
      kSlow > 1 || (std::get<1>(GetParam()) + (crew.threads > 1 ? 1 : 0)) % 2 == 0;
  if (!(kind.stops && isTurn) && !longForm()) GTEST_SKIP() << "the long form stops everywhere";
  std::mt19937_64 random(seed() ^ std::hash<std::string>()(kind.name));
  // Each takes three deadlines; of a rank that other work keeps from its core none may pass.
  for (int attempt = 0; attempt < repetitions(1, 25) && !HasFailure(); ++attempt) {
    strike(
        random, 600 * kMs, SIGSTOP,
        [&](Work& work, int32_t code, const Error&, const Held& before, int victim) {
          const Mate& mate = work.mate;
          Error other;
          if (crew.processOf(mate.rank) == victim) {
            wl_comm_t* shrunk = nullptr;
            EXPECT_OF_MATE(mate, wl_comm_shrink(mate.comm, 0, &shrunk, &other) == WL_ABORTED);
            EXPECT_OF_MATE(mate, contains(other.message, "was left out"));
            EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &other) == WL_ABORTED);
            // Memory of before, which nobody reads.
            for (int rank = 0; rank < work.size(); ++rank)
              std::memset(work.at(rank), 0xee, kWindow);
            mate.board.at[mate.rank] = kCounted;
            return;
          }
          // It may have been a part alone that ended; then ranks are at different steps.
          while (wl_comm_status(mate.comm, &other) == WL_OK)
            callBarrier(mate.comm, work.deadlineNs, &other);
          const bool isNamed = other.code == WL_DEADLINE_EXCEEDED ||
                               (kind.makesParts && code != WL_OK);
          if (!isNamed) std::fprintf(stderr, "%s\n", other.message);
          EXPECT_OF_MATE(mate, isNamed);
          wl_comm_t* shrunk = goOn(work, victim, 2 * work.deadlineNs);
          // While the other one comes back.
          const std::vector<int> former = survivors(crew, victim);
          for (uint32_t more = 1; shrunk != nullptr && more != 0;) {
            const int32_t gathered = checkedGathers(mate, shrunk, former, 5'000, 5, &other);
            if (gathered != WL_OK) std::fprintf(stderr, "%s\n", other.message);
            EXPECT_OF_MATE(mate, gathered == WL_OK);
            uint32_t mine = 0;
            for (int rank = victim; rank < crew.ranks(); rank += crew.processes)
              if (mate.board.at[rank] < kCounted) mine = 1;
            const int32_t told = callCollective(shrunk, WL_OP_ALL_REDUCE, &mine, 1, &more, 1,
                                                WL_U32, WL_MAX, WL_AUTO, 0, 0, 0, &other);
            EXPECT_OF_MATE(mate, told == WL_OK);
            if (told != WL_OK) break;
          }
          wl_comm_free(shrunk);
          // Once the other ranks of this process have freed theirs, too. The victim may have ended.
          EXPECT_OF_MATE(mate, !mate.isFirst || await([&] {
            return Held::look().files <= before.files;
          }));
        },
        [&](Muster& muster, int victim) {
          EXPECT_TRUE(muster.board().awaitAll(crew, kShrunk, victim));
          kill(muster.pid(victim), SIGCONT);
        });
  }
}

std::string nameOf(const testing::TestParamInfo<Faults::ParamType>& info) {
  const Crew crew = std::get<0>(info.param);
  std::string name = std::to_string(crew.processes) + "x" + std::to_string(crew.threads) + "_";
  for (const char* at = kKinds[std::get<1>(info.param)].name; *at != 0; ++at)
    name += std::isalnum(static_cast<unsigned char>(*at)) ? *at : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Faults,
                         testing::Combine(testing::ValuesIn(crews({{4, 1}, {2, 2}})),
                                          testing::Range<size_t>(0, std::size(kKinds))),
                         nameOf);

}  // namespace faults_test
}  // namespace windlass_test
