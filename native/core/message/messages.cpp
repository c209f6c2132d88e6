// SPDX-License-Identifier: Apache-2.0
// Batches of messages of one rank: their begin, their end, and what ends a wait for them.
#include "native/core/message/messages.h"

#include <algorithm>

#include "native/core/comm.h"
#include "native/core/failure_text.h"

namespace windlass {
namespace {

// Checks before a wait reads where the other rank runs. The other rank writes that line at each
// operation.
constexpr int kFirstLooks = 64;

// Removes what `matches` from `list`.
template <class List, class Matches>
void removeIf(List& list, const Matches& matches) {
  list.erase(std::remove_if(list.begin(), list.end(), matches), list.end());
}

}  // namespace

Messages::Messages(Comm& comm)
    : comm_(comm),
      group_(comm.group()),
      rank_(comm.rank()),
      // 0 marks a slot that was never used, so no lane reaches it before all its slots were used.
      first_((static_cast<uint32_t>(group_.config().firstSequence) & ~15u) | 1),
      slots_(group_.config().messageSlots()),
      eagerBytes_(group_.config().spansProcesses ? kMessageBlockBytes : kEagerMessageBytes),
      freeBlocks_((uint64_t{1} << group_.config().messageBlocks()) - 1) {}

Code Messages::run(MessageBatch& batch) {
  uint32_t awaited = batch.begin()->peer;
  for (const Message& message : batch)
    if (message.peer != awaited) awaited = kNobody;
  if (awaited == kNobody) awaited = kEveryRank;
  const auto isOver = [&] {
    Lock lock(mutex_);
    if (batch.left == 0) return true;
    const bool tells = drive(lock);
    if (batch.left == 0) return true;
    if (tells) comm_.waits().waiter().ring();
    return false;
  };
  const Code code = comm_.orNoMemory([&] {
    {
      Lock lock(mutex_);
      running_ = &batch;
      begin(batch);
      drive(lock);
    }
    comm_.stampEntry();
    if (isOver()) return WL_OK;
    for (int look = 0; !group_.oversubscribed() && look < kFirstLooks; ++look) {
      cpuPause();
      if (isOver()) return WL_OK;
    }
    return comm_.waits().awaitElse(*this, isOver, awaited, batch.deadline);
  });
  if (code != WL_OK) {
    Lock lock(mutex_);
    forget(lock, batch);
  }
  return code;
}

void Messages::begin(MessageBatch& batch) {
  if (sending_.empty()) {
    sending_.resize(group_.ranks());
    receiving_.resize(group_.ranks());
  }
  batch.left = batch.count;
  for (Message& message : batch) {
    message.batch = &batch;
    if (!message.sends) {
      receive(message);
      continue;
    }
    sendingTo(message.peer).waiting.push_back(&message);
    if (std::find(targets_.begin(), targets_.end(), message.peer) == targets_.end())
      targets_.push_back(message.peer);
  }
}

void Messages::finish(Message& message) {
  MessageBatch& batch = *message.batch;
  message.isOver = true;
  if (--batch.left > 0 || batch.ticket == 0) return;
  const auto at = std::find_if(batches_.begin(), batches_.end(),
                               [&](const auto& each) { return each.get() == &batch; });
  over_.push_back(std::move(*at));
  batches_.erase(at);
}

bool Messages::drive(Lock& lock) {
  bool tells = false;
  const auto isDone = [&](uint32_t peer) {
    tells |= driveSends(peer);
    const Sending& sending = *sending_[peer];
    return sending.waiting.empty() &&
           std::all_of(sending.unread.begin(), sending.unread.end(),
                       [](const Unread& each) { return each.message == nullptr; });
  };
  removeIf(targets_, isDone);
  for (size_t i = 0; i < posted_.size();) {
    const Message* const receive = posted_[i];
    tells |= receive->peer == kNobody ? takeHeadsOfAll() : takeHeads(receive->peer);
    // Others move up where receives have found their messages.
    if (i < posted_.size() && posted_[i] == receive) ++i;
  }
  return matched_.empty() ? tells : driveMatched(lock) || tells;
}

void Messages::forget(Lock& lock, MessageBatch& batch) {
  const auto isOf = [&](const Message* message) { return message->batch == &batch; };
  while (std::any_of(moving_.begin(), moving_.end(), isOf)) {
    lock.unlock();
    relax(true);
    lock.lock();
  }
  removeIf(posted_, isOf);
  removeIf(matched_, isOf);
  for (const auto& sending : sending_) {
    if (sending == nullptr) continue;
    removeIf(sending->waiting, isOf);
    for (Unread& unread : sending->unread)
      if (unread.message != nullptr && isOf(unread.message)) unread.message = nullptr;
  }
  for (const auto& receiving : receiving_) {
    if (receiving != nullptr && receiving->staged != nullptr && isOf(receiving->staged))
      receiving->staged = nullptr;
  }
}

// ---- asynchronous batches ----

// Marks that a thread moves messages outside the rank's calls, during its lifetime.
class Messages::Driving {
 public:
  explicit Driving(State& state) : drivers_(state.drivers) {
    drivers_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Driving() { drivers_.fetch_sub(1, std::memory_order_seq_cst); }
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;

 private:
  std::atomic<uint32_t>& drivers_;
};

Code Messages::start(std::unique_ptr<MessageBatch>& batch, uint64_t* ticket, wl_error_t* error) {
  Code code = WL_OK;
  {
    const Driving driving(group_.lines(rank_).state);
    // Locked first: a close that this does not see yet finds these messages.
    Lock lock(mutex_);
    if (code = comm_.gate().status(error); code != WL_OK) return code;
    code = comm_.orNoMemory([&] {
      batches_.reserve(batches_.size() + 1);
      withdrawn_.reserve(withdrawn_.size() + batches_.size() + 1);
      begin(*batch);
      drive(lock);
      return WL_OK;
    });
    if (code != WL_OK) {
      forget(lock, *batch);
      code = comm_.gate().status(error);
    } else if (batch->left > 0) {
      *ticket = batch->ticket = ++tickets_;
      batches_.push_back(std::move(batch));
    }
    tellSends();
  }
  comm_.waits().waiter().ring();
  return code;
}

void Messages::tellSends() {
  const auto waits = [](const Message* message) {
    return message != nullptr && message->batch->ticket != 0;
  };
  const auto isOpen = [&](uint32_t peer) {
    const Sending& sending = *sending_[peer];
    return std::any_of(sending.waiting.begin(), sending.waiting.end(), waits) ||
           std::any_of(sending.unread.begin(), sending.unread.end(),
                       [&](const Unread& each) { return waits(each.message); });
  };
  const auto found = std::find_if(targets_.begin(), targets_.end(), isOpen);
  const int32_t to = found == targets_.end() ? -1 : static_cast<int32_t>(*found);
  std::atomic<int32_t>& word = group_.lines(rank_).state.sendsTo;
  if (word.load(std::memory_order_relaxed) != to) word.store(to, std::memory_order_relaxed);
}

Code Messages::look(std::unique_ptr<MessageBatch>* over, wl_error_t* error) {
  Code code = WL_OK;
  bool tells = false;
  {
    const Driving driving(group_.lines(rank_).state);
    Lock lock(mutex_);
    isLooking_ = true;
    const auto driveAll = [&] {
      tells = drive(lock);
      const int64_t now = clockNs();
      for (size_t i = 0; i < batches_.size(); ++i) {
        check(lock, *batches_[i]);
        if (i < batches_.size() && batches_[i]->deadline.left(now) <= 0)
          exceeded(*batches_[i], batches_[i]->deadline.limitNs());
      }
      return WL_OK;
    };
    if (comm_.gate().status(nullptr) == WL_OK) comm_.orNoMemory(driveAll);
    code = comm_.gate().status(error);
    if (comm_.gate().closes()) failOpen();
    if (!over_.empty()) {
      *over = std::move(over_.front());
      over_.erase(over_.begin());
      code = WL_OK;
    }
    while (code != WL_OK && !batches_.empty()) {
      // Out of the list first: another thread may finish its last message meanwhile.
      const std::unique_ptr<MessageBatch> failed = std::move(batches_.back());
      batches_.pop_back();
      failed->ticket = 0;
      forget(lock, *failed);
    }
    tellSends();
    isLooking_ = false;
    withdrawn_.clear();
  }
  if (tells) comm_.waits().waiter().ring();
  if (code != WL_OK) group_.dropRetired();
  return code;
}

Code Messages::next(int64_t limitNs, std::unique_ptr<MessageBatch>* over, wl_error_t* error) {
  Code code = WL_OK;
  const auto stays = [&] {
    code = look(over, error);
    return code == WL_OK && *over == nullptr;
  };
  Deadline limit(limitNs, clockNs());
  for (int64_t left = limitNs; left > 0; left = limit.left(clockNs()))
    if (!group_.sleep(rank_, stays, std::min(left, kLongestSleepNs))) break;
  return code;
}

Withdrawal Messages::withdraw(uint64_t ticket) {
  Lock lock(mutex_);
  const auto at = std::find_if(batches_.begin(), batches_.end(),
                               [&](const auto& each) { return each->ticket == ticket; });
  if (at == batches_.end()) return Withdrawal::kOver;
  const auto waits = [&](const Message& message) {
    const auto isIn = [&](const auto& list) {
      return std::find(list.begin(), list.end(), &message) != list.end();
    };
    return message.sends ? isIn(sending_[message.peer]->waiting) : isIn(posted_);
  };
  MessageBatch& batch = **at;
  if (!std::all_of(batch.begin(), batch.end(), waits)) return Withdrawal::kInProgress;
  forget(lock, batch);
  for (Message& message : batch) message.isOver = true;
  if (isLooking_) withdrawn_.push_back(std::move(*at));
  batches_.erase(at);
  return Withdrawal::kDone;
}

void Messages::close() {
  Lock lock(mutex_);
  failOpen();
}

void Messages::failOpen() {
  const Message* open = !matched_.empty() ? matched_.front()
                        : !moving_.empty() ? moving_.front()
                                           : nullptr;
  for (const uint32_t peer : targets_)
    for (const Unread& unread : sending_[peer]->unread)
      if (unread.message != nullptr) open = unread.message;
  if (open == nullptr) return;
  wl_error_t record = errorOf(WL_ABORTED, "rank %u closed its handle while %s was in progress",
                              rank_, Described(open->descriptor()).text);
  addFaultyRank(&record, rank_);
  fail(*open, record);
}

// ---- what ends a wait ----

Code Messages::missed() {
  Lock lock(mutex_);
  return check(lock, *running_);
}

Code Messages::late(int64_t limitNs) {
  Lock lock(mutex_);
  return exceeded(*running_, limitNs);
}

Code Messages::check(Lock& lock, MessageBatch& batch) {
  const uint32_t leavers = group_.shared().leavers.load(std::memory_order_seq_cst);
  if (leavers == 0) return WL_OK;
  for (const Message& message : batch) {
    const bool isAny = message.peer == kNobody;
    const bool hasLeft = isAny ? leavers + 1 >= group_.ranks()
                               : comm_.waits().hasLeft(message.peer);
    if (message.isOver || message.source != kNobody || !hasLeft) continue;
    drive(lock);  // a peer may have answered before it left
    if (message.isOver || message.source != kNobody) continue;
    wl_error_t record = blankError(WL_ABORTED);
    Text out(record.message, sizeof record.message);
    if (isAny) {
      out.add("all other ranks closed the communicator");
    } else {
      out.add("rank %u closed the communicator", message.peer);
      addFaultyRank(&record, message.peer);
    }
    out.add(", and rank %u waits in %s; a rank stays until its peers need it no more", rank_,
            Described(message.descriptor()).text);
    return fail(message, record);
  }
  return WL_OK;
}

Code Messages::exceeded(MessageBatch& batch, int64_t limitNs) {
  const Message* first = nullptr;
  wl_error_t record = blankError(WL_DEADLINE_EXCEEDED);
  std::vector<uint32_t> peers;
  uint32_t count = 0;
  for (const Message& message : batch) {
    if (message.isOver) continue;
    ++count;
    if (first == nullptr) first = &message;
    if (message.peer != kNobody) peers.push_back(message.peer);
  }
  if (first == nullptr) return WL_OK;
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  for (const uint32_t peer : peers) addFaultyRank(&record, peer);
  Text out(record.message, sizeof record.message);
  out.add("rank %u waited %.3f s in %s", rank_, static_cast<double>(limitNs) / 1e9,
          Described(first->descriptor()).text);
  if (count > 1) out.add(", the first of %u messages", count);
  if (first->peer == kNobody) {
    out.add(": no rank has sent such a message");
  } else if (first->source != kNobody) {
    out.add(": the data of rank %u is not all here", first->source);
  } else if (!first->sends && receivingFrom(first->peer).unmatched.size() == kMostUnmatched) {
    out.add(": this rank holds %zu other messages of rank %u without a receive, and takes no more",
            kMostUnmatched, first->peer);
  } else {
    out.add(": rank %u has not %s it: ", first->peer, first->sends ? "received" : "sent");
    addWhereabouts(out, group_, first->peer, true);
  }
  out.add(". See what %s doing, or give a longer deadline",
          peers.size() == 1 ? "that rank is" : "the other ranks are");
  return fail(*first, record);
}

Code Messages::fail(const Message& message, wl_error_t record) {
  record.operation = message.sends ? WL_OP_SEND : WL_OP_RECEIVE;
  record.observer = static_cast<int32_t>(rank_);
  record.sequence = group_.lines(rank_).state.sequence.load(std::memory_order_relaxed);
  group_.publishFailure(record);
  return static_cast<Code>(record.code);
}

}  // namespace windlass
