// SPDX-License-Identifier: Apache-2.0
// Executors of library kernels.
#include <new>
#include <string>

#include "native/base/profile.h"
#include "native/base/target.h"
#include "native/core/executor/cpu_executor.h"
#include "native/core/executor/in_line_executor.h"
#include "native/core/launch/kernels.h"
#include "native/core/launch/launch.h"
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
    uint32_t faultyRank;
  };
  Verdict verdict(bool over) {
    Verdict found = {};
    if (const char* broken = entry_.verdict(session_, over, &found.faultyRank); broken != nullptr)
      found.broken = broken;
    return found;
  }

 private:
  const SessionEntry& entry_;
  KernelSession* const session_;
};

// A library's kernel for the in-line executor.
template <class Of>
struct LaunchedInLine : Launched {
  using Session = Of;
  static bool goOn(Of& session, const Launch& launch, const InLine& own, Position& at) {
    return of(launch).goOn(session.session(), launch, own, at);
  }
};

constexpr Kernel kUnchecked = {{runOnCpu<Launched>, runOnCores<LaunchedInLine<Unchecked>>}};
// If each rank is an emulated device, only its cores run kernels.
constexpr auto kOnCores = runOnCores<LaunchedInLine<Checked>>;
constexpr Kernel kChecked = {{kOnCores, kOnCores}};
// If each rank has a device, the device runs the kernels.
Code launchOnDevice(Comm& comm, const Call& call) {
  return runOffloaded<Launched>(comm, call, call.launch->index());
}
constexpr Kernel kOnDevices = {{launchOnDevice, launchOnDevice}};

}  // namespace

Code runLaunch(Comm& comm, const LaunchCall& of, Call* call) {
  OffloadedLaunch onDevice(*of.kernel, of.arguments, *of.misuses);
  if (of.kernel->image != nullptr) call->launch = &onDevice;
  const Kernel& kernel = call->launch != nullptr                    ? kOnDevices
                         : of.kernel->entry->session == nullptr ? kUnchecked
                                                                : kChecked;
  return comm.run(kernel, *call);
}

}  // namespace windlass
