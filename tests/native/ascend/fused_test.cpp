// SPDX-License-Identifier: Apache-2.0
// The macro-instructions as A2/A3 and A5 run them, on the emulator that refuses what those would,
// against sim's: the same bits for any dtype that the architecture has, any shape and any strides,
// whatever order the pipes run in.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "native/base/dtype.h"
#include "native/isa/ascend/fused.h"
#include "native/isa/sim/loops.h"

namespace windlass {
namespace fused_test {

using Room = Tile<TileType::Vec, uint8_t, 1, 147456>;

// The first reductions are those that floats have: sum to avg.
constexpr uint32_t kFloatOps = 5;

// Memory of a view of any strides, and a copy of it for sim.
class Operand {
 public:
  Operand(DType dtype, const std::vector<int64_t>& shape, bool mayRepeat, std::mt19937& random)
      : dtype_(dtype), shape_(shape), strides_(shape.size()) {
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    if (random() % 3 == 0) std::shuffle(order.begin(), order.end(), random);
    const bool isDense = random() % 2 == 0;
    int64_t step = !isDense && random() % 4 == 0 ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides_[order[i]] = step;
      step *= shape[order[i]];
      if (!isDense) step += static_cast<int64_t>(random() % 4);
    }
    if (mayRepeat && !shape.empty() && random() % 8 == 0) strides_[random() % shape.size()] = 0;
    bytes_.resize(static_cast<size_t>(step) * sizeOf(dtype) + 8);
    for (unsigned char& byte : bytes_) {
      byte = static_cast<unsigned char>(dtype == DType::kBool ? random() % 2 : random());
    }
    expected_ = bytes_;
  }

  StridedView view() { return viewOf(bytes_); }
  StridedView expectedView() { return viewOf(expected_); }
  void addTo(checked::Machine& machine) {
    machine.memory().add({0, bytes_.data(), bytes_.size(), false});
  }
  bool isAsExpected() const { return bytes_ == expected_; }

 private:
  StridedView viewOf(std::vector<unsigned char>& bytes) {
    return {bytes.data(), dtype_, static_cast<uint32_t>(shape_.size()), shape_.data(),
            strides_.data()};
  }

  DType dtype_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  std::vector<unsigned char> bytes_;
  std::vector<unsigned char> expected_;
};

// Up to 12 dimensions of a few thousand elements, or one of many.
std::vector<int64_t> shapeOf(std::mt19937& random) {
  if (random() % 4 == 0) return {static_cast<int64_t>(random() % 20000)};
  std::vector<int64_t> shape(random() % 13);
  int64_t left = 6000;
  for (int64_t& extent : shape) {
    extent = 1 + static_cast<int64_t>(random() % 7);
    if (random() % 6 == 0) extent *= 40;
    if (extent > left) extent = 1;
    left /= extent;
    if (random() % 200 == 0) extent = 0;
  }
  return shape;
}

struct Ascend {
  const checked::Architecture& architecture;
  std::vector<DType> floats;
};
const Ascend kA2A3 = {checked::kA2A3, {DType::kF32, DType::kF16, DType::kBF16}};
const Ascend kA5 = {
    checked::kA5,
    {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}};

class Macros : public testing::TestWithParam<const Ascend*> {
 protected:
  // AddressSanitizer makes a case about ten times as long.
  static int cases() {
#if defined(__SANITIZE_ADDRESS__)
    constexpr int kFew = 10;
#else
    constexpr int kFew = 60;
#endif
    return std::getenv("WINDLASS_TEST_LONG") == nullptr ? kFew : 1000;
  }

  DType anyFloat() {
    const std::vector<DType>& floats = GetParam()->floats;
    return floats[random_() % floats.size()];
  }
  std::vector<Operand> operands(size_t count, DType dtype, const std::vector<int64_t>& shape,
                                bool mayRepeat) {
    std::vector<Operand> all;
    for (size_t i = 0; i < count; ++i) all.emplace_back(dtype, shape, mayRepeat, random_);
    return all;
  }
  // Runs the kernel on one core, and holds it against what sim made of the destinations.
  template <typename Kernel>
  void run(std::vector<Operand>& dst, std::vector<Operand>& src, const Kernel& kernel) {
    checked::Machine machine({GetParam()->architecture, "a macro-instruction", 1, 1, seed_, false});
    for (Operand& each : dst) each.addTo(machine);
    for (Operand& each : src) each.addTo(machine);
    checked::Core core(machine, 0, 0);
    {
      const checked::Core::Running running(core);
      Room room;
      TASSIGN(room, 32);
      kernel(room);
      core.finish();
    }
    ASSERT_EQ(machine.report(), "");
    for (const Operand& each : dst) ASSERT_TRUE(each.isAsExpected());
  }
  template <typename Case>
  void each(const Case& run) {
    for (seed_ = 0; seed_ < static_cast<uint64_t>(cases()); ++seed_) {
      SCOPED_TRACE(std::string(GetParam()->architecture.name) + ", seed " + std::to_string(seed_));
      random_.seed(static_cast<uint32_t>(seed_));
      run();
      if (HasFatalFailure()) return;
    }
  }
  static auto viewsOf(std::vector<Operand>& operands) {
    return [&](uint32_t i) { return operands[i].view(); };
  }

