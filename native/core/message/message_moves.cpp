// SPDX-License-Identifier: Apache-2.0
// How messages pass the lanes of one rank: heads, acknowledgements and data.
#include <algorithm>

#include "native/base/cpu.h"
#include "native/base/dtype.h"
#include "native/base/target.h"
#include "native/core/comm.h"
#include "native/core/failure_text.h"
#include "native/core/message/messages.h"
#include "native/memory/memory.h"
#include "native/memory/shared_memory.h"

namespace windlass {
namespace {

// A copy of more bytes lets other threads drive the rank's messages meanwhile.
constexpr uint64_t kLongCopyBytes = uint64_t{64} << 10;

uint32_t piecesOf(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kMessageHalfBytes - 1) / kMessageHalfBytes);
}

uint64_t pieceBytes(uint64_t bytes, uint32_t piece) {
  return std::min(kMessageHalfBytes, bytes - piece * kMessageHalfBytes);
}

unsigned char* bytesOf(void* data) {
  return static_cast<unsigned char*>(data);
}

}  // namespace

// ---- what this rank sends ----

Messages::Sending& Messages::sendingTo(uint32_t peer) {
  std::unique_ptr<Sending>& sending = sending_[peer];
  if (sending == nullptr) {
    const ControlBlock& block = group_.block();
    MessageLane& lane = block.lane(peer, rank_);
    reserve(&lane, block.laneBytes());
    reserve(&block.messageRoom(rank_), block.messageRoomBytes());
    sending = std::make_unique<Sending>();
    sending->lane = &lane;
    block.messageRoom(peer).senders[rank_ / 64].fetch_or(uint64_t{1} << rank_ % 64);
  }
  return *sending;
}

bool Messages::driveSends(uint32_t peer) {
  Sending& sending = *sending_[peer];
  // Sends that are over wait for no answer, and reading it would take the line from the receiver.
  bool tells = sending.unread.size() > sending.copied && takeAnswers(peer, sending);
  while (!sending.waiting.empty() && post(peer, sending, *sending.waiting.front())) {
    sending.waiting.pop_front();
    tells = true;
  }
  return fillStage(peer, sending) || tells;
}

bool Messages::post(uint32_t peer, Sending& sending, Message& message) {
  MessageLane& lane = *sending.lane;
  // Nobody would receive it. check() says so.
  if (group_.shared().leavers.load(std::memory_order_relaxed) != 0 && comm_.waits().hasLeft(peer))
    return false;
  if (sending.sent - sending.taken == slots_) {
    sending.taken = lane.answers.taken.load(std::memory_order_acquire);
    if (sending.sent - sending.taken == slots_) return false;
  }
  MessageHead& head = lane.slot(sending.next);
  const uint32_t number = first_ + sending.sent;
  const uint64_t bytes = message.bytes();
  int32_t block = -1;
  OtherHosts::Bytes copied = {nullptr, 0};
  head.tag = message.tag;
  head.what = MessageHead::whatOf(message.count, message.dtype);
  if (bytes <= kShortMessageBytes) {
    copyShort(head.data, message.data, bytes);
  } else {
    if (bytes <= eagerBytes_ && hasRoomToCopy(sending)) {
      block = __builtin_ctzll(freeBlocks_);
      unsigned char* const room =
          group_.block().messageRoom(rank_).block(static_cast<uint32_t>(block));
      kTarget.copy(room, message.data, bytes);
      copied = {room, bytes};
      head.place = group_.block().placeOf(room);
    } else {
      head.place = group_.placeOf(rank_, message.data, bytes);
    }
    sending.unread.push_back({number, block < 0 ? &message : nullptr, block});
    message.number = number;
  }
  if (block >= 0) {
    freeBlocks_ &= freeBlocks_ - 1;
    ++sending.copied;
  }
  __atomic_store_n(&head.number, number, __ATOMIC_RELEASE);
  ++sending.sent;
  sending.next = sending.next + 1 == slots_ ? 0 : sending.next + 1;
  if (!group_.isBeside(peer)) {
    const OtherHosts::Bytes rest = {&head.tag, sizeof head - sizeof head.number};
    group_.hosts()->store(peer, rest, copied, {&head.number, sizeof head.number, number});
  }
  if (bytes <= kShortMessageBytes || block >= 0) finish(message);
  return true;
}

