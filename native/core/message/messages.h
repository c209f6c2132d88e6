// SPDX-License-Identifier: Apache-2.0
// Sends and receives of one rank. The receiver matches messages with its receives, in the order in
// which both were begun, and copies the data. See message_lane.h for what travels.
//
// A thread that waits for messages drives all messages of its rank. While asynchronous messages are
// in progress, another thread drives them in next(). All methods are thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "native/base/clock.h"
#include "native/core/message/message_lane.h"
#include "native/core/rank/waits.h"

namespace windlass {

class Comm;
class PeerMemory;  // native/peer/peer_memory.h
struct MessageBatch;

constexpr int32_t kAnyTag = -1;
// Messages of one peer without a receive whose heads a rank takes from the lane.
constexpr size_t kMostUnmatched = 256;

// Result of withdraw(). A batch is over once next() returns it or has returned it.
enum class Withdrawal : uint8_t { kInProgress, kDone, kOver };

// A send or a receive.
struct Message {
  bool sends = false;
  uint32_t peer = kNobody;  // kNobody: a receive from any rank
  int32_t tag = kAnyTag;    // kAnyTag: a receive of any tag
  DType dtype = DType::kU8;
  void* data = nullptr;
  uint64_t count = 0;  // elements; for a receive, the most

  // Result of a receive.
  uint32_t source = kNobody;
  int32_t foundTag = kAnyTag;
  uint64_t found = 0;  // elements

  // State of a message in progress.
  MessageBatch* batch = nullptr;
  uint32_t number = 0;  // in its lane, after it was sent or matched
  Place from = {};      // data of a matched receive that is not read yet
  bool isOver = false;

  uint64_t bytes() const { return count * sizeOf(dtype); }
  Descriptor descriptor() const {
    return Descriptor::ofMessage(sends ? WL_OP_SEND : WL_OP_RECEIVE, count,
                                 static_cast<int32_t>(dtype), peer, tag);
  }
};

// Messages that are begun together. The batch is over when all of them are.
struct MessageBatch {
  MessageBatch() = default;
  // Its messages refer to it.
  MessageBatch(const MessageBatch&) = delete;
  MessageBatch& operator=(const MessageBatch&) = delete;

  // Throws std::bad_alloc if there are more than a sendReceive has.
  void resize(uint32_t messages) {
    if (messages > kFew) many.resize(messages);
    count = messages;
  }
  Message* begin() { return count > kFew ? many.data() : few; }
  Message* end() { return begin() + count; }

  static constexpr uint32_t kFew = 2;
  Message few[kFew];
  std::vector<Message> many;  // in place of `few`
  uint32_t count = 0;
  Deadline deadline{0};
  void* context = nullptr;  // of the caller
  uint32_t left = 0;        // messages that are not over
  uint64_t ticket = 0;      // of an asynchronous batch
};

class Messages : private Awaited {
 public:
  explicit Messages(Comm& comm);

  // Runs a batch within an operation of this rank.
  Code run(MessageBatch& batch);

  // Begins an asynchronous batch. *ticket stays 0 if it is over at once; `batch` then has the
  // results.
  Code start(std::unique_ptr<MessageBatch>& batch, uint64_t* ticket, wl_error_t* error);
  // Drives messages until an asynchronous batch is over or `limitNs` has passed. *over is the
  // batch, or nullptr. An error ends all batches, and the caller frees their messages.
  Code next(int64_t limitNs, std::unique_ptr<MessageBatch>* over, wl_error_t* error);
  // Withdraws an asynchronous batch of which nothing was sent or matched.
  Withdrawal withdraw(uint64_t ticket);
  // Ends asynchronous messages of a handle that closes. Fails the communicator if a peer may have
  // matched one of them.
  void close();

 private:
  using Lock = std::unique_lock<std::mutex>;
  class Driving;

  // A message in a lane that the receiver has not acknowledged.
  struct Unread {
    uint32_t number;
    Message* message;  // nullptr: the send is over
    int32_t block;     // -1: the data is in the sender's buffer
  };
  // Messages of this rank to a peer.
  struct Sending {
    MessageLane* lane;
    uint32_t next = 0;    // slot of the next head
    uint32_t sent = 0;    // heads so far
    uint32_t taken = 0;   // heads that the receiver has taken, as far as known
    uint32_t heard = 0;   // acknowledgements so far
    uint32_t copied = 0;  // unread messages in blocks
    std::deque<Message*> waiting;  // for a slot
    std::vector<Unread> unread;
  };
  // Messages of a peer to this rank.
  struct Receiving {
    MessageLane* lane;
    uint32_t next = 0;
    uint32_t taken = 0;
    uint32_t told = 0;  // value of answers.taken
    uint32_t answered = 0;
    uint32_t heard = 0;  // answers that the peer has taken, as far as known
    std::deque<MessageHead> unmatched;
    const PeerMemory* memory = nullptr;  // of the peer's process, if this one may read it
    bool isOpened = false;
    // The message whose data the peer puts into its staging buffer, and the pieces read so far.
    Message* staged = nullptr;
    uint32_t pieces = 0;
  };

