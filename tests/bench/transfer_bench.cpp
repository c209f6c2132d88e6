// SPDX-License-Identifier: Apache-2.0
// What a transfer costs beside this library's own contiguous copy, copy-cast or a plain sum over
// the same bytes: as many pinned threads on both sides, one a core (taskset gives fewer), inputs
// rewritten before each run, the two alternating, results checked. A line gives the medians over
// the rounds, and the median of each round's ratio.
//
//   transfer_bench [name]     only the cases whose name contains `name`
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "native/floor/threads.h"
#include "native/isa/isa.h"

namespace {

using windlass::DType;
using windlass::ReduceOp;
using windlass::StridedView;
using windlass::floor::Job;

constexpr uint64_t kSizes[] = {uint64_t{4} << 20, uint64_t{16} << 20, uint64_t{64} << 20};
constexpr int kRounds = 15;
constexpr int kIterations = 3;
constexpr uint64_t kRewritten = uint64_t{64} << 10;

using Numbers = std::vector<int64_t>;

// A tensor seen with its dimensions in one order by source and target: strides in elements. Ranks
// share dimension 0.
struct Case {
  const char* name;
  DType from;
  DType to;
  uint32_t terms;
  double limit;  // 0: none
  // For `count` elements.
  std::function<Numbers(int64_t count)> shape;
  std::function<Numbers(const Numbers& shape)> sourceStrides;
  std::function<Numbers(const Numbers& shape)> targetStrides;
};

// The strides of a contiguous tensor whose dimensions lie in `order`, outermost first.
std::function<Numbers(const Numbers&)> ordered(std::vector<size_t> order) {
  return [=](const Numbers& shape) {
    Numbers strides(shape.size());
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = step;
      step *= shape[order[i]];
    }
    return strides;
  };
}

std::function<Numbers(int64_t)> rowsOf(int64_t peers, int64_t row) {
  return [=](int64_t count) { return Numbers{peers, count / peers / row, row}; };
}

Numbers square(int64_t count) {
  int64_t side = 1;
  while (side * side * 4 <= count) side *= 2;
  return {count / side, side};
}

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void addTo(float* sum,
                                                                        const float* term,
                                                                        size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += term[i];
}

// A loop over the terms for each piece that fits the first-level cache.
void plainSum(float* sum, const std::vector<const float*>& terms, size_t count) {
  constexpr size_t kPiece = 1024;
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t n = std::min(kPiece, count - at);
    std::memcpy(sum + at, terms[0] + at, n * sizeof(float));
    for (size_t k = 1; k < terms.size(); ++k) addTo(sum + at, terms[k] + at, n);
  }
}