bool Messages::hasRoomToCopy(const Sending& sending) {
  // The receiver can acknowledge kAnswers messages before this rank comes to hear of it.
  const auto hasRoom = [&] {
    return freeBlocks_ != 0 && sending.copied < MessageLane::kAnswers;
  };
  if (hasRoom()) return true;
  for (uint32_t each = 0; each < group_.ranks(); ++each)
    if (sending_[each] != nullptr && sending_[each]->copied > 0) takeAnswers(each, *sending_[each]);
  return hasRoom();
}

bool Messages::takeAnswers(uint32_t peer, Sending& sending) {
  MessageLane& lane = *sending.lane;
  const uint32_t answered = lane.answers.answered.load(std::memory_order_acquire);
  if (sending.heard == answered) return false;
  bool tells = false;
  for (; sending.heard != answered; ++sending.heard) {
    const uint32_t number = lane.answers.numbers[sending.heard % MessageLane::kAnswers];
    const auto found = std::find_if(sending.unread.begin(), sending.unread.end(),
                                    [&](const Unread& each) { return each.number == number; });
    if (found == sending.unread.end()) continue;
    if (found->block >= 0) {
      freeBlocks_ |= uint64_t{1} << found->block;
      --sending.copied;
    }
    if (found->message != nullptr) {
      finish(*found->message);
      tells = true;
    }
    sending.unread.erase(found);
    if (servedPeer_ == peer && served_ == number) servedPeer_ = kNobody;
  }
  lane.sender.heard.store(sending.heard, std::memory_order_release);
  tell(peer, lane.sender.heard);
  return tells;
}

bool Messages::fillStage(uint32_t peer, Sending& sending) {
  if (sending.unread.empty()) return false;
  MessageLane& lane = *sending.lane;
  const auto read = MessageLane::Staged::of(lane.answers.read.load(std::memory_order_acquire));
  if (servedPeer_ == kNobody && read.pieces == 0) {
    servedPeer_ = peer;
    served_ = read.number;
    filled_ = 0;
  }
  const auto found = std::find_if(sending.unread.begin(), sending.unread.end(),
                                  [&](const Unread& each) { return each.number == read.number; });
  if (found == sending.unread.end() || found->message == nullptr) {
    // The word is of an earlier message.
    if (servedPeer_ == peer && served_ == read.number) servedPeer_ = kNobody;
    return false;
  }
  if (servedPeer_ != peer || served_ != read.number) return false;
  const uint64_t bytes = found->message->bytes();
  const uint32_t before = filled_;
  for (; filled_ < piecesOf(bytes) && filled_ - read.pieces < 2; ++filled_) {
    unsigned char* const half = group_.block().messageRoom(rank_).halves[filled_ & 1];
    const uint64_t length = pieceBytes(bytes, filled_);
    kTarget.copy(half, bytesOf(found->message->data) + filled_ * kMessageHalfBytes, length);
    const uint64_t word = MessageLane::Staged{served_, filled_ + 1}.word();
    lane.sender.filled.store(word, std::memory_order_release);
    if (!group_.isBeside(peer)) group_.hosts()->put(peer, {half, length}, lane.sender.filled, word);
  }
  return filled_ != before;
}

// ---- what comes to this rank ----

Messages::Receiving& Messages::receivingFrom(uint32_t peer) {
  std::unique_ptr<Receiving>& receiving = receiving_[peer];
  if (receiving == nullptr) {
    MessageLane& lane = group_.block().lane(rank_, peer);
    reserve(&lane, group_.block().laneBytes());
    receiving = std::make_unique<Receiving>();
    receiving->lane = &lane;
  }
  return *receiving;
}

void Messages::receive(Message& message) {
  const auto takeFrom = [&](uint32_t source) {
    std::deque<MessageHead>& heads = receivingFrom(source).unmatched;
    const auto found = std::find_if(heads.begin(), heads.end(), [&](const MessageHead& head) {
      return message.tag == kAnyTag || message.tag == head.tag;
    });
    if (found == heads.end()) return false;
    const MessageHead head = *found;
    heads.erase(found);
    accept(message, source, head);
    return true;
  };
  if (message.peer != kNobody) {
    if (takeFrom(message.peer)) return;
  } else {
    for (uint32_t source = 0; source < group_.ranks(); ++source)
      if (receiving_[source] != nullptr && takeFrom(source)) return;
  }
  posted_.push_back(&message);
}