  Code missed() override;
  Code late(int64_t limitNs) override;

  void begin(MessageBatch& batch);
  // Publishes which rank the asynchronous sends wait for.
  void tellSends();
  // Ends the use of a batch that failed.
  void forget(Lock& lock, MessageBatch& batch);
  // Moves on all messages that can. Returns true if another thread may wait for what it did.
  // Unlocks while it copies much.
  bool drive(Lock& lock);
  bool driveSends(uint32_t peer);
  bool post(uint32_t peer, Sending& sending, Message& message);
  // Returns true if this rank may copy a message to the peer.
  bool hasRoomToCopy(const Sending& sending);
  bool takeAnswers(uint32_t peer, Sending& sending);
  bool fillStage(uint32_t peer, Sending& sending);
  bool takeHeads(uint32_t peer);
  bool takeHeadsOfAll();
  void receive(Message& message);
  void accept(Message& message, uint32_t source, const MessageHead& head);
  bool driveMatched(Lock& lock);
  // True if the sender must put the data of a matched receive into its staging buffer.
  bool isStaged(const Message& message);
  // Reads the data of a matched receive. Returns false if the communicator failed.
  bool read(Message& message);
  // Reads what the staging buffer has of it. Returns true if nothing is left.
  bool readStaged(Message& message, bool* tells);
  // Acknowledges a message. Returns false if the sender must take earlier answers first.
  bool answer(uint32_t source, uint32_t number);
  void finish(Message& message);

  Sending& sendingTo(uint32_t peer);
  Receiving& receivingFrom(uint32_t peer);
  const PeerMemory* memoryOf(uint32_t peer, Receiving& receiving);
  // Reserves memory of the control block that takes none before.
  void reserve(void* memory, uint64_t bytes);
  // Sends a word of the control block, and bytes before it, to a peer on another host.
  template <class T>
  void tell(uint32_t peer, const std::atomic<T>& word, OtherHosts::Bytes before = {nullptr, 0}) {
    if (group_.isBeside(peer)) return;
    group_.hosts()->store(peer, before, {nullptr, 0},
                          {&word, sizeof(T), word.load(std::memory_order_relaxed)});
  }

  // Drives all messages, and takes an asynchronous batch that is over. A failure ends all of them.
  Code look(std::unique_ptr<MessageBatch>* over, wl_error_t* error);
  // Fails the communicator if a peer of the batch has left without its part of a message.
  Code check(Lock& lock, MessageBatch& batch);
  Code exceeded(MessageBatch& batch, int64_t limitNs);
  // Fails the communicator of a handle that closes, if a peer may have matched a message.
  void failOpen();
  // Publishes a failure of the message, and returns its code.
  Code fail(const Message& message, wl_error_t record);

  Comm& comm_;
  Group& group_;
  const uint32_t rank_;
  const uint32_t first_;  // number of the first message of each lane
  const uint32_t slots_;
  const uint64_t eagerBytes_;  // longest message that this rank copies

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Sending>> sending_;      // by rank
  std::vector<std::unique_ptr<Receiving>> receiving_;  // by rank
  std::vector<uint32_t> targets_;   // ranks to which messages of this rank are in progress
  std::vector<Message*> posted_;    // receives without a message, in order
  std::vector<Message*> matched_;   // receives whose data is not read or not acknowledged
  std::vector<Message*> moving_;    // matched ones that a thread copies
  uint64_t freeBlocks_;             // a bit for each free block of this rank
  uint32_t servedPeer_ = kNobody;   // peer for whom the staging buffer is in use
  uint32_t served_ = 0;             // number of that message
  uint32_t filled_ = 0;             // its pieces so far
  MessageBatch* running_ = nullptr;  // the batch of run()
  uint64_t tickets_ = 0;
  std::vector<std::unique_ptr<MessageBatch>> batches_;  // asynchronous ones in progress
  std::vector<std::unique_ptr<MessageBatch>> over_;     // asynchronous ones that are over
  bool isLooking_ = false;  // look() has batches, also where it unlocks
  std::vector<std::unique_ptr<MessageBatch>> withdrawn_;  // those that look() may have
};

}  // namespace windlass
