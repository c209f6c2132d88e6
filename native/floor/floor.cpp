// SPDX-License-Identifier: Apache-2.0
// The physical floor of an operation: moves only the bytes that must move, without any protocol.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "native/base/dtype.h"
#include "native/base/error.h"
#include "native/base/target.h"
#include "native/floor/guarded.h"
#include "native/floor/threads.h"
#include "windlass/kernel.h"
#include "windlass/windlass.h"

namespace windlass::floor {
namespace {

// Block size for data with several outputs. A thread reads a block once and writes it to each
// output while the block is in the first-level cache.
constexpr uint64_t kBlock = 16 * 1024;

struct Move {
  std::byte* dst;
  const std::byte* src;
  uint64_t bytes;  // source bytes
};

void copy(const Move& move) {
  kTarget.copy(move.dst, move.src, move.bytes);
}

void stream(const Move& move) {
  const auto count = static_cast<int64_t>(move.bytes);
  const StridedView to = rowOf(move.dst, DType::kU8, count);
  kTarget.move(&to, 1, rowOf(move.src, DType::kU8, count), DType::kU8, Stores::kStreaming);
}

// Calls visit(job, row, offset, length) for the share of each job. The data is `rows` rows of
// `bytes` bytes, as one sequence. Shares are cut on the cache lines of the rows.
template <class Part, class Visit>
void forShares(std::vector<Job<Part>>& jobs, uint64_t rows, uint64_t bytes, const Visit& visit) {
  const uint64_t linesOfRow = wholeLines(bytes) / kLine;
  const uint64_t lines = rows * linesOfRow;
  uint64_t at = 0;
  for (uint64_t t = 0; t < jobs.size(); ++t) {
    const uint64_t end = lines * (t + 1) / jobs.size();
    while (at < end) {
      const uint64_t row = at / linesOfRow;
      const uint64_t next = std::min(end, (row + 1) * linesOfRow);
      const uint64_t offset = at % linesOfRow * kLine;
      visit(jobs[t], row, offset, std::min(bytes, (next - row * linesOfRow) * kLine) - offset);
      at = next;
    }
  }
}

// Measures and checks the moves that add(job, row, offset, length) adds for the shares of `rows`
// rows of `bytes` bytes. They write `written` bytes. The first thread also rewrites `input`.
template <class Add>
double measureMoves(uint64_t rows, uint64_t bytes, uint64_t written, int32_t iterations,
                    const Add& add, const Span& input = {nullptr, 0}) {
  const std::vector<int> cores = coresToUse();
  std::vector<Job<Move>> jobs(cores.size());
  if (input.bytes > 0) jobs[0].inputs.push_back(input);
  forShares(jobs, rows, bytes, add);
  const bool streams = storesOf(written, jobs.size()) == Stores::kStreaming;
  const double median =
      measure(jobs, cores, iterations, patternOf(DType::kU8), streams ? stream : copy);
  for (const Job<Move>& job : jobs) {
    for (const Move& move : job.parts) checkEqual(move.dst, move.src, move.bytes);
  }
  return median;
}

// Adds copies of `length` bytes to all outputs, block by block.
void addCopies(Job<Move>* job, const std::vector<std::byte*>& outs, const std::byte* in,
               uint64_t length) {
  const uint64_t block = outs.size() > 1 ? kBlock : length;
  for (uint64_t at = 0; at < length; at += block) {
    for (std::byte* out : outs)
      job->parts.push_back({out + at, in + at, std::min(block, length - at)});
  }
}

// A row holds the bytes that one rank sends to one peer. Every thread rewrites and sends its share
// of the rows.
double measureAllToAll(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const uint64_t outAt = wholeLines(ranks * bytes);
  const auto memory = segments(2 * outAt, ranks);
  const auto add = [&](Job<Move>& job, uint64_t row, uint64_t offset, uint64_t length) {
    const uint64_t source = row / ranks;
    const uint64_t target = row % ranks;
    std::byte* in = bytesOf(*memory, source) + target * bytes + offset;
    std::byte* out = bytesOf(*memory, target) + outAt + source * bytes + offset;
    job.inputs.push_back({in, length});
    job.parts.push_back({out, in, length});
  };
  return measureMoves(ranks * ranks, bytes, ranks * ranks * bytes, iterations, add);
}

// A row holds the bytes that one rank contributes. Every thread rewrites its share of the rows and
// copies it to all ranks, including the source.
double measureAllGather(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const uint64_t outAt = wholeLines(bytes);
  const auto memory = segments(outAt + ranks * bytes, ranks);
  const auto add = [&](Job<Move>& job, uint64_t source, uint64_t offset, uint64_t length) {
    std::byte* in = bytesOf(*memory, source) + offset;
    job.inputs.push_back({in, length});
    std::vector<std::byte*> outs;
    for (uint64_t target = 0; target < ranks; ++target)
      outs.push_back(bytesOf(*memory, target) + outAt + source * bytes + offset);
    addCopies(&job, outs, in, length);
  };
  const double median = measureMoves(ranks, bytes, ranks * ranks * bytes, iterations, add);
  for (uint64_t target = 0; target < ranks; ++target) {
    for (uint64_t source = 0; source < ranks; ++source) {
      const std::byte* out = bytesOf(*memory, target) + outAt + source * bytes;
      checkEqual(out, bytesOf(*memory, source), bytes);
    }
  }
  return median;
}

// The root's buffer is input and output. The first thread rewrites it, and every thread copies its
// part to the other ranks.
double measureBroadcast(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const auto memory = segments(bytes, ranks);
  std::byte* in = bytesOf(*memory, 0);
  const auto add = [&](Job<Move>& job, uint64_t, uint64_t offset, uint64_t length) {
    std::vector<std::byte*> outs;
    for (uint64_t target = 1; target < ranks; ++target)
      outs.push_back(bytesOf(*memory, target) + offset);
    addCopies(&job, outs, in + offset, length);
  };
  return measureMoves(1, bytes, (ranks - 1) * bytes, iterations, add, {in, bytes});
}

// Some elements of outputs and of inputs: views of one length.
struct Elements {
  Elements(uint64_t count, DType outType, const std::vector<std::byte*>& outData, DType inType,
           const std::vector<std::byte*>& inData)
      : shape(std::make_unique<const int64_t>(static_cast<int64_t>(count))) {
    for (std::byte* out : outData) outs.push_back(rowOf(out, outType, *shape));
    for (std::byte* in : inData) ins.push_back(rowOf(in, inType, *shape));
  }

