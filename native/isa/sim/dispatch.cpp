// SPDX-License-Identifier: Apache-2.0
// Selection of the vector path.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/isa/sim/loops.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

struct PathEntry {
  const char* name;
  bool (*hasInstructions)();  // true if the CPU has what this path adds to earlier ones
  const VectorTable& (*table)() noexcept;
};
constexpr PathEntry kPaths[kPathCount] = {
    {"portable", [] { return true; }, portableTable},
#if defined(__x86_64__)
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); },
     avx2Table},
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
     },
     avx512Table},
    {"avx512-bf16", [] { return __builtin_cpu_supports("avx512bf16") != 0; }, avx512Bf16Table},
    {"avx512-fp16", [] { return __builtin_cpu_supports("avx512fp16") != 0; }, avx512Fp16Table},
#else
    {"avx2", nullptr, nullptr},
    {"avx512", nullptr, nullptr},
    {"avx512-bf16", nullptr, nullptr},
    {"avx512-fp16", nullptr, nullptr},
#endif
};

bool cpuHas(Path path) noexcept {
  for (int i = 0; i <= static_cast<int>(path); ++i) {
    if (kPaths[i].table == nullptr || !kPaths[i].hasInstructions()) return false;
  }
  return true;
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
  return &kPaths[static_cast<int>(path)].table();
}

const char* nameOf(Path path) noexcept {
  return kPaths[static_cast<int>(path)].name;
}

PathChoice choosePath(const char* request) noexcept {
  PathChoice choice{bestPath(), ""};
  if (request == nullptr || *request == '\0') return choice;
  for (int i = 0; i < kPathCount; ++i) {
    if (std::strcmp(request, kPaths[i].name) != 0) continue;
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
