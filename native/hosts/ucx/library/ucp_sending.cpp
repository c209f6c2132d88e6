// SPDX-License-Identifier: Apache-2.0
// Sending side of a wire. Data leaves in the order of the calls, little at a time.
#include "native/hosts/ucx/library/ucp_wire.h"

#include <algorithm>
#include <utility>

#include "native/base/clock.h"

namespace windlass {
namespace {

// Approximate memory that UCX keeps for a send, besides its bytes.
constexpr uint64_t kSendBytes = 256;
// Largest pending message of a peer.
constexpr uint64_t kMostDelayedBytes = uint64_t{4} << 10;
// Shortest last part that is sent in place after a head. A shorter one is faster to copy.
constexpr uint64_t kLeastBehind = uint64_t{1} << 10;
// Time that a piece of the caller's memory waits to be taken at once. After that it is copied. All
// such pieces are copied while UCX holds answers to that peer's gets.
constexpr int64_t kLentNs = 200'000;

uint64_t bytesOf(const Wire::Part* parts, uint32_t count) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) bytes += parts[i].bytes;
  return bytes;
}

// True if there may be memory, or room, in the next turn.
constexpr bool waits(ucs_status_t status) {
  return status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE;
}

}  // namespace

UcpWire::Held* UcpWire::hold() {
  if (free_.empty()) {
    free_.reserve(held_.size() + 1);
    held_.push_back({this, nullptr, 0, {}, 0, nullptr});
    return &held_.back();
  }
  Held* const held = free_.back();
  free_.pop_back();
  keptBytes_ -= held->bytes.capacity();
  held->peer = nullptr;
  held->handed = 0;
  held->bytes.clear();
  held->headBytes = 0;
  return held;
}

UcpWire::Held* UcpWire::hold(const Secret& secret, const Move& move, const Part* parts,
                             uint32_t count) {
  Held* held = nullptr;
  const bool isHeld = hasMemoryFor([&] {
    held = hold();
    const auto* const first = reinterpret_cast<const unsigned char*>(&secret);
    held->bytes.reserve(sizeof secret + sizeof move + wholeWords(bytesOf(parts, count)));
    held->bytes.insert(held->bytes.end(), first, first + sizeof secret);
    append(*held, move, parts, count);
  });
  if (!isHeld && held != nullptr) release(held);
  return isHeld ? held : nullptr;
}

bool UcpWire::addBody(Held* held, const Part& body) {
  const auto* const from = static_cast<const unsigned char*>(body.from);
  held->headBytes = held->bytes.size();
  std::vector<unsigned char>& to = held->bytes;
  if (hasMemoryFor([&] { to.insert(to.end(), from, from + body.bytes); })) return true;
  release(held);
  return false;
}

UcpWire::Message UcpWire::messageOf(const Held& held) {
  const unsigned char* const bytes = held.bytes.data();
  return {{held.headBytes > 0 ? bytes : nullptr, held.headBytes},
          {bytes + held.headBytes, held.bytes.size() - held.headBytes}};
}

ucs_status_ptr_t UcpWire::begin(ucp_ep_h endpoint, const Message& message, Held* held,
                                uint32_t flags) {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  if (held == nullptr) {
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
  } else {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  }
  param.flags = UCP_AM_SEND_FLAG_EAGER | flags;
  param.cb.send = sent;
  param.user_data = held;
  const auto& [head, body] = message;
  return ucp_am_send_nbx(endpoint, kMoves, head.from, head.bytes, body.from, body.bytes, &param);
}

void UcpWire::sent(void* request, ucs_status_t, void* context) {
  auto* const held = static_cast<Held*>(context);
  --held->wire->flying_;
  if (held->peer != nullptr) held->peer->handed -= held->handed;
  held->wire->release(held);
  ucp_request_free(request);
}