  std::unique_ptr<const int64_t> shape;
  std::vector<StridedView> outs;
  std::vector<StridedView> ins;
};

// The f32 sum of inputs, which each output receives.
Elements sumOf(const std::vector<std::byte*>& outs, const std::vector<std::byte*>& ins,
               uint64_t bytes) {
  return Elements(bytes / sizeof(float), DType::kF32, outs, DType::kF32, ins);
}

void checkSum(const Elements& sum) {
  const auto at = [](const StridedView& view, int64_t index) {
    return static_cast<const float*>(view.data)[index];
  };
  for (int64_t i = 0; i < *sum.shape; ++i) {
    float expected = at(sum.ins[0], i);
    for (std::size_t rank = 1; rank < sum.ins.size(); ++rank) expected += at(sum.ins[rank], i);
    for (const StridedView& out : sum.outs)
      if (at(out, i) != expected) throw std::logic_error("the floor summed wrong bytes");
  }
}

// Measures the sums sumAt(row, offset, length) of the shares of `rows` rows of `bytes` bytes. One
// thread rewrites the whole input of a rank: the rows, which begin its segment. Threads then read
// inputs that other threads rewrote, as ranks do.
template <class SumAt>
double measureSums(const Window& memory, uint64_t ranks, uint64_t rows, uint64_t bytes,
                   int32_t iterations, const SumAt& sumAt) {
  const std::vector<int> cores = coresToUse();
  std::vector<Job<Elements>> jobs(cores.size());
  const auto add = [&](Job<Elements>& job, uint64_t row, uint64_t offset, uint64_t length) {
    job.parts.push_back(sumAt(row, offset, length));
  };
  forShares(jobs, rows, bytes, add);
  const uint64_t spread = std::max<uint64_t>(jobs.size(), ranks);
  for (uint64_t rank = 0; rank < ranks; ++rank)
    jobs[rank * jobs.size() / spread].inputs.push_back({bytesOf(memory, rank), rows * bytes});
  const Stores stores = storesOf(ranks * bytes, jobs.size());
  const auto run = [stores](const Elements& sum) {
    kTarget.fold(sum.outs.data(), static_cast<uint32_t>(sum.outs.size()), sum.ins.data(),
                 static_cast<uint32_t>(sum.ins.size()), ReduceOp::kSum, DType::kF32, stores);
  };
  return measure(jobs, cores, iterations, patternOf(DType::kF32), run);
}

// A row holds the elements that one rank receives. Every thread sums its share of the rows.
double measureReduceScatter(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const uint64_t outAt = wholeLines(ranks * bytes);
  const auto memory = segments(outAt + bytes, ranks);
  const auto sumFor = [&](uint64_t target, uint64_t offset, uint64_t length) {
    std::vector<std::byte*> ins;
    for (uint64_t source = 0; source < ranks; ++source)
      ins.push_back(bytesOf(*memory, source) + target * bytes + offset);
    return sumOf({bytesOf(*memory, target) + outAt + offset}, ins, length);
  };
  const double median = measureSums(*memory, ranks, ranks, bytes, iterations, sumFor);
  for (uint64_t target = 0; target < ranks; ++target) checkSum(sumFor(target, 0, bytes));
  return median;
}

// Every thread sums its share of the buffer and writes it to every rank.
double measureAllReduce(uint64_t ranks, uint64_t bytes, int32_t iterations) {
  const uint64_t outAt = wholeLines(bytes);
  const auto memory = segments(outAt + bytes, ranks);
  const auto sumAt = [&](uint64_t, uint64_t offset, uint64_t length) {
    std::vector<std::byte*> outs;
    std::vector<std::byte*> ins;
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      outs.push_back(bytesOf(*memory, rank) + outAt + offset);
      ins.push_back(bytesOf(*memory, rank) + offset);
    }
    return sumOf(outs, ins, length);
  };
  const double median = measureSums(*memory, ranks, 1, bytes, iterations, sumAt);
  checkSum(sumAt(0, 0, bytes));
  return median;
}

// Bytes that the source or one copy occupies, in whole cache lines.
uint64_t spanOf(uint64_t bytes, DType from, DType to) {
  return wholeLines(std::max(bytes, bytes / sizeOf(from) * sizeOf(to)));
}

// Rewrites the input with streaming stores, so that no cache holds it.
void rewriteInMemory(const Span& input, uint64_t stamp, Pattern pattern) {
  alignas(kLine) std::byte block[4096];
  for (uint64_t at = 0; at < input.bytes; at += sizeof block) {
    const uint64_t bytes = std::min<uint64_t>(input.bytes - at, sizeof block);
    rewrite({block, bytes}, stamp + at, pattern);
    stream({input.data + at, block, bytes});
  }
}

// Measures `copies` copies, which `memory` holds one after another, followed by the source. If
// `isInMemory`, no cache holds the source when a copy reads it.
double measureCopies(std::byte* memory, bool isInMemory, uint64_t bytes, uint64_t copies,
                     DType from, DType to, int32_t iterations) {
  const std::vector<int> cores = coresToUse();
  const uint64_t written = bytes / sizeOf(from) * sizeOf(to);
  const uint64_t span = spanOf(bytes, from, to);
  std::vector<Job<Elements>> jobs(cores.size());
  const auto add = [&](Job<Elements>& job, uint64_t, uint64_t offset, uint64_t length) {
    std::byte* in = memory + copies * span + offset;
    job.inputs.push_back({in, length});
    std::vector<std::byte*> outs;
    for (uint64_t copy = 0; copy < copies; ++copy)
      outs.push_back(memory + copy * span + offset / sizeOf(from) * sizeOf(to));
    job.parts.push_back(Elements(length / sizeOf(from), to, outs, from, {in}));
  };
  forShares(jobs, 1, bytes, add);
  const Stores stores = storesOf(copies * written, jobs.size());
  const Pattern pattern = patternOf(from);
  const double median = measure(
      jobs, cores, iterations,
      [&](const Elements& part) {
        kTarget.move(part.outs.data(), static_cast<uint32_t>(copies), part.ins[0], to, stores);
      },
      [&](const Span& input, uint64_t stamp) {
        isInMemory ? rewriteInMemory(input, stamp, pattern) : rewrite(input, stamp, pattern);
      });
  for (const Job<Elements>& job : jobs) {
    for (const Elements& part : job.parts) {
      // A cast is compared with the first of its copies.
      const void* const expected = from == to ? part.ins[0].data : part.outs[0].data;
      for (const StridedView& out : part.outs)
        checkEqual(out.data, expected, static_cast<uint64_t>(*part.shape) * sizeOf(to));
    }
  }
  return median;
}

struct Measurer {
  int32_t operation;
  double (*measure)(uint64_t ranks, uint64_t bytes, int32_t iterations);
  bool isSum;
};
constexpr Measurer kMeasurers[] = {{WL_OP_ALL_TO_ALL, measureAllToAll, false},
                                   {WL_OP_BROADCAST, measureBroadcast, false},
                                   {WL_OP_ALL_GATHER, measureAllGather, false},
                                   {WL_OP_REDUCE_SCATTER, measureReduceScatter, true},
                                   {WL_OP_ALL_REDUCE, measureAllReduce, true}};

}  // namespace
}  // namespace windlass::floor

