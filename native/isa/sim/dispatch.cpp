// SPDX-License-Identifier: Apache-2.0
// Selection of the vector path.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/paths.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

constexpr const char* kNames[kPathCount] = {"portable", "avx2", "avx512", "avx512-bf16",
                                            "avx512-fp16"};

bool cpuHas(Path path) noexcept {
#if defined(__x86_64__)
  switch (path) {
    case Path::kPortable:
      return true;
    case Path::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    case Path::kAvx512:
      return cpuHas(Path::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case Path::kAvx512Bf16:
      return cpuHas(Path::kAvx512) && __builtin_cpu_supports("avx512bf16");
    case Path::kAvx512Fp16:
      return cpuHas(Path::kAvx512Bf16) && __builtin_cpu_supports("avx512fp16");
  }
  return false;
#else
  return path == Path::kPortable;
#endif
}

Path bestPath() noexcept {
  for (int i = kPathCount - 1; i > 0; --i) {
    if (cpuHas(static_cast<Path>(i))) return static_cast<Path>(i);
  }
  return Path::kPortable;
}

struct Active {
  PathChoice choice;
  const VectorTable* table;
};

const Active& active() noexcept {
  static const Active chosen = [] {
    const PathChoice choice = choosePath(std::getenv("WINDLASS_ISA"));
    return Active{choice, tableFor(choice.path)};
  }();
  return chosen;
}

// Cache of the active table, so that a copy costs one load.
std::atomic<const VectorTable*> activePointer{nullptr};

}  // namespace

const VectorTable* tableFor(Path path) noexcept {
  if (!cpuHas(path)) return nullptr;
  switch (path) {
    case Path::kPortable:
      return &portableTable();
#if defined(__x86_64__)
    case Path::kAvx2:
      return &avx2Table();
    case Path::kAvx512:
      return &avx512Table();
    case Path::kAvx512Bf16:
      return &avx512Bf16Table();
    case Path::kAvx512Fp16:
      return &avx512Fp16Table();
#else
    default:
      break;
#endif
  }
  return nullptr;
}

const char* nameOf(Path path) noexcept {
  return kNames[static_cast<int>(path)];
}

PathChoice choosePath(const char* request) noexcept {
  PathChoice choice{bestPath(), ""};
  if (request == nullptr || *request == '\0') return choice;
  for (int i = 0; i < kPathCount; ++i) {
    if (std::strcmp(request, kNames[i]) != 0) continue;
    if (cpuHas(static_cast<Path>(i))) {
      choice.path = static_cast<Path>(i);
    } else {
      std::snprintf(choice.error, sizeof choice.error,
                    "WINDLASS_ISA is '%s', a vector path that this CPU lacks", request);
    }
    return choice;
  }
  std::snprintf(choice.error, sizeof choice.error,
                "WINDLASS_ISA is '%.40s', none of portable, avx2, avx512, avx512-bf16, avx512-fp16",
                request);
  return choice;
}

const VectorTable& activeTable() noexcept {
  const VectorTable* table = activePointer.load(std::memory_order_acquire);
  if (table == nullptr) {
    table = active().table;
    activePointer.store(table, std::memory_order_release);
  }
  return *table;
}

const char* isaPathName() noexcept {
  return nameOf(active().choice.path);
}

const char* isaPathError() noexcept {
  const char* error = active().choice.error;
  return *error == '\0' ? nullptr : error;
}

}  // namespace windlass
