// SPDX-License-Identifier: Apache-2.0
// GB/s of source bytes for the loops of native/isa on one thread, beside memcpy.
//
//   isa_bench [name]     only the rows whose name contains `name`
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "native/isa/isa.h"

namespace {

using windlass::DType;
using windlass::ReduceOp;
using windlass::StridedView;

constexpr size_t kSizes[] = {4096, 65536, size_t{1} << 20, size_t{16} << 20};
std::string filter;

double secondsOf(const std::function<void()>& run, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

// The median of 11 batches of about a millisecond each.
double gigabytesPerSecond(size_t bytes, const std::function<void()>& run) {
  const int times = std::max(1, static_cast<int>((size_t{32} << 20) / bytes));
  std::vector<double> seconds;
  run();
  for (int i = 0; i < 11; ++i) seconds.push_back(secondsOf(run, times));
  std::sort(seconds.begin(), seconds.end());
  return static_cast<double>(bytes) / seconds[5] / 1e9;
}

// `make` gives the function to time for a number of source bytes.
void row(const char* name, const std::function<std::function<void()>(size_t)>& make) {
  if (std::string(name).find(filter) == std::string::npos) return;
  std::printf("%-34s", name);
  for (const size_t bytes : kSizes) std::printf(" %8.1f", gigabytesPerSecond(bytes, make(bytes)));
  std::printf("\n");
}

struct Buffers {
  std::vector<std::vector<unsigned char>> memory;
  unsigned char* make(size_t bytes) {
    memory.emplace_back(bytes + 64, static_cast<unsigned char>(0x3c));
    auto address = reinterpret_cast<uintptr_t>(memory.back().data());
    return reinterpret_cast<unsigned char*>((address + 63) & ~uintptr_t{63});
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) filter = argv[1];
  Buffers buffers;
  buffers.memory.reserve(64);
  const size_t most = size_t{64} << 20;
  unsigned char* a = buffers.make(most);
  unsigned char* b = buffers.make(most);
  unsigned char* c = buffers.make(most);
  std::printf("vector path %s; GB/s of source\n%-34s", windlass::isaPathName(), "");
  for (const size_t bytes : kSizes) std::printf(" %7zuK", bytes / 1024);
  std::printf("\n");

  row("memcpy", [&](size_t n) { return [=] { std::memcpy(b, a, n); }; });
  row("copyBytes", [&](size_t n) { return [=] { windlass::copyBytes(b, a, n); }; });
  for (const size_t size : {8, 64, 100, 200, 500, 2000}) {
    const std::string name = "copyBytes, pieces of " + std::to_string(size);
    row(name.c_str(), [&](size_t n) {
      return [=] {
        for (size_t at = 0; at + size <= n; at += size) windlass::copyBytes(b + at, a + at, size);
      };
    });
    const std::string plain = "memcpy, pieces of " + std::to_string(size);
    row(plain.c_str(), [&](size_t n) {
      return [=] {
        volatile size_t length = size;
        for (size_t at = 0; at + size <= n; at += size) std::memcpy(b + at, a + at, length);
      };
    });
  }

  const struct {
    const char* name;
    DType from, to;
  } casts[] = {{"f32 to bf16", DType::kF32, DType::kBF16},
               {"bf16 to f32", DType::kBF16, DType::kF32},
               {"f32 to f16", DType::kF32, DType::kF16},
               {"f16 to f32", DType::kF16, DType::kF32},
               {"f32 to f8e4m3", DType::kF32, DType::kF8E4M3},
               {"f8e4m3 to f32", DType::kF8E4M3, DType::kF32},
               {"f32 to f8e5m2", DType::kF32, DType::kF8E5M2},
               {"bf16 to f16", DType::kBF16, DType::kF16},
               {"bf16 to f8e4m3", DType::kBF16, DType::kF8E4M3},
               {"f64 to f32", DType::kF64, DType::kF32},
               {"f64 to bf16", DType::kF64, DType::kBF16}};
  for (const auto& cast : casts) {
    row(cast.name, [&](size_t n) {
      return [=] {
        const auto count = static_cast<int64_t>(n / sizeOf(cast.from));
        const int64_t one = 1;
        windlass::TMOVE_CVT({b, cast.to, 1, &count, &one}, {a, cast.from, 1, &count, &one});
      };
    });
  }

  const struct {
    const char* name;
    DType dtype;
    ReduceOp op;
  } folds[] = {{"f32 sum of 2", DType::kF32, ReduceOp::kSum},
               {"f32 max of 2", DType::kF32, ReduceOp::kMax},
               {"bf16 sum of 2", DType::kBF16, ReduceOp::kSum},
               {"f16 sum of 2", DType::kF16, ReduceOp::kSum},
               {"f8e4m3 sum of 2", DType::kF8E4M3, ReduceOp::kSum},
               {"i32 sum of 2", DType::kI32, ReduceOp::kSum},
               {"u8 max of 2", DType::kU8, ReduceOp::kMax}};
  for (const auto& fold : folds) {
    row(fold.name, [&](size_t n) {
      return [=] {
        const auto count = static_cast<int64_t>(n / 2 / sizeOf(fold.dtype));
        const int64_t one = 1;
        const StridedView dst{c, fold.dtype, 1, &count, &one};
        const StridedView src[] = {{a, fold.dtype, 1, &count, &one},
                                   {b, fold.dtype, 1, &count, &one}};
        windlass::TFOLD(&dst, 1, src, 2, fold.op);
      };
    });
  }

  // Rows of `columns` elements out of a matrix twice as wide.
  for (const int64_t columns : {1, 4, 16, 64, 1024}) {
    for (const DType to : {DType::kF32, DType::kBF16}) {
      const std::string name = std::string(to == DType::kF32 ? "f32" : "f32 to bf16") +
                               ", rows of " + std::to_string(columns);
      row(name.c_str(), [&](size_t n) {
        return [=] {
          const int64_t rows = std::max<int64_t>(static_cast<int64_t>(n / 4) / columns, 1);
          const int64_t shape[] = {rows, columns};
          const int64_t packed[] = {columns, 1};
          const int64_t wide[] = {columns * 2, 1};
          windlass::TMOVE_CVT({b, to, 2, shape, packed}, {a, DType::kF32, 2, shape, wide});
        };
      });
    }
  }
  const DType pairs[][2] = {{DType::kF32, DType::kF32},
                            {DType::kF32, DType::kBF16},
                            {DType::kBF16, DType::kBF16},
                            {DType::kU8, DType::kU8}};
  for (const auto& [dtype, to] : pairs) {
    const std::string name = "transpose, " + std::to_string(sizeOf(dtype)) + " to " +
                             std::to_string(sizeOf(to)) + " bytes";
    row(name.c_str(), [&, from = dtype, into = to](size_t n) {
      return [=] {
        const auto count = static_cast<int64_t>(n / sizeOf(from));
        int64_t side = 1;
        while (side * side * 4 <= count) side *= 2;
        const int64_t shape[] = {count / side, side};
        const int64_t rows[] = {side, 1};
        const int64_t columns[] = {1, count / side};
        windlass::TMOVE_CVT({b, into, 2, shape, columns}, {a, from, 2, shape, rows});
      };
    });
  }
  return 0;
}
