// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "native/core/call.h"
#include "native/core/group.h"
#include "native/hosts/hosts_message.h"

namespace windlass {
namespace {

// Offset in Entry of the bytes that an ENTER carries as a range. Before it, Entry has `sequence`
// and `core`. `sequence` travels as the word of the message. `core` is not sent, because it belongs
// to another machine.
constexpr uint64_t kEntryAt = offsetof(Entry, descriptor);

}  // namespace

void Hosts::send(uint32_t host, const Outgoing& message, Order order) {
  for (uint32_t each = 0; host == kAll && each < count(); ++each) send(each, message, order);
  if (host == kAll) return;
  const uint32_t peer = hosts_[host].route.peer.load(std::memory_order_acquire);
  if (peer == kNone) return;
  if (group_.failure() != nullptr) order = Order::kPast;
  if (!wire_->send(peer, message.parts, message.count, nullptr, order)) lackMemory();
}

void Hosts::lackMemory() {
  untold_.store(true);
  wl_error_t record = noMemory(first());
  nameFaultyRank(&record, first());
  record.observer = record.faulty_ranks[0];
  if (group_.publishHere(record)) ring();
}

void Hosts::tellEntry(const Call& call, uint32_t rank, uint64_t sequence, bool eager) {
  const ControlBlock& block = group_.block();
  const RankLines& lines = group_.lines(rank);
  const Entry& entry = lines.entry[sequence & 1];
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    Outgoing message(*this, entry.sequence, Message::kEntry, rank);
    const auto* const at = reinterpret_cast<const unsigned char*>(&entry) + kEntryAt;
    message.addRange(*this, at, sizeof entry - kEntryAt);
    message.addRange(*this, &lines.state, kStateBytes);
    if (call.parts != nullptr)
      message.addRange(*this, &block.parts(rank, sequence), PartTable::bytes(group_.ranks()));
    // The longest is last: the wire may send it without a copy.
    if (eager && call.inBytes > kInlineBytes) {
      // Parts of the ranks of `host`, from its lowest to its highest.
      const std::vector<uint32_t>& ranks = ranksOf(host);
      const Part part = call.inParts ? Part{ranks.front() * call.bytes,
                                            (ranks.back() + 1 - ranks.front()) * call.bytes}
                                     : Part{0, call.inBytes};
      message.addRange(*this, block.eager(rank, sequence) + part.start, part.bytes);
    }
    send(host, message);
  }
}

void Hosts::tell(const Word& word, uint32_t host) {
  send(host, {*this, word});
}

void Hosts::tellSoon(const Word& word, uint32_t host) {
  send(host, {*this, word}, Order::kSoon);
}

void Hosts::tellLeft(uint32_t rank) {
  // Sends the failure again. Other processes may receive the first message about it later, or
  // never.
  if (const wl_error_t* failure = group_.failure()) tellFailure(*failure);
  send(kAll, {Message::kLeft, rank});
}

void Hosts::tellFailure(const wl_error_t& failure) {
  Outgoing message(Message::kFailure, first());
  message.add(&failure, sizeof failure);
  send(kAll, message, Order::kPast);
}

void Hosts::tellShrink(uint32_t rank) {
  std::lock_guard<std::mutex> lock(shrinkMutex_);
  const Member& member = group_.member(rank);
  const ShrinkNote& note = group_.block().note(rank);
  Outgoing message(*this, member.shrink);
  message.addRange(*this, &note, offsetof(ShrinkNote, name) +
                                     std::min(note.nameBytes, ShrinkNote::kMostNameBytes));
  message.addRange(*this, &member.agreement, sizeof member.agreement);
  send(kAll, message);
}

void Hosts::store(uint32_t rank, Bytes first, Bytes second, StoredWord word) {
  Outgoing message(Message::kStore, 0);
  message.head.wordAt = offsetOf(word.at);
  message.head.word = word.value;
  message.head.wordBytes = word.bytes;
  for (const Bytes& each : {first, second})
    if (each.bytes > 0) message.addRange(*this, each.at, each.bytes);
  send(hostOf(rank), message);
}