  std::mt19937 random_;
  uint64_t seed_ = 0;
};

TEST_P(Macros, MovesEveryDType) {
  each([&] {
    const auto dtype = static_cast<DType>(random_() % kDTypeCount);
    const std::vector<int64_t> shape = shapeOf(random_);
    std::vector<Operand> src = operands(1, dtype, shape, true);
    std::vector<Operand> dst = operands(1, dtype, shape, false);
    TMOVE_CVT(dst[0].expectedView(), src[0].view());
    run(dst, src, [&](Room& room) { TMOVE_CVT(dst[0].view(), src[0].view(), room); });
  });
}

TEST_P(Macros, CastsByWayOfTheWireDType) {
  each([&] {
    const DType from = anyFloat();
    const DType wire = anyFloat();
    const std::vector<int64_t> shape = shapeOf(random_);
    std::vector<Operand> src = operands(1, from, shape, true);
    std::vector<Operand> dst = operands(1 + random_() % 3, anyFloat(), shape, false);
    for (Operand& each : dst) TMOVE_CVT(each.expectedView(), src[0].view(), wire);
    const auto targets = viewsOf(dst);
    run(dst, src, [&](Room& room) {
      if (dst.size() == 1) {
        TMOVE_CVT(dst[0].view(), src[0].view(), wire, room);
      } else {
        TMOVE_CVT(viewsAt(static_cast<uint32_t>(dst.size()), targets), src[0].view(), wire, room);
      }
    });
  });
}

TEST_P(Macros, FoldsFloats) {
  each([&] {
    const DType from = anyFloat();
    const DType wire = random_() % 2 == 0 ? from : anyFloat();
    const DType to = random_() % 2 == 0 ? wire : anyFloat();
    const auto op = static_cast<ReduceOp>(random_() % kFloatOps);
    const std::vector<int64_t> shape = shapeOf(random_);
    std::vector<Operand> src = operands(1 + random_() % 5, from, shape, true);
    std::vector<Operand> dst = operands(1 + random_() % 3, to, shape, false);
    std::vector<StridedView> terms;
    for (Operand& each : src) terms.push_back(each.view());
    for (Operand& each : dst) {
      const StridedView target = each.expectedView();
      TFOLD(&target, 1, terms.data(), static_cast<uint32_t>(terms.size()), op, wire);
    }
    const auto targets = viewsOf(dst);
    const auto sources = viewsOf(src);
    run(dst, src, [&](Room& room) {
      TFOLD(viewsAt(static_cast<uint32_t>(dst.size()), targets),
            viewsAt(static_cast<uint32_t>(src.size()), sources), op, wire, room);
    });
  });
}

TEST_P(Macros, FoldsWeightedRows) {
  each([&] {
    const DType dtype = anyFloat();
    const std::vector<int64_t> shape = {static_cast<int64_t>(random_() % 20000)};
    // Rows are contiguous.
    const auto rows = [&](size_t count) {
      std::vector<Operand> all;
      while (all.size() < count) {
        all.emplace_back(dtype, shape, false, random_);
        if (all.back().view().strides[0] != 1) all.pop_back();
      }
      return all;
    };
    std::vector<Operand> src = rows(random_() % 7);
    std::vector<Operand> dst = rows(1 + random_() % 2);
    std::vector<double> weights;
    for (size_t s = 0; s < src.size(); ++s)
      weights.push_back(static_cast<double>(random_() % 1000) / 3 - 1);
    const auto source = [&](uint32_t s) { return src[s].view().data; };
    const auto target = [&](uint32_t d) { return dst[d].view().data; };
    const auto expected = [&](uint32_t d) { return dst[d].expectedView().data; };
    const auto weight = [&](uint32_t s) { return weights[s]; };
    const Rows list = rowsAt(static_cast<uint32_t>(src.size()), source);
    const auto targets = static_cast<uint32_t>(dst.size());
    TFOLD_WEIGHTED(rowsAt(targets, expected), list, weightsAt(list.count, weight), shape[0], dtype,
                   Stores::kCached);
    // Three runs: a flag that a run leaves set is then set twice.
    run(dst, src, [&](Room& room) {
      for (int i = 0; i < 3; ++i)
        TFOLD_WEIGHTED(rowsAt(targets, target), list, weight, shape[0], dtype, room);
    });
  });
}

TEST_P(Macros, FoldNoRowsToTheIdentity) {
  constexpr DType kFolded[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8,  DType::kU8,
                               DType::kI16, DType::kU16, DType::kI32,  DType::kU32, DType::kBool};
  each([&] {
    const DType dtype = kFolded[random_() % 10];
    ReduceOp op = static_cast<ReduceOp>(random_() % 4);
    if (dtype == DType::kBool) op = random_() % 2 == 0 ? ReduceOp::kMax : ReduceOp::kMin;
    const std::vector<int64_t> shape = {static_cast<int64_t>(random_() % 20000)};
    std::vector<Operand> src;
    std::vector<Operand> dst;
    while (dst.empty() || dst.back().view().strides[0] != 1) {
      dst.clear();
      dst.emplace_back(dtype, shape, false, random_);
    }
    const auto none = [](uint32_t) -> void* { return nullptr; };
    const auto target = [&](uint32_t) { return dst[0].view().data; };
    const auto expected = [&](uint32_t) { return dst[0].expectedView().data; };
    TFOLD(rowsAt(1, expected), rowsAt(0, none), shape[0], dtype, op, 0, Stores::kCached);
    run(dst, src, [&](Room& room) {
      for (int i = 0; i < 3; ++i)
        TFOLD(rowsAt(1, target), rowsAt(0, none), shape[0], dtype, op, 0, room);
    });
  });
}

TEST_P(Macros, FoldsIntegers) {
  constexpr DType kIntegers[] = {DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                 DType::kI32, DType::kU32, DType::kBool};
  each([&] {
    const DType dtype = kIntegers[random_() % 7];
    ReduceOp op = static_cast<ReduceOp>(random_() % 4);
    if (dtype == DType::kBool) op = random_() % 2 == 0 ? ReduceOp::kMax : ReduceOp::kMin;
    const std::vector<int64_t> shape = shapeOf(random_);
    std::vector<Operand> src = operands(1 + random_() % 9, dtype, shape, true);
    std::vector<Operand> dst = operands(1 + random_() % 3, dtype, shape, false);
    std::vector<StridedView> terms;
    for (Operand& each : src) terms.push_back(each.view());
    for (Operand& each : dst) {
      const StridedView target = each.expectedView();
      TFOLD(&target, 1, terms.data(), static_cast<uint32_t>(terms.size()), op);
    }
    const auto targets = viewsOf(dst);
    const auto sources = viewsOf(src);
    run(dst, src, [&](Room& room) {
      TFOLD(viewsAt(static_cast<uint32_t>(dst.size()), targets),
            viewsAt(static_cast<uint32_t>(src.size()), sources), op, dtype, room);
    });
  });
}

// Folds in place: the destination is one of the rows.
TEST_P(Macros, FoldsRowsInPlace) {
  each([&] {
    const DType dtype = anyFloat();
    const auto op = static_cast<ReduceOp>(random_() % kFloatOps);
    const auto terms = static_cast<uint32_t>(7 + random_() % 3);
    const std::vector<int64_t> shape = {static_cast<int64_t>(random_() % 9000)};
    std::vector<std::vector<unsigned char>> rows(3);
    std::vector<std::vector<unsigned char>> expected;
    for (std::vector<unsigned char>& row : rows) {
      row.resize(static_cast<size_t>(shape[0]) * sizeOf(dtype) + 1);
      for (unsigned char& byte : row) byte = static_cast<unsigned char>(random_());
    }
    expected = rows;
    const auto list = [](const void* of, uint32_t first, uint32_t n, void** addresses) {
      auto& all = *static_cast<std::vector<std::vector<unsigned char>>*>(const_cast<void*>(of));
      for (uint32_t i = 0; i < n; ++i) addresses[i] = all[first + i].data();
    };
    TFOLD(Rows{1, list, &expected}, Rows{3, list, &expected}, shape[0], dtype, op, terms,
          Stores::kCached);
    checked::Machine machine({GetParam()->architecture, "TFOLD", 1, 1, seed_, false});
    for (std::vector<unsigned char>& row : rows) {
      machine.memory().add({0, row.data(), row.size(), false});
    }
    checked::Core core(machine, 0, 0);
    {
      const checked::Core::Running running(core);
      Room room;
      TASSIGN(room, 0);
      const auto at = [&](uint32_t i) { return rows[i].data(); };
      TFOLD(rowsAt(1, at), rowsAt(3, at), shape[0], dtype, op, terms, room);
      core.finish();
    }
    ASSERT_EQ(machine.report(), "");
    ASSERT_EQ(rows, expected);
  });
}

TEST_P(Macros, AddsAtomically) {
  constexpr DType kAdded[] = {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kI32, DType::kI16, DType::kI8};
  each([&] {
    const DType dtype = kAdded[random_() % 6];
    const std::vector<int64_t> shape = shapeOf(random_);
    std::vector<Operand> src = operands(1, dtype, shape, true);
    std::vector<Operand> dst = operands(1, dtype, shape, false);
    detail::atomicAdd(dst[0].expectedView(), src[0].view());
    run(dst, src, [&](Room& room) { TMOVE_ADD(dst[0].view(), src[0].view(), room); });
  });
}

// Each macro starts after the previous one has ended on every pipe.
TEST_P(Macros, ReadWhatTheOnesBeforeHaveMade) {
  each([&] {
    const std::vector<int64_t> shape = {1 + static_cast<int64_t>(random_() % 9000)};
    std::vector<Operand> all;
    for (const DType dtype : {DType::kF32, DType::kF32, DType::kF16, DType::kF32, DType::kF32})
      all.emplace_back(dtype, shape, false, random_);
    std::vector<Operand> none;
    const auto sources = [&](uint32_t i) { return all[i].view(); };
    const auto expected = [&](uint32_t i) { return all[i].expectedView(); };
    TMOVE_CVT(expected(1), expected(0));
    TMOVE_CVT(expected(2), expected(1), DType::kF16);
    TMOVE_CVT(expected(3), expected(2), DType::kF32);
    const StridedView terms[] = {expected(0), expected(1)};
    const StridedView sum = expected(4);
    TFOLD(&sum, 1, terms, 2, ReduceOp::kSum);
    TMOVE_CVT(expected(0), expected(4));
    run(all, none, [&](Room& room) {
      TMOVE_CVT(all[1].view(), all[0].view(), room);
      TMOVE_CVT(all[2].view(), all[1].view(), DType::kF16, room);
      TMOVE_CVT(all[3].view(), all[2].view(), DType::kF32, room);
      const auto target = [&](uint32_t) { return all[4].view(); };
      TFOLD(viewsAt(1, target), viewsAt(2, sources), ReduceOp::kSum, DType::kF32, room);
      TMOVE_CVT(all[0].view(), all[4].view(), room);
    });
  });
}

TEST_P(Macros, TellsOfADTypeThatItLacks) {
  const DType lacks = DType::kF64;
  double value = 1;
  double other = 2;
  checked::Machine machine({GetParam()->architecture, "TFOLD", 1, 1, 0, false});
  machine.memory().add({0, &value, sizeof value, false});
  machine.memory().add({0, &other, sizeof other, false});
  checked::Core core(machine, 0, 0);
  const checked::Core::Running running(core);
  Room room;
  TASSIGN(room, 0);
  const auto at = [&](uint32_t i) { return i == 0 ? &value : &other; };
  TFOLD(rowsAt(1, at), rowsAt(2, at), 1, lacks, ReduceOp::kSum, 2, room);
  core.finish();
  ASSERT_EQ(machine.breachCount(), 1u);
  EXPECT_EQ(machine.breaches()[0].rule, checked::Rule::kElementType);
  EXPECT_NE(machine.report().find("f64, which it can't convert or fold"), std::string::npos)
      << machine.report();
  EXPECT_EQ(value, 1);
}

INSTANTIATE_TEST_SUITE_P(On, Macros, testing::Values(&kA2A3, &kA5), [](const auto& of) {
  return of.param->architecture.name;
});

}  // namespace fused_test
}  // namespace windlass
