// SPDX-License-Identifier: Apache-2.0
// One-sided operations between a rank's memory and a window of a peer on another host. Puts of
// short runs, and additions, travel packed in messages. The peer's process stores or adds them.
// Long contiguous runs are put or read in place.
#include <algorithm>
#include <new>
#include <vector>

#include "native/base/extent.h"
#include "native/core/comm.h"
#include "native/core/launch/rank_moves.h"
#include "native/hosts/hosts.h"

namespace windlass {
namespace {

// Shortest run that is moved on its own.
constexpr uint64_t kLongRunBytes = uint64_t{8} << 10;
// kMostTaken: bytes that a get reads at once. Up to kFewRuns runs are read one by one. More runs
// are read as one span that includes the gaps between them. If runs are more than kMostApart bytes
// apart on average, or the span exceeds kMostSpan, they are also read one by one.
constexpr uint64_t kMostTaken = uint64_t{1} << 20;
constexpr uint64_t kFewRuns = 16;
constexpr uint64_t kMostApart = uint64_t{32} << 10;
constexpr uint64_t kMostSpan = uint64_t{64} << 20;
// Number of a rank's messages and words, each of at most kMostPieceBytes, that this process holds
// at a time.
constexpr uint32_t kMostCopies = 128;

// Length of the contiguous runs that two views of one shape consist of.
uint64_t runBytesOf(const StridedView& remote, const StridedView& local) {
  const uint64_t elementBytes = sizeOf(remote.dtype);
  uint64_t bytes = elementBytes;
  const auto follows = [&](const StridedView& view, uint32_t d) {
    return view.shape[d] == 1 || static_cast<uint64_t>(view.strides[d]) * elementBytes == bytes;
  };
  for (uint32_t d = remote.ndim; d-- > 0 && follows(remote, d) && follows(local, d);)
    bytes *= static_cast<uint64_t>(remote.shape[d]);
  return bytes;
}

StridedView movedBy(const StridedView& view, const int64_t* shape, uint32_t d, int64_t steps) {
  StridedView part = view;
  part.shape = shape;
  part.data = static_cast<unsigned char*>(view.data) +
              steps * view.strides[d] * static_cast<int64_t>(sizeOf(view.dtype));
  return part;
}

// Calls visit(remote, local) for pieces of at most `most` bytes that cover the whole. They are the
// runs if `most` is runBytesOf(). Stops at the first result that is not WL_OK.
template <class Visit>
Code forEachPiece(const StridedView& remote, const StridedView& local, uint64_t most,
                  const Visit& visit) {
  const uint64_t bytes = bytesOf(remote);
  if (bytes <= most) return visit(remote, local);
  uint32_t d = 0;
  while (remote.shape[d] == 1) ++d;
  int64_t shape[kMaxDims];
  std::copy_n(remote.shape, remote.ndim, shape);
  const uint64_t rowBytes = bytes / static_cast<uint64_t>(remote.shape[d]);
  const auto rows = static_cast<int64_t>(std::max<uint64_t>(1, most / rowBytes));
  for (int64_t at = 0; at < remote.shape[d]; at += rows) {
    shape[d] = std::min(rows, remote.shape[d] - at);
    const Code code =
        forEachPiece(movedBy(remote, shape, d, at), movedBy(local, shape, d, at), most, visit);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

// Address of `part`, a piece of `whole`, which begins at `start`.
Place placeIn(Place start, const StridedView& whole, const StridedView& part) {
  const auto bytes = static_cast<const unsigned char*>(part.data) -
                     static_cast<const unsigned char*>(whole.data);
  return Place::of(start.window(), start.offset() + static_cast<uint64_t>(bytes));
}

class MovesOverHosts final : public HostMoves {
 public:
  explicit MovesOverHosts(Comm& comm) : comm_(comm), hosts_(*hostsOf(comm.group())) {}

  Code put(uint32_t peer, const StridedView& remote, const StridedView& local, bool adds) override {
    if (bytesOf(remote) == 0) return WL_OK;
    if (!hosts_.mayMove(peer)) return WL_ABORTED;
    const Place start = comm_.group().windows().find(peer, remote.data, 1);
    movedTo_.resize(hosts_.count(), kNobody);
    movedTo_[hosts_.hostOf(peer)] = peer;
    Deadline deadline(comm_.group().config().deadlineNs);
    const uint64_t runBytes = runBytesOf(remote, local);
    if (!adds && runBytes >= kLongRunBytes) {
      const Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
      const auto putRun = [&](const StridedView& there, const StridedView& here) {
        const Place at = placeIn(start, remote, there);
        return hosts_.putIn(peer, at, here.data, runBytes, unread) ? WL_OK : giveUp(unread, peer);
      };
      const Code code = forEachPiece(remote, local, runBytes, putRun);
      return code == WL_OK ? awaitMoved(unread, peer, deadline) : code;
    }
    const auto send = [&](const StridedView& there, const StridedView& here) {
      if (Code code = awaitCopies(peer, deadline)) return code;
      const Place at = placeIn(start, remote, there);
      return hosts_.move(adds, peer, at, there, here, copies_) ? WL_OK
                                                              : comm_.failures().publishNoMemory();
    };
    return forEachPiece(remote, local, Hosts::kMostPieceBytes, send);
  }

  Code get(uint32_t peer, const StridedView& local, const StridedView& remote) override {
    if (!hosts_.mayMove(peer)) return WL_ABORTED;
    const Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
    Deadline deadline(comm_.group().config().deadlineNs);
    const auto take = [&](const StridedView& there, const StridedView& here) {
      const uint64_t bytes = bytesOf(there);
      if (bytes == 0) return WL_OK;
      const uint64_t runBytes = runBytesOf(there, here);
      const uint64_t runs = bytes / runBytes;
      const Place start = comm_.group().windows().find(peer, there.data, 1);
      int64_t extent = 0;
      extentOf(there.ndim, there.shape, there.strides, sizeOf(there.dtype), &extent);
      const auto span = static_cast<uint64_t>(extent);
      if (runBytes >= kLongRunBytes || runs <= kFewRuns || span / runs > kMostApart ||
          span > kMostSpan) {
        return forEachPiece(there, here, runBytes, [&](const StridedView& from,
                                                       const StridedView& to) {
          const Place at = placeIn(start, there, from);
          return hosts_.getFrom(peer, at, to.data, runBytes, unread) ? WL_OK : giveUp(unread, peer);
        });
      }
      const std::unique_ptr<unsigned char[]> taken(new (std::nothrow) unsigned char[span]);
      // After a failure, earlier requests write into `local`.
      if (taken == nullptr || !hosts_.getFrom(peer, start, taken.get(), span, unread))
        return giveUp(unread, peer);
      if (Code code = awaitMoved(unread, peer, deadline)) return code;
      StridedView from = there;
      from.data = taken.get();
      kRankMoves.get(here, from);
      return WL_OK;
    };
    const Code code = forEachPiece(remote, local, kMostTaken, take);
    return code == WL_OK ? awaitMoved(unread, peer, deadline) : code;
  }

  Code notify(uint32_t peer, Place place, uint32_t* signal, uint32_t value) override {
    const bool isBeside = hosts_.isBeside(peer);
    Deadline deadline(comm_.group().config().deadlineNs);
    const uint32_t butHost = isBeside ? kNobody : hosts_.hostOf(peer);
    if (Code code = flushBut(butHost, deadline)) return code;
    if (isBeside) {
      const char* const broken = kRankMoves.notify(reinterpret_cast<int32_t*>(signal), value);
      return broken == nullptr ? WL_OK : comm_.failures().publishBreach(comm_.rank(), broken);
    }
    if (!hosts_.mayMove(peer)) return WL_ABORTED;
    if (Code code = awaitCopies(peer, deadline)) return code;
    return hosts_.notify(peer, place, value, copies_) ? WL_OK : comm_.failures().publishNoMemory();
  }

  Code flush(Deadline& deadline) override { return flushBut(kNobody, deadline); }
  uint32_t notified(uint32_t peer, Place place) override { return hosts_.notified(peer, place); }

 private:
  // Blocks until `unread` is 0: puts no longer read this rank's memory, or the bytes of gets have
  // arrived.
  Code awaitMoved(const Unread& unread, uint32_t peer, Deadline& deadline) {
    const auto isMoved = [&] { return unread->load(std::memory_order_acquire) == 0; };
    const Code code = comm_.waits().waitMoved(isMoved, peer, deadline);
    // Operations in flight refer to this rank's memory.
    if (code != WL_OK) hosts_.forget(peer, unread);
    return code;
  }

  // Blocks until this rank's earlier puts are visible on every host except `butHost`. Messages to
  // that host are ordered by its own connection. kNobody: no exception.
  Code flushBut(uint32_t butHost, Deadline& deadline) {
    for (uint32_t host = 0; host < movedTo_.size(); ++host) {
      const uint32_t peer = movedTo_[host];
      if (peer == kNobody || host == butHost) continue;
      const Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
      if (!hosts_.flush(host, &flushed_, unread)) return giveUp(unread, peer);
      if (Code code = awaitMoved(unread, peer, deadline)) return code;
      movedTo_[host] = kNobody;
    }
    return WL_OK;
  }

  // Blocks until this process holds few enough copies for this rank's operations.
  Code awaitCopies(uint32_t peer, Deadline& deadline) {
    if (copies_ == nullptr) copies_ = std::make_shared<std::atomic<uint32_t>>(0);
    const auto hasRoom = [&] { return copies_->load(std::memory_order_acquire) < kMostCopies; };
    if (hasRoom()) return WL_OK;
    return comm_.waits().waitMoved(hasRoom, peer, deadline);
  }

  // Fails the communicator and cancels an operation if there was no memory for all of it.
  Code giveUp(const Unread& unread, uint32_t peer) {
    hosts_.forget(peer, unread);
    return comm_.failures().publishNoMemory();
  }

  Comm& comm_;
  Hosts& hosts_;
  Unread copies_;                  // set by the first operation that copies
  std::vector<uint32_t> movedTo_;  // by host: a rank put to since the last flush
  uint64_t flushed_ = 0;           // word that a flush reads of those hosts
};

}  // namespace

std::unique_ptr<HostMoves> HostMoves::make(Comm& comm) {
  return std::unique_ptr<HostMoves>(new (std::nothrow) MovesOverHosts(comm));
}

}  // namespace windlass
