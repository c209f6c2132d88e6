// SPDX-License-Identifier: Apache-2.0
// The table of a library's kernels, made for the host by windlass/kernel_library.h.
#pragma once

#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "native/isa/isa.h"
#include "native/isa/library_image.h"
#include "windlass/in_line.h"
#include "windlass/kernel_table.h"

namespace windlass {

// The cores of a rank in one launch: Cores, the target's type.
template <class Cores>
class InSession {
 public:
  static constexpr const SessionEntry* entry() {
    if constexpr (Cores::kChecks) {
      return &kEntry;
    } else {
      return nullptr;
    }
  }
  // nullptr: the target checks nothing.
  static const typename Cores::Order* order([[maybe_unused]] KernelSession* session) {
    if constexpr (Cores::kChecks) {
      return &of(session).order_;
    } else {
      return nullptr;
    }
  }
  // Runs `body` on that core. False: its kernel was ended in `body`, now or before.
  template <class Body>
  static bool untilEnded([[maybe_unused]] KernelSession* session, [[maybe_unused]] uint32_t core,
                         const Body& body) {
    if constexpr (Cores::kChecks) {
      if (of(session).cores_.hasEnded(core)) return false;
      try {
        return body();
      } catch (const typename Cores::Ended&) {
        return false;
      }
    } else {
      return body();
    }
  }
  // While the result lives, its thread runs that core.
  static auto run([[maybe_unused]] KernelSession* session, [[maybe_unused]] uint32_t core) {
    if constexpr (Cores::kChecks) {
      return of(session).cores_.run(core);
    } else {
      return typename Cores::Running();
    }
  }

 private:
  InSession(const char* kernel, const Launch& launch, const InLine& line,
            const std::vector<Reach>& reach, const checked::RunRecorder& recorder)
      : cores_(kernel, launch, line, reach, recorder), order_(declared(launch)) {}

  static auto declared(const Launch& launch) {
    const KernelEntry& kernel = *launch.call->kernel;
    return typename Cores::Order(
        {launch.ranks, kernel.phases(launch),
         [&](uint32_t rank) { return kernel.blocks(launch, rank); },
         [&](uint32_t rank, uint32_t block, uint32_t phase) {
           return kernel.needs(launch, rank, block, phase);
         },
         [&](uint32_t rank) { return kernel.leavesAfter(launch, rank); }});
  }
  static InSession& of(KernelSession* session) { return *reinterpret_cast<InSession*>(session); }
  static KernelSession* open(const char* kernel, const Launch& launch, const InLine& line,
                             const Reach* reach, size_t count,
                             const checked::RunRecorder* recorder) {
    try {
      auto* session =
          new InSession(kernel, launch, line, std::vector<Reach>(reach, reach + count), *recorder);
      return reinterpret_cast<KernelSession*>(session);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static const char* verdict(KernelSession* session, bool over, uint32_t* faultyRank) {
    auto found = of(session).cores_.verdict(over);
    if (found.broken.empty()) return nullptr;
    *faultyRank = found.faultyRank;
    std::string& broken = of(session).broken_;
    broken = std::move(found.broken);
    return broken.c_str();
  }
  static void close(KernelSession* session) { delete &of(session); }

  static constexpr SessionEntry kEntry = {open, verdict, close};

  Cores cores_;
  typename Cores::Order order_;
  std::string broken_;
};

// Kernel K as the executors run it.
template <class K>
struct InLibrary : K {
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    const PhaseScope scope(launch);
    const ItemScope item(launch, block, k);
    K::phase(launch, rank, block, k);
  }
  static bool goOn(KernelSession* session, const Launch& launch, const InLine& own, Position& at) {
    [[maybe_unused]] const auto running = InSession<CoreSession>::run(session, own.core);
    const DeclaredScope declared(InSession<CoreSession>::order(session));
    return InSession<CoreSession>::untilEnded(
        session, own.core, [&] { return runInLine<InLibrary>(launch, own, at); });
  }
};

// Stops the compiler with a message about the function of K that does not have the required type.
template <class K>
constexpr void requireFunctions() {
  using Const = const Launch&;
  static_assert(std::is_same<std::remove_extent_t<decltype(K::kArguments)>,
                             const ArgumentEntry>::value,
                "a kernel has: static constexpr ArgumentEntry kArguments[]");
  static_assert(std::is_convertible<decltype(&K::refuses), const char* (*)(Const)>::value,
                "a kernel has: static const char* refuses(const Launch& launch)");
  static_assert(std::is_convertible<decltype(&K::plan), void (*)(Launch&)>::value,
                "a kernel has: static void plan(Launch& launch)");
  static_assert(std::is_convertible<decltype(&K::phases), uint32_t (*)(Const)>::value,
                "a kernel has: static uint32_t phases(const Launch& launch)");
  static_assert(std::is_convertible<decltype(&K::blocks), uint32_t (*)(Const, uint32_t)>::value,
                "a kernel has: static uint32_t blocks(const Launch& launch, uint32_t rank)");
  static_assert(std::is_convertible<decltype(&K::needs),
                                    uint32_t (*)(Const, uint32_t, uint32_t, uint32_t)>::value,
                "a kernel has: static uint32_t needs(const Launch& launch, uint32_t rank, "
                "uint32_t block, uint32_t phase)");
  static_assert(std::is_convertible<decltype(&K::phase),
                                    void (*)(Const, uint32_t, uint32_t, uint32_t)>::value,
                "a kernel has: static void phase(const Launch& launch, uint32_t rank, "
                "uint32_t block, uint32_t phase)");
  static_assert(
      std::is_convertible<decltype(&K::leavesAfter), uint32_t (*)(Const, uint32_t)>::value,
      "a kernel has: static uint32_t leavesAfter(const Launch& launch, uint32_t rank)");
}

template <class K>
constexpr KernelEntry libraryKernel(const char* name) {
  requireFunctions<K>();
  return {name,
          K::kArguments,
          sizeof K::kArguments / sizeof K::kArguments[0],
          0,
          K::refuses,
          K::plan,
          K::phases,
          K::blocks,
          K::needs,
          K::leavesAfter,
          InLibrary<K>::phase,
          InLibrary<K>::goOn,
          InSession<CoreSession>::entry()};
}

constexpr KernelTable kernelTable(const KernelEntry* kernels, size_t count) {
  KernelTable table = {kKernelTableMagic, kKernelTableVersion, WINDLASS_KERNEL_FINGERPRINT, {},
                       static_cast<uint32_t>(count), 0, kernels, kLibraryImage,
                       kLibraryImageBytes};
  for (size_t i = 0; i + 1 < sizeof table.target && kLimits.name[i] != 0; ++i)
    table.target[i] = kLimits.name[i];
  return table;
}

}  // namespace windlass

#define WINDLASS_KERNEL_LIBRARY(...)                                                        \
  static constexpr ::windlass::KernelEntry windlassKernels[] = {__VA_ARGS__};               \
  extern "C" {                                                                              \
  __attribute__((visibility("default"))) extern const ::windlass::KernelTable               \
      windlass_kernel_table;                                                                \
  const ::windlass::KernelTable windlass_kernel_table = ::windlass::kernelTable(            \
      windlassKernels, sizeof windlassKernels / sizeof windlassKernels[0]);                 \
  }
