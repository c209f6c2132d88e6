// SPDX-License-Identifier: Apache-2.0
// What threads of GPUs do with elements, compiled for this machine, bit for bit against sim: every
// job's part of each thread in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "native/base/dtype.h"
#include "native/isa/checked/arithmetic.h"
#include "native/isa/sim/loops.h"

#define WL_CORE_TABLE static const
#include "native/isa/cuda/job.h"
namespace windlass::cuda {
Job& nextJob();
void submit();
}  // namespace windlass::cuda
#include "native/isa/cuda/fused.h"
#include "native/isa/cuda/tile_work.h"

namespace windlass {
namespace cuda {

static Job job;

Job& nextJob() {
  std::memset(static_cast<void*>(&job), 0xa5, sizeof job);
  return job;
}
void submit() {
  for (uint32_t thread = 0; thread < kWorkers; ++thread) {
    if (workInLine(job, thread)) continue;
    if (job.kind == JobKind::kTile) {
      job.work(job, thread);
    } else {
      workByCalls(job, thread);
    }
  }
}

}  // namespace cuda

namespace loops_test {

namespace gpu = cuda::instructions;
using Bytes = std::vector<unsigned char>;

constexpr DType kFloats[] = {DType::kF64,  DType::kF32,    DType::kF16,
                             DType::kBF16, DType::kF8E5M2, DType::kF8E4M3};
struct NoTile {};

// Sanitizers make a round about ten times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSlow = 10;
#else
constexpr uint64_t kSlow = 1;
#endif

uint64_t rounds() {
  return std::getenv("WINDLASS_TEST_LONG") == nullptr ? 1000 / kSlow : 20000;
}

// Prints its number where a test fails.
class Seeds : public testing::Test {
 protected:
  void begin(uint64_t round) {
    seed_ = round < 20 ? round : std::random_device()();
    random_.seed(seed_);
  }
  uint64_t under(uint64_t end) { return random_() % end; }
  std::mt19937_64 random_;
  uint64_t seed_ = 0;
};

uint64_t bitsAt(const unsigned char* from, uint64_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, bytes);
  return bits;
}

// Random elements, special ones among them.
void fill(unsigned char* to, DType dtype, uint64_t count, std::mt19937_64& random) {
  const uint64_t bytes = sizeOf(dtype);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    if (dtype == DType::kBool) bits &= 1;
    if (isFloat(dtype) && random() % 2 == 0) {
      const double values[] = {0, -0.0, 1, -2.5, 3, 1e-40, 448, 500, 1e300, -1e-310, 65519};
      const double value = values[random() % std::size(values)] * (1 + double(random() % 8) / 8);
      bits = cuda::castBits(DType::kF64, dtype, cuda::bitCast<uint64_t>(value));
    }
    std::memcpy(to + i * bytes, &bits, bytes);
  }
}

// Every code of `count` from first on, `step` apart, cast both ways.
void checkCasts(DType from, DType to, uint64_t first, uint64_t step, uint64_t count) {
  constexpr uint64_t kBlock = 4096;
  const uint64_t fromBytes = sizeOf(from);
  const uint64_t toBytes = sizeOf(to);
  Bytes source(kBlock * fromBytes);
  Bytes expected(kBlock * toBytes);
  for (uint64_t at = 0; at < count; at += kBlock) {
    const auto n = static_cast<int64_t>(std::min(kBlock, count - at));
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t code = first + (at + static_cast<uint64_t>(i)) * step;
      std::memcpy(&source[static_cast<uint64_t>(i) * fromBytes], &code, fromBytes);
    }
    const int64_t one = 1;
    TMOVE_CVT(StridedView{expected.data(), to, 1, &n, &one},
              StridedView{source.data(), from, 1, &n, &one});
    for (uint64_t i = 0; i < static_cast<uint64_t>(n); ++i) {
      const uint64_t code = bitsAt(&source[i * fromBytes], fromBytes);
      ASSERT_EQ(cuda::castBits(from, to, code), bitsAt(&expected[i * toBytes], toBytes))
          << nameOf(from) << " " << std::hex << code << " to " << nameOf(to);
    }
  }
}

