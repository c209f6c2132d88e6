// SPDX-License-Identifier: Apache-2.0
// What leaves by a wire: in the order of the calls, little at a time.
#include "native/window/ucx/library/ucp_wire.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace windlass {
namespace {

// What UCX keeps of any send, about, besides its bytes.
constexpr uint64_t kSendBytes = 256;
// Of a message that may linger.
constexpr uint64_t kShortBytes = uint64_t{4} << 10;

}  // namespace

UcpWire::Held* UcpWire::hold() {
  if (free_.empty()) {
    free_.reserve(held_.size() + 1);
    held_.push_back({this, nullptr, 0, {}, {}, nullptr});
    return &held_.back();
  }
  Held* const held = free_.back();
  free_.pop_back();
  keptBytes_ -= held->bytes.capacity();
  return held;
}

ucp_request_param_t UcpWire::paramOf(Held* held) {
  ucp_request_param_t param = {};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = sent;
  param.user_data = held;
  return param;
}

void UcpWire::sent(void* request, ucs_status_t, void* context) {
  auto* const held = static_cast<Held*>(context);
  --held->wire->flying_;
  if (held->peer != nullptr) held->peer->handed -= held->handed;
  held->wire->release(held);
  ucp_request_free(request);
}

ucs_status_t UcpWire::settle(Peer& peer, ucs_status_ptr_t request, Held* held) {
  if (UCS_PTR_IS_PTR(request)) {
    ++flying_;
    held->peer = &peer;
    peer.handed += held->handed;
    return UCS_OK;
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (status != UCS_ERR_NO_MEMORY) release(held);
  return status;
}

ucs_status_t UcpWire::handMessage(Peer& peer, Held* message) {
  const ucp_request_param_t param = paramOf(message);
  message->handed = kSendBytes + message->bytes.size();
  const bool hasWord = message->move.kind == Move::kMessage;
  return settle(peer,
                ucp_am_send_nbx(peer.endpoint, hasWord ? kMove : kMessage,
                                hasWord ? &message->move : nullptr,
                                hasWord ? sizeof message->move : 0, message->bytes.data(),
                                message->bytes.size(), &param),
                message);
}

ucs_status_t UcpWire::handOver(Peer& peer, Send& send) {
  if (send.message != nullptr) {
    // A call that finds the peer lost clears its queue, `send` with it.
    Held* const message = std::exchange(send.message, nullptr);
    const ucs_status_t status = handMessage(peer, message);
    if (status == UCS_ERR_NO_MEMORY && !peer.isLost) {
      send.message = message;
    } else if (status == UCS_ERR_NO_MEMORY) {
      release(message);
      return UCS_OK;
    }
    return status;
  }
  Held* held = nullptr;
  try {
    held = hold();
  } catch (const std::bad_alloc&) {
    return UCS_ERR_NO_MEMORY;
  }
  const uint64_t count = std::min(kPieceBytes, send.bytes);
  held->move = send.move;
  if (count < send.bytes) held->move.wordRegion = Move::kNoRegion;
  held->handed = kSendBytes + count;
  // What its owner may take back at any time UCX reads of a copy, since it does not give it back.
  const unsigned char* from = send.from;
  if (from != nullptr && send.unread != nullptr) {
    try {
      held->bytes.assign(from, from + count);
    } catch (const std::bad_alloc&) {
      release(held);
      return UCS_ERR_NO_MEMORY;
    }
    from = held->bytes.data();
  } else {
    held->unread = send.unread;
    if (held->unread != nullptr) held->unread->fetch_add(1, std::memory_order_relaxed);
  }
  ucp_request_param_t param = paramOf(held);
  if (send.move.kind == Move::kGet) param.flags |= UCP_AM_SEND_FLAG_REPLY;
  const ucs_status_t status =
      settle(peer,
             ucp_am_send_nbx(peer.endpoint, kMove, &held->move, sizeof held->move, from, count,
                             &param),
             held);
  if (status == UCS_ERR_NO_MEMORY) release(held);
  if (status != UCS_OK || peer.isLost) return status;
  send.move.at += count;
  send.from += count;
  send.bytes -= count;
  return status;
}

void UcpWire::pump(Peer& peer) {
  while (!peer.queue.empty() && hasRoom(peer)) {
    Send& next = peer.queue.front();
    const ucs_status_t status = handOver(peer, next);
    if (status == UCS_ERR_NO_MEMORY) return;  // there may be some in the next turn
    if (status != UCS_OK) lose(peer, status);
    if (peer.isLost) return;  // and its queue is empty
    if (next.bytes > 0) continue;
    if (next.unread != nullptr) next.unread->fetch_sub(1, std::memory_order_release);
    peer.queue.pop_front();
    --waiting_;
  }
}

bool UcpWire::go(Peer& peer, Send&& send) {
  if (!letGo(peer)) return false;
  if (peer.isLost) {
    if (send.message != nullptr) release(send.message);
    return true;
  }
  if (peer.queue.empty() && hasRoom(peer) && send.bytes <= kPieceBytes) {
    const ucs_status_t status = handOver(peer, send);
    if (status != UCS_OK && status != UCS_ERR_NO_MEMORY) lose(peer, status);
    if (status != UCS_ERR_NO_MEMORY) return true;
  }
  try {
    peer.queue.push_back(std::move(send));
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++waiting_;
  const Unread& unread = peer.queue.back().unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  pump(peer);
  return true;
}

UcpWire::Held* UcpWire::messageOf(const Part* parts, uint32_t count, const Unread& unread) {
  Held* held = nullptr;
  try {
    held = hold();
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += parts[i].bytes;
    held->bytes.clear();
    held->bytes.reserve(bytes);
  } catch (const std::bad_alloc&) {
    if (held != nullptr) release(held);
    return nullptr;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const unsigned char*>(parts[i].from);
    held->bytes.insert(held->bytes.end(), from, from + parts[i].bytes);
  }
  held->move = {};
  held->unread = unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  return held;
}

bool UcpWire::send(uint32_t number, const Part* parts, uint32_t count, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return true;
  Held* const message = messageOf(parts, count, unread);
  if (message == nullptr) return false;
  if (go(peer, {{}, nullptr, 0, nullptr, message})) return true;
  release(message);
  return false;
}

bool UcpWire::sendSoon(uint32_t number, const Part* parts, uint32_t count, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) bytes += parts[i].bytes;
  if (!lingers_ || bytes > kShortBytes || !peer.queue.empty() || !hasRoom(peer))
    return send(number, parts, count, unread);
  if (!letGo(peer)) return false;
  if (peer.isLost) return true;
  peer.lingering = messageOf(parts, count, unread);
  if (peer.lingering == nullptr) return false;
  ++lingering_;
  return lingers_ || letGo(peer);
}

void UcpWire::linger(bool may) {
  lingers_ = may;
  if (may || lingering_ == 0) return;
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  letGoAll();
}

bool UcpWire::letGo(Peer& peer) {
  if (peer.lingering == nullptr) return true;
  Held* const message = std::exchange(peer.lingering, nullptr);
  --lingering_;
  if (go(peer, {{}, nullptr, 0, nullptr, message})) return true;
  release(message);
  return false;
}

void UcpWire::letGoAll() {
  for (Peer& peer : peers_)
    if (!letGo(peer)) ends_.lackMemory();
}

bool UcpWire::sendPast(uint32_t number, const Part* parts, uint32_t count) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return true;
  Held* const message = messageOf(parts, count, nullptr);
  if (message == nullptr) return false;
  const ucs_status_t status = handMessage(peer, message);
  if (status == UCS_ERR_NO_MEMORY) {
    release(message);
    return false;
  }
  if (status != UCS_OK) lose(peer, status);
  return true;
}

