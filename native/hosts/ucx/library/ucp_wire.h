// SPDX-License-Identifier: Apache-2.0
// Wire over UCX's protocol layer. It only uses eager active messages, which arrive in the order in
// which they were sent. A put is a message too: the peer's process stores it in memory that it
// shares. UCX's own puts do the same over TCP, but the target answers each of them. UCX 1.13 ends a
// process whose answer finds that the peer has died. There is one worker, and one thread at a time
// is inside it.
//
// UCX sends the data that it holds before anything newer. It is therefore handed little at a time.
// The rest waits in a queue per peer, which advances as sends end. UCX reads data in place if it
// takes it at once. Over TCP, it does so if the connection has room and nothing is in flight to
// that peer. Each message is a system call, in which the kernel takes it to the peer. Pending
// messages therefore travel with the next send.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <new>
#include <unordered_map>
#include <vector>

#include "native/hosts/ucx/library/ucx_mutex.h"
#include "native/hosts/ucx/wire.h"

namespace windlass {

// Id of the active messages.
constexpr unsigned kMoves = 7;
// Largest piece. It is smaller than a segment, so that it is stored from the receive buffer.
constexpr uint64_t kPieceBytes = uint64_t{512} << 10;
// Largest head, if UCX allows as much. Pending words travel in it.
constexpr uint64_t kMostHeadBytes = uint64_t{1} << 10;
// Bytes that UCX holds for a peer at a time, to which a piece may be added.
constexpr uint64_t kMostHandedBytes = uint64_t{2} << 20;
// Largest memory of finished sends that is kept for reuse, in all.
constexpr uint64_t kMostKeptBytes = uint64_t{16} << 20;

// 128 random bits in the name of a wire. Only a process that has the name may send there. Anyone
// who reaches its port may connect.
struct Secret {
  uint64_t words[2];

  bool operator==(const Secret& other) const {
    return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1])) == 0;
  }
};

// An active message has the secret of its receiver and then one or more moves. Each move is
// followed by `bytes` of its own data, padded to whole words. If the message has a head, the secret
// and the moves are in it, and the body belongs to the last move. Otherwise they are in the body.
struct Move {
  enum Kind : uint32_t { kNone, kPut, kWord, kGet, kGot, kLand, kMessage };
  Kind kind;
  uint32_t region;  // number of the key; kLand: the rank
  uint64_t at;
  uint64_t word;  // kGet: number of bytes; kPut: bytes of all its pieces; kLand: the turn
  uint64_t token;  // identifies a kGet and the kGot that answers it
  // kPut, kLand: word to store after the data. kGet: wordAt and wordValue are the secret of the
  // process that receives the answer.
  uint32_t wordRegion = kNoRegion;
  uint32_t bytes = 0;
  uint64_t wordAt = 0;
  uint64_t wordValue = 0;

  static constexpr uint32_t kNoRegion = ~0u;
};
static_assert(sizeof(Move) == 56, "Hosts' kProtocol is another one for another layout");

// Start of a message.
struct Start {
  Secret secret;
  Move move;
};