TEST(CudaElements, CastAsSimDoes) {
  const bool isLong = std::getenv("WINDLASS_TEST_LONG") != nullptr;
  std::mt19937_64 random(7);
  for (DType from : kFloats) {
    for (DType to : kFloats) {
      if (from == to) continue;
      const uint64_t bits = 8 * sizeOf(from);
      if (bits <= 16) {
        checkCasts(from, to, 0, 1, uint64_t{1} << bits);
      } else if (bits == 32) {
        // An odd step goes over different codes, whatever the number of them.
        const uint64_t count = isLong ? uint64_t{1} << 32 : (uint64_t{1} << 24) / kSlow;
        checkCasts(from, to, random(), isLong ? 1 : 257, count);
      } else {
        const uint64_t count = isLong ? uint64_t{1} << 26 : (uint64_t{1} << 20) / kSlow;
        checkCasts(from, to, random(), random() | 1, count);
      }
      if (HasFatalFailure()) return;
    }
  }
}

// A tensor of `dims` dimensions in memory of its own, in any order and with gaps; or contiguous.
struct Tensor {
  Bytes memory;
  std::vector<int64_t> strides;
  uint64_t offset;
  StridedView view;

  Tensor(DType dtype, const std::vector<int64_t>& shape, std::mt19937_64& random, bool plain,
         uint64_t misaligned) {
    const auto dims = static_cast<uint32_t>(shape.size());
    std::vector<uint32_t> order(dims);
    for (uint32_t d = 0; d < dims; ++d) order[d] = d;
    if (!plain) std::shuffle(order.begin(), order.end(), random);
    strides.resize(dims);
    int64_t step = plain || random() % 2 == 0 ? 1 : 2;
    for (uint32_t d = dims; d-- > 0;) {
      strides[order[d]] = step;
      step *= shape[order[d]] + (plain ? 0 : static_cast<int64_t>(random() % 2 * 8));
    }
    const uint64_t bytes = sizeOf(dtype);
    const auto count = static_cast<uint64_t>(std::max<int64_t>(step, 1));
    offset = misaligned;
    // Whole words: an add exchanges the words around its elements.
    memory.resize((count * bytes + offset + 3) / 4 * 4);
    fill(memory.data() + offset, dtype, count, random);
    view = {memory.data() + offset, dtype, dims, shape.data(), strides.data()};
  }
  StridedView in(Bytes& copy) const {
    StridedView other = view;
    other.data = copy.data() + offset;
    return other;
  }
};

class CudaLoops : public Seeds {
 protected:
  std::vector<int64_t> shape() {
    std::vector<int64_t> shape(under(5));
    for (int64_t& size : shape) size = 1 + static_cast<int64_t>(under(6));
    if (!shape.empty() && under(2) == 0)
      shape[under(shape.size())] += static_cast<int64_t>(under(300));
    return shape;
  }
  uint64_t offsetOf(DType dtype) {
    const uint64_t bytes = sizeOf(dtype);
    return under(3) == 0 ? under(16) : under(16 / bytes) * bytes;
  }
};

TEST_F(CudaLoops, MoveAndCastAsSimDoes) {
  for (uint64_t round = 0; round < rounds(); ++round) {
    begin(round);
    const DType from = under(3) == 0 ? static_cast<DType>(under(kDTypeCount)) : kFloats[under(6)];
    const bool casts = isFloat(from) && under(4) != 0;
    const DType wire = casts ? kFloats[under(6)] : from;
    const DType to = casts ? kFloats[under(6)] : from;
    const auto extents = shape();
    const bool plain = under(2) == 0;
    const auto count = static_cast<uint32_t>(1 + under(3));
    const Tensor source(from, extents, random_, plain, offsetOf(from));
    std::vector<Tensor> targets;
    for (uint32_t t = 0; t < count; ++t)
      targets.emplace_back(to, extents, random_, plain, offsetOf(to));
    std::vector<Bytes> expected;
    std::vector<StridedView> expects;
    for (const Tensor& target : targets) expected.push_back(target.memory);
    for (uint32_t t = 0; t < count; ++t) expects.push_back(targets[t].in(expected[t]));
    TMOVE_CVT(expects.data(), count, source.view, wire);
    NoTile tile;
    const auto at = [&](uint32_t t) { return targets[t].in(targets[t].memory); };
    gpu::TMOVE_CVT(gpu::viewsAt(count, at), source.view, wire, tile);
    for (uint32_t t = 0; t < count; ++t)
      ASSERT_EQ(targets[t].memory, expected[t])
          << "seed " << seed_ << " " << nameOf(from) << " " << nameOf(wire) << " " << nameOf(to);
  }
}

