// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "native/base/dtype.h"
#include "native/base/extent.h"
#include "native/core/group.h"
#include "native/core/launch/rank_moves.h"
#include "native/hosts/hosts_message.h"

namespace windlass {
namespace {

// Head of kMove's data. The elements follow, packed in the order of the dimensions.
struct MoveHead {
  uint32_t rank;
  uint32_t window;
  uint64_t offset;
  uint32_t adds;
  uint32_t dtype;
  uint32_t ndim;
  uint32_t unused;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
};

}  // namespace

void Hosts::nameWindow(uint32_t window, uint32_t host, uint32_t theirs) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  hosts_[host].windows[window] = {theirs, kNone, 0, {}};
}

Code Hosts::shareWindow(void* base, uint64_t stride, WindowKey* key, wl_error_t* error) {
  std::vector<unsigned char> own;
  if (Code code = wire_->share(base, stride * group_.ranks(), &own, error)) return code;
  key->stride = stride;
  key->bytes = static_cast<uint32_t>(own.size());
  std::copy(own.begin(), own.end(), key->key);
  return WL_OK;
}

Code Hosts::reachWindow(uint32_t window, const WindowKey* keys, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    TheirWindow& theirs = hosts_[host].windows[window];
    if (theirs.region != kNone) continue;  // reached by another rank of this process
    const WindowKey& key = keys[partnerOf(hosts_[host]).ranks[0]];
    if (key.bytes > sizeof key.key)
      return fail(error, WL_INVALID_ARGUMENT, "host %u tells no key of a window", host);
    const Code code = wire_->reach(hosts_[host].peer, key.key, key.bytes, &theirs.region, error);
    if (code != WL_OK) return code;
    theirs.stride = key.stride;
  }
  return WL_OK;
}

void Hosts::tellDropped(uint32_t window) {
  for (uint32_t host = 0; host < count(); ++host) {
    std::unique_lock<std::mutex> lock(windowMutex_);
    const uint32_t theirs = hosts_[host].windows[window].number;
    lock.unlock();
    if (theirs != kNone) send(host, {Message::kDropped, theirs});
  }
}

Wire::There Hosts::thereOf(uint32_t rank, Place at) {
  const Host& host = hosts_[hostOf(rank)];
  std::lock_guard<std::mutex> lock(windowMutex_);
  const TheirWindow& theirs = host.windows[at.window()];
  return {host.peer, theirs.region, rank * theirs.stride + at.offset()};
}

bool Hosts::move(bool adds, uint32_t rank, Place at, const StridedView& remote,
                 const StridedView& local, const Unread& unread) {
  alignas(16) unsigned char packed[kMostPieceBytes];
  const Host& host = hosts_[hostOf(rank)];
  MoveHead view = {rank, 0, at.offset(), adds ? 1u : 0u, static_cast<uint32_t>(remote.dtype),
               remote.ndim, 0, {}, {}};
  int64_t dense[kMaxDims];
  auto bytes = static_cast<int64_t>(sizeOf(remote.dtype));
  int64_t step = 1;
  for (uint32_t d = remote.ndim; d-- > 0; step *= remote.shape[d]) {
    view.shape[d] = remote.shape[d];
    view.strides[d] = remote.strides[d];
    dense[d] = step;
    bytes *= remote.shape[d];
  }
  kRankMoves.get({packed, local.dtype, local.ndim, local.shape, dense}, local);
  {
    std::lock_guard<std::mutex> lock(windowMutex_);
    view.window = host.windows[at.window()].number;
  }
  const uint32_t peer = host.route.peer.load(std::memory_order_acquire);
  if (peer == kNone) return true;  // the communicator has failed; the caller sees it
  Outgoing message(Message::kMove, 0);
  message.add(&view, sizeof view);
  message.add(packed, static_cast<uint64_t>(bytes));
  return wire_->send(peer, message.parts, message.count, unread, Order::kSoon);
}

void Hosts::moveHere(Rest rest) {
  MoveHead view;
  if (!rest.take(&view, sizeof view)) return;
  const uint64_t left = rest.bytes();
  if (view.rank >= group_.ranks() || !isBeside(view.rank) || view.window <= kControlBlock ||
      view.window >= kMostWindows || view.ndim > kMaxDims || view.dtype >= WL_DTYPE_COUNT) {
    return;
  }
  const auto dtype = static_cast<DType>(view.dtype);
  const uint64_t elementBytes = sizeOf(dtype);
  uint64_t elements = 1;
  int64_t dense[kMaxDims];
  for (uint32_t d = view.ndim; d-- > 0;) {
    if (view.shape[d] < 0 || view.strides[d] < 0) return;
    dense[d] = static_cast<int64_t>(elements);
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(view.shape[d]), &elements)) return;
  }
  int64_t reach = 0;
  if (elements == 0 || left / elementBytes != elements || left % elementBytes != 0 ||
      left > kMostPieceBytes ||
      !extentOf(view.ndim, view.shape, view.strides, elementBytes, &reach)) {
    return;
  }
  void* const there =
      group_.windows().within(view.rank, view.window, view.offset, static_cast<uint64_t>(reach));
  if (there == nullptr || reinterpret_cast<uint64_t>(there) % elementBytes != 0) return;
  alignas(16) unsigned char packed[kMostPieceBytes];
  if (!rest.take(packed, left)) return;
  const StridedView to = {there, dtype, view.ndim, view.shape, view.strides};
  const StridedView from = {packed, dtype, view.ndim, view.shape, dense};
  if (view.adds == 0) {
    kRankMoves.put(to, from);
  } else if (canAccumulate(dtype)) {
    kRankMoves.accumulate(to, from);
  }
}

bool Hosts::putIn(uint32_t rank, Place at, const void* from, uint64_t bytes, const Unread& unread) {
  return wire_->put(thereOf(rank, at), from, bytes, unread, nullptr);
}

bool Hosts::getFrom(uint32_t rank, Place at, void* into, uint64_t bytes, const Unread& unread) {
  return wire_->get(thereOf(rank, at), into, bytes, unread);
}

// The peer answers after it has handled everything that it received earlier.
bool Hosts::flush(uint32_t host, uint64_t* into, const Unread& unread) {
  return wire_->get({hosts_[host].peer, kBlock, 0}, into, sizeof *into, unread);
}

bool Hosts::notify(uint32_t rank, Place at, uint32_t value, const Unread& unread) {
  {
    std::lock_guard<std::mutex> lock(windowMutex_);
    hosts_[hostOf(rank)].windows[at.window()].notified[{rank, at.offset()}] = value;
  }
  return wire_->putWord(thereOf(rank, at), value, unread);
}

uint32_t Hosts::notified(uint32_t rank, Place at) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  const auto& notified = hosts_[hostOf(rank)].windows[at.window()].notified;
  const auto found = notified.find({rank, at.offset()});
  return found == notified.end() ? 0 : found->second;
}

void Hosts::forget(uint32_t rank, const Unread& unread) {
  const uint32_t shared = hosts_[hostOf(rank)].peer;
  wire_->forget(shared, unread);
  const uint32_t own = known_[rank].peer;
  if (own != kNone && own != shared) wire_->forget(own, unread);
}

}  // namespace windlass
