// SPDX-License-Identifier: Apache-2.0
#include "native/core/one_sided.h"

#include "native/base/target.h"
#include "native/base/text.h"
#include "native/core/launch/rank_moves.h"

namespace windlass {
namespace {

// Runs a move to or from a peer on another host. Fails the communicator if memory for moves is
// short.
template <class Move>
Code overHosts(Comm& comm, const Move& move) {
  HostMoves* const moves = comm.hostMoves();
  return moves == nullptr ? comm.failures().publishNoMemory() : move(*moves);
}

}  // namespace

Code beginOneSided(Comm& comm, const Descriptor& descriptor, wl_error_t* error) {
  const bool moves =
      descriptor.operation() != WL_OP_NOTIFY && descriptor.operation() != WL_OP_WAIT;
  const uint64_t elementBytes = sizeOf(static_cast<DType>(descriptor.dtype()));
  return comm.beginAlone(descriptor, moves ? descriptor.count * elementBytes : 0, error);
}

Code outcomeOf(Comm& comm, const char* broken, wl_error_t*) {
  return broken == nullptr ? WL_OK : comm.failures().publishBreach(comm.rank(), broken);
}

Code outcomeOf(Comm& comm, const wl_error_t& ofDevice, wl_error_t* error) {
  const auto code = static_cast<Code>(ofDevice.code);
  if (code == WL_OK) return code;
  if (code == WL_INVALID_ARGUMENT) {
    comm.failures().refuse(code, ofDevice.message, error);
    nameFaultyRank(error, comm.rank());
    return code;
  }
  return code == WL_UNSUPPORTED ? copyError(error, ofDevice, nullptr)
                                : comm.failures().publishDevice(ofDevice);
}

Code moveOneSided(Comm& comm, wl_operation operation, uint32_t peer, const StridedView& remote,
                  const StridedView& local, wl_error_t* error) {
  // Windows of ranks with devices other than GPUs are in the host's memory. With GPUs, the
  // processor moves their data with its own instructions. With Ascend devices, it has only the
  // checked instructions.
  if (kTarget.limits.offloadCores != 0 && !kTarget.hasGpus()) {
    return fail(error, WL_UNSUPPORTED,
                "one-sided operations don't run on %s yet: windows lie in the host's memory there, "
                "and its devices run collectives alone", kTarget.limits.name);
  }
  const Descriptor descriptor = ofMove(operation, peer, local);
  const bool adds = operation == WL_OP_ACCUMULATE;
  if (comm.group().isBeside(peer)) {
    return reachPeer(comm, descriptor, error, [&] {
      if (operation == WL_OP_GET) return kRankMoves.get(local, remote);
      return adds ? kRankMoves.accumulate(remote, local) : kRankMoves.put(remote, local);
    });
  }
  const auto over = [&](HostMoves& moves) {
    return operation == WL_OP_GET ? moves.get(peer, local, remote)
                                  : moves.put(peer, remote, local, adds);
  };
  return reachPeer(comm, descriptor, error, [&] { return overHosts(comm, over); });
}

Code notify(Comm& comm, uint32_t peer, uint32_t* signal, uint64_t value, wl_error_t* error) {
  const auto word = static_cast<uint32_t>(value);
  HostMoves* const moves = comm.hostMoves();
  const bool elsewhere = !comm.group().isBeside(peer);
  const Place place = elsewhere ? comm.group().windows().find(peer, signal, WL_SIGNAL_LINE_BYTES)
                                : placeInAddressSpace(signal);
  // If memory for moves is short, the operation fails below.
  const bool isKnown = !elsewhere || moves != nullptr;
  const uint32_t seen = !elsewhere ? lookAt(signal) : isKnown ? moves->notified(peer, place) : 0;
  if (isKnown && !movesForward(seen, word)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "notify: value %llu: the signal is at %llu, and moves forward by less than 2^30 at "
                "a time",
                text(value), text(widened(seen, value)));
  }
  const Descriptor descriptor = Descriptor::numbered(WL_OP_NOTIFY, value, peer);
  if (comm.group().hosts() != nullptr) {
    const auto move = [&](HostMoves& own) { return own.notify(peer, place, signal, word); };
    return reachPeer(comm, descriptor, error, [&] { return overHosts(comm, move); });
  }
  // end() rings the peer if it sleeps.
  return reachPeer(comm, descriptor, error, [&] {
    return kRankMoves.notify(reinterpret_cast<int32_t*>(signal), word);
  });
}

Code wait(Comm& comm, uint32_t peer, const uint32_t* signal, uint64_t value, int64_t deadlineNs,
          wl_error_t* error) {
  const Descriptor descriptor = Descriptor::numbered(WL_OP_WAIT, value, peer);
  if (Code code = beginOneSided(comm, descriptor, error); code != WL_OK) return code;
  Deadline deadline(deadlineNs == 0 ? comm.group().config().deadlineNs : deadlineNs);
  return comm.finish(comm.waits().awaitSignal(signal, deadline), false, error);
}

// Not recorded: a rank that checks repeatedly would overwrite all other records.
Code test(Comm& comm, uint32_t peer, const uint32_t* signal, uint64_t value, bool* isReached,
          wl_error_t* error) {
  const Code code = comm.beginUnrecorded(Descriptor::numbered(WL_OP_WAIT, value, peer), error);
  return code != WL_OK ? code : comm.end(comm.waits().testSignal(signal, isReached), error);
}

}  // namespace windlass
