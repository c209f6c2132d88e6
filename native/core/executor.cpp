// SPDX-License-Identifier: Apache-2.0
#include "native/core/executor.h"

namespace windlass {
namespace {

// Runs run(pulling), whose progress peers see.
template <class Run>
Code runPulling(Comm& comm, uint32_t phases, Run&& run) {
  Pulling* const pulling = comm.pulling();
  if (pulling == nullptr) return comm.failures().publishNoMemory();
  comm.waits().showPhases(phases);
  const ShownSteps shown(comm.waits(), *pulling);
  return comm.orNoMemory([&] { return run(*pulling); });
}

}  // namespace

Code pull(Comm& comm, const PullForm& form, const Call& call, const Launch& launch,
          Deadline& deadline) {
  const Code code = runPulling(comm, form.phases, [&](Pulling& pulling) {
    // A rank that saw all ranks enter may not have rung the others yet.
    comm.waits().waiter().ring();
    return pulling.run(form, launch, deadline, call.error);
  });
  if (code == WL_OK) comm.waits().sawAllEnter();
  return code;
}

Code pullItems(Comm& comm, const Call& call, const Launch& launch, Deadline& deadline) {
  return runPulling(comm, launch.phases, [&](Pulling& pulling) {
    return pulling.items().run(*call.far, launch, call.firstPhase, deadline, call.error);
  });
}

}  // namespace windlass
