// SPDX-License-Identifier: Apache-2.0
// Runs each operation of the cost table once, after calls that warm it, and marks where it begins
// and ends: for callgrind by client requests, for strace by writes to a file that is not open.
// Prints for each operation: name, ranks, size, bytes and sequence numbers that the library
// counted.
//
// Nothing here depends on time or on the scheduler. Exactly one rank runs at a time. A rank gives
// its turn to the next one when the library yields, and all ranks share one assumed core, so that
// the library yields instead of spinning. This program replaces sched_yield, sched_getcpu and
// clock_gettime for that. It also replaces memcpy and its relatives, whose instructions otherwise
// depend on the processor.
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "valgrind/callgrind.h"
#include "windlass/windlass.h"

namespace {

constexpr int kWarm = 3;  // calls before the one that counts
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr int kFirstFile = 900;  // files of turns, which the table leaves out, begin there

[[noreturn]] void stop(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::_Exit(1);
}

// The turns of ranks: rank r runs once it has read a byte from pipe r. A rank that has written to
// another one's pipe is on its way to its own read. It runs nothing else that the table counts:
// this class, and syscall() of the C library, are left out.
class Turns {
 public:
  explicit Turns(int ranks) : ranks_(ranks), over_(static_cast<size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) stop("pipe", std::strerror(errno));
      for (int end = 0; end < 2; ++end) {
        dup2(ends[end], file(rank, end));
        close(ends[end]);
      }
    }
  }
  void start() { hand(0); }
  void begin(int rank) { take(rank); }
  void yield(int rank) {
    const int next = after(rank);
    if (next == rank) return;
    hand(next);
    take(rank);
  }
  void end(int rank) {
    over_[static_cast<size_t>(rank)] = true;
    if (const int next = after(rank); next != rank) hand(next);
  }
  // Blocks until all ranks are here. The last one to come runs `action` first.
  template <class Action>
  void arriveAndWait(int rank, const Action& action) {
    const int round = arrived_ / ranks_;
    if (++arrived_ % ranks_ == 0) action();
    while (arrived_ / ranks_ == round) yield(rank);
  }

 private:
  static int file(int rank, int end) { return kFirstFile + 2 * rank + end; }
  void take(int rank) {
    char byte;
    while (syscall(SYS_read, file(rank, 0), &byte, 1) != 1) {
    }
  }
  static void hand(int rank) {
    if (syscall(SYS_write, file(rank, 1), "", 1) != 1) stop("write", std::strerror(errno));
  }
  int after(int rank) const {
    for (int i = 1; i < ranks_; ++i) {
      const int next = (rank + i) % ranks_;
      if (!over_[static_cast<size_t>(next)]) return next;
    }
    return rank;
  }

  const int ranks_;
  std::vector<bool> over_;
  int arrived_ = 0;
};

Turns* turns = nullptr;
thread_local int thisRank = -1;
int64_t nanoseconds = 1'000'000'000;  // the time that the library sees: 1 more at each look

}  // namespace

#define REPLACES extern "C" __attribute__((visibility("default"), noinline))

REPLACES int sched_yield() noexcept {
  syscall(SYS_sched_yield);
  if (turns != nullptr && thisRank >= 0) turns->yield(thisRank);
  return 0;
}
REPLACES int sched_getcpu() noexcept { return 0; }
REPLACES int clock_gettime(clockid_t, timespec* now) noexcept {
  ++nanoseconds;
  now->tv_sec = nanoseconds / 1'000'000'000;
  now->tv_nsec = nanoseconds % 1'000'000'000;
  return 0;
}

// Attributes keep the compiler from turning these loops into calls of memcpy or into vector code.
REPLACES void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  for (; bytes >= 8; bytes -= 8, d += 8, s += 8) __builtin_memcpy(d, s, 8);
  for (; bytes > 0; --bytes) *d++ = *s++;
  return to;
}
REPLACES void* memmove(void* to, const void* from, size_t bytes) noexcept {
  if (to <= from) return memcpy(to, from, bytes);
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  while (bytes-- > 0) d[bytes] = s[bytes];
  return to;
}
REPLACES void* memset(void* to, int value, size_t bytes) noexcept {
  auto* d = static_cast<unsigned char*>(to);
  while (bytes-- > 0) *d++ = static_cast<unsigned char>(value);
  return to;
}

namespace {

class Error {
 public:
  Error() { error_.struct_size = sizeof error_; }
  operator wl_error_t*() { return &error_; }
  void check(int32_t code, const char* what) const {
    if (code != WL_OK) stop(what, error_.message);
  }

