// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "native/core/group.h"
#include "native/hosts/hosts_message.h"

namespace windlass {
namespace {

// Offset in Entry of the bytes that an ENTER carries as a range. The sequence before it travels as
// the word of the message. The core before it is not sent: it belongs to another machine.
constexpr uint64_t kEntryAt = offsetof(Entry, descriptor);

}  // namespace

void Hosts::send(uint32_t host, const Message& message, const Wire::Part* parts, uint32_t count) {
  if (group_.failure() != nullptr) return sendPast(host, message, parts, count);
  const uint32_t peer = routes_[host].peer.load(std::memory_order_acquire);
  if (peer == kNone) return;
  const Parts all(message, parts, count);
  if (!wire_->send(peer, all.parts, 1 + count, nullptr)) lackMemory();
}

void Hosts::sendSoon(uint32_t host, const Message& message) {
  if (group_.failure() != nullptr) return sendPast(host, message, nullptr, 0);
  const uint32_t peer = routes_[host].peer.load(std::memory_order_acquire);
  if (peer == kNone) return;
  const Parts all(message, nullptr, 0);
  if (!wire_->sendSoon(peer, all.parts, 1, nullptr)) lackMemory();
}

void Hosts::sendPast(uint32_t host, const Message& message, const Wire::Part* parts,
                     uint32_t count) {
  const uint32_t peer = routes_[host].peer.load(std::memory_order_acquire);
  if (peer == kNone) return;
  const Parts all(message, parts, count);
  if (!wire_->sendPast(peer, all.parts, 1 + count)) lackMemory();
}

void Hosts::sendAllPast(const Message& message, const Wire::Part* parts, uint32_t count) {
  for (uint32_t host = 0; host < this->count(); ++host) sendPast(host, message, parts, count);
}

void Hosts::lackMemory() {
  untold_.store(true);
  wl_error_t record = noMemory(first());
  record.culprits[0] = static_cast<int32_t>(first());
  record.culprit_count = 1;
  record.observer = record.culprits[0];
  if (group_.publishHere(record)) ring();
}

void Hosts::sendAll(const Message& message, const Wire::Part* parts, uint32_t count) {
  for (uint32_t host = 0; host < this->count(); ++host) send(host, message, parts, count);
}

void Hosts::tellEntry(uint32_t host, uint32_t rank, uint64_t sequence, const Riding* riding,
                      uint32_t count) {
  const RankLines& lines = group_.lines(rank);
  const Entry& entry = lines.entry[sequence & 1];
  Message message;
  message.kind = Message::kEntry;
  message.about = rank;
  message.wordAt = offsetOf(&entry.sequence);
  message.word = static_cast<uint32_t>(sequence);
  message.wordBytes = sizeof(uint32_t);
  Wire::Part parts[Message::kMostRanges];
  const auto add = [&](const void* at, uint64_t length) {
    message.ranges[message.count] = {offsetOf(at), length};
    parts[message.count++] = {at, length};
  };
  add(reinterpret_cast<const unsigned char*>(&entry) + kEntryAt, sizeof entry - kEntryAt);
  add(&lines.state, kStateBytes);
  for (uint32_t i = 0; i < count; ++i) add(riding[i].at, riding[i].bytes);
  send(host, message, parts, message.count);
}

void Hosts::tell(const std::atomic<uint64_t>& word) {
  for (uint32_t host = 0; host < count(); ++host) tell(host, word);
}

void Hosts::tell(uint32_t host, const std::atomic<uint64_t>& word) {
  send(host, messageOf(word), nullptr, 0);
}

void Hosts::tellSoon(const std::atomic<uint64_t>& word) {
  for (uint32_t host = 0; host < count(); ++host) tellSoon(host, word);
}

void Hosts::tellSoon(uint32_t host, const std::atomic<uint64_t>& word) {
  sendSoon(host, messageOf(word));
}

Hosts::Message Hosts::messageOf(const std::atomic<uint64_t>& word) const {
  Message message;
  message.wordAt = offsetOf(&word);
  message.word = word.load(std::memory_order_relaxed);
  message.wordBytes = sizeof(uint64_t);
  return message;
}

void Hosts::tell(const std::atomic<uint32_t>& word) {
  Message message;
  message.wordAt = offsetOf(&word);
  message.word = word.load(std::memory_order_relaxed);
  message.wordBytes = sizeof(uint32_t);
  sendAll(message, nullptr, 0);
}

void Hosts::tellLeft(uint32_t rank) {
  // The sender of the failure told other processes, which may hear of it later, or be gone.
  if (const wl_error_t* failure = group_.failure()) tellFailure(*failure);
  Message message;
  message.kind = Message::kLeft;
  message.about = rank;
  sendAll(message, nullptr, 0);
}

void Hosts::tellFailure(const wl_error_t& failure) {
  Message message;
  message.kind = Message::kFailure;
  message.about = first();
  const Wire::Part part = {&failure, sizeof failure};
  sendAllPast(message, &part, 1);
}

void Hosts::tellShrink(uint32_t rank) {
  std::lock_guard<std::mutex> lock(shrinkMutex_);
  const Member& member = group_.member(rank);
  const ShrinkNote& note = group_.block().note(rank);
  const uint64_t noteBytes =
      offsetof(ShrinkNote, name) + std::min(note.nameBytes, ShrinkNote::kMostNameBytes);
  Message message;
  message.wordAt = offsetOf(&member.shrink);
  message.word = member.shrink.load(std::memory_order_seq_cst);
  message.wordBytes = sizeof member.shrink;
  message.count = 2;
  message.ranges[0] = {offsetOf(&note), noteBytes};
  message.ranges[1] = {offsetOf(&member.agreement), sizeof member.agreement};
  const Wire::Part parts[] = {{&note, noteBytes}, {&member.agreement, sizeof member.agreement}};
  sendAll(message, parts, 2);
}

void Hosts::put(uint32_t host, const void* at, uint64_t bytes) {
  if (hasRouteLeft(host)) return;
  if (!wire_->put({peers_[host], kBlock, offsetOf(at)}, at, bytes, nullptr, nullptr)) lackMemory();
}

void Hosts::put(uint32_t host, const void* at, uint64_t bytes, const std::atomic<uint64_t>& word,
                uint64_t value) {
  if (bytes == 0) return putWord(host, word, value);
  if (hasRouteLeft(host)) return;
  const Wire::Word behind = {kBlock, offsetOf(&word), value};
  if (!wire_->put({peers_[host], kBlock, offsetOf(at)}, at, bytes, nullptr, &behind)) lackMemory();
}

void Hosts::putWord(uint32_t host, const std::atomic<uint64_t>& word, uint64_t value) {
  if (hasRouteLeft(host)) return;
  if (!wire_->putWord({peers_[host], kBlock, offsetOf(&word)}, value, nullptr)) lackMemory();
}

void Hosts::arrived(Run first, Run second) {
  Message message;
  if (first.bytes < sizeof message) return;
  std::memcpy(&message, first.at, sizeof message);
  Rest rest = {{first.at + sizeof message, first.bytes - sizeof message}, second};
  switch (message.kind) {
    case Message::kLeft:
      if (message.about >= group_.ranks() || isBeside(message.about)) return;
      if (group_.lines(message.about).state.left.exchange(1, std::memory_order_seq_cst) == 0)
        group_.shared().leavers.fetch_add(1, std::memory_order_seq_cst);
      return;
    case Message::kLost:
      if (message.about >= group_.ranks() || isBeside(message.about)) return;
      group_.member(message.about).lost.store(1, std::memory_order_seq_cst);
      return;
    case Message::kFailure: {
      wl_error_t record;
      if (!rest.take(&record, sizeof record)) return;
      record.struct_size = sizeof record;
      record.message[sizeof record.message - 1] = 0;
      record.culprit_count = std::clamp<int32_t>(record.culprit_count, 0,
                                                 static_cast<int32_t>(group_.ranks()));
      if (record.code <= WL_OK || record.code > WL_INTERNAL) return;
      group_.publishHere(record);
      if (message.about < group_.ranks() && !isBeside(message.about))
        group_.member(message.about).saysFailed.store(1, std::memory_order_relaxed);
      // The thread reports to other hosts that this host knows.
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
      hear(message, rest);
      return store(message, rest);
    case Message::kStore:
      return store(message, rest);
  }
}

// Records the entry before store(), so that a rank that sees it finds it recorded.
void Hosts::hear(const Message& message, Rest rest) {
  Descriptor descriptor;
  const uint32_t rank = message.about;
  if (rank >= group_.ranks() || isBeside(rank) || !rest.take(&descriptor, sizeof descriptor))
    return;
  group_.recorder(rank).hear(static_cast<uint32_t>(message.word), descriptor);
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
