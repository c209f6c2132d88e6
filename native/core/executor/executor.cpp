// SPDX-License-Identifier: Apache-2.0
#include "native/core/executor/executor.h"

namespace windlass {
namespace {

// Calls run(reads). Peers see its progress.
template <class Run>
Code runReads(Comm& comm, uint32_t phases, Run&& run) {
  PeerReads* const reads = comm.peerReads();
  if (reads == nullptr) return comm.failures().publishNoMemory();
  comm.waits().showPhases(phases);
  const ShownSteps shown(comm.waits(), *reads);
  return comm.orNoMemory([&] { return run(*reads); });
}

}  // namespace

Code pull(Comm& comm, const PullForm& form, const Call& call, const Launch& launch,
          Deadline& deadline) {
  const Code code = runReads(comm, form.phases, [&](PeerReads& reads) {
    // This rank may have seen all ranks enter before it woke those that sleep.
    comm.waits().waiter().ring();
    return reads.run(form, launch, deadline, call.error);
  });
  if (code == WL_OK) comm.waits().sawAllEnter();
  return code;
}

Code pullItems(Comm& comm, const Call& call, const Launch& launch, Deadline& deadline) {
  return runReads(comm, launch.phases,
                  [&](PeerReads& reads) { return reads.runItems(call, launch, deadline); });
}

}  // namespace windlass
