// SPDX-License-Identifier: Apache-2.0
// One-sided operations between a rank's memory and a window of a peer on another host. Puts of
// short runs, and additions, travel packed in messages. The peer's process stores or adds them.
// Long contiguous runs are put or read in place.
#include <algorithm>
#include <new>
#include <vector>

#include "native/base/extent.h"
#include "native/core/comm.h"
#include "native/core/launch/kernels.h"
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

// Two views with the same shape.
class Pair {
 public:
  Pair(const StridedView& remote, const StridedView& local) : remote_(remote), local_(local) {
    elementBytes_ = sizeOf(remote.dtype);
    runBytes_ = elementBytes_;
    outer_ = remote.ndim;
    bytes_ = elementBytes_;
    for (uint32_t d = 0; d < remote.ndim; ++d) bytes_ *= static_cast<uint64_t>(remote.shape[d]);
    const auto follows = [&](const StridedView& view, uint32_t d) {
      return view.shape[d] == 1 ||
             static_cast<uint64_t>(view.strides[d]) * elementBytes_ == runBytes_;
    };
    while (outer_ > 0 && follows(remote, outer_ - 1) && follows(local, outer_ - 1))
      runBytes_ *= static_cast<uint64_t>(remote.shape[--outer_]);
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t runBytes() const { return runBytes_; }
  uint64_t runs() const { return bytes_ / runBytes_; }

  // Calls visit(offset in remote, offset in local) for each run, in bytes. Returns false at the
  // first visit that does.
  template <class Visit>
  bool forEachRun(Visit&& visit) const {
    int64_t at[kMaxDims] = {};
    int64_t there = 0;
    int64_t here = 0;
    for (;;) {
      if (!visit(static_cast<uint64_t>(there) * elementBytes_,
                 static_cast<uint64_t>(here) * elementBytes_)) {
        return false;
      }
      uint32_t d = outer_;
      for (;;) {
        if (d == 0) return true;
        --d;
        there += remote_.strides[d];
        here += local_.strides[d];
        if (++at[d] < remote_.shape[d]) break;
        there -= at[d] * remote_.strides[d];
        here -= at[d] * local_.strides[d];
        at[d] = 0;
      }
    }
  }

 private:
  const StridedView& remote_;
  const StridedView& local_;
  uint64_t elementBytes_;
  uint64_t runBytes_;
  uint64_t bytes_;
  uint32_t outer_;  // dimensions that a run does not span
};

StridedView movedBy(const StridedView& view, const int64_t* shape, uint32_t d, int64_t steps) {
  StridedView part = view;
  part.shape = shape;
  part.data = static_cast<unsigned char*>(view.data) +
              steps * view.strides[d] * static_cast<int64_t>(sizeOf(view.dtype));
  return part;
}

// Calls visit(remote, local) for pieces of at most `most` bytes that cover the whole. Stops at the
// first result that is not WL_OK.
template <class Visit>
Code forEachPiece(const StridedView& remote, const StridedView& local, uint64_t most,
                  const Visit& visit) {
  uint64_t bytes = sizeOf(remote.dtype);
  for (uint32_t d = 0; d < remote.ndim; ++d) bytes *= static_cast<uint64_t>(remote.shape[d]);
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

Place behind(Place place, uint64_t bytes) {
  return Place::of(place.window(), place.offset() + bytes);
}

class MovesOverHosts final : public HostMoves {
 public:
  explicit MovesOverHosts(Comm& comm) : comm_(comm), hosts_(*hostsOf(comm.group())) {}

  Code put(uint32_t peer, const StridedView& remote, const StridedView& local, bool adds) override;
  Code get(uint32_t peer, const StridedView& local, const StridedView& remote) override;
  Code notify(uint32_t peer, Place place, uint32_t* signal, uint32_t value) override;
  Code flush(Deadline& deadline) override { return flushBut(kNobody, deadline); }
  uint32_t notified(uint32_t peer, Place place) override { return hosts_.notified(peer, place); }

 private:
  // Blocks until `unread` is 0: puts no longer read this rank's memory, or the bytes of gets have
  // arrived.
  Code awaitMoved(const Unread& unread, uint32_t peer, Deadline& deadline);
  // Blocks until this rank's earlier puts are visible on every host except `butHost`. Messages to
  // that host are ordered by its own connection. kNobody: no exception.
  Code flushBut(uint32_t butHost, Deadline& deadline);
  // Blocks until this process holds few enough copies for this rank's operations.
  Code awaitCopies(uint32_t peer, Deadline& deadline);
  // Fails the communicator and cancels an operation if there was no memory for all of it.
  Code giveUp(const Unread& unread, uint32_t peer);

  Comm& comm_;
  Hosts& hosts_;
  Unread copies_;                  // set by the first operation that copies
  std::vector<uint32_t> movedTo_;  // by host: a rank put to since the last flush
  uint64_t flushed_ = 0;           // word that a flush reads of those hosts
};

Code MovesOverHosts::awaitMoved(const Unread& unread, uint32_t peer, Deadline& deadline) {
  const auto isMoved = [&] { return unread->load(std::memory_order_acquire) == 0; };
  const Code code = comm_.waits().waitMoved(isMoved, peer, deadline);
  // Operations in flight refer to this rank's memory.
  if (code != WL_OK) hosts_.forget(peer, unread);
  return code;
}

Code MovesOverHosts::giveUp(const Unread& unread, uint32_t peer) {
  hosts_.forget(peer, unread);
  return comm_.failures().publishNoMemory();
}

Code MovesOverHosts::awaitCopies(uint32_t peer, Deadline& deadline) {
  if (copies_ == nullptr) copies_ = std::make_shared<std::atomic<uint32_t>>(0);
  const auto hasRoom = [&] { return copies_->load(std::memory_order_acquire) < kMostCopies; };
  if (hasRoom()) return WL_OK;
  return comm_.waits().waitMoved(hasRoom, peer, deadline);
}

Code MovesOverHosts::flushBut(uint32_t butHost, Deadline& deadline) {
  for (uint32_t host = 0; host < movedTo_.size(); ++host) {
    const uint32_t peer = movedTo_[host];
    if (peer == kNobody || host == butHost) continue;
    const Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
    if (!hosts_.flush(host, &flushed_, unread)) return giveUp(unread, peer);
    if (Code code = awaitMoved(unread, peer, deadline); code != WL_OK) return code;
    movedTo_[host] = kNobody;
  }
  return WL_OK;
}

Code MovesOverHosts::put(uint32_t peer, const StridedView& remote, const StridedView& local,
                         bool adds) {
  const Pair pair(remote, local);
  if (pair.bytes() == 0) return WL_OK;
  if (!hosts_.mayMove(peer)) return WL_ABORTED;
  const Place start = comm_.group().windowOf(peer, remote.data, 1);
  movedTo_.resize(hosts_.count(), kNobody);
  movedTo_[hosts_.hostOf(peer)] = peer;
  Deadline deadline(comm_.group().config().deadlineNs);
  if (!adds && pair.runBytes() >= kLongRunBytes) {
    const Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
    const bool goes = pair.forEachRun([&](uint64_t there, uint64_t here) {
      return hosts_.putIn(peer, behind(start, there),
                          static_cast<const unsigned char*>(local.data) + here, pair.runBytes(),
                          unread);
    });
    return goes ? awaitMoved(unread, peer, deadline) : giveUp(unread, peer);
  }
  const auto how = adds ? Hosts::kAdds : Hosts::kStores;
  const auto send = [&](const StridedView& there, const StridedView& here) {
    if (Code code = awaitCopies(peer, deadline); code != WL_OK) return code;
    const auto moved = static_cast<const unsigned char*>(there.data) -
                       static_cast<const unsigned char*>(remote.data);
    const bool goes = hosts_.move(how, peer, behind(start, static_cast<uint64_t>(moved)), there,
                                  here, copies_);
    return goes ? WL_OK : comm_.failures().publishNoMemory();
  };
  return forEachPiece(remote, local, Hosts::kMostPieceBytes, send);
}

Code MovesOverHosts::get(uint32_t peer, const StridedView& local, const StridedView& remote) {
  if (!hosts_.mayMove(peer)) return WL_ABORTED;
  const Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
  Deadline deadline(comm_.group().config().deadlineNs);
  const auto take = [&](const StridedView& there, const StridedView& here) {
    const Pair pair(there, here);
    if (pair.bytes() == 0) return WL_OK;
    const Place start = comm_.group().windowOf(peer, there.data, 1);
    int64_t extent = 0;
    extentOf(there.ndim, there.shape, there.strides, sizeOf(there.dtype), &extent);
    const auto span = static_cast<uint64_t>(extent);
    if (pair.runBytes() >= kLongRunBytes || pair.runs() <= kFewRuns ||
        span / pair.runs() > kMostApart || span > kMostSpan) {
      const bool goes = pair.forEachRun([&](uint64_t from, uint64_t to) {
        return hosts_.getFrom(peer, behind(start, from),
                              static_cast<unsigned char*>(here.data) + to, pair.runBytes(), unread);
      });
      return goes ? WL_OK : giveUp(unread, peer);
    }
    std::vector<unsigned char> taken;
    try {
      taken.resize(span);
    } catch (const std::bad_alloc&) {
      return giveUp(unread, peer);  // earlier requests write into `local`
    }
    if (!hosts_.getFrom(peer, start, taken.data(), span, unread)) return giveUp(unread, peer);
    if (Code code = awaitMoved(unread, peer, deadline); code != WL_OK) return code;
    StridedView from = there;
    from.data = taken.data();
    kKernels.get(here, from);
    return WL_OK;
  };
  const Code code = forEachPiece(remote, local, kMostTaken, take);
  return code == WL_OK ? awaitMoved(unread, peer, deadline) : code;
}

Code MovesOverHosts::notify(uint32_t peer, Place place, uint32_t* signal, uint32_t value) {
  const bool isBeside = hosts_.isBeside(peer);
  Deadline deadline(comm_.group().config().deadlineNs);
  const uint32_t butHost = isBeside ? kNobody : hosts_.hostOf(peer);
  if (Code code = flushBut(butHost, deadline); code != WL_OK) return code;
  if (isBeside) {
    const char* const broken = kKernels.notify(reinterpret_cast<int32_t*>(signal), value);
    return broken == nullptr ? WL_OK : comm_.failures().publishBreach(comm_.rank(), broken);
  }
  if (!hosts_.mayMove(peer)) return WL_ABORTED;
  if (Code code = awaitCopies(peer, deadline); code != WL_OK) return code;
  return hosts_.notify(peer, place, value, copies_) ? WL_OK : comm_.failures().publishNoMemory();
}

}  // namespace

std::unique_ptr<HostMoves> HostMoves::make(Comm& comm) {
  return std::unique_ptr<HostMoves>(new (std::nothrow) MovesOverHosts(comm));
}

}  // namespace windlass