using namespace windlass;
using namespace windlass::floor;

int32_t wl_floor_measure(const wl_floor_config_t* config, double* median_us, wl_error_t* error) {
  return guarded(error, [&] {
    require(config != nullptr && median_us != nullptr, "config, median_us: NULL");
    require(config->struct_size >= sizeof *config, "config.struct_size: too small");
    const Measurer* const found =
        std::find_if(std::begin(kMeasurers), std::end(kMeasurers),
                     [&](const Measurer& each) { return each.operation == config->operation; });
    require(found != std::end(kMeasurers),
            "config.operation: none of all-to-all, broadcast, all-gather, reduce-scatter and "
            "all-reduce");
    require(config->ranks >= 1 && config->ranks <= WL_MAX_RANKS,
            "config.ranks: not in 1 to WL_MAX_RANKS");
    require(config->iterations >= 1, "config.iterations: less than 1");
    require(config->bytes >= 1, "config.bytes: 0");
    const auto ranks = static_cast<uint64_t>(config->ranks);
    require(config->bytes <= (uint64_t{1} << 40) / (ranks * ranks),
            "config.bytes: more than 1 TiB in all");
    require(!found->isSum || config->bytes % sizeof(float) == 0,
            "config.bytes: not a multiple of 4, the bytes of an f32");
    *median_us = found->measure(ranks, config->bytes, config->iterations);
  });
}