ucs_status_t UcpWire::handHeld(Peer& peer, const Message& message, Held* held, uint32_t flags) {
  held->handed = kSendBytes + message.head.bytes + message.body.bytes;
  const ucs_status_ptr_t request = begin(peer.endpoint, message, held, flags);
  if (UCS_PTR_IS_PTR(request)) {
    ++flying_;
    held->peer = &peer;
    peer.handed += held->handed;
    return UCS_OK;
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (!waits(status)) release(held);
  return status;
}

// A call that finds the peer lost clears its queue, including `send`.
ucs_status_t UcpWire::handMessage(Peer& peer, Send& send) {
  Held* const held = std::exchange(send.message, nullptr);
  const ucs_status_t status = handHeld(peer, messageOf(*held), held, 0);
  if (!waits(status)) return status;
  if (peer.isLost) {
    release(held);
    return UCS_OK;
  }
  send.message = held;
  return status;
}

ucs_status_t UcpWire::handPiece(Peer& peer, Send& send) {
  const uint64_t count = std::min(kPieceBytes, send.bytes);
  const uint32_t flags = send.move.kind == Move::kGet ? UCP_AM_SEND_FLAG_REPLY : 0;
  Start start = {peer.secret, send.move};
  if (count < send.bytes) start.move.wordRegion = Move::kNoRegion;
  const Part piece = {send.from, count};
  ucs_status_t status = handAtOnce(peer, {{&start, sizeof start}, piece}, flags);
  if (peer.isLost) return UCS_OK;
  if (status == UCS_OK) advance(send, count);
  if (status != UCS_ERR_NO_RESOURCE) return status;
  // The owner may take this memory back at any time, but UCX can't give it back. A later send
  // therefore reads a copy.
  const bool isLent = send.from != nullptr && send.unread != nullptr;
  // UCX has taken as much at once before. It does so again once there is room.
  const int64_t now = clockNs();
  if (peer.refusedNs == 0) peer.refusedNs = now;
  if (isLent && sizeof start + count <= peer.takesAtOnce && now - peer.refusedNs < kLentNs)
    return status;
  Held* const held = hold(start.secret, start.move, nullptr, 0);
  if (held == nullptr || (isLent && !addBody(held, piece))) return UCS_ERR_NO_MEMORY;
  if (!isLent && send.unread != nullptr) {
    held->unread = send.unread;
    held->unread->fetch_add(1, std::memory_order_relaxed);
  }
  const Part head = {held->bytes.data(), held->bytes.size()};
  status = handHeld(peer, isLent ? messageOf(*held) : Message{head, piece}, held, flags);
  if (waits(status)) release(held);
  if (peer.isLost) return UCS_OK;
  if (status != UCS_OK) return status;
  advance(send, count);
  peer.refusedNs = 0;
  return status;
}

void UcpWire::advance(Send& send, uint64_t bytes) {
  send.move.at += bytes;
  send.from += bytes;
  send.bytes -= bytes;
}

ucs_status_t UcpWire::handAtOnce(Peer& peer, const Message& message, uint32_t flags) {
  // Keeps the order: UCX still holds earlier data for that peer.
  if (peer.handed > 0) return UCS_ERR_NO_RESOURCE;
  // UCS_PTR_STATUS is a macro that names its argument more than once.
  const ucs_status_ptr_t request = begin(peer.endpoint, message, nullptr, flags);
  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (status != UCS_OK) return status;
  peer.takesAtOnce = std::max(peer.takesAtOnce, message.head.bytes + message.body.bytes);
  peer.refusedNs = 0;
  return status;
}

void UcpWire::pump(Peer& peer) {
  while (!peer.queue.empty() && hasRoom(peer)) {
    Send& next = peer.queue.front();
    const ucs_status_t status =
        next.message != nullptr ? handMessage(peer, next) : handPiece(peer, next);
    if (waits(status)) return;
    if (status != UCS_OK) lose(peer, status);
    if (peer.isLost) return;  // its queue is empty
    if (next.bytes > 0) continue;
    if (next.unread != nullptr) next.unread->fetch_sub(1, std::memory_order_release);
    peer.queue.pop_front();
    --waiting_;
  }
}

bool UcpWire::sendOrQueue(Peer& peer, Send&& send) {
  if (!sendDelayed(peer)) return false;
  if (peer.isLost) {
    if (send.message != nullptr) release(send.message);
    return true;
  }
  if (!hasMemoryFor([&] { peer.queue.push_back(std::move(send)); })) return false;
  ++waiting_;
  const Unread& unread = peer.queue.back().unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  pump(peer);
  return true;
}

void UcpWire::append(Held& held, Move move, const Part* parts, uint32_t count) {
  const uint64_t bytes = bytesOf(parts, count);
  move.bytes = static_cast<uint32_t>(bytes);
  std::vector<unsigned char>& to = held.bytes;
  const uint64_t end = to.size() + sizeof move + wholeWords(bytes);
  to.reserve(end);
  const auto add = [&](const void* from, uint64_t length) {
    const auto* at = static_cast<const unsigned char*>(from);
    to.insert(to.end(), at, at + length);
  };
  add(&move, sizeof move);
  for (uint32_t i = 0; i < count; ++i) add(parts[i].from, parts[i].bytes);
  to.resize(end);
}

bool UcpWire::sendMove(Peer& peer, const Move& move, const Part* parts, uint32_t count,
                       const Unread& unread) {
  if (peer.isLost) return true;
  Part body = {nullptr, 0};
  if (count > 0 && parts[count - 1].bytes >= kLeastBehind &&
      wholeWords(sizeof(Start) + bytesOf(parts, count - 1)) <= mostHeadBytes_) {
    body = parts[--count];
  }
  const uint64_t most = body.bytes > 0 ? mostHeadBytes_ : kMostDelayedBytes;
  if (!addToDelayed(peer, move, parts, count, unread, most)) return false;
  return peer.isLost || sendDelayed(peer, body);
}

bool UcpWire::addToDelayed(Peer& peer, const Move& move, const Part* parts, uint32_t count,
                             const Unread& unread, uint64_t mostBytes) {
  if (peer.delayed != nullptr) {
    const uint64_t bytes = wholeWords(sizeof move + bytesOf(parts, count));
    const bool fits = peer.delayed->bytes.size() + bytes <= mostBytes;
    if ((peer.delayed->unread != unread || !fits) && !sendDelayed(peer)) return false;
    if (peer.isLost) return true;
  }
  if (peer.delayed != nullptr)
    return hasMemoryFor([&] { append(*peer.delayed, move, parts, count); });
  peer.delayed = hold(peer.secret, move, parts, count);
  if (peer.delayed == nullptr) return false;
  peer.delayed->unread = unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  ++delayed_;
  return true;
}

bool UcpWire::sendDelayed(Peer& peer, const Part& body) {
  if (peer.delayed == nullptr) return true;
  --delayed_;
  Held* const held = std::exchange(peer.delayed, nullptr);
  if (peer.queue.empty() && hasRoom(peer)) {
    const Part own = {held->bytes.data(), held->bytes.size()};
    const Message message = body.bytes > 0 ? Message{own, body} : Message{{nullptr, 0}, own};
    const ucs_status_t status = handAtOnce(peer, message, 0);
    if (!waits(status)) {
      release(held);
      if (status != UCS_OK) lose(peer, status);
      return true;
    }
  }
  if (body.bytes > 0 && !addBody(held, body)) return false;
  if (sendOrQueue(peer, {{}, nullptr, 0, nullptr, held})) return true;
  release(held);
  return false;
}

void UcpWire::sendAllDelayed() {
  for (Peer& peer : peers_)
    if (!sendDelayed(peer)) ends_.lackMemory();
}

bool UcpWire::send(uint32_t number, const Part* parts, uint32_t count, const Unread& unread,
                   Order order) {
  const UcxCalls calls(mutex_);
  if (!calls) return true;
  Peer& peer = peers_[number];
  const Move move = {Move::kMessage, 0, 0, 0, 0};
  if (order == Order::kPast) return sendAhead(peer, move, parts, count);
  const bool isShort = wholeWords(sizeof(Start) + bytesOf(parts, count)) <= kMostDelayedBytes;
  if (order == Order::kQueued || !delays_ || !isShort || peer.isLost || !peer.queue.empty() ||
      !hasRoom(peer)) {
    return sendMove(peer, move, parts, count, unread);
  }
  if (!addToDelayed(peer, move, parts, count, unread, kMostDelayedBytes)) return false;
  // delay(false) may have run before this message was pending.
  return delays_ || sendDelayed(peer);
}

bool UcpWire::sendAhead(Peer& peer, const Move& move, const Part* parts, uint32_t count) {
  // The pending message is older.
  if (peer.queue.empty() && !sendDelayed(peer)) return false;
  if (peer.isLost) return true;
  Held* const held = hold(peer.secret, move, parts, count);
  if (held == nullptr) return false;
  const ucs_status_t status = handHeld(peer, messageOf(*held), held, 0);
  if (waits(status)) {
    release(held);
    return false;
  }
  if (status != UCS_OK) lose(peer, status);
  return true;
}

void UcpWire::delay(bool may) {
  delays_ = may;
  if (may || delayed_ == 0) return;
  const UcxCalls calls(mutex_);
  if (!calls) return;
  sendAllDelayed();
}

bool UcpWire::sendWithWord(Peer& peer, Move move, const void* from, uint64_t bytes,
                           const Unread& unread, const Word* behind) {
  if (peer.isLost) return true;
  if (behind != nullptr) {
    const Region* const region =
        regionOf({peer.number, behind->region, behind->at}, sizeof behind->value);
    if (region == nullptr) return true;
    if (bytes == 0) {
      const Move word = {Move::kWord, region->number, behind->at, behind->value, 0};
      return sendMove(peer, word, nullptr, 0, nullptr);
    }
    move.wordRegion = region->number;
    move.wordAt = behind->at;
    move.wordValue = behind->value;
  }
  if (bytes == 0) return true;
  return sendOrQueue(peer, {move, static_cast<const unsigned char*>(from), bytes, unread, nullptr});
}

bool UcpWire::put(const There& to, const void* from, uint64_t bytes, const Unread& unread,
                  const Word* behind) {
  const UcxCalls calls(mutex_);
  if (!calls) return true;
  const Region* const region = regionOf(to, bytes);
  if (region == nullptr) return true;
  const Move move = {Move::kPut, region->number, to.at, bytes, 0};
  return sendWithWord(peers_[to.peer], move, from, bytes, unread, behind);
}

bool UcpWire::putWord(const There& to, uint64_t word, const Unread& unread) {
  const UcxCalls calls(mutex_);
  if (!calls) return true;
  const Region* const region = regionOf(to, sizeof word);
  if (region == nullptr) return true;
  const Move move = {Move::kWord, region->number, to.at, word, 0};
  return sendMove(peers_[to.peer], move, nullptr, 0, unread);
}

bool UcpWire::land(const Landing& to, const void* from, uint64_t bytes, const Unread& unread,
                   const Word& behind) {
  const UcxCalls calls(mutex_);
  if (!calls) return true;
  const Move move = {Move::kLand, to.rank, to.at, to.turn, 0};
  return sendWithWord(peers_[to.peer], move, from, bytes, unread, &behind);
}

void UcpWire::forget(uint32_t number, const Unread& unread) {
  std::lock_guard<UcxMutex> lock(mutex_);
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
    const bool isForgotten = each->second.from.peer == number && isOf(each->second);
    if (isForgotten) --peer.asked;
    each = isForgotten ? asked_.erase(each) : std::next(each);
  }
}

void UcpWire::discard(Peer& peer) {
  for (Send& send : peer.queue) {
    if (send.message != nullptr) release(send.message);
    if (send.unread != nullptr) send.unread->fetch_sub(1, std::memory_order_release);
  }
  waiting_ -= static_cast<uint32_t>(peer.queue.size());
  peer.queue.clear();
  if (peer.delayed == nullptr) return;
  release(std::exchange(peer.delayed, nullptr));
  --delayed_;
}

}  // namespace windlass