void Hosts::put(uint32_t host, const void* at, uint64_t bytes, const std::atomic<uint64_t>* word,
                uint64_t value) {
  if (hasRouteLeft(host)) return;
  const Wire::Word behind = {kBlock, offsetOf(word), value};
  if (!wire_->put({hosts_[host].peer, kBlock, offsetOf(at)}, at, bytes, nullptr,
                  word == nullptr ? nullptr : &behind)) {
    lackMemory();
  }
}

void Hosts::arrived(Run first, Run second) {
  Message message;
  if (first.bytes < sizeof message) return;
  std::memcpy(&message, first.at, sizeof message);
  Rest rest = {{first.at + sizeof message, first.bytes - sizeof message}, second};
  const bool isOfThem = message.about < group_.ranks() && !isBeside(message.about);
  switch (message.kind) {
    case Message::kLeft:
      if (!isOfThem) return;
      if (group_.lines(message.about).state.left.exchange(1, std::memory_order_seq_cst) == 0)
        group_.shared().leavers.fetch_add(1, std::memory_order_seq_cst);
      return;
    case Message::kLost:
      if (isOfThem) group_.member(message.about).lost.store(1, std::memory_order_seq_cst);
      return;
    case Message::kFailure: {
      wl_error_t record;
      if (!rest.take(&record, sizeof record)) return;
      record.struct_size = sizeof record;
      record.message[sizeof record.message - 1] = 0;
      record.faulty_rank_count = std::clamp<int32_t>(record.faulty_rank_count, 0,
                                                 static_cast<int32_t>(group_.ranks()));
      if (record.code <= WL_OK || record.code > WL_INTERNAL) return;
      group_.publishHere(record);
      if (isOfThem)
        group_.member(message.about).saysFailed.store(1, std::memory_order_relaxed);
      // The thread reports to other hosts that this host knows of the failure.
      ring();
      return;
    }
    case Message::kDropped:
      if (message.about >= kMostWindows) return;
      group_.shared().holders[message.about].fetch_sub(1, std::memory_order_seq_cst);
      dropped_.store(true, std::memory_order_release);
      return;
    case Message::kMove:
      return moveHere(rest);
    case Message::kEntry:
      // Records the entry first, so that a rank that sees it finds it recorded.
      if (Descriptor entered; isOfThem && Rest(rest).take(&entered, sizeof entered))
        group_.recorder(message.about).hear(static_cast<uint32_t>(message.word), entered);
      return store(message, rest);
    case Message::kStore:
      return store(message, rest);
  }
}

void Hosts::store(const Message& message, Rest rest) {
  auto* const base = reinterpret_cast<unsigned char*>(group_.block().base());
  const uint64_t end = ControlBlock::bytes(group_.config());
  const auto isWithin = [&](uint64_t from, uint64_t length) {
    return from >= sizeof(SharedLines) && from <= end && length <= end - from;
  };
  if (message.count > Message::kMostRanges) return;
  for (uint32_t i = 0; i < message.count; ++i) {
    const Message::Range& range = message.ranges[i];
    if (!isWithin(range.at, range.bytes) || !rest.take(base + range.at, range.bytes)) return;
  }
  if (message.wordBytes == 0 || !isWithin(message.wordAt, message.wordBytes) ||
      message.wordAt % message.wordBytes != 0) {
    return;
  }
  if (message.wordBytes == sizeof(uint64_t)) {
    reinterpret_cast<std::atomic<uint64_t>*>(base + message.wordAt)
        ->store(message.word, std::memory_order_release);
  } else if (message.wordBytes == sizeof(uint32_t)) {
    reinterpret_cast<std::atomic<uint32_t>*>(base + message.wordAt)
        ->store(static_cast<uint32_t>(message.word), std::memory_order_release);
  }
}

}  // namespace windlass
