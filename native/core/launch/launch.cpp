// SPDX-License-Identifier: Apache-2.0
#include "native/core/launch/launch.h"

#include <cstdio>
#include <new>
#include <string>

#include "native/base/profile.h"
#include "native/base/target.h"
#include "native/core/cpu_executor.h"
#include "native/core/launch/kernels.h"
#include "native/device/device_executor.h"
#include "native/device/offload_executor.h"
#include "native/device/offloaded_launch.h"

namespace windlass {
namespace {

// A library's kernel, through the functions in its table.
struct Launched {
  static constexpr bool kEager = false;
  static constexpr bool kOfLibrary = true;
  static uint32_t phases(const Launch& launch) { return of(launch).phases(launch); }
  static uint32_t blocks(const Launch& launch, uint32_t rank) {
    return of(launch).blocks(launch, rank);
  }
  static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    return of(launch).needs(launch, rank, block, k);
  }
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    of(launch).phase(launch, rank, block, k);
  }
  static uint32_t leavesAfter(const Launch& launch, uint32_t rank) {
    return of(launch).leavesAfter(launch, rank);
  }
  static const KernelEntry& of(const Launch& launch) { return *launch.call->kernel; }
};

// Session for a target that checks nothing.
class Unchecked {
 public:
  static constexpr bool kChecks = false;
  Unchecked(const char*, const Launch&, const InLine&, const std::vector<Reach>&) {}
  KernelSession* session() { return nullptr; }
};

// The library's own session, which runs its kernels with the library's own copy of the checks.
class Checked {
 public:
  static constexpr bool kChecks = true;
  Checked(const char* kernel, const Launch& launch, const InLine& line,
          const std::vector<Reach>& reach)
      : entry_(*Launched::of(launch).session),
        session_(entry_.open(kernel, launch, line, reach.data(), reach.size(),
                             kTarget.profiler->launches)) {
    if (session_ == nullptr) throw std::bad_alloc();
  }
  ~Checked() { entry_.close(session_); }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  KernelSession* session() { return session_; }
  struct Verdict {
    std::string broken;
    uint32_t culprit;
  };
  Verdict verdict(bool over) {
    Verdict found = {};
    if (const char* broken = entry_.verdict(session_, over, &found.culprit); broken != nullptr)
      found.broken = broken;
    return found;
  }

 private:
  const SessionEntry& entry_;
  KernelSession* const session_;
};

// A library's kernel for the device executor.
template <class Of>
struct LaunchedInLine : Launched {
  using Session = Of;
  static bool goOn(Of& session, const Launch& launch, const InLine& own, Position& at) {
    return of(launch).goOn(session.session(), launch, own, at);
  }
};

template <class Of>
Code launchInLine(Comm& comm, const Call& call) {
  return runOnCores<LaunchedInLine<Of>>(comm, call);
}

constexpr Kernel kUnchecked = {
    {[](Comm& comm, const Call& call) { return runOnCpu<Launched>(comm, call); },
     launchInLine<Unchecked>}};
// If each rank is a device, only its cores run kernels.
constexpr Kernel kChecked = {{launchInLine<Checked>, launchInLine<Checked>}};
// If each rank has a device, the device runs the kernels.
Code launchOnDevice(Comm& comm, const Call& call) {
  return runOffloaded<Launched>(comm, call, call.launch->index());
}
constexpr Kernel kOnDevices = {{launchOnDevice, launchOnDevice}};

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
// accept.
Code plan(const Comm& comm, const LaunchCall& of, Launch* planned) {
  const KernelEntry& kernel = *of.kernel->entry;
  const LaunchName name(*of.kernel, comm.rank());
  Launch& launch = *planned;
  if (const char* why = kernel.refuses(launch); why != nullptr)
    return fail(of.error, WL_INVALID_ARGUMENT, "%s: the kernel refuses it: %s", name.text(), why);
  const Launch before = launch;
  kernel.plan(launch);
  if (launch.ranks != before.ranks || launch.call != before.call ||
      launch.windows != before.windows) {
    return fail(of.error, WL_INVALID_ARGUMENT,
                "%s: its plan changes what the launch is given; it may set bytes, pieces and "
                "pieceBytes", name.text());
  }
  const uint32_t phases = kernel.phases(launch);
  if (phases > kMostPhases) {
    return fail(of.error, WL_INVALID_ARGUMENT, "%s: the kernel has %u phases; it may have %u",
                name.text(), phases, kMostPhases);
  }
  const uint32_t blocks = phases == 0 ? 0 : kernel.blocks(launch, comm.rank());
  if (uint64_t{phases} * blocks > kMostItems) {
    return fail(of.error, WL_INVALID_ARGUMENT,
                "%s: the kernel has %u blocks in each of %u phases; a rank may have %u items in "
                "all", name.text(), blocks, phases, kMostItems);
  }
  for (uint32_t k = 0; k < phases; ++k) {
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t need = kernel.needs(launch, comm.rank(), block, k);
      if (names(need, launch.ranks)) continue;
      return fail(of.error, WL_INVALID_ARGUMENT,
                  "%s: block %u of phase %u needs rank %u; ranks are 0 to %u, or kEveryRank or "
                  "kNobody", name.text(), block, k, need, launch.ranks - 1);
    }
  }
  const uint32_t leave = kernel.leavesAfter(launch, comm.rank());
  if (names(leave, launch.ranks)) return WL_OK;
  return fail(of.error, WL_INVALID_ARGUMENT,
              "%s: it leaves after rank %u; ranks are 0 to %u, or kEveryRank or kNobody",
              name.text(), leave, launch.ranks - 1);
}

}  // namespace

LaunchName::LaunchName(const LoadedKernel& kernel, uint32_t rank) {
  std::snprintf(text_, sizeof text_, "launch of %s on rank %u", kernel.entry->name, rank);
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
  if (comm.group().hosts() != nullptr) {
    return fail(of.error, WL_UNSUPPORTED,
                "%s: kernels of libraries write their peers' memory, which on another host they "
                "don't reach", LaunchName(*of.kernel, comm.rank()).text());
  }
  const KernelCall own = {of.kernel->entry, of.arguments, of.kernel->entry->argumentCount,
                          of.misuses};
  const auto misused = [&] {
    return fail(of.error, WL_INVALID_ARGUMENT, "%s: %s",
                LaunchName(*of.kernel, comm.rank()).text(), of.misuses->text());
  };
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_LAUNCH, of.stated->fingerprint(), 0, 0, 0,
                                   static_cast<int32_t>(of.kernel->id));
  call.bytes = of.bytes;
  call.inBytes = of.stated->bytes();
  call.workBytes = of.bytes * comm.group().ranks();
  call.deadlineNs = of.deadlineNs;
  call.error = of.error;
  Launch planned = launchOf(comm.group(), call);
  planned.call = &own;
  const Code refused = plan(comm, of, &planned);
  if (of.misuses->isAny()) return misused();
  if (refused != WL_OK) return refused;
  call.args = {of.stated->words(), nullptr, &planned};
  OffloadedLaunch onDevice(*of.kernel, of.arguments, *of.misuses);
  if (of.kernel->image != nullptr) call.launch = &onDevice;
  const Kernel& kernel = call.launch != nullptr          ? kOnDevices
                         : own.kernel->session == nullptr ? kUnchecked
                                                          : kChecked;
  const Code code = comm.run(kernel, call);
  return of.misuses->isAny() ? misused() : code;
}

}  // namespace windlass