TEST_F(CudaLoops, CopyBytesWhateverTheirAlignment) {
  for (uint64_t round = 0; round < rounds(); ++round) {
    begin(round);
    const uint64_t bytes = under(under(8) == 0 ? 200000 : 300);
    const uint64_t apart = under(16);
    const uint64_t from = under(16);
    Bytes source(bytes + 32);
    fill(source.data(), DType::kU8, source.size(), random_);
    Bytes target(bytes + 48, 0xee);
    Bytes expected = target;
    if (bytes > 0) std::memcpy(expected.data() + apart, source.data() + from, bytes);
    gpu::copyBytes(target.data() + apart, source.data() + from, bytes);
    ASSERT_EQ(target, expected) << "seed " << seed_;
  }
}

TEST_F(CudaLoops, FoldAsSimDoes) {
  for (uint64_t round = 0; round < 4 * rounds(); ++round) {
    begin(round);
    const auto from = static_cast<DType>(under(kDTypeCount));
    const auto op = static_cast<ReduceOp>(under(kReduceOpCount));
    if (!canReduce(from, op)) continue;
    const bool casts = isFloat(from) && under(3) == 0;
    const DType wire = casts ? kFloats[under(6)] : from;
    const DType to = casts ? kFloats[under(6)] : from;
    const auto extents = shape();
    const bool plain = under(3) != 0;
    const auto count = static_cast<uint32_t>(1 + under(2));
    const auto terms = static_cast<uint32_t>(1 + under(6));
    std::vector<Tensor> sources;
    for (uint32_t s = 0; s < terms; ++s)
      sources.emplace_back(from, extents, random_, plain, offsetOf(from));
    std::vector<Tensor> targets;
    for (uint32_t t = 0; t < count; ++t)
      targets.emplace_back(to, extents, random_, plain, offsetOf(to));
    std::vector<Bytes> expected;
    std::vector<StridedView> expects;
    std::vector<StridedView> from_;
    for (const Tensor& target : targets) expected.push_back(target.memory);
    for (uint32_t t = 0; t < count; ++t) expects.push_back(targets[t].in(expected[t]));
    for (Tensor& source : sources) from_.push_back(source.in(source.memory));
    TFOLD(expects.data(), count, from_.data(), terms, op, wire);
    NoTile tile;
    const auto target = [&](uint32_t t) { return targets[t].in(targets[t].memory); };
    const auto source = [&](uint32_t s) { return from_[s]; };
    gpu::TFOLD(gpu::viewsAt(count, target), gpu::viewsAt(terms, source), op, wire, tile);
    for (uint32_t t = 0; t < count; ++t)
      ASSERT_EQ(targets[t].memory, expected[t])
          << "seed " << seed_ << " " << nameOf(from) << " by " << reduceOpName(int32_t(op));
  }
}

