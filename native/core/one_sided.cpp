// SPDX-License-Identifier: Apache-2.0
#include "native/core/one_sided.h"

#include "native/base/target.h"
#include "native/core/launch/rank_moves.h"
#include "native/core/reach_peer.h"

namespace windlass {
namespace {

// Returns WL_UNSUPPORTED if ranks have devices other than GPUs. Windows are in the host's memory
// there. With GPUs, the processor moves their data with its own instructions. With Ascend devices,
// it has only the checked instructions.
Code refuseOneSided(wl_error_t* error) {
  if (kTarget.limits.offloadCores == 0 || kTarget.hasGpus()) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "one-sided operations don't run on %s yet: windows lie in the host's memory there, "
              "and its devices run collectives alone", kTarget.limits.name);
}

// Runs a move to or from a peer on another host, as reachPeer() expects it.
template <class Move>
Code overHosts(Comm& comm, const Move& move) {
  HostMoves* const moves = comm.hostMoves();
  return moves == nullptr ? comm.failures().publishNoMemory() : move(*moves);
}

Descriptor ofSignal(wl_operation operation, uint32_t peer, uint32_t value) {
  return Descriptor::numbered(operation, value, peer);
}

// Runs a move of the caller's `view`: `over` if the peer lives on another host, otherwise `here`.
template <class Over, class Here>
Code move(Comm& comm, wl_operation operation, uint32_t peer, const StridedView& view,
          wl_error_t* error, const Over& over, const Here& here) {
  if (Code code = refuseOneSided(error); code != WL_OK) return code;
  const Descriptor descriptor = ofMove(operation, peer, view);
  if (comm.group().isBeside(peer)) return reachPeer(comm, descriptor, error, here);
  return reachPeer(comm, descriptor, error, [&] { return overHosts(comm, over); });
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
    nameCulprit(error, comm.rank());
    return code;
  }
  return code == WL_UNSUPPORTED ? copyError(error, ofDevice, nullptr)
                                : comm.failures().publishDevice(ofDevice);
}

Code put(Comm& comm, uint32_t peer, const StridedView& remote, const StridedView& local,
         wl_error_t* error) {
  return move(
      comm, WL_OP_PUT, peer, local, error,
      [&](HostMoves& moves) { return moves.put(peer, remote, local, false); },
      [&] { return kRankMoves.put(remote, local); });
}

Code accumulate(Comm& comm, uint32_t peer, const StridedView& remote, const StridedView& local,
                wl_error_t* error) {
  return move(
      comm, WL_OP_ACCUMULATE, peer, local, error,
      [&](HostMoves& moves) { return moves.put(peer, remote, local, true); },
      [&] { return kRankMoves.accumulate(remote, local); });
}

Code get(Comm& comm, uint32_t peer, const StridedView& local, const StridedView& remote,
         wl_error_t* error) {
  return move(
      comm, WL_OP_GET, peer, local, error,
      [&](HostMoves& moves) { return moves.get(peer, local, remote); },
      [&] { return kRankMoves.get(local, remote); });
}

Code notify(Comm& comm, uint32_t peer, uint32_t* signal, uint32_t value, wl_error_t* error) {
  HostMoves* const moves = comm.hostMoves();
  const bool elsewhere = !comm.group().isBeside(peer);
  const Place place = elsewhere ? comm.group().windows().find(peer, signal, WL_SIGNAL_LINE_BYTES)
                                : placeInAddressSpace(signal);
  // If memory for moves is short, the operation fails below.
  const bool isKnown = !elsewhere || moves != nullptr;
  const uint32_t seen = !elsewhere ? lookAt(signal) : isKnown ? moves->notified(peer, place) : 0;
  if (isKnown && !movesForward(seen, value)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "notify: value %u: the signal is at %u, and moves forward by less than 2^30 at a "
                "time",
                value, seen);
  }
  if (comm.group().hosts() != nullptr) {
    const auto move = [&](HostMoves& own) { return own.notify(peer, place, signal, value); };
    return reachPeer(comm, ofSignal(WL_OP_NOTIFY, peer, value), error,
                          [&] { return overHosts(comm, move); });
  }
  // end() rings the peer if it sleeps.
  return reachPeer(comm, ofSignal(WL_OP_NOTIFY, peer, value), error,
                        [&] {
                          return kRankMoves.notify(reinterpret_cast<int32_t*>(signal), value);
                        });
}

Code wait(Comm& comm, uint32_t peer, const uint32_t* signal, uint32_t value, int64_t deadlineNs,
          wl_error_t* error) {
  if (Code code = beginOneSided(comm, ofSignal(WL_OP_WAIT, peer, value), error); code != WL_OK)
    return code;
  Deadline deadline(deadlineNs == 0 ? comm.group().config().deadlineNs : deadlineNs);
  return comm.finish(comm.waits().awaitSignal(signal, deadline), false, error);
}

// Not recorded: a rank that checks repeatedly would overwrite all other records.
Code test(Comm& comm, uint32_t peer, const uint32_t* signal, uint32_t value, bool* isReached,
          wl_error_t* error) {
  const Code code = comm.beginUnrecorded(ofSignal(WL_OP_WAIT, peer, value), error);
  return code != WL_OK ? code : comm.end(comm.waits().testSignal(signal, isReached), error);
}

}  // namespace windlass
