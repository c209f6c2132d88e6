// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/architecture.h"

namespace windlass::checked {
namespace {

using detail::setOf;

constexpr DType kI8 = DType::kI8, kU8 = DType::kU8, kI16 = DType::kI16, kU16 = DType::kU16,
                kI32 = DType::kI32, kU32 = DType::kU32, kI64 = DType::kI64, kU64 = DType::kU64,
                kF16 = DType::kF16, kBF16 = DType::kBF16, kF32 = DType::kF32,
                kE4M3 = DType::kF8E4M3, kE5M2 = DType::kF8E5M2;

constexpr Architecture makeA2A3() {
  Architecture a = {"a2a3", 192u << 10, 184u << 10, 8u << 10, 4095, {}, {}, {}};
  const uint32_t arithmetic = setOf(kI32, kI16, kF16, kF32);
  for (uint32_t& elements : a.elements) elements = arithmetic;
  a.elements[static_cast<int>(Op::kMove)] =
      setOf(kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kBF16, kF32);
  a.elements[static_cast<int>(Op::kAtomicAdd)] = setOf(kF32, kF16, kBF16, kI32, kI16, kI8);
  const auto from = [&a](DType dtype, uint32_t to) {
    a.conversions[static_cast<int>(dtype)] = to;
  };
  from(kF32, setOf(kF16, kBF16, kI16, kI32, kI64));
  from(kF16, setOf(kF32, kI32, kI16, kI8, kU8));
  from(kBF16, setOf(kF32, kI32));
  from(kI16, setOf(kF16, kF32));
  from(kI32, setOf(kF32, kI16, kI64));
  from(kI64, setOf(kF32, kI32));
  from(kI8, setOf(kF16));
  from(kU8, setOf(kF16));
  a.rates[static_cast<int>(Pipe::kS)] = {1, 1};
  a.rates[static_cast<int>(Pipe::kV)] = {16, 256};
  a.rates[static_cast<int>(Pipe::kMte2)] = {64, 64};
  a.rates[static_cast<int>(Pipe::kMte3)] = {64, 64};
  return a;
}

constexpr Architecture makeA5() {
  Architecture a = makeA2A3();
  a.name = "a5";
  a.bufferBytes = 256u << 10;
  a.castScratchOffset = 0;
  a.castScratchBytes = 0;
  a.mostRows = 0;
  const auto also = [&a](Op op, uint32_t more) { a.elements[static_cast<int>(op)] |= more; };
  const uint32_t narrow = setOf(kU32, kU16, kU8, kI8, kBF16);
  also(Op::kMove, setOf(kE4M3, kE5M2));
  also(Op::kAdd, narrow);
  also(Op::kSub, narrow);
  also(Op::kMax, narrow);
  also(Op::kMin, narrow);
  also(Op::kMul, setOf(kU32, kU16, kBF16));
  also(Op::kAddScalar, setOf(kU32, kU16, kI64, kU64, kBF16, kU8, kI8));
  also(Op::kMulScalar, setOf(kU32, kU16, kI64, kU64, kBF16));
  also(Op::kDivScalar, setOf(kU32, kU16, kI64, kU64));
  also(Op::kExpandScalar, narrow);
  const auto from = [&a](DType dtype, uint32_t to) {
    a.conversions[static_cast<int>(dtype)] |= to;
  };
  from(kF32, setOf(kE4M3, kE5M2));
  from(kBF16, setOf(kF16));
  from(kI16, setOf(kU8, kU32, kI32));
  from(kI32, setOf(kU16, kU8));
  from(kI8, setOf(kI16, kI32));
  from(kU8, setOf(kU16));
  from(kE4M3, setOf(kF32));
  from(kE5M2, setOf(kF32));
  return a;
}

}  // namespace

constexpr Architecture kA2A3 = makeA2A3();
constexpr Architecture kA5 = makeA5();

const char* nameOf(Pipe pipe) {
  static const char* const names[kPipes] = {"PIPE_S", "PIPE_V", "PIPE_MTE2", "PIPE_MTE3"};
  return names[static_cast<size_t>(pipe)];
}

}  // namespace windlass::checked