bool Messages::takeHeads(uint32_t source) {
  Receiving& receiving = receivingFrom(source);
  MessageLane& lane = *receiving.lane;
  const auto isFor = [&](const Message* message) {
    return message->peer == source || message->peer == kNobody;
  };
  while (std::any_of(posted_.begin(), posted_.end(), isFor)) {
    const MessageHead& head = lane.slot(receiving.next);
    if (lookAt(&head.number) != first_ + receiving.taken) break;
    const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Message* message) {
      return isFor(message) && (message->tag == kAnyTag || message->tag == head.tag);
    });
    if (found != posted_.end()) {
      Message& message = **found;
      posted_.erase(found);
      accept(message, source, head);
    } else if (receiving.unmatched.size() < kMostUnmatched) {
      receiving.unmatched.push_back(head);
    } else {
      break;
    }
    ++receiving.taken;
    receiving.next = receiving.next + 1 == slots_ ? 0 : receiving.next + 1;
  }
  if (receiving.taken - receiving.told < (slots_ + 1) / 2) return false;
  receiving.told = receiving.taken;
  lane.answers.taken.store(receiving.taken, std::memory_order_release);
  tell(source, lane.answers.taken);
  return true;
}

bool Messages::takeHeadsOfAll() {
  bool tells = false;
  const std::atomic<uint64_t>* const senders = group_.block().messageRoom(rank_).senders;
  for (uint32_t first = 0; first < group_.ranks(); first += 64) {
    uint64_t bits = senders[first / 64].load(std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1)
      tells |= takeHeads(first + static_cast<uint32_t>(__builtin_ctzll(bits)));
  }
  if (group_.hosts() == nullptr) return tells;
  for (uint32_t source = 0; source < group_.ranks(); ++source)
    if (!group_.isBeside(source)) tells |= takeHeads(source);
  return tells;
}

void Messages::accept(Message& message, uint32_t source, const MessageHead& head) {
  message.source = source;
  message.foundTag = head.tag;
  message.found = head.count();
  message.number = head.number;
  if (head.dtype() != message.dtype || head.count() > message.count) {
    wl_error_t record = errorOf(
        WL_MISMATCH, "rank %u: %s: rank %u sends %llu x %s with tag %d; %s", rank_,
        Described(message.descriptor()).text, source, text(head.count()),
        dtypeName(static_cast<int32_t>(head.dtype())), head.tag,
        head.dtype() != message.dtype ? "dtypes must agree"
                                      : "a receive must have room for the whole message");
    addFaultyRank(&record, std::min(source, rank_));
    if (source != rank_) addFaultyRank(&record, std::max(source, rank_));
    fail(message, record);  // and the message does not end
    return;
  }
  const uint64_t bytes = head.bytes();
  if (bytes <= kShortMessageBytes) {
    copyShort(message.data, head.data, bytes);
    finish(message);
  } else {
    message.from = head.place;
    matched_.push_back(&message);
  }
}

bool Messages::driveMatched(Lock& lock) {
  bool tells = false;
  const auto isLong = [&](const Message* message) {
    return message->found * sizeOf(message->dtype) > kLongCopyBytes &&
           !message->from.isNone() && !isStaged(*message);
  };
  for (;;) {
    const auto found = std::find_if(matched_.begin(), matched_.end(), isLong);
    if (found == matched_.end()) break;
    Message& message = **found;
    matched_.erase(found);
    moving_.push_back(&message);
    lock.unlock();
    const bool isRead = read(message);
    lock.lock();
    moving_.erase(std::find(moving_.begin(), moving_.end(), &message));
    if (isRead) matched_.push_back(&message);
  }
  for (size_t i = 0; i < matched_.size();) {
    Message& message = *matched_[i];
    const bool isRead = message.from.isNone() ||
                        (isStaged(message) ? readStaged(message, &tells) : read(message));
    if (isRead && answer(message.source, message.number)) {
      matched_.erase(matched_.begin() + static_cast<ptrdiff_t>(i));
      finish(message);
      tells = true;
    } else {
      ++i;
    }
  }
  return tells;
}