 private:
  wl_error_t error_ = {};
};

// One rank, and memory of it that its peers can reach.
struct Rank {
  wl_comm_t* comm;
  wl_window_t* window;
  int rank;
  int ranks;
  unsigned char* in;     // ranks * 1 MiB each
  unsigned char* out;
  unsigned char* extra;  // 8 MiB
};

using Call = std::function<int32_t(wl_error_t* error)>;

// Makes the call of one rank, for `bytes`; the call is made on all ranks together.
struct Operation {
  const char* name;
  std::vector<uint64_t> sizes;
  int records;  // that a call leaves in the flight recorder
  std::function<Call(const Rank& rank, uint64_t bytes)> make;
};

std::function<Call(const Rank&, uint64_t)> collective(int32_t operation, bool inIsPart,
                                                      bool outIsPart) {
  return [=](const Rank& of, uint64_t bytes) -> Call {
    const uint64_t part = bytes / 4;
    const uint64_t all = part * static_cast<uint64_t>(of.ranks);
    wl_call_t call = {};
    call.struct_size = sizeof call;
    call.operation = operation;
    call.in = of.in;
    call.in_elements = inIsPart ? part : all;
    call.out = of.out;
    call.out_elements = outIsPart ? part : all;
    call.dtype = WL_F32;
    call.op = WL_SUM;
    return [comm = of.comm, call](wl_error_t* error) { return wl_submit(comm, &call, error); };
  };
}

std::function<Call(const Rank&, uint64_t)> oneSided(decltype(&wl_put) function) {
  return [=](const Rank& of, uint64_t bytes) -> Call {
    return [=](wl_error_t* error) {
      const auto count = static_cast<int64_t>(bytes / 4);
      const int64_t one = 1;
      const wl_tensor_t local = {sizeof local, WL_F32, 1, 0, of.in, &count, &one};
      const wl_tensor_t remote = {sizeof remote, WL_F32, 1, 0, of.out, &count, &one};
      return function(of.comm, of.window, &local, (of.rank + 1) % of.ranks, &remote, error);
    };
  };
}

// A square f32 tensor of so many bytes, sharded by rows, becomes one that is sharded by columns.
wl_transfer_t* bind(const Rank& of, uint64_t bytes) {
  int64_t side = 1;
  while (side * side * 4 < static_cast<int64_t>(bytes)) side *= 2;
  const int64_t share = side / of.ranks;
  const auto binding = [&](unsigned char* memory, int64_t rows, int64_t columns) {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
    return std::vector<int64_t>{WL_F32, 2,       address, address, rows * columns * 4,
                                rows,   columns, columns, 1};
  };
  const auto source = binding(of.in, share, side);
  const auto target = binding(of.out, side, share);
  std::vector<int64_t> chunks;
  for (int from = 0; from < of.ranks; ++from) {
    for (const int64_t word : {int64_t{0}, int64_t{0}, int64_t{WL_F32}, int64_t{WL_SUM}, int64_t{2},
                               int64_t{1}, share, share, from * share, int64_t{0}, int64_t{from},
                               int64_t{0}, int64_t{0}, of.rank * share}) {
      chunks.push_back(word);
    }
  }
  wl_transfer_config_t config = {};
  config.struct_size = sizeof config;
  config.fingerprint = bytes;
  config.source_bindings = source.data();
  config.source_binding_words = source.size();
  config.source_binding_count = 1;
  config.target_bindings = target.data();
  config.target_binding_words = target.size();
  config.target_binding_count = 1;
  config.chunks = chunks.data();
  config.chunk_words = chunks.size();
  config.chunk_count = static_cast<uint64_t>(of.ranks);
  wl_transfer_t* transfer = nullptr;
  Error error;
  error.check(wl_transfer_create(of.comm, &config, 0, &transfer, error), "transfer");
  return transfer;
}

Call redistribution(const Rank& of, uint64_t bytes) {
  wl_transfer_t* transfer = bind(of, bytes);
  return [=, version = uint64_t{0}](wl_error_t* error) mutable {
    return wl_transfer_run(transfer, version++, 0, error);
  };
}

// The move of a link's version. Java's row of this name has the exchanges around it as well.
Call linkVersion(const Rank& of, uint64_t bytes) {
  wl_transfer_t* transfer = bind(of, bytes);
  return [=, next = int64_t{0}](wl_error_t* error) mutable {
    int64_t version = next++;
    const int32_t code = wl_transfer_move(transfer, 1, &version, 0, error);
    return code == WL_OK && version != next - 1 ? int32_t{WL_INTERNAL} : code;
  };
}

// Tokens of 128 f32, each to two of two experts a rank.
Call experts(const Rank& of, uint64_t bytes) {
  constexpr uint64_t kHidden = 128;
  const uint64_t tokens = bytes / (kHidden * 4);
  wl_experts_t experts = {};
  experts.struct_size = sizeof experts;
  experts.dtype = WL_F32;
  experts.ranks = static_cast<uint32_t>(of.ranks);
  experts.experts = experts.ranks * 2;
  experts.top_k = 2;
  experts.alignment = 1;
  experts.hidden = kHidden;
  experts.tokens = tokens;
  experts.rows = tokens * 2 * experts.ranks;
  wl_experts_layout_t layout = {};
  layout.struct_size = sizeof layout;
  Error error;
  error.check(wl_experts_lay_out(&experts, &layout, error), "experts");
  std::vector<int32_t> ids;
  for (uint64_t token = 0; token < tokens; ++token) {
    for (uint64_t k = 0; k < 2; ++k) {
      ids.push_back(static_cast<int32_t>((token + k) % experts.experts));
    }
  }
  unsigned char* table = of.extra;
  unsigned char* buffer = of.extra + kMiB;
  if (layout.table_bytes > kMiB || layout.buffer_bytes > 7 * kMiB) stop("experts", "too large");
  return [=](wl_error_t* failure) {
    int32_t code = wl_experts_route(of.comm, &experts, table, 0, tokens, ids.data(), WL_I32,
                                    nullptr, failure);
    if (code == WL_OK) {
      code = wl_experts_dispatch(of.comm, table, buffer, of.in, tokens, 0, failure);
    }
    if (code == WL_OK) {
      code = wl_experts_combine(of.comm, table, buffer, WL_F32, of.out, tokens, 0, failure);
    }
    return code;
  };
}

const std::vector<uint64_t> kSizes = {4, 4096, kMiB};
const std::vector<uint64_t> kTensorSizes = {4096, kMiB};
const std::vector<Operation> kOperations = {
    {"barrier", {0}, 1, collective(WL_OP_BARRIER, true, true)},
    {"put", kSizes, 1, oneSided(wl_put)},
    {"accumulate", kSizes, 1, oneSided(wl_accumulate)},
    {"all-to-all", kSizes, 1, collective(WL_OP_ALL_TO_ALL, false, false)},
    {"broadcast", kSizes, 1, collective(WL_OP_BROADCAST, true, true)},
    {"all-gather", kSizes, 1, collective(WL_OP_ALL_GATHER, true, false)},
    {"reduce-scatter", kSizes, 1, collective(WL_OP_REDUCE_SCATTER, false, true)},
    {"all-reduce", kSizes, 1, collective(WL_OP_ALL_REDUCE, true, true)},
    {"dispatch-combine", kTensorSizes, 2, experts},
    {"redistribute", kTensorSizes, 1, redistribution},
    {"link-version", kTensorSizes, 1, linkVersion},
};

uint32_t sequenceOf(const Rank& of) {
  wl_rank_state_t state = {};
  state.struct_size = sizeof state;
  if (wl_comm_state(of.comm, of.rank, &state) != WL_OK) stop("state", "refused");
  return state.sequence;
}

uint64_t bytesOf(const Rank& of, int records) {
  wl_record_t newest[2] = {};
  newest[0].struct_size = sizeof newest[0];
  if (wl_comm_recorded(of.comm, of.rank, newest, records) != records) stop("records", "missing");
  uint64_t bytes = 0;
  for (int i = 0; i < records; ++i) bytes += newest[i].bytes;
  return bytes;
}

void mark(const std::string& text) {
  // Fails, since the file is not open. strace shows the text.
  if (write(-1, text.data(), text.size()) == 0) stop("mark", "written");
}

void measure(const Operation& operation, uint64_t bytes, const Rank& of, uint64_t* moved) {
  const std::string name = std::string(operation.name) + " " + std::to_string(of.ranks) + " " +
                           (bytes == 0 ? "-" : std::to_string(bytes));
  const Call call = operation.make(of, bytes);
  Error error;
  for (int i = 0; i < kWarm; ++i) error.check(call(error), name.c_str());
  const uint32_t before = sequenceOf(of);
  turns->arriveAndWait(of.rank, [&] {
    *moved = 0;
    mark("begin " + name);
    CALLGRIND_ZERO_STATS;
  });
  error.check(call(error), name.c_str());
  turns->arriveAndWait(of.rank, [&] {
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    mark("end");
  });
  *moved += bytesOf(of, operation.records);
  const uint32_t exchanges = sequenceOf(of) - before;
  turns->arriveAndWait(of.rank, [&] {
    std::printf("%s %llu %u\n", name.c_str(), static_cast<unsigned long long>(*moved), exchanges);
  });
}

void runRank(wl_group_t* group, int rank, int ranks, uint64_t* moved) {
  thisRank = rank;
  turns->begin(rank);
  Rank of = {nullptr, nullptr, rank, ranks, nullptr, nullptr, nullptr};
  Error error;
  error.check(wl_group_join(group, rank, &of.comm, error), "join");
  const uint64_t part = static_cast<uint64_t>(ranks) * kMiB;
  error.check(wl_window_create(of.comm, 2 * part + 8 * kMiB, 0, &of.window, error), "window");
  of.in = static_cast<unsigned char*>(wl_window_address(of.window, rank));
  of.out = of.in + part;
  of.extra = of.out + part;
  for (const Operation& operation : kOperations) {
    for (const uint64_t bytes : operation.sizes) measure(operation, bytes, of, moved);
  }
  turns->end(rank);
}

}  // namespace

int main() {
  for (const int ranks : {1, 2}) {
    Turns own(ranks);
    turns = &own;
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = ranks;
    config.cores = 1;
    wl_group_t* group = nullptr;
    Error error;
    error.check(wl_group_create(&config, &group, error), "group");
    uint64_t moved = 0;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(runRank, group, rank, ranks, &moved);
    }
    own.start();
    for (std::thread& thread : threads) thread.join();
    turns = nullptr;
  }
  std::fflush(stdout);
  std::_Exit(0);  // handles stay open: how they close is not measured
}
