// SPDX-License-Identifier: Apache-2.0
#include "native/device/enqueuing.h"

#include <algorithm>
#include <chrono>

#include "native/base/clock.h"
#include "native/core/group.h"
#include "native/device/grids.h"
#include "native/device/offload_seats.h"

namespace windlass {

Enqueuing::Enqueuing(Group& group, uint32_t rank, RankDevice& device)
    : group_(group), rank_(rank), device_(device), inFlight_(StreamDevice::kMostInFlight) {}

Code Enqueuing::agree(Code code, OffloadPeers& peers, uint32_t* culprit, wl_error_t* error) {
  own_.code = code;
  wl_error_t ofOthers = blankError();
  const Code told = peers.all(&own_, stated_.data(), sizeof own_, &ofOthers);
  *culprit = code == WL_OK ? kNobody : rank_;
  if (code != WL_OK) return code;
  if (told != WL_OK) return told;
  for (uint32_t rank = 0; rank < stated_.size(); ++rank) {
    const auto theirs = static_cast<Code>(stated_[rank].code);
    if (theirs == WL_OK) continue;
    *culprit = rank;
    return fail(error, theirs, "rank %u does not put it on its stream: its own error says why",
                rank);
  }
  return WL_OK;
}

Code Enqueuing::agreeOrRefuse(Code code, OffloadPeers& peers, uint32_t* culprit,
                              wl_error_t* error) {
  code = agree(code, peers, culprit, error);
  if (!isRefusal(code)) return code;
  if (*culprit != kNobody) nameCulprit(error, *culprit);
  *culprit = kNobody;
  return code;
}

Code Enqueuing::ended(OffloadPeers& peers) {
  if (group_.failure() == nullptr && peers.leftNs() <= 0) publishInTheWay(peers);
  OffloadProgress none = {};
  none.ranks.resize(peers.ranks());
  return peers.ended(none);
}

Code Enqueuing::find(const DeviceBuffers& buffers, wl_error_t* error) {
  using Lies = RankDevice::Lies;
  own_.in = buffers.inBytes;
  own_.out = buffers.outBytes;
  own_.parts = buffers.partBytes;
  own_.inThere = own_.outThere = 0;
  const auto findOne = [&](const char* name, const void* data, uint64_t bytes, uint64_t* there) {
    if (bytes == 0) return WL_OK;
    Lies lies = Lies::kHost;
    if (Code code = device_.find({name, data, bytes}, &lies, error); code != WL_OK) return code;
    if (lies == Lies::kHost) {
      return fail(error, WL_UNSUPPORTED,
                  "%s lies in the host's memory: what is put on a stream lies in a device's", name);
    }
    if (lies == Lies::kHere) *there = reinterpret_cast<uint64_t>(data);
    return WL_OK;
  };
  const Code code = findOne("in", buffers.in, buffers.inBytes, &own_.inThere);
  return code == WL_OK ? findOne("out", buffers.out, buffers.outBytes, &own_.outThere) : code;
}

Code Enqueuing::takePlace(OffloadPeers& peers, uint32_t* place, wl_error_t* error) {
  if (own_.capture != 0) {
    *place = captured_;
    if (captured_ < StreamDevice::kMostCaptured) return WL_OK;
    return fail(error, WL_RESOURCE,
                "graphs hold %u operations of this communicator, which keeps no more until it is "
                "closed: have a graph hold fewer, or split off a communicator for each",
                captured_);
  }
  const uint64_t ticket = last_.load() + 1;
  *place = ticket % StreamDevice::kMostInFlight;
  while (ticket - over_.load() > StreamDevice::kMostInFlight) {
    if (!peers.goesOn()) return ended(peers);
    look();
  }
  return WL_OK;
}

Code Enqueuing::checkCaptures(wl_error_t* error) const {
  for (uint32_t rank = 0; rank < stated_.size() && spansProcesses_; ++rank) {
    if (stated_[rank].capture == 0) continue;
    return fail(error, WL_UNSUPPORTED,
                "the stream of rank %u captures a graph, which takes an operation of ranks of one "
                "process: those of several put theirs on streams that capture nothing",
                rank);
  }
  for (uint32_t rank = 0; rank < stated_.size(); ++rank) {
    const uint64_t theirs = stated_[rank].capture;
    if (theirs == own_.capture) continue;
    const uint32_t captures = own_.capture != 0 ? rank_ : rank;
    if (own_.capture != 0 && theirs != 0) {
      return fail(error, WL_UNSUPPORTED,
                  "ranks %u and %u capture two graphs: one graph takes an operation of all ranks; "
                  "begin the capture on one rank's stream, and have the others' wait for an event "
                  "that is recorded there",
                  rank_, rank);
    }
    return fail(error, WL_UNSUPPORTED,
                "the stream of rank %u captures a graph and that of rank %u does not: have it wait "
                "for an event that is recorded on the one where the capture began",
                captures, captures == rank_ ? rank : rank_);
  }
  return WL_OK;
}

Enqueuing::Places Enqueuing::placesOf(const Statement& stated, uint32_t cores) const {
  Places places = {};
  places.counters = stated_.size() * cores * kDeviceLineBytes;
  places.in = aligned(places.counters + kDeviceLineBytes);
  places.out = aligned(places.in + (isOneDevice_ ? 0 : stated.in));
  places.parts = aligned(places.out + (isOneDevice_ ? 0 : stated.out));
  places.end = aligned(places.parts + stated.parts);
  return places;
}

Code Enqueuing::makeRoom(uint32_t cores, OffloadPeers& peers, uint32_t* culprit,
                         wl_error_t* error) {
  uint64_t bytes = 0;
  for (const Statement& each : stated_) bytes = std::max(bytes, placesOf(each, cores).end);
  if (bytes <= streams_->partBytes()) return WL_OK;
  *culprit = kNobody;
  if (bytes > kMostWindowBytes) {
    return fail(error, WL_RESOURCE, "it takes %llu bytes of a window, which has %llu at most",
                static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(kMostWindowBytes));
  }
  if (captured_ > 0) {
    return fail(error, WL_RESOURCE,
                "graphs hold operations in a window of %llu bytes, and this one takes %llu: call "
                "the largest one before the first that is captured",
                static_cast<unsigned long long>(streams_->partBytes()),
                static_cast<unsigned long long>(bytes));
  }
  const Code drained = drain(peers) ? WL_OK : ended(peers);
  if (Code code = agree(drained, peers, culprit, error); code != WL_OK) return code;
  const Code code = streams_->makeWindow(peers, bytes, error);
  *culprit = isRefusal(code) ? kNobody : streams_->culprit();
  return code;
}

OffloadedOperation Enqueuing::describe(const DeviceOperation& operation, uint32_t cores) const {
  OffloadedOperation given = {};
  given.kernel = operation.kernel;
  given.launch = *operation.launch;
  given.line = {rank_, 0, cores, 0, false, kDeviceLooks, nullptr, 0};
  given.windowBytes = streams_->partBytes();
  for (uint32_t rank = 0; rank < stated_.size(); ++rank) {
    const Statement& of = stated_[rank];
    const auto base = reinterpret_cast<uint64_t>(streams_->part(rank));
    const Places places = placesOf(of, operation.cores);
    const auto place = [&](uint64_t at, uint64_t bytes, uint64_t there) {
      return bytes == 0 ? Place{0} : Place::of(kAddressSpace, isOneDevice_ ? there : base + at);
    };
    given.entries[rank] = {place(places.in, of.in, of.inThere),
                           place(places.out, of.out, of.outThere),
                           place(places.parts, of.parts, base + places.parts)};
    given.lines[rank] = given.windows[rank] = base;
    if (rank == rank_) given.counters = base + places.counters;
  }
  given.stop = streams_->stopWord();
  given.stopValue = 1;
  // No rank waits for an event of another process's stream, so cores of several processes wait for
  // one another at the start.
  given.meets = spansProcesses_;
  given.report = streams_->reportWord();
  // The host stops operations that it watches. It does not know when a graph is launched.
  const int64_t graceNs = own_.capture == 0 ? kDeviceOwnLimitNs : 0;
  given.limitNs = static_cast<uint64_t>(operation.limitNs + graceNs);
  return given;
}

Code Enqueuing::run(const DeviceOperation& operation, Code opened, OffloadPeers& peers,
                    uint32_t* culprit, wl_error_t* error) {
  stated_.resize(peers.ranks());
  isHere_.resize(peers.ranks());
  for (uint32_t rank = 0; rank < peers.ranks(); ++rank)
    isHere_[rank] = group_.liveTogether(rank, rank_);
  spansProcesses_ = std::find(isHere_.begin(), isHere_.end(), false) != isHere_.end();
  own_ = {};
  uint32_t place = 0;
  Code code = opened;
  if (code == WL_OK) {
    own_.device = group_.offloadSeats()[rank_].device;
    streams_ = device_.streams();
    if (streams_ == nullptr)
      code = fail(error, WL_UNSUPPORTED, "this target's devices take no streams: cuda's do");
  }
  if (code == WL_OK) code = streams_->open(error);
  if (code == WL_OK) code = streams_->look(operation.on->stream, &own_.capture, error);
  if (code == WL_OK) code = find(operation.buffers, error);
  if (code == WL_OK) code = takePlace(peers, &place, error);
  if (code = agreeOrRefuse(code, peers, culprit, error); code != WL_OK) return code;
  if (code = checkCaptures(error); code != WL_OK) return code;
  // If any data lies on another device than its rank's, all data is copied.
  isOneDevice_ = !spansProcesses_ &&
                 std::all_of(stated_.begin(), stated_.end(), [&](const Statement& each) {
                   return each.device == own_.device && (each.in == 0 || each.inThere != 0) &&
                          (each.out == 0 || each.outThere != 0);
                 });
  if (code = makeRoom(operation.cores, peers, culprit, error); code != WL_OK) return code;

  code = hand(operation, place, peers, culprit, error);
  if (code != WL_OK) giveUp(*operation.on, place);
  return code;
}

Code Enqueuing::hand(const DeviceOperation& operation, uint32_t place, OffloadPeers& peers,
                     uint32_t* culprit, wl_error_t* error) {
  OnStream& on = *operation.on;
  const Places places = placesOf(own_, operation.cores);
  auto* const part = static_cast<unsigned char*>(streams_->part(rank_));
  // Copies the whole output, since a kernel may leave parts of it unchanged.
  const StreamDevice::Brought brought = {
      {part + places.in, operation.buffers.in, isOneDevice_ ? 0 : own_.in},
      {part + places.out, operation.buffers.out, isOneDevice_ ? 0 : own_.out},
      {part + places.parts, operation.buffers.parts, own_.parts},
  };
  own_.cores = streams_->coresAtOnce(operation.cores);
  // All cores write their lines in some operations: in graphs, whose launches the host can't count,
  // and in every allLinesEvery-th operation outside them.
  if (own_.capture == 0 && (last_.load() + 1) % allLinesEvery != 0)
    own_.cores = Grids::coresOf(device_, operation, peers, stated_, own_.cores);
  Code code = streams_->mark(on.stream, own_.capture, place, brought, &own_.mark, error);
  // Ranks can't refuse an operation that a stream already holds.
  if (code = agree(code, peers, culprit, error); code != WL_OK) return code;
  uint32_t cores = operation.cores;
  InFlight own = {};
  std::vector<uint64_t> marks;
  for (uint32_t rank = 0; rank < stated_.size(); ++rank) {
    cores = std::min(cores, stated_[rank].cores);
    if (!isHere_[rank]) continue;
    own.marks[rank] = stated_[rank].mark;
    marks.push_back(stated_[rank].mark);
  }
  const OffloadedOperation given = describe(operation, cores);
  code = streams_->join(on.stream, own_.capture, place, given, marks.data(),
                        static_cast<uint32_t>(marks.size()), error);
  // Ranks that share a device have joined, and the last of them has launched.
  if (code = agree(code, peers, culprit, error); code != WL_OK) return code;
  const StreamDevice::Copy back = {operation.buffers.out, part + places.out,
                                   isOneDevice_ ? 0 : own_.out};
  code = streams_->leave(on.stream, own_.capture, place, back, error);
  *culprit = rank_;
  if (code != WL_OK) return code;
  if (own_.capture != 0) {
    ++captured_;
    capturedCores_ = std::max(capturedCores_, cores);
    lastNs_ = clockNs();
    on.ticket = 0;
    return WL_OK;
  }
  own.name = operation.name;
  own.operation = operation.operation;
  own.sequence = operation.sequence;
  own.phases = operation.phases;
  own.cores = cores;
  own.deadlineNs = operation.limitNs;
  follow(own);
  on.ticket = last_.load();
  return WL_OK;
}

void Enqueuing::giveUp(const OnStream& on, uint32_t place) {
  hasGivenUp_ = true;
  streams_->withdraw(on.stream, own_.capture, place);
  if (own_.capture == 0) follow({});
}

void Enqueuing::follow(const InFlight& own) {
  const uint64_t ticket = last_.load() + 1;
  inFlight(ticket) = own;
  group_.offloadSeats()[rank_].enqueued.fetch_add(1);
  last_.store(ticket);
  lastNs_ = clockNs();
}

bool Enqueuing::drain(OffloadPeers& peers) {
  while (isInFlight()) {
    if (!peers.goesOn()) return false;
    look();
  }
  return true;
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
