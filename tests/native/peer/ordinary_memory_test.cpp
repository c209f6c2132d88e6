// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks in several processes, forked, whose inputs and outputs lie anywhere: in
// windows, in memory pools, on the heap, in mapped files. Compared bit for bit with a slow
// reference, by process_vm_readv and through stages, on both executors.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "native/base/dtype.h"
#include "native/core/control_block.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/comms.h"
#include "tests/native/core/members.h"
#include "tests/native/isa/reference.h"

namespace windlass_test {
namespace ordinary_memory_test {

using windlass::DType;
using windlass::ReduceOp;

// A mapped file that only this process has.
class MappedFile {
 public:
  explicit MappedFile(uint64_t bytes) : bytes_(bytes) {
    const int file = memfd_create("windlass-test", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~MappedFile() { munmap(memory_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  unsigned char* data() { return static_cast<unsigned char*>(memory_); }

 private:
  const uint64_t bytes_;
  void* memory_;
};

// Elements that ranks bring repeat after so many: a prime, so that no piece begins as another.
constexpr uint64_t kPeriod = 509;
constexpr unsigned char kUntouched = 0xe5;

// One operation, the same on all ranks but for where each has its memory.
struct Operation {
  wl_operation what;
  bool isPacked = false;  // of all-to-all-v
  DType dtype;
  ReduceOp op;
  bool isPremultiplied;
  int algorithm;
  int root;
  bool inPlace;
  uint64_t count;  // elements of a part, or about so many
  std::vector<std::vector<uint64_t>> elements;  // of each rank: kPeriod of them

  Operation(std::mt19937_64& random, int ranks) {
    constexpr wl_operation kAll[] = {
        WL_OP_ALL_TO_ALL,     WL_OP_BROADCAST, WL_OP_ALL_GATHER, WL_OP_ALL_GATHER_DIM,
        WL_OP_REDUCE_SCATTER, WL_OP_ALL_REDUCE, WL_OP_ALL_REDUCE, WL_OP_SCATTER,
        WL_OP_GATHER,         WL_OP_REDUCE,    WL_OP_ALL_TO_ALL_V, WL_OP_ALL_TO_ALL_V,
        WL_OP_ALL_GATHER_V,   WL_OP_REDUCE_SCATTER_V, WL_OP_SCAN, WL_OP_EXCLUSIVE_SCAN,
        WL_OP_REDUCE_SCATTER_DIM};
    what = kAll[random() % std::size(kAll)];
    isPacked = random() % 2 == 0;
    do {
      dtype = static_cast<DType>(random() % windlass::kDTypeCount);
      op = static_cast<ReduceOp>(random() % windlass::kReduceOpCount);
      isPremultiplied = what != WL_OP_REDUCE_SCATTER_V && isFloat(dtype) && random() % 4 == 0;
      if (isPremultiplied) op = ReduceOp::kPremultipliedSum;
    } while (reduces() && !isPremultiplied &&
             (!windlass::canReduce(dtype, op) || (scans() && op == ReduceOp::kAvg)));
    root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    algorithm = WL_AUTO;
    if (what == WL_OP_ALL_TO_ALL) algorithm = random() % 2 == 0 ? WL_PUSH : WL_PULL;
    if (what == WL_OP_ALL_REDUCE) {
      // Rings promise the canonical order for no operation that rounds.
      const bool isExact = !isFloat(dtype);
      constexpr int kAlgorithms[] = {WL_AUTO, WL_ONE_PHASE, WL_TWO_PHASE, WL_RING,
                                     WL_BIDIRECTIONAL_RING};
      algorithm = kAlgorithms[random() % (isExact ? 5 : 3)];
    }
    inPlace = random() % 3 == 0 && algorithm != WL_ONE_PHASE;
    constexpr uint64_t kBytes[] = {0,      1,      64,      3'000,   4'104,   20'000, 65'536,
                                   70'001, 131'072, 140'000, 262'144, 300'008, 530'000};
    const uint64_t bytes = kBytes[random() % std::size(kBytes)] / (kSlow > 1 ? 2 : 1);
    count = bytes / elementBytes() + random() % 3;
    for (int rank = 0; rank < ranks; ++rank) {
      auto& own = elements.emplace_back();
      for (uint64_t i = 0; i < kPeriod; ++i)
        own.push_back(windlass::reference::randomElement(dtype, random));
    }
  }

  uint64_t elementBytes() const { return sizeOf(dtype); }
  bool reduces() const {
    return what == WL_OP_REDUCE_SCATTER || what == WL_OP_ALL_REDUCE || what == WL_OP_REDUCE ||
           what == WL_OP_REDUCE_SCATTER_V || what == WL_OP_REDUCE_SCATTER_DIM || scans();
  }
  bool scans() const { return what == WL_OP_SCAN || what == WL_OP_EXCLUSIVE_SCAN; }
  double factor(uint64_t rank) const { return 1.0 / static_cast<double>(3 + rank); }
  uint64_t ranks() const { return elements.size(); }
  // Elements from `from` to `to` in operations whose parts differ in size. In all-gather-v they
  // depend only on `from`, in reduce-scatter-v only on `to`.
  uint64_t part(uint64_t from, uint64_t to) const {
    if (what == WL_OP_ALL_GATHER_V) to = 1;
    if (what == WL_OP_REDUCE_SCATTER_V) from = 1;
    return (from + 2 * to) % 4 == 0 ? 0 : count + 3 * from + 5 * to;
  }
  int64_t rows() const { return static_cast<int64_t>(rowsOf(count)); }
  uint64_t element(uint64_t rank, uint64_t i) const { return elements[rank][i % kPeriod]; }

  std::string text() const {
    return std::string(wl_operation_name(what)) + (isPacked ? ", packed" : "") + " of " +
           std::to_string(count) + " x dtype " + std::to_string(static_cast<int>(dtype)) +
           ", op " + std::to_string(static_cast<int>(op)) + ", algorithm " +
           std::to_string(algorithm) + ", root " + std::to_string(root) +
           (inPlace ? ", in place" : "");
  }
};

// Kinds of memory that an operation may use. All processes map the first kinds.
constexpr unsigned kMapped = 2;
constexpr unsigned kAnywhere = 4;

// One rank's call of it.
class Call {
 public:
  Call(const Operation& operation, Member& member, wl_memory_pool_t* pool, unsigned places,
       std::mt19937_64& random)
      : of_(operation), member_(member), pool_(pool), places_(places),
        me_(static_cast<uint64_t>(member.rank)), n_(operation.ranks()) {
    size();
    const uint64_t bytes = of_.elementBytes();
    if (of_.inPlace && inPlaceOffset() >= 0) {
      const bool inIsWhole = inElements_ >= outElements_;
      unsigned char* whole =
          place(std::max(inElements_, outElements_) * bytes, 0, random, &first_);
      in_ = whole + (inIsWhole ? 0 : static_cast<uint64_t>(inPlaceOffset()) * bytes);
      out_ = whole + (inIsWhole ? static_cast<uint64_t>(inPlaceOffset()) * bytes : 0);
    } else {
      in_ = place(inElements_ * bytes, 0, random, &first_);
      out_ = place(outElements_ * bytes, kWindowBytes / 2, random, &second_);
    }
  }

  // Whether the outcome is right.
  bool run(std::string* what) {
    const uint64_t bytes = of_.elementBytes();
    std::memset(out_, kUntouched, (outElements_ + kBeyond) * bytes);
    for (uint64_t i = 0; i < inElements_; ++i) {
      const uint64_t value = of_.element(me_, i);
      std::memcpy(in_ + i * bytes, &value, bytes);
    }
    Error error;
    if (call(&error) != WL_OK) {
      *what = error.message;
      return false;
    }
    for (uint64_t i = 0; i < written_; ++i) {
      const uint64_t wanted = expected(i);
      const uint64_t got = windlass::reference::loadElement(out_ + i * bytes, bytes);
      if (got == wanted) continue;
      *what = "element " + std::to_string(i) + " of " + std::to_string(written_) + " is " +
              std::to_string(got) + ", not " + std::to_string(wanted);
      return false;
    }
    const bool ends = !isInPlace_;
    for (uint64_t i = written_ * bytes; ends && i < (outElements_ + kBeyond) * bytes; ++i) {
      if (out_[i] == kUntouched) continue;
      *what = "byte " + std::to_string(i) + " of its output is written";
      return false;
    }
    for (uint64_t i = 0; !isInPlace_ && i < inElements_; ++i) {
      if (windlass::reference::loadElement(in_ + i * bytes, bytes) == of_.element(me_, i)) continue;
      *what = "element " + std::to_string(i) + " of its input has changed";
      return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kBeyond = 16;  // elements after an output

  bool isRoot() const { return static_cast<int>(me_) == of_.root; }

  void size() {
    const uint64_t all = n_ * of_.count;
    uint64_t sent = 0, received = 0;
    for (uint64_t rank = 0; rank < n_; ++rank) {
      sent += of_.part(me_, rank);
      received += of_.part(rank, me_);
    }
    switch (of_.what) {
      case WL_OP_ALL_TO_ALL:
        set(all, all);
        break;
      case WL_OP_ALL_GATHER:
      case WL_OP_ALL_GATHER_DIM:
        set(of_.count, all);
        break;
      case WL_OP_REDUCE_SCATTER:
      case WL_OP_REDUCE_SCATTER_DIM:
        set(all, of_.count);
        break;
      case WL_OP_SCATTER:
        set(isRoot() ? all : 0, of_.count);
        break;
      case WL_OP_GATHER:
        set(of_.count, isRoot() ? all : 0);
        break;
      case WL_OP_REDUCE:
        set(of_.count, isRoot() ? of_.count : 0);
        break;
      case WL_OP_BROADCAST:
        set(isRoot() ? of_.count : 0, of_.count);
        break;
      case WL_OP_ALL_TO_ALL_V:
        set(sent, received);
        break;
      case WL_OP_ALL_GATHER_V:
        set(of_.part(me_, 0), received);
        break;
      case WL_OP_REDUCE_SCATTER_V:
        set(sent, of_.part(0, me_));
        break;
      default:
        set(of_.count, of_.count);
    }
  }
  void set(uint64_t in, uint64_t out) {
    inElements_ = in;
    outElements_ = written_ = out;
  }

  // Where the smaller of the two begins in the other one, in elements; -1: not in place.
  int64_t inPlaceOffset() {
    int64_t offset = -1;
    uint64_t before = 0;
    switch (of_.what) {
      case WL_OP_ALL_REDUCE:
        offset = 0;
        break;
      case WL_OP_BROADCAST:
      case WL_OP_REDUCE:
        offset = isRoot() ? 0 : -1;
        break;
      case WL_OP_ALL_GATHER:
      case WL_OP_REDUCE_SCATTER:
        offset = static_cast<int64_t>(me_ * of_.count);
        break;
      case WL_OP_SCATTER:
      case WL_OP_GATHER:
        offset = isRoot() ? static_cast<int64_t>(me_ * of_.count) : -1;
        break;
      case WL_OP_ALL_GATHER_V:
      case WL_OP_REDUCE_SCATTER_V:
        for (uint64_t rank = 0; rank < me_; ++rank)
          before += of_.what == WL_OP_ALL_GATHER_V ? of_.part(rank, 0) : of_.part(0, rank);
        offset = static_cast<int64_t>(before);
        break;
      default:
        break;
    }
    isInPlace_ = offset >= 0;
    return offset;
  }

  struct Home {
    std::vector<unsigned char> heap;
    std::unique_ptr<MappedFile> file;
    wl_memory_pool_t* pool = nullptr;
    void* piece = nullptr;

    ~Home() {
      if (piece != nullptr && wl_memory_pool_release(pool, piece, nullptr) != WL_OK) std::abort();
    }
  };

  unsigned char* place(uint64_t bytes, uint64_t at, std::mt19937_64& random, Home* home) {
    const uint64_t room = bytes + kBeyond * 8;
    const uint64_t skipped = random() % 5 * 8;
    switch (random() % places_) {
      case 0:
        if (room + skipped > kWindowBytes / 2) std::abort();
        return member_.window + at + skipped;
      case 1:
        home->pool = pool_;
        if (wl_memory_pool_alloc(pool_, room + skipped, &home->piece, nullptr) != WL_OK)
          std::abort();
        return static_cast<unsigned char*>(home->piece) + skipped;
      case 2:
        home->heap.resize(room + skipped);
        return home->heap.data() + skipped;
      default:
        home->file = std::make_unique<MappedFile>(room + skipped);
        return home->file->data() + skipped;
    }
  }

  int call(Error* error) {
    const int dtype = static_cast<int>(of_.dtype);
    const int op = static_cast<int>(of_.op);
    std::vector<int64_t> sent, received;
    for (uint64_t rank = 0; rank < n_; ++rank) {
      sent.push_back(static_cast<int64_t>(of_.part(me_, rank)));
      received.push_back(static_cast<int64_t>(of_.part(rank, me_)));
    }
    if (of_.what == WL_OP_ALL_TO_ALL_V && of_.isPacked) {
      std::vector<int64_t> got(n_);
      const int code = callAllToAllVPacked(member_.comm, in_, inElements_, sent.data(), nullptr,
                                           out_, outElements_ + kBeyond / 2, got.data(), dtype,
                                           0, error);
      return code == WL_OK && got != received ? -1 : code;
    }
    if (of_.what == WL_OP_ALL_TO_ALL_V) {
      return callAllToAllV(member_.comm, in_, inElements_, sent.data(), nullptr, out_,
                           outElements_, received.data(), nullptr, dtype, 0, error);
    }
    if (of_.what == WL_OP_ALL_GATHER_V) {
      return callAllGatherV(member_.comm, in_, inElements_, out_, outElements_, received.data(),
                            dtype, 0, error);
    }
    if (of_.what == WL_OP_REDUCE_SCATTER_V) {
      return callReduceScatterV(member_.comm, in_, inElements_, out_, outElements_, sent.data(),
                                dtype, op, 0, error);
    }
    wl_call_t call = collectiveOf(of_.what, in_, inElements_, out_, outElements_, dtype, op,
                                  of_.algorithm, of_.root, of_.rows(), 0);
    call.factor = of_.factor(me_);
    return wl_submit(member_.comm, &call, error);
  }

  // The ranks whose inputs are folded: the first ones.
  uint64_t terms() const {
    return of_.what == WL_OP_SCAN ? me_ + 1 : of_.what == WL_OP_EXCLUSIVE_SCAN ? me_ : n_;
  }

  // Fold of the elements of the first ranks. For no element it is the identity of the operation.
  uint64_t fold(std::vector<uint64_t> codes) const {
    const DType wide = of_.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    const bool isFloat = windlass::isFloat(of_.dtype);
    if (of_.isPremultiplied) {
      using namespace windlass::reference;
      for (uint64_t rank = 0; rank < codes.size(); ++rank) {
        const uint64_t code = cast(of_.dtype, wide, codes[rank]);
        codes[rank] = wide == DType::kF64
                          ? toBits(of_.factor(rank) * fromBits<double>(code))
                          : toBits(static_cast<float>(of_.factor(rank)) * fromBits<float>(code));
      }
      if (codes.empty()) codes.push_back(0);
      return cast(wide, of_.dtype, windlass::reference::fold(wide, codes, ReduceOp::kSum));
    }
    if (!codes.empty()) return windlass::reference::fold(of_.dtype, codes, of_.op);
    const uint64_t bits = windlass::identityBits(isFloat ? wide : of_.dtype, of_.op);
    return isFloat ? windlass::reference::cast(wide, of_.dtype, bits) : bits;
  }

  uint64_t folded(uint64_t i) {
    i %= kPeriod;
    for (uint64_t next = folds_.size(); next < kPeriod; ++next) {
      std::vector<uint64_t> codes;
      for (uint64_t rank = 0; rank < terms(); ++rank) codes.push_back(of_.element(rank, next));
      const uint64_t bits = 8 * of_.elementBytes();
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      folds_.push_back(fold(codes) & mask);
    }
    return folds_[i];
  }

  // Element i of the output.
  uint64_t expected(uint64_t i) {
    const uint64_t count = of_.count;
    const auto root = static_cast<uint64_t>(of_.root);
    uint64_t from = 0, before = 0;
    switch (of_.what) {
      case WL_OP_ALL_TO_ALL:
        return of_.element(i / count, me_ * count + i % count);
      case WL_OP_BROADCAST:
        return of_.element(root, i);
      case WL_OP_ALL_GATHER:
      case WL_OP_GATHER:
        return of_.element(i / count, i % count);
      case WL_OP_ALL_GATHER_DIM: {
        const uint64_t columns = count / static_cast<uint64_t>(of_.rows());
        return of_.element(i / columns % n_, i / columns / n_ * columns + i % columns);
      }
      case WL_OP_SCATTER:
        return of_.element(root, me_ * count + i);
      case WL_OP_REDUCE_SCATTER:
        return folded(me_ * count + i);
      case WL_OP_REDUCE_SCATTER_DIM: {
        const uint64_t columns = count / static_cast<uint64_t>(of_.rows());
        return folded((i / columns * n_ + me_) * columns + i % columns);
      }
      case WL_OP_ALL_TO_ALL_V:
        while (i >= of_.part(from, me_)) i -= of_.part(from++, me_);
        for (uint64_t rank = 0; rank < me_; ++rank) before += of_.part(from, rank);
        return of_.element(from, before + i);
      case WL_OP_ALL_GATHER_V:
        while (i >= of_.part(from, 0)) i -= of_.part(from++, 0);
        return of_.element(from, i);
      case WL_OP_REDUCE_SCATTER_V:
        for (uint64_t rank = 0; rank < me_; ++rank) before += of_.part(0, rank);
        return folded(before + i);
      default:
        return folded(i);
    }
  }

  const Operation& of_;
  Member& member_;
  wl_memory_pool_t* const pool_;
  const unsigned places_;
  const uint64_t me_;
  const uint64_t n_;
  uint64_t inElements_ = 0;
  uint64_t outElements_ = 0;
  uint64_t written_ = 0;
  bool isInPlace_ = false;
  Home first_, second_;
  unsigned char* in_ = nullptr;
  unsigned char* out_ = nullptr;
  std::vector<uint64_t> folds_;  // of each element that repeats
};

class OrdinaryMemoryProcesses : public testing::TestWithParam<Spread> {};

TEST(OrdinaryMemory, EveryRankHasALineInAStage) {
  windlass::GroupConfig config;
  config.spansProcesses = true;
  for (config.ranks = 1; config.ranks <= WL_MAX_RANKS; ++config.ranks) {
    ASSERT_GE(config.stageHalfBytes() / config.ranks, windlass::kLine) << config.ranks << " ranks";
    ASSERT_EQ(0u, config.stageHalfBytes() % 4096) << config.ranks << " ranks";
  }
}

TEST(OrdinaryMemory, TakesNoneForStagesUntilRanksNeedThem) {
  for (const int ranks : {2, 8, 64, 1024}) {
    windlass::GroupConfig stages;
    stages.ranks = static_cast<uint32_t>(ranks);
    stages.spansProcesses = true;
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = ranks;
    Error error;
    int32_t file = -1;
    ASSERT_EQ(WL_OK, wl_group_share(&config, &file, &error)) << error.message;
    struct stat found = {};
    ASSERT_EQ(0, fstat(file, &found));
    EXPECT_EQ(static_cast<uint64_t>(found.st_size) - windlass::ControlBlock::laterBytes(stages),
              static_cast<uint64_t>(found.st_blocks) * 512)
        << ranks << " ranks";
    EXPECT_GE(windlass::ControlBlock::laterBytes(stages),
              2 * stages.stageHalfBytes() * stages.ranks);
    wl_file_close(file);
  }
}

// Random collectives on memory of these kinds. Afterwards all ranks have reached `form`.
void moveByEveryCollective(const Spread& spread, unsigned places, int operations, int form) {
  const uint64_t chosen = seed();
  const Members all(spread, [&](Member& member) {
    Error error;
    wl_memory_pool_t* pool = nullptr;
    CHECK_IN_MEMBER(wl_memory_pool_create(member.comm, uint64_t{1} << 30, 0, &pool, &error) ==
                    WL_OK);
    std::mt19937_64 shared(chosen);
    for (int i = 0; i < operations; ++i) {
      const Operation operation(shared, spread.ranks);
      std::mt19937_64 own(chosen + static_cast<uint64_t>(1000 * i + member.rank + 1));
      std::string what;
      if (Call(operation, member, pool, places, own).run(&what)) continue;
      std::fprintf(stderr, "seed %llu, rank %d, operation %d, %s: %s\n",
                   static_cast<unsigned long long>(chosen), member.rank, i,
                   operation.text().c_str(), what.c_str());
      return 1;
    }
    wl_peer_memory_t memory = {};
    memory.struct_size = sizeof memory;
    CHECK_IN_MEMBER(wl_comm_peer_memory(member.comm, &memory, &error) == WL_OK);
    CHECK_IN_MEMBER(memory.form == form);
    CHECK_IN_MEMBER(wl_memory_pool_used(pool) == 0);
    wl_memory_pool_free(pool);
    return 0;
  });
  EXPECT_EQ(allWell(spread), all.results) << "seed " << chosen;
}

TEST_P(OrdinaryMemoryProcesses, MovesByEveryCollective) {
  const Spread spread = GetParam();
  NEEDS_READING_FOR(spread.use)
  const bool reads = std::strcmp(spread.use, "stage") != 0 && mayRead();
  moveByEveryCollective(spread, kAnywhere, repetitions(24, 4000),
                        reads ? WL_PEER_MEMORY_READV : WL_PEER_MEMORY_STAGE);
}

// Nobody comes to need a copy.
TEST(MappedMemoryOfProcesses, MovesByEveryCollective) {
  for (const Spread& spread : {Spread{3, 3, 64, 0, "auto"}, Spread{1, 4, 64, 0, "auto"},
                               Spread{2, 4, 2, 0, "auto"}, Spread{2, 2, 64, 2, "auto"}}) {
#if defined(__SANITIZE_THREAD__)
    if (spread.ranks != spread.processes) continue;
#endif
    moveByEveryCollective(spread, kMapped, kSlow > 1 ? 12 : repetitions(20, 2000),
                          WL_PEER_MEMORY_OPEN);
  }
}

// ThreadSanitizer does not see how the other process orders what threads of this one do: one
// thread each there.
std::vector<Spread> spreads() {
  std::vector<Spread> all = {{2, 2, 64, 0, "auto"}};
  for (const char* use : {"readv", "stage"}) {
    for (const Spread& spread : {Spread{2, 2, 64, 0, use}, Spread{3, 3, 1, 0, use},
                               Spread{2, 2, 64, 2, use}})
      all.push_back(spread);
#if !defined(__SANITIZE_THREAD__)
    for (const Spread& spread : {Spread{2, 4, 64, 0, use}, Spread{2, 5, 2, 0, use},
                               Spread{3, 4, 64, 1, use}})
      all.push_back(spread);
#endif
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Spreads, OrdinaryMemoryProcesses, testing::ValuesIn(spreads()));

}  // namespace ordinary_memory_test
}  // namespace windlass_test