bool UcpWire::goBehind(Peer& peer, Move move, const void* from, uint64_t bytes,
                       const Unread& unread, const Word* behind) {
  if (peer.isLost || bytes == 0) return true;
  if (behind != nullptr) {
    const Region* const region =
        regionOf({peer.number, behind->region, behind->at}, sizeof behind->value);
    if (region == nullptr) return true;
    move.wordRegion = region->number;
    move.wordAt = behind->at;
    move.wordValue = behind->value;
  }
  return go(peer, {move, static_cast<const unsigned char*>(from), bytes, unread, nullptr});
}

bool UcpWire::put(const There& to, const void* from, uint64_t bytes, const Unread& unread,
                  const Word* behind) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(to, bytes);
  if (region == nullptr) return true;
  return goBehind(peers_[to.peer], {Move::kPut, region->number, to.at, 0, 0}, from, bytes, unread,
                  behind);
}

bool UcpWire::putWord(const There& to, uint64_t word, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(to, sizeof word);
  if (region == nullptr) return true;
  Peer& peer = peers_[to.peer];
  if (Held* const message = peer.lingering; message != nullptr && message->unread == unread) {
    message->move.kind = Move::kMessage;
    message->move.wordRegion = region->number;
    message->move.wordAt = to.at;
    message->move.wordValue = word;
    return letGo(peer);
  }
  return go(peer, {{Move::kWord, region->number, to.at, word, 0}, nullptr, 0, unread, nullptr});
}

bool UcpWire::land(const Landing& to, const void* from, uint64_t bytes, const Unread& unread,
                   const Word& behind) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  return goBehind(peers_[to.peer], {Move::kLand, to.rank, to.at, to.turn, 0}, from, bytes, unread,
                  &behind);
}

void UcpWire::forget(uint32_t number, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  const auto isOf = [&](const auto& each) { return each.unread == unread; };
  const auto sent = std::remove_if(peer.queue.begin(), peer.queue.end(), [&](const Send& send) {
    return isOf(send) && send.from != nullptr;
  });
  waiting_ -= static_cast<uint32_t>(peer.queue.end() - sent);
  peer.queue.erase(sent, peer.queue.end());
  peer.wanted.erase(std::remove_if(peer.wanted.begin(), peer.wanted.end(), isOf),
                    peer.wanted.end());
  for (auto each = asked_.begin(); each != asked_.end();) {
    if (each->second.from.peer != number || !isOf(each->second)) {
      ++each;
      continue;
    }
    --peer.asked;
    each = asked_.erase(each);
  }
}

void UcpWire::clear(Peer& peer) {
  for (Send& send : peer.queue) {
    if (send.message != nullptr) release(send.message);
    if (send.unread != nullptr) send.unread->fetch_sub(1, std::memory_order_release);
  }
  waiting_ -= static_cast<uint32_t>(peer.queue.size());
  peer.queue.clear();
  if (peer.lingering == nullptr) return;
  release(std::exchange(peer.lingering, nullptr));
  --lingering_;
}

}  // namespace windlass