// Rows of one length: the first is a target as well, or the only one.
TEST_F(CudaLoops, FoldRowsInPlaceAsSimDoes) {
  for (uint64_t round = 0; round < 4 * rounds(); ++round) {
    begin(round);
    const auto dtype = static_cast<DType>(under(kDTypeCount));
    const auto op = static_cast<ReduceOp>(under(kReduceOpCount));
    if (!canReduce(dtype, op)) continue;
    const auto elements = static_cast<int64_t>(under(under(6) == 0 ? 30000 : 200));
    const auto terms = static_cast<uint32_t>(op == ReduceOp::kAvg ? 1 + under(8) : under(9));
    const auto divisor = static_cast<uint32_t>(terms + under(3));
    const uint64_t bytes = static_cast<uint64_t>(elements) * sizeOf(dtype);
    const uint64_t offset = offsetOf(dtype);
    std::vector<Bytes> rows(std::max(1u, terms), Bytes(bytes + 16));
    for (Bytes& row : rows)
      fill(row.data() + offset, dtype, static_cast<uint64_t>(elements), random_);
    std::vector<Bytes> expected = rows;
    const auto ofSim = [&](uint32_t i) { return expected[i].data() + offset; };
    const auto ofGpu = [&](uint32_t i) { return rows[i].data() + offset; };
    TFOLD(rowsAt(1, ofSim), rowsAt(terms, ofSim), elements, dtype, op, divisor, Stores::kCached);
    NoTile tile;
    gpu::TFOLD(gpu::rowsAt(1, ofGpu), gpu::rowsAt(terms, ofGpu), elements, dtype, op, divisor,
               tile);
    ASSERT_EQ(rows, expected) << "seed " << seed_ << " " << nameOf(dtype) << " by "
                              << reduceOpName(int32_t(op)) << " of " << elements;
  }
}

TEST_F(CudaLoops, WeighAsSimDoes) {
  for (uint64_t round = 0; round < rounds(); ++round) {
    begin(round);
    const DType dtype = kFloats[under(6)];
    const auto elements = static_cast<int64_t>(under(3000));
    const auto terms = static_cast<uint32_t>(under(9));
    const uint64_t bytes = static_cast<uint64_t>(elements) * sizeOf(dtype);
    const uint64_t offset = offsetOf(dtype);
    std::vector<Bytes> rows(terms, Bytes(bytes + 16));
    double weights[8];
    for (double& weight : weights) weight = static_cast<double>(under(2000)) / 300 - 1;
    for (Bytes& row : rows)
      fill(row.data() + offset, dtype, static_cast<uint64_t>(elements), random_);
    const auto count = static_cast<uint32_t>(1 + under(2));
    std::vector<Bytes> expected(count, Bytes(bytes + 16));
    std::vector<Bytes> target = expected;
    const auto row = [&](uint32_t i) { return rows[i].data() + offset; };
    const auto weight = [&](uint32_t i) { return weights[i]; };
    const auto ofSim = [&](uint32_t i) { return expected[i].data() + offset; };
    const auto ofGpu = [&](uint32_t i) { return target[i].data() + offset; };
    TFOLD_WEIGHTED(rowsAt(count, ofSim), rowsAt(terms, row), weightsAt(terms, weight), elements,
                   dtype, Stores::kCached);
    NoTile tile;
    gpu::TFOLD_WEIGHTED(gpu::rowsAt(count, ofGpu), gpu::rowsAt(terms, row), weight, elements, dtype,
                        tile);
    ASSERT_EQ(target, expected) << "seed " << seed_ << " " << nameOf(dtype);
  }
}