// One case at one size: its memory, and a transfer of it that all ranks have registered.
class Bound {
 public:
  Bound(const Case& given, uint64_t bytes, uint32_t ranks)
      : case_(given),
        count_(static_cast<int64_t>(bytes / sizeOf(given.from))),
        shape_(given.shape(count_)),
        sourceStrides_(given.sourceStrides(shape_)),
        targetStrides_(given.targetStrides(shape_)),
        ranks_(ranks),
        sources_(windlass::floor::segments(bytes, given.terms)),
        targets_(windlass::floor::segments(static_cast<uint64_t>(count_) * sizeOf(given.to), 1)) {
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = static_cast<int32_t>(ranks);
    check(wl_group_create(&config, &group_, &error()), "group");
    comms_.resize(ranks);
    transfers_.resize(ranks);
    std::vector<std::future<void>> threads;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      threads.push_back(std::async(std::launch::async, [this, rank] { join(rank); }));
    }
    for (auto& thread : threads) thread.get();
  }

  ~Bound() {
    for (wl_transfer_t* transfer : transfers_) wl_transfer_free(transfer);
    for (wl_comm_t* comm : comms_) wl_comm_free(comm);
    wl_group_release(group_);
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  double transferMicros(const std::vector<int>& cores) {
    return measure(cores, [this](uint32_t rank) {
      check(wl_transfer_run(transfers_[rank], versions_[rank]++, 0, &error()), "run");
    });
  }

  double plainMicros(const std::vector<int>& cores) {
    return measure(cores, [this](uint32_t rank) {
      const int64_t first = count_ * rank / ranks_;
      const int64_t length = count_ * (rank + 1) / ranks_ - first;
      if (case_.terms > 1 && case_.from == DType::kF32 && case_.to == DType::kF32) {
        std::vector<const float*> terms;
        for (uint32_t k = 0; k < case_.terms; ++k) {
          terms.push_back(static_cast<const float*>(source(k, first).data));
        }
        plainSum(static_cast<float*>(contiguousTarget(first).data), terms,
                 static_cast<size_t>(length));
      } else {
        reduce(first, length, contiguousTarget(first));
      }
    });
  }

  // Whether the last run left in the target what one contiguous pass over the elements, gathered
  // one by one, gives.
  bool holds() const {
    const uint64_t size = sizeOf(case_.from);
    std::vector<std::vector<std::byte>> packed(case_.terms);
    for (uint32_t k = 0; k < case_.terms; ++k) {
      packed[k].resize(static_cast<uint64_t>(count_) * size);
      forEachElement([&](int64_t at, int64_t from, int64_t) {
        std::memcpy(
            packed[k].data() + static_cast<uint64_t>(at) * size,
            static_cast<std::byte*>(sources_->address(k)) + static_cast<uint64_t>(from) * size,
            size);
      });
    }
    std::vector<StridedView> views;
    for (auto& each : packed) views.push_back({each.data(), case_.from, 1, &count_, &kOne});
    const uint64_t wide = sizeOf(case_.to);
    std::vector<std::byte> expected(static_cast<uint64_t>(count_) * wide);
    fold({expected.data(), case_.to, 1, &count_, &kOne}, views);
    bool equal = true;
    forEachElement([&](int64_t at, int64_t, int64_t to) {
      equal = equal && std::memcmp(expected.data() + static_cast<uint64_t>(at) * wide,
                                   static_cast<std::byte*>(targets_->address(0)) +
                                       static_cast<uint64_t>(to) * wide,
                                   wide) == 0;
    });
    return equal;
  }

 private:
  static constexpr int64_t kOne = 1;

  static wl_error_t& error() {
    thread_local wl_error_t error = {};
    error.struct_size = sizeof error;
    return error;
  }

  static void check(int32_t code, const char* what) {
    if (code != WL_OK) stop(std::string(what) + ": " + error().message);
  }

  template <class Run>
  double measure(const std::vector<int>& cores, const Run& run) {
    std::vector<Job<uint32_t>> jobs(ranks_);
    for (uint32_t rank = 0; rank < ranks_; ++rank) jobs[rank].parts.push_back(rank);
    // Threads rewrite pieces in turn, so that whoever reads a share reads what all of them wrote.
    const uint64_t bytes = static_cast<uint64_t>(count_) * sizeOf(case_.from);
    for (uint32_t k = 0; k < case_.terms; ++k) {
      auto* memory = static_cast<std::byte*>(sources_->address(k));
      for (uint64_t at = 0, piece = k; at < bytes; at += kRewritten, ++piece) {
        jobs[piece % ranks_].inputs.push_back({memory + at, std::min(kRewritten, bytes - at)});
      }
    }
    return windlass::floor::measure(jobs, cores, kIterations,
                                    windlass::floor::patternOf(case_.from), run);
  }

  StridedView source(uint32_t term, int64_t element) const {
    return {static_cast<std::byte*>(sources_->address(term)) +
                static_cast<uint64_t>(element) * sizeOf(case_.from),
            case_.from, 1, &kOne, &kOne};
  }

  StridedView contiguousTarget(int64_t element) const {
    return {static_cast<std::byte*>(targets_->address(0)) +
                static_cast<uint64_t>(element) * sizeOf(case_.to),
            case_.to, 1, &kOne, &kOne};
  }

  void reduce(int64_t first, int64_t length, StridedView target) const {
    std::vector<StridedView> views;
    for (uint32_t k = 0; k < case_.terms; ++k) {
      views.push_back(source(k, first));
      views.back().shape = &length;
    }
    target.shape = &length;
    fold(target, views);
  }

  void fold(const StridedView& target, const std::vector<StridedView>& views) const {
    if (views.size() == 1) {
      windlass::TMOVE_CVT(target, views[0]);
    } else {
      windlass::TFOLD(&target, 1, views.data(), static_cast<uint32_t>(views.size()),
                      ReduceOp::kSum);
    }
  }

  // visit(number, element of a source, element of the target), in the shape's order.
  template <class Visit>
  void forEachElement(const Visit& visit) const {
    Numbers index(shape_.size());
    for (int64_t at = 0; at < count_; ++at) {
      int64_t from = 0;
      int64_t to = 0;
      for (size_t d = 0; d < shape_.size(); ++d) {
        from += index[d] * sourceStrides_[d];
        to += index[d] * targetStrides_[d];
      }
      visit(at, from, to);
      for (size_t d = shape_.size(); d-- > 0 && ++index[d] == shape_[d];) index[d] = 0;
    }
  }

  Numbers binding(const void* memory, DType dtype, const Numbers& strides) const {
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
    Numbers words = {static_cast<int64_t>(dtype), static_cast<int64_t>(shape_.size()), address,
                     address, count_ * static_cast<int64_t>(sizeOf(dtype))};
    words.insert(words.end(), shape_.begin(), shape_.end());
    words.insert(words.end(), strides.begin(), strides.end());
    return words;
  }

  // Every rank is target of its share of dimension 0; rank 0 is source of all terms.
  void join(uint32_t rank) {
    check(wl_group_join(group_, static_cast<int32_t>(rank), &comms_[rank], &error()), "join");
    Numbers sources;
    for (uint32_t k = 0; k < case_.terms; ++k) {
      const Numbers words = binding(sources_->address(k), case_.from, sourceStrides_);
      sources.insert(sources.end(), words.begin(), words.end());
    }
    const Numbers targets = binding(targets_->address(0), case_.to, targetStrides_);
    const size_t ndim = shape_.size();
    Numbers start(ndim);
    Numbers length = shape_;
    start[0] = shape_[0] * rank / ranks_;
    length[0] = shape_[0] * (rank + 1) / ranks_ - start[0];
    Numbers chunk = {0, 0, static_cast<int64_t>(case_.to), WL_SUM, static_cast<int64_t>(ndim),
                     case_.terms};
    chunk.insert(chunk.end(), length.begin(), length.end());
    chunk.insert(chunk.end(), start.begin(), start.end());
    for (uint32_t k = 0; k < case_.terms; ++k) {
      chunk.insert(chunk.end(), {0, k});
      chunk.insert(chunk.end(), start.begin(), start.end());
    }
    wl_transfer_config_t config = {};
    config.struct_size = sizeof config;
    config.source_bindings = sources.data();
    config.source_binding_words = sources.size();
    config.source_binding_count = case_.terms;
    config.target_bindings = targets.data();
    config.target_binding_words = targets.size();
    config.target_binding_count = 1;
    config.chunks = chunk.data();
    config.chunk_words = chunk.size();
    config.chunk_count = 1;
    check(wl_transfer_create(comms_[rank], &config, 0, &transfers_[rank], &error()), "register");
  }

  const Case& case_;
  const int64_t count_;
  const Numbers shape_;
  const Numbers sourceStrides_;
  const Numbers targetStrides_;
  const uint32_t ranks_;
  const std::unique_ptr<windlass::Window> sources_;
  const std::unique_ptr<windlass::Window> targets_;
  wl_group_t* group_ = nullptr;
  std::vector<wl_comm_t*> comms_;
  std::vector<wl_transfer_t*> transfers_;
  std::vector<uint64_t> versions_ = std::vector<uint64_t>(64, 1);
};

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const Case& each, uint64_t bytes, const std::vector<int>& cores) {
  Bound bound(each, bytes, static_cast<uint32_t>(cores.size()));
  std::vector<double> transfers;
  std::vector<double> plains;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    plains.push_back(bound.plainMicros(cores));
    transfers.push_back(bound.transferMicros(cores));
    ratios.push_back(transfers.back() / plains.back());
  }
  if (!bound.holds()) stop(std::string(each.name) + ": the target differs");
  const double ratio = middle(ratios);
  std::printf("%-34s %5llu %10.0f %10.0f %7.2f", each.name,
              static_cast<unsigned long long>(bytes >> 20), middle(plains), middle(transfers),
              ratio);
  if (each.limit > 0) std::printf("  %s %.1f", ratio <= each.limit ? "within" : "OVER", each.limit);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  const auto rows = ordered({0, 1, 2});
  const auto peersApart = ordered({1, 0, 2});
  const auto columns = ordered({1, 0});
  const auto rowsOfSquare = ordered({0, 1});
  const auto four = [](int64_t count) { return Numbers{16, 32, 64, count / (16 * 32 * 64)}; };
  const auto reversed = ordered({3, 2, 1, 0});
  const auto straight = ordered({0, 1, 2, 3});
  const Case cases[] = {
      {"f32, contiguous", DType::kF32, DType::kF32, 1, 1.2, rowsOf(64, 16), rows, rows},
      {"f32 to bf16, contiguous", DType::kF32, DType::kBF16, 1, 1.2, rowsOf(64, 16), rows, rows},
      {"f32, rows of 64 B read", DType::kF32, DType::kF32, 1, 2, rowsOf(8, 16), peersApart, rows},
      {"f32, rows of 64 B written", DType::kF32, DType::kF32, 1, 2, rowsOf(8, 16), rows,
       peersApart},
      {"f32 to bf16, rows of 64 B read", DType::kF32, DType::kBF16, 1, 2, rowsOf(8, 16), peersApart,
       rows},
      {"f32 to bf16, rows of 64 B written", DType::kF32, DType::kBF16, 1, 2, rowsOf(8, 32), rows,
       peersApart},
      {"bf16, rows of 64 B read", DType::kBF16, DType::kBF16, 1, 2, rowsOf(8, 32), peersApart,
       rows},
      {"f32, rows of 1 KiB read", DType::kF32, DType::kF32, 1, 0, rowsOf(8, 256), peersApart, rows},
      {"f32, sum of 2", DType::kF32, DType::kF32, 2, 1.3, rowsOf(64, 16), rows, rows},
      {"f32, sum of 4", DType::kF32, DType::kF32, 4, 1.3, rowsOf(64, 16), rows, rows},
      {"f32, sum of 8", DType::kF32, DType::kF32, 8, 1.3, rowsOf(64, 16), rows, rows},
      {"f32, sum of 4, rows of 64 B read", DType::kF32, DType::kF32, 4, 0, rowsOf(8, 16),
       peersApart, rows},
      {"f32 to bf16, sum of 4", DType::kF32, DType::kBF16, 4, 1.3, rowsOf(64, 16), rows, rows},
      {"bf16, sum of 4", DType::kBF16, DType::kBF16, 4, 1.3, rowsOf(64, 16), rows, rows},
      {"f32, transposed", DType::kF32, DType::kF32, 1, 1.7, square, columns, rowsOfSquare},
      {"f32 to bf16, transposed", DType::kF32, DType::kBF16, 1, 0, square, columns, rowsOfSquare},
      {"bf16, transposed", DType::kBF16, DType::kBF16, 1, 1.7, square, columns, rowsOfSquare},
      {"f8, transposed", DType::kF8E4M3, DType::kF8E4M3, 1, 1.7, square, columns, rowsOfSquare},
      {"f32, 4 dimensions reversed", DType::kF32, DType::kF32, 1, 1.7, four, reversed, straight},
      {"bf16, 4 dimensions reversed", DType::kBF16, DType::kBF16, 1, 1.7, four, reversed, straight},
      {"f8, 4 dimensions reversed", DType::kF8E4M3, DType::kF8E4M3, 1, 1.7, four, reversed,
       straight},
  };
  const std::vector<int> cores = windlass::floor::coresToUse();
  std::printf("vector path %s, %zu threads; microseconds\n%-34s %5s %10s %10s %7s\n",
              windlass::isaPathName(), cores.size(), "", "MiB", "plain", "transfer", "ratio");
  for (const Case& each : cases) {
    if (std::string(each.name).find(filter) == std::string::npos) continue;
    for (const uint64_t bytes : kSizes) compare(each, bytes, cores);
  }
  return 0;
}