int32_t wl_floor_copy(void* memory, uint64_t memory_bytes, uint64_t bytes, uint32_t copies,
                      int32_t from_dtype, int32_t to_dtype, int32_t iterations, double* median_us,
                      wl_error_t* error) {
  return guarded(error, [&] {
    require(median_us != nullptr, "median_us: NULL");
    require(isDType(from_dtype) && isDType(to_dtype), "from_dtype, to_dtype: no such dtype");
    const auto from = static_cast<DType>(from_dtype);
    const auto to = static_cast<DType>(to_dtype);
    require(canCast(from, to), "from_dtype, to_dtype: no cast between them");
    require(bytes >= 1 && bytes <= uint64_t{1} << 40, "bytes: not in 1 to 1 TiB");
    require(copies >= 1 && copies < WL_MAX_RANKS, "copies: not in 1 to WL_MAX_RANKS - 1");
    require(bytes % sizeOf(from) == 0, "bytes: not a multiple of the element's size");
    require(iterations >= 1, "iterations: less than 1");
    const uint64_t needed = (copies + uint64_t{1}) * spanOf(bytes, from, to);
    if (memory == nullptr) {
      const auto own = segments(needed, 1);
      *median_us = measureCopies(bytesOf(*own, 0), false, bytes, copies, from, to, iterations);
      return;
    }
    const auto at = reinterpret_cast<uintptr_t>(memory);
    const uint64_t before = wholeLines(at) - at;
    require(memory_bytes >= before && memory_bytes - before >= needed,
            "memory_bytes: less than the source and its copies take, on lines of 64 bytes");
    *median_us = measureCopies(static_cast<std::byte*>(memory) + before, true, bytes, copies, from,
                               to, iterations);
  });
}
