// SPDX-License-Identifier: Apache-2.0
// Receiving side of a wire, and gets from peers.
#include "native/hosts/ucx/library/ucp_wire.h"

#include <algorithm>
#include <cstring>

#include "native/base/copy.h"

namespace windlass {
namespace {

// Largest number of pieces that are requested of a peer and have not arrived.
constexpr uint32_t kMostAsked = 8;
// Shortest put, or output of a rank, whose data is stored past the caches. The network's copy takes
// up the caches as well.
constexpr uint64_t kLeastStreamed = uint64_t{2} << 20;

void store(void* to, const void* from, uint64_t bytes, uint64_t ofBytes) {
  (ofBytes >= kLeastStreamed ? streamMemory : copyMemory)(to, from, bytes);
}

}  // namespace

ucs_status_t UcpWire::arrived(void* context, const void* header, size_t headerBytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param) {
  auto& wire = *static_cast<UcpWire*>(context);
  // No wire sends by the rendezvous protocol. Such a message is dropped.
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto* at = static_cast<const unsigned char*>(headerBytes > 0 ? header : data);
  uint64_t left = headerBytes > 0 ? headerBytes : bytes;
  Secret secret;
  if (left < sizeof secret) return UCS_OK;
  std::memcpy(&secret, at, sizeof secret);
  // The sender does not have the name of this wire.
  if (!(secret == wire.secret_)) return UCS_OK;
  at += sizeof secret;
  left -= sizeof secret;
  while (left >= sizeof(Move)) {
    Move move;
    std::memcpy(&move, at, sizeof move);
    at += sizeof move;
    left -= sizeof move;
    const uint64_t ownBytes = wholeWords(move.bytes);
    if (ownBytes > left) return UCS_OK;
    const bool hasRest = ownBytes == left && headerBytes > 0;
    if (move.kind != Move::kGet) {
      wire.moveHere(move, at, hasRest ? data : nullptr, hasRest ? bytes : 0);
    } else if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
      wire.answer(param->reply_ep, move);
    }
    at += ownBytes;
    left -= ownBytes;
  }
  return UCS_OK;
}

void UcpWire::moveHere(const Move& move, const unsigned char* own, const void* rest,
                       uint64_t bytes) {
  if (move.kind == Move::kPut) {
    if (unsigned char* to = sharedAt(move.region, move.at, bytes))
      store(to, rest, bytes, move.word);
  } else if (move.kind == Move::kWord) {
    storeWord(move.region, move.at, move.word);
  } else if (move.kind == Move::kLand) {
    for (const Received& each : received_) {
      const bool isThere = each.rank == move.region && each.turn == move.word &&
                           move.at <= each.bytes && bytes <= each.bytes - move.at;
      if (isThere && each.into != nullptr) store(each.into + move.at, rest, bytes, each.bytes);
    }
  } else if (move.kind == Move::kGot) {
    const auto found = asked_.find(move.token);
    if (found == asked_.end() || found->second.bytes != bytes) return;
    const Get got = std::move(found->second);
    asked_.erase(found);
    copyMemory(got.into, rest, bytes);
    got.unread->fetch_sub(1, std::memory_order_release);
    Peer& peer = peers_[got.from.peer];
    --peer.asked;
    if (!ask(peer)) lose(peer, "this process has no memory to receive by");
  } else if (move.kind == Move::kMessage) {
    ends_.arrived({own, move.bytes}, {static_cast<const unsigned char*>(rest), bytes});
  }
  if (move.wordRegion != Move::kNoRegion)
    storeWord(move.wordRegion, move.wordAt, move.wordValue);
}

void UcpWire::storeWord(uint32_t number, uint64_t at, uint64_t word) const {
  unsigned char* const to = sharedAt(number, at, sizeof word);
  if (to == nullptr || reinterpret_cast<uint64_t>(to) % sizeof word != 0) return;
  reinterpret_cast<std::atomic<uint64_t>*>(to)->store(word, std::memory_order_release);
}

void UcpWire::receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) {
  std::lock_guard<UcxMutex> lock(mutex_);
  const Received now = {rank, turn, static_cast<unsigned char*>(into), bytes};
  for (Received& each : received_) {
    if (each.rank != rank) continue;
    each = now;
    return;
  }
  if (into != nullptr) received_.push_back(now);
}

bool UcpWire::get(const There& from, void* into, uint64_t bytes, const Unread& unread) {
  const UcxCalls calls(mutex_);
  if (!calls) {
    // The bytes never arrive, like those of a lost peer.
    if (bytes > 0) unread->fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  Peer& peer = peers_[from.peer];
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    unread->fetch_add(1, std::memory_order_relaxed);
    if (regionOf(from, bytes) == nullptr) return true;
    const Get piece = {{from.peer, from.region, from.at + at},
                       static_cast<unsigned char*>(into) + at,
                       std::min(kPieceBytes, bytes - at),
                       unread};
    if (!hasMemoryFor([&] { peer.wanted.push_back(piece); })) return false;
  }
  return ask(peer);
}

bool UcpWire::ask(Peer& peer) {
  while (!peer.isLost && !peer.wanted.empty() && peer.asked < kMostAsked) {
    const uint64_t token = ++tokens_;
    const There from = peer.wanted.front().from;
    const uint64_t bytes = peer.wanted.front().bytes;
    // The entry stays valid if this throws.
    if (!hasMemoryFor([&] { asked_.emplace(token, peer.wanted.front()); })) return false;
    peer.wanted.pop_front();
    ++peer.asked;
    const uint32_t number = peer.regions[from.region].number;
    Move wanted = {Move::kGet, number, from.at, bytes, token};
    wanted.wordAt = secret_.words[0];
    wanted.wordValue = secret_.words[1];
    if (!sendOrQueue(peer, {wanted, nullptr, 0, nullptr, nullptr})) return false;
  }
  return true;
}

// Sends a copy, because the memory may be hidden before the answer has left. If the window is
// dropped here, the requester gets no answer.
void UcpWire::answer(ucp_ep_h endpoint, const Move& wanted) {
  if (wanted.word > kPieceBytes) return;
  const unsigned char* const from = sharedAt(wanted.region, wanted.at, wanted.word);
  if (from == nullptr) return;
  const Secret secret = {{wanted.wordAt, wanted.wordValue}};
  Held* const held = hold(secret, {Move::kGot, 0, 0, 0, wanted.token}, nullptr, 0);
  if (held == nullptr || !addBody(held, {from, wanted.word})) return ends_.lackMemory();
  // Queues the answer with other sends: UCX prefers new sends to those that it holds back.
  const auto peer = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& each) {
    return each.endpoint == endpoint;
  });
  if (peer != peers_.end()) {
    if (sendOrQueue(*peer, {{}, nullptr, 0, nullptr, held})) return;
    release(held);
    return ends_.lackMemory();
  }
  const ucs_status_ptr_t request = begin(endpoint, messageOf(*held), held, 0);
  if (UCS_PTR_IS_PTR(request)) {
    ++flying_;
    return;
  }
  release(held);
  if (UCS_PTR_STATUS(request) == UCS_ERR_NO_MEMORY) ends_.lackMemory();
}

}  // namespace windlass