bool Messages::isStaged(const Message& message) {
  const uint32_t source = message.source;
  if (!group_.isBeside(source)) return message.from.window() != kControlBlock;
  return group_.isFar(rank_, source, message.from) &&
         memoryOf(source, receivingFrom(source)) == nullptr;
}

const PeerMemory* Messages::memoryOf(uint32_t peer, Receiving& receiving) {
  if (receiving.isOpened || group_.peerMemoryUse() == PeerMemoryUse::kStage)
    return receiving.memory;
  receiving.isOpened = true;
  wl_error_t error = blankError();
  const Code code = group_.peerMemory(peer, &receiving.memory, &error);
  if (code == WL_PEER_LOST) comm_.failures().publishLost(peer);
  if (code == WL_UNSUPPORTED && group_.peerMemoryUse() == PeerMemoryUse::kReadv)
    group_.publishFailure(error);
  return receiving.memory;
}

bool Messages::read(Message& message) {
  const uint64_t bytes = message.found * sizeOf(message.dtype);
  const uint32_t source = message.source;
  const Place from = message.from;
  message.from = {};
  if (!group_.isFar(rank_, source, from)) {
    kTarget.copy(message.data, group_.at(source, from), bytes);
    return true;
  }
  int reason = 0;
  const Code code =
      readPeerMemory(*receiving_[source]->memory, message.data, from.offset(), bytes, &reason);
  if (code == WL_PEER_LOST) comm_.failures().publishLost(source);
  if (code == WL_ABORTED) comm_.failures().publishUnread(source, reason);
  return code == WL_OK;
}

bool Messages::readStaged(Message& message, bool* tells) {
  Receiving& receiving = *receiving_[message.source];
  MessageLane& lane = *receiving.lane;
  const auto said = [&] {
    const uint64_t word = MessageLane::Staged{message.number, receiving.pieces}.word();
    lane.answers.read.store(word, std::memory_order_release);
    tell(message.source, lane.answers.read);
    *tells = true;
  };
  if (receiving.staged == nullptr) {
    receiving.staged = &message;
    receiving.pieces = 0;
    said();
  }
  if (receiving.staged != &message) return false;
  const uint64_t bytes = message.found * sizeOf(message.dtype);
  const auto filled = MessageLane::Staged::of(lane.sender.filled.load(std::memory_order_acquire));
  const uint32_t ready = filled.number == message.number ? filled.pieces : 0;
  for (; receiving.pieces < ready; said()) {
    const uint32_t piece = receiving.pieces++;
    kTarget.copy(bytesOf(message.data) + piece * kMessageHalfBytes,
                 group_.block().messageRoom(message.source).halves[piece & 1],
                 pieceBytes(bytes, piece));
  }
  if (receiving.pieces < piecesOf(bytes)) return false;
  receiving.staged = nullptr;
  message.from = {};
  return true;
}

bool Messages::answer(uint32_t source, uint32_t number) {
  Receiving& receiving = *receiving_[source];
  MessageLane& lane = *receiving.lane;
  if (receiving.answered - receiving.heard == MessageLane::kAnswers) {
    receiving.heard = lane.sender.heard.load(std::memory_order_acquire);
    if (receiving.answered - receiving.heard == MessageLane::kAnswers) return false;
  }
  uint32_t& entry = lane.answers.numbers[receiving.answered % MessageLane::kAnswers];
  entry = number;
  lane.answers.answered.store(++receiving.answered, std::memory_order_release);
  tell(source, lane.answers.answered, {&entry, sizeof entry});
  return true;
}

void Messages::reserve(void* memory, uint64_t bytes) {
  if (!group_.config().spansProcesses) return;
  wl_error_t error = blankError();
  const uint64_t end = reinterpret_cast<uint64_t>(memory) + bytes;
  const uint64_t start = reinterpret_cast<uint64_t>(memory) / kPage * kPage;
  if (reserveShared(reinterpret_cast<void*>(start), roundedUp(end - start, kPage), &error) != WL_OK)
    comm_.failures().publishResource(error.message);
}

}  // namespace windlass
