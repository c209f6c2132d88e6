// SPDX-License-Identifier: Apache-2.0
#include "native/device/enqueuing.h"

#include <algorithm>
#include <chrono>

#include "native/base/clock.h"
#include "native/base/target.h"
#include "native/core/group.h"
#include "native/device/cuda/rank_device.h"
#include "native/device/grids.h"
#include "native/device/offload_seats.h"

namespace windlass {

Enqueuing::Enqueuing(Group& group, uint32_t rank, RankDevice& device, Statements& stated)
    : group_(group),
      rank_(rank),
      device_(device),
      stated_(stated),
      inFlight_(cuda::Streams::kMostInFlight) {}

Code Enqueuing::awaitOver(uint64_t ticket, OffloadPeers& peers) {
  while (over_.load() < ticket) {
    if (peers.goesOn()) {
      look();
      continue;
    }
    if (group_.failure() == nullptr && peers.leftNs() <= 0) publishInTheWay(peers);
    OffloadProgress none = {};
    none.ranks.resize(peers.ranks());
    return peers.ended(none);
  }
  return WL_OK;
}

Code Enqueuing::takePlace(OffloadPeers& peers, wl_error_t* error) {
  if (stated_.own.capture != 0) {
    place_ = captured_;
    if (captured_ < cuda::Streams::kMostCaptured) return WL_OK;
    return fail(error, WL_RESOURCE,
                "graphs hold %u operations of this communicator, which keeps no more until it is "
                "closed: have a graph hold fewer, or split off a communicator for each",
                captured_);
  }
  const uint64_t ticket = last_.load() + 1;
  place_ = ticket % cuda::Streams::kMostInFlight;
  return ticket <= cuda::Streams::kMostInFlight
             ? WL_OK
             : awaitOver(ticket - cuda::Streams::kMostInFlight, peers);
}

Code Enqueuing::checkCaptures(wl_error_t* error) const {
  const uint64_t own = stated_.own.capture;
  for (uint32_t rank = 0; rank < stated_.ranks(); ++rank) {
    const uint64_t theirs = stated_[rank].capture;
    if (theirs == (stated_.isOneProcess() ? own : 0)) continue;
    if (!stated_.isOneProcess()) {
      return fail(error, WL_UNSUPPORTED,
                  "the stream of rank %u captures a graph, which takes an operation of ranks of "
                  "one process: those of several put theirs on streams that capture nothing",
                  rank);
    }
    if (own != 0 && theirs != 0) {
      return fail(error, WL_UNSUPPORTED,
                  "ranks %u and %u capture two graphs: one graph takes an operation of all ranks; "
                  "begin the capture on one rank's stream, and have the others' wait for an event "
                  "that is recorded there",
                  rank_, rank);
    }
    return fail(error, WL_UNSUPPORTED,
                "the stream of rank %u captures a graph and that of rank %u does not: have it wait "
                "for an event that is recorded on the one where the capture began",
                own != 0 ? rank_ : rank, own != 0 ? rank : rank_);
  }
  return WL_OK;
}

Code Enqueuing::makeRoom(uint32_t cores, OffloadPeers& peers, uint32_t* faultyRank,
                         wl_error_t* error) {
  const uint64_t bytes = stated_.bytes(cores);
  if (bytes <= streams_->partBytes()) return WL_OK;
  *faultyRank = kNobody;
  if (captured_ > 0) {
    return fail(error, WL_RESOURCE,
                "graphs hold operations in a window of %llu bytes, and this one takes %llu: call "
                "the largest one before the first that is captured",
                text(streams_->partBytes()), text(bytes));
  }
  Code code = stated_.agree(drain(peers), peers, faultyRank, error);
  if (code != WL_OK) return code;
  code = stated_.makeRoom(*streams_, cores, peers, faultyRank, error);
  if (isRefusal(code)) *faultyRank = kNobody;
  return code;
}

OffloadedOperation Enqueuing::describe(const DeviceOperation& operation) const {
  OffloadedOperation given = stated_.describe(operation, *streams_, rank_);
  given.counters = stated_.layout(rank_, operation.cores, *streams_).word;
  given.stop = streams_->stopWord();
  given.stopValue = 1;
  // No rank waits for an event of another process's stream, so cores of several processes wait for
  // one another at the start.
  given.waitsForAll = !stated_.isOneProcess();
  given.report = streams_->reportWord();
  // The host stops operations that it watches. It does not know when a graph is launched.
  const int64_t graceNs = stated_.own.capture == 0 ? kDeviceOwnLimitNs : 0;
  given.limitNs = static_cast<uint64_t>(operation.limitNs + graceNs);
  return given;
}

Code Enqueuing::findStream(const OnStream& on, wl_error_t* error) {
  if (!kTarget.hasGpus())
    return fail(error, WL_UNSUPPORTED, "this target's devices take no streams: cuda's do");
  streams_ = &static_cast<cuda::CudaRankDevice&>(device_).streams();
  const Code code = streams_->open(error);
  return code == WL_OK ? streams_->look(on.stream, &stated_.own.capture, error) : code;
}

Code Enqueuing::run(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
                    wl_error_t* error) {
  Code code = checkCaptures(error);
  if (code == WL_OK) code = makeRoom(operation.cores, peers, faultyRank, error);
  if (code != WL_OK) return code;
  code = hand(operation, peers, faultyRank, error);
  if (code == WL_OK) return code;
  // A stream may hold the operation although not all ranks have enqueued it. It ends with the
  // communicator, and is in flight until then.
  hasGivenUp_ = true;
  streams_->withdraw({operation.on->stream, stated_.own.capture, place_});
  if (stated_.own.capture == 0) follow({});
  return code;
}

Code Enqueuing::hand(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
                     wl_error_t* error) {
  OnStream& on = *operation.on;
  Statement& said = stated_.own;
  const DeviceLayout at = stated_.layout(rank_, operation.cores, *streams_);
  auto* const there = reinterpret_cast<void*>(at.out);
  // Copies the whole output, since a kernel may leave parts of it unchanged.
  const cuda::Streams::Brought brought = {
      {reinterpret_cast<void*>(at.in), operation.buffers.in, stated_.inBytes()},
      {there, operation.buffers.out, stated_.outBytes()},
      {reinterpret_cast<void*>(at.parts), operation.buffers.parts, said.parts},
  };
  said.cores = streams_->coresAtOnce(operation.cores);
  // All cores write their lines in some operations: in graphs, whose launches the host can't count,
  // and in every allLinesEvery-th operation outside them.
  if (said.capture == 0 && (last_.load() + 1) % allLinesEvery != 0)
    said.cores = Grids::coresOf(device_, operation, peers, stated_.all(), said.cores);
  const cuda::Streams::Placed placed = {on.stream, said.capture, place_};
  Code code = streams_->mark(placed, brought, &said.mark, error);
  // Ranks can't refuse an operation that a stream already holds.
  if (code = stated_.agree(code, peers, faultyRank, error); code != WL_OK) return code;
  InFlight own = {operation.operation, operation.sequence, operation.phases,
                  stated_.cores(operation.cores), operation.limitNs, 0, {}};
  std::vector<uint64_t> marks;
  for (uint32_t rank = 0; rank < stated_.ranks(); ++rank) {
    if (!group_.liveTogether(rank, rank_)) continue;
    own.marks[rank] = stated_[rank].mark;
    marks.push_back(stated_[rank].mark);
  }
  const OffloadedOperation given = describe(operation);
  code = streams_->join(placed, given, marks, error);
  // Ranks that share a device have joined, and the last of them has launched.
  if (code = stated_.agree(code, peers, faultyRank, error); code != WL_OK) return code;
  const cuda::Streams::Copy back = {operation.buffers.out, there, stated_.outBytes()};
  code = streams_->leave(placed, back, error);
  *faultyRank = rank_;
  if (code != WL_OK) return code;
  if (said.capture != 0) {
    ++captured_;
    capturedCores_ = std::max(capturedCores_, given.line.cores);
    lastNs_ = clockNs();
    on.ticket = 0;
    return WL_OK;
  }
  follow(own);
  on.ticket = last_.load();
  return WL_OK;
}

void Enqueuing::follow(const InFlight& own) {
  const uint64_t ticket = last_.load() + 1;
  inFlight(ticket) = own;
  group_.offloadSeats()[rank_].enqueued.fetch_add(1);
  last_.store(ticket);
  lastNs_ = clockNs();
}

Code Enqueuing::await(uint64_t ticket, int64_t limitNs, bool* isOver) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiters_;
  const auto isSettled = [&] { return whole_.load() >= ticket || hasEnded_.load(); };
  changed_.wait_for(lock, std::chrono::nanoseconds(std::min(limitNs, int64_t{1} << 60)), isSettled);
  --waiters_;
  *isOver = whole_.load() >= ticket;
  return *isOver || !hasEnded_.load() ? WL_OK : WL_ABORTED;
}

}  // namespace windlass