constexpr uint64_t wholeWords(uint64_t bytes) {
  return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

// Checks that this host has a device of `names`, a list like UCX_NET_DEVICES. UCX itself continues
// without one. WL_UNSUPPORTED: it has none, and the error lists its devices. Throws std::bad_alloc.
Code requireDevice(const char* names, wl_error_t* error);

// Runs body(). False if it throws std::bad_alloc.
template <class Body>
bool hasMemoryFor(const Body& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

class UcpWire final : public Wire {
 public:
  UcpWire(WireEnds& ends) : ends_(ends) {}
  ~UcpWire() override;

  Code open(const WireSettings& settings, wl_error_t* error);
  Code address(std::vector<unsigned char>* name, wl_error_t* error) override;
  Code share(void* memory, uint64_t bytes, std::vector<unsigned char>* key,
             wl_error_t* error) override;
  void hide(void* memory) override;
  Code reach(uint32_t peer, const unsigned char* key, uint64_t bytes, uint32_t* region,
             wl_error_t* error) override;
  Code connect(const unsigned char* name, uint64_t bytes, uint32_t* peer,
               wl_error_t* error) override;
  bool isLost(uint32_t peer) override;
  bool send(uint32_t peer, const Part* parts, uint32_t count, const Unread& unread,
            Order order) override;
  void delay(bool may) override;
  bool put(const There& to, const void* from, uint64_t bytes, const Unread& unread,
           const Word* behind) override;
  bool putWord(const There& to, uint64_t word, const Unread& unread) override;
  bool get(const There& from, void* into, uint64_t bytes, const Unread& unread) override;
  void receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) override;
  bool land(const Landing& to, const void* from, uint64_t bytes, const Unread& unread,
            const Word& behind) override;
  void forget(uint32_t peer, const Unread& unread) override;
  uint32_t progress() override;
  bool arm() override;
  int file() const override { return file_; }
  bool flush(int64_t limitNs) override;

 private:
  // Opens the worker of an open context. Call with calls to UCX locked.
  Code openWorker(const WireSettings& settings, wl_error_t* error);
  struct Region {
    uint32_t number;
    uint64_t bytes;
  };
  // Piece of a get.
  struct Get {
    There from;
    unsigned char* into;
    uint64_t bytes;
    Unread unread;
  };
  struct Peer;
  // Memory that a send in flight reads or holds.
  struct Held {
    UcpWire* wire;
    Peer* peer;       // nullptr: none yet, or the answer to a get, which `handed` doesn't count
    uint64_t handed;  // bytes that UCX holds for that peer
    std::vector<unsigned char> bytes;
    uint64_t headBytes;  // bytes of the head
    Unread unread;
  };
  // Data that is sent in pieces of kPieceBytes, with the word of `move` after the last; or a
  // message.
  struct Send {
    Move move;
    const unsigned char* from;
    uint64_t bytes;
    Unread unread;
    Held* message;  // nullptr: it is data
  };
  struct Peer {
    UcpWire* wire = nullptr;
    uint32_t number = 0;
    Secret secret = {};
    ucp_ep_h endpoint = nullptr;
    std::vector<Region> regions;
    uint64_t handed = 0;      // bytes that UCX holds and has not sent
    uint64_t takesAtOnce = 0;  // largest message that UCX has taken at once, with its head
    int64_t refusedNs = 0;    // when UCX first refused to take its next piece at once; 0: it hasn't
    std::deque<Send> queue;   // sends that UCX has not got yet; empty once the peer is lost
    Held* delayed = nullptr;  // pending moves after the queue
    std::deque<Get> wanted;   // gets that are not requested
    uint32_t asked = 0;
    bool isLost = false;
  };
  struct SharedMemory {
    unsigned char* memory;
    uint64_t bytes;
    uint32_t number;
  };
  struct Received {
    uint32_t rank;
    uint64_t turn;
    unsigned char* into;
    uint64_t bytes;
  };
  // Message that UCX sends in place.
  struct Message {
    Part head;
    Part body;
  };
  // Returns an empty buffer. Throws std::bad_alloc.
  Held* hold();
  // Returns a message with copies of a move and its parts, without a head. nullptr: out of memory.
  Held* hold(const Secret& secret, const Move& move, const Part* parts, uint32_t count);
  // Makes the bytes of `held` the head of a message, and adds a copy of `body`. False: out of
  // memory, and `held` is released.
  bool addBody(Held* held, const Part& body);
  void release(Held* held) {
    if (held->unread != nullptr) held->unread->fetch_sub(1, std::memory_order_release);
    held->unread.reset();
    const uint64_t bytes = held->bytes.capacity();
    if (bytes > kPieceBytes + kMostHeadBytes || keptBytes_ + bytes > kMostKeptBytes) {
      std::vector<unsigned char>().swap(held->bytes);
    } else {
      keptBytes_ += bytes;
    }
    free_.push_back(held);
  }
  // Returns the region of a peer. nullptr: the peer is lost. A peer without such memory becomes
  // lost.
  const Region* regionOf(const There& to, uint64_t bytes);
  // Address of shared memory of this process. nullptr: it shares no such memory.
  unsigned char* sharedAt(uint32_t number, uint64_t at, uint64_t bytes) const;
  // Sends data, and the word `behind` after it, if any.
  bool sendWithWord(Peer& peer, Move move, const void* from, uint64_t bytes, const Unread& unread,
                    const Word* behind);
  // Sends a move with its parts, in one message with pending moves. A long last part is sent in
  // place if UCX takes it at once. False: as send().
  bool sendMove(Peer& peer, const Move& move, const Part* parts, uint32_t count,
                const Unread& unread);
  // Sends a move with its parts ahead of the queue. False: as send().
  bool sendAhead(Peer& peer, const Move& move, const Part* parts, uint32_t count);
  // Adds a move with its parts to the pending message. The pending message is sent first if both
  // together exceed `mostBytes`, or if another `unread` counts it. False: as send().
  bool addToDelayed(Peer& peer, const Move& move, const Part* parts, uint32_t count,
                      const Unread& unread, uint64_t mostBytes);
  // Appends a move and copies of its parts. Throws std::bad_alloc, and then appends nothing.
  static void append(Held& held, Move move, const Part* parts, uint32_t count);
  // Sends the pending message, if any, as the head of `body` if that has bytes. False: out of
  // memory, and the message is lost.
  bool sendDelayed(Peer& peer, const Part& body = {nullptr, 0});
  void sendAllDelayed();
  // Queues `send`, and hands UCX what it takes of the queue. False: out of memory, and the caller
  // still owns its `message`.
  bool sendOrQueue(Peer& peer, Send&& send);
  static bool hasRoom(const Peer& peer) { return peer.handed < kMostHandedBytes; }
  // Hands queued sends to UCX while there is room.
  void pump(Peer& peer);
  // Hand UCX the whole message, or the next piece, which is then removed from `send`.
  // UCS_ERR_NO_MEMORY, UCS_ERR_NO_RESOURCE: UCX took nothing. Any other error loses the peer.
  ucs_status_t handMessage(Peer& peer, Send& send);
  ucs_status_t handPiece(Peer& peer, Send& send);
  static Message messageOf(const Held& held);
  // Starts a send. `message` must stay valid until sent() receives `held`. If that is nullptr, UCX
  // sends the message at once or not at all.
  static ucs_status_ptr_t begin(ucp_ep_h endpoint, const Message& message, Held* held,
                                uint32_t flags);
  // Starts a send, and keeps `held` until it is over. If UCX had no memory or no room, the caller
  // owns `held` again.
  ucs_status_t handHeld(Peer& peer, const Message& message, Held* held, uint32_t flags);
  // Sends a message if UCX takes it at once. No byte of it is read after the call returns.
  // UCS_ERR_NO_RESOURCE: nothing was sent, because other data is in flight to that peer or there is
  // no room.
  static ucs_status_t handAtOnce(Peer& peer, const Message& message, uint32_t flags);
  static void advance(Send& send, uint64_t bytes);
  // Drives UCX, and the queues with it. Returns the number of UCX's events.
  unsigned drive();
  void storeWord(uint32_t number, uint64_t at, uint64_t word) const;
  // Requests wanted gets. False: out of memory.
  bool ask(Peer& peer);
  void answer(ucp_ep_h endpoint, const Move& wanted);
  void moveHere(const Move& move, const unsigned char* own, const void* rest, uint64_t bytes);
  // Drops the queue and the pending message of a peer.
  void discard(Peer& peer);
  void lose(Peer& peer, const char* why);
  void lose(Peer& peer, ucs_status_t why);
  static void sent(void* request, ucs_status_t status, void* held);
  static ucs_status_t arrived(void* wire, const void* header, size_t headerBytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param);
  static void broken(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  WireEnds& ends_;
  UcxMutex mutex_;  // recursive: a callback may send
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  Secret secret_ = {};  // secret of this wire
  std::vector<SharedMemory> shared_;
  uint32_t shares_ = 0;  // number of all share() calls
  std::vector<Received> received_;
  int file_ = -1;
  uint64_t mostHeadBytes_ = kMostHeadBytes;
  std::deque<Peer> peers_;
  std::deque<Held> held_;
  std::vector<Held*> free_;
  uint64_t keptBytes_ = 0;  // capacity of free_
  std::unordered_map<uint64_t, Get> asked_;  // indexed by token
  uint64_t tokens_ = 0;                      // number of all tokens
  uint32_t flying_ = 0;                      // requests in flight
  uint32_t waiting_ = 0;                     // sends in the queues of all peers
  std::atomic<bool> delays_{false};         // true if messages may be held back
  std::atomic<uint32_t> delayed_{0};       // peers with a pending message
};

}  // namespace windlass