TEST_F(CudaLoops, QuantiseAsSimDoes) {
  constexpr DType kQuantised[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (uint64_t round = 0; round < rounds() / 4; ++round) {
    begin(round);
    const DType dtype = kQuantised[under(3)];
    const auto elements = static_cast<int64_t>(under(2000));
    const auto count = static_cast<uint32_t>(1 + under(3));
    const uint64_t offset = offsetOf(dtype);
    Bytes source(static_cast<uint64_t>(elements) * sizeOf(dtype) + 16);
    fill(source.data() + offset, dtype, static_cast<uint64_t>(elements), random_);
    std::vector<Bytes> rows[2];
    std::vector<Bytes> scales[2];
    for (uint32_t side = 0; side < 2; ++side) {
      rows[side].assign(count, Bytes(static_cast<uint64_t>(elements) + 16));
      scales[side].assign(count, Bytes(quantBlocks(static_cast<uint64_t>(elements)) * 4));
    }
    const auto of = [](std::vector<Bytes>& all) {
      return [&all](uint32_t i) { return all[i].data() + 0; };
    };
    const auto simRows = of(rows[0]);
    const auto simScales = of(scales[0]);
    const auto gpuRows = of(rows[1]);
    const auto gpuScales = of(scales[1]);
    TQUANT(rowsAt(count, simRows), rowsAt(count, simScales), source.data() + offset, elements,
           dtype, Stores::kCached);
    NoTile tile;
    gpu::TQUANT(gpu::rowsAt(count, gpuRows), gpu::rowsAt(count, gpuScales),
                source.data() + offset, elements, dtype, tile);
    ASSERT_EQ(rows[1], rows[0]) << "seed " << seed_ << " " << nameOf(dtype);
    ASSERT_EQ(scales[1], scales[0]) << "seed " << seed_ << " " << nameOf(dtype);
  }
}

TEST_F(CudaLoops, AddAsSimDoes) {
  constexpr DType kAdded[] = {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kI32, DType::kI16, DType::kI8};
  for (uint64_t round = 0; round < rounds() / 4; ++round) {
    begin(round);
    const DType dtype = kAdded[under(6)];
    const auto extents = shape();
    const uint64_t bytes = sizeOf(dtype);
    const Tensor source(dtype, extents, random_, under(2) == 0, under(16));
    Tensor target(dtype, extents, random_, under(2) == 0, under(16 / bytes) * bytes);
    Bytes expected = target.memory;
    detail::atomicAdd(target.in(expected), source.view);
    NoTile tile;
    gpu::TMOVE_ADD(target.in(target.memory), source.view, tile);
    ASSERT_EQ(target.memory, expected) << "seed " << seed_ << " " << nameOf(dtype);
  }
}

// Tiles of 5 by 32 elements, of which 3 by 21 are valid, and what is done with them.
class Tiles {
 public:
  static constexpr int64_t kElements = 5 * 32;
  static constexpr uint64_t kApart = kElements * 8;

  explicit Tiles(std::mt19937_64& random) : sim(4 * kApart) {
    for (unsigned char& byte : sim) byte = static_cast<unsigned char>(random());
  }
  void fillWith(uint32_t tile, DType dtype, std::mt19937_64& random) {
    fill(sim.data() + tile * kApart, dtype, kElements, random);
    // Halfway between what the others hold, in part.
    for (uint64_t i = 0; isFloat(dtype) && i < kElements; i += 3) {
      const double value = (double(random() % 1024) - 512) / 2;
      const uint64_t bits = cuda::castBits(DType::kF64, dtype, cuda::bitCast<uint64_t>(value));
      std::memcpy(sim.data() + tile * kApart + i * sizeOf(dtype), &bits, sizeOf(dtype));
    }
    gpu = sim;
  }
  checked::TileRef ref(uint32_t tile, DType dtype) const {
    checked::TileRef ref = {};
    ref.at.offset = static_cast<uint32_t>(tile * kApart);
    ref.dtype = dtype;
    ref.rows = 5;
    ref.columns = 32;
    ref.validRows = 3;
    ref.validColumns = 21;
    return ref;
  }
  // Runs on all threads, with tile 0 of dtype `to`, and tiles 1 and 2.
  void work(cuda::Work each, DType to, DType from, uint32_t sources, uint64_t scalar,
            pto::RoundMode mode = pto::RoundMode::CAST_NONE, bool saturates = false) {
    cuda::Job& job = *gpu::beginJob(cuda::JobKind::kTile, 1, sources, from, to);
    job.work = each;
    job.scalar = scalar;
    job.mode = mode;
    job.saturates = saturates;
    const int64_t shape[] = {3, 21};
    const int64_t strides[] = {32, 1};
    for (uint32_t view = 0; view <= sources; ++view)
      job.put(view, {gpu.data() + view * kApart, view == 0 ? to : from, 2, shape, strides});
    gpu::submitViews(&job);
  }
  // A NaN is one, whichever, where `anyNan` says so.
  void check(DType to, bool anyNan, const std::string& what) {
    const uint64_t bytes = sizeOf(to);
    for (uint64_t at = 0; at < sim.size(); at += bytes) {
      const uint64_t expected = bitsAt(&sim[at], bytes);
      const uint64_t found = bitsAt(&gpu[at], bytes);
      if (anyNan && at < kApart && isNanOf(to, expected) && isNanOf(to, found)) continue;
      ASSERT_EQ(found, expected) << what << " at byte " << at;
    }
  }

  Bytes sim, gpu;

 private:
  static bool isNanOf(DType dtype, uint64_t bits) {
    return isFloat(dtype) &&
           cuda::isNan(cuda::castBits(dtype, DType::kF64, bits));
  }
};

template <DType kFrom, DType kTo>
void checkConversions(std::mt19937_64& random) {
  for (int mode = 1; mode <= 6; ++mode) {
    const auto how = static_cast<pto::RoundMode>(mode);
    // That is a cast of TMOVE_CVT.
    if (isFloat(kFrom) && isFloat(kTo) && how == pto::RoundMode::CAST_RINT) continue;
    for (const bool saturates : {false, true}) {
      Tiles tiles(random);
      tiles.fillWith(1, kFrom, random);
      checked::convert(tiles.sim.data(), tiles.ref(0, kTo), tiles.ref(1, kFrom), {how, saturates});
      tiles.work(cuda::convertTile<kFrom, kTo>, kTo, kFrom, 1, 0, how, saturates);
      tiles.check(kTo, false,
                  std::string(nameOf(kFrom)) + " to " + nameOf(kTo) + ", mode " +
                      std::to_string(mode) + (saturates ? ", saturating" : ""));
    }
  }
}
template <DType kFrom, DType... kTo>
void checkConversionsTo(std::mt19937_64& random) {
  (checkConversions<kFrom, kTo>(random), ...);
}
template <DType... kFrom>
void checkAllConversions(std::mt19937_64& random) {
  (checkConversionsTo<kFrom, kFrom...>(random), ...);
}

TEST_F(CudaLoops, ConvertTilesAsSimDoes) {
  for (uint64_t round = 0; round < rounds() / 50; ++round) {
    begin(round);
    checkAllConversions<DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kU8,
                        DType::kI8, DType::kI16, DType::kI32, DType::kU32, DType::kI64>(random_);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed_;
  }
}

template <DType kDType>
void checkTiles(std::mt19937_64& random) {
  using E = cuda::Element<kDType>;
  const std::string name = nameOf(kDType);
  uint64_t scalar = 0;
  fill(reinterpret_cast<unsigned char*>(&scalar), kDType, 1, random);
  const auto made = [&] {
    Tiles tiles(random);
    tiles.fillWith(1, kDType, random);
    tiles.fillWith(2, kDType, random);
    return tiles;
  };
  Tiles sub = made();
  checked::combine(sub.sim.data(), checked::Op::kSub, sub.ref(0, kDType), sub.ref(1, kDType),
                   sub.ref(2, kDType));
  sub.work(cuda::subtractTiles<E>, kDType, kDType, 2, 0);
  sub.check(kDType, false, "TSUB of " + name);
  const auto withScalar = [&](checked::Op op, cuda::Work work, bool anyNan, const char* what) {
    Tiles tiles = made();
    checked::combineScalar(tiles.sim.data(), op, tiles.ref(0, kDType), tiles.ref(1, kDType),
                           scalar);
    tiles.work(work, kDType, kDType, 1, scalar);
    tiles.check(kDType, anyNan, what + (" of " + name));
  };
  withScalar(checked::Op::kAddScalar, cuda::combineScalar<E, ReduceOp::kSum>, false, "TADDS");
  withScalar(checked::Op::kMulScalar, cuda::combineScalar<E, ReduceOp::kProduct>, false, "TMULS");
  if constexpr (E::kIsFloat)
    withScalar(checked::Op::kDivScalar, cuda::divideByScalar<E>, true, "TDIVS");
  Tiles filled = made();
  checked::fill(filled.sim.data(), filled.ref(0, kDType), scalar);
  filled.work(cuda::fillTile<E>, kDType, kDType, 0, scalar);
  filled.check(kDType, false, "TEXPANDS of " + name);
}
template <DType... kDTypes>
void checkAllTiles(std::mt19937_64& random) {
  (checkTiles<kDTypes>(random), ...);
}

TEST_F(CudaLoops, ComputeTilesAsSimDoes) {
  for (uint64_t round = 0; round < rounds(); ++round) {
    begin(round);
    checkAllTiles<DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2,
                  DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kU32, DType::kI64>(
        random_);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed_;
  }
}

}  // namespace loops_test
}  // namespace windlass
