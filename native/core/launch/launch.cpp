// SPDX-License-Identifier: Apache-2.0
#include "native/core/launch/launch.h"

#include <cstdio>

#include "native/core/executor/executor.h"

namespace windlass {
namespace {

// Indexed by TileMisuse::What.
constexpr const char* kTileTexts[] = {
    "its code misuses a tile: TASSIGN places a tile at byte %lld; it takes a multiple of 32, and "
    "this tile fits up to byte %lld",
    "its code misuses a tile: a tile is made of %lld valid rows and %lld valid columns, which it "
    "hasn't",
    "its code misuses a tile: an instruction takes tiles of other valid rows or columns than one "
    "another",
    "its code misuses a tile: TLOAD or TSTORE takes a tile of other valid rows or columns than the "
    "tensor has",
    "its code misuses a tile: TPUT or TGET takes tensors of two shapes",
};
static_assert(sizeof kTileTexts / sizeof *kTileTexts == TileMisuse::kShapes + 1, "all of them");

bool names(uint32_t rank, uint32_t ranks) {
  return rank < ranks || rank == kEveryRank || rank == kNobody;
}

// Lets the kernel plan its launch, and checks its answers about items against what executors
// accept. Writes the reason to `why` if the launch can't run.
void plan(const Comm& comm, const KernelEntry& kernel, Launch* planned, Text& why) {
  Launch& launch = *planned;
  if (const char* refused = kernel.refuses(launch); refused != nullptr)
    return why.add("the kernel refuses it: %s", refused);
  const Launch before = launch;
  kernel.plan(launch);
  if (launch.ranks != before.ranks || launch.call != before.call ||
      launch.windows != before.windows) {
    return why.add("its plan changes what the launch is given; it may set bytes, pieces and "
                   "pieceBytes");
  }
  const uint32_t phases = kernel.phases(launch);
  if (phases > kMostPhases)
    return why.add("the kernel has %u phases; it may have %u", phases, kMostPhases);
  const uint32_t blocks = phases == 0 ? 0 : kernel.blocks(launch, comm.rank());
  if (uint64_t{phases} * blocks > kMostItems) {
    return why.add("the kernel has %u blocks in each of %u phases; a rank may have %u items in all",
                   blocks, phases, kMostItems);
  }
  for (uint32_t k = 0; k < phases; ++k) {
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t need = kernel.needs(launch, comm.rank(), block, k);
      if (names(need, launch.ranks)) continue;
      return why.add("block %u of phase %u needs rank %u; ranks are 0 to %u, or kEveryRank or "
                     "kNobody",
                     block, k, need, launch.ranks - 1);
    }
  }
  const uint32_t leave = kernel.leavesAfter(launch, comm.rank());
  if (names(leave, launch.ranks)) return;
  why.add("it leaves after rank %u; ranks are 0 to %u, or kEveryRank or kNobody", leave,
          launch.ranks - 1);
}

}  // namespace

LaunchName::LaunchName(const LoadedKernel& kernel, uint32_t rank) {
  std::snprintf(text, sizeof text, "launch of %s on rank %u", kernel.entry->name, rank);
}

void LaunchMisuses::take(const Misuses* to, const Misuse& misuse) {
  // This is the launch's own object, which is not const.
  auto& own = const_cast<LaunchMisuses&>(static_cast<const LaunchMisuses&>(*to));
  uint32_t none = kNone;
  if (!own.told_.compare_exchange_strong(none, kWriting, std::memory_order_acq_rel)) return;
  own.write(misuse);
  own.told_.store(kWritten, std::memory_order_release);
}

void LaunchMisuses::write(const Misuse& misuse) {
  const KernelEntry& kernel = *kernel_.entry;
  const auto say = [this](const char* format, auto... values) {
    std::snprintf(text_, sizeof text_, format, values...);
  };
  if (misuse.what == Misuse::kTile) {
    return say(kTileTexts[misuse.tile.what], static_cast<long long>(misuse.tile.a),
               static_cast<long long>(misuse.tile.b));
  }
  if (misuse.what == Misuse::kNoSuchArgument) {
    return say("its code takes argument %u, and the last is %u: %s", misuse.argument,
               kernel.argumentCount - 1, kernel_.signature.c_str());
  }
  const ArgumentEntry& argument = kernel.arguments[misuse.argument];
  if (misuse.what == Misuse::kOtherType) {
    return say("its code takes argument %u, %s, for another type, of %llu bytes: %s",
               misuse.argument, argument.name, static_cast<unsigned long long>(misuse.bytes),
               kernel_.signature.c_str());
  }
  say("its code takes argument %u, %s, for a %s: %s", misuse.argument, argument.name,
      misuse.what == Misuse::kNotScalar ? "scalar" : "tensor", kernel_.signature.c_str());
}

Code launch(Comm& comm, const LaunchCall& of) {
  const auto refuse = [&](Code code, const char* why) {
    return fail(of.error, code, "%s: %s", LaunchName(*of.kernel, comm.rank()).text, why);
  };
  if (comm.group().hosts() != nullptr) {
    return refuse(WL_UNSUPPORTED, "kernels of libraries write their peers' memory, which on "
                  "another host they don't reach");
  }
  const KernelCall own = {of.kernel->entry, of.arguments, of.kernel->entry->argumentCount,
                          of.misuses};
  const auto descriptor =
      Descriptor::numbered(WL_OP_LAUNCH, of.stated->fingerprint(), of.kernel->id);
  Call call = Call::of(descriptor, of.deadlineNs, of.error);
  call.bytes = of.bytes;
  call.inBytes = of.stated->bytes();
  call.workBytes = of.bytes * comm.group().ranks();
  Launch planned = launchOf(comm.group(), call);
  planned.call = &own;
  char refused[WL_ERROR_MESSAGE];
  Text why(refused, sizeof refused);
  plan(comm, *of.kernel->entry, &planned, why);
  if (of.misuses->isAny()) return refuse(WL_INVALID_ARGUMENT, of.misuses->text());
  if (refused[0] != 0) return refuse(WL_INVALID_ARGUMENT, refused);
  call.args = {of.stated->words(), nullptr, &planned};
  const Code code = runLaunch(comm, of, &call);
  return of.misuses->isAny() ? refuse(WL_INVALID_ARGUMENT, of.misuses->text()) : code;
}

}  // namespace windlass
