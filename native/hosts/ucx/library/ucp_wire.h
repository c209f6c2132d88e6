// SPDX-License-Identifier: Apache-2.0
// A wire over UCX's protocol layer, by its active messages alone, sent eagerly, which arrive in the
// order in which they were sent: what is put is a message as well, which the peer's process stores
// where it shares memory. UCX's own puts are no more over TCP, but that the target answers each,
// and UCX 1.13 ends the process whose answer finds that the peer has died. One worker, which one
// thread at a time is inside.
//
// What UCX has taken stands in one line, before whatever is sent next; so it is handed little at a
// time, and what is more waits in a queue of the peer, which goes on as sends end. What UCX takes
// at once, as over TCP where the connection has room and nothing is under way to that peer, it
// reads where it lies. Each message is a system call, in which the kernel takes it to the peer:
// what may linger goes with what is sent next.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/hosts/ucx/library/ucx_mutex.h"
#include "native/hosts/ucx/wire.h"

namespace windlass {

// Their number among active messages.
constexpr unsigned kMoves = 7;
// Of what is moved at once: less than a segment, so that it is stored from where it was received.
constexpr uint64_t kPieceBytes = uint64_t{512} << 10;
// Of a head, if UCX allows as much, in which words that linger go along.
constexpr uint64_t kMostHeadBytes = uint64_t{1} << 10;
// What UCX has of a peer's at a time, to which a piece may come.
constexpr uint64_t kMostHandedBytes = uint64_t{2} << 20;
// What is kept of the memory of what was sent, in all.
constexpr uint64_t kMostKeptBytes = uint64_t{16} << 20;

// 128 random bits, which a wire's name has: whoever was told the name may send there. Anyone who
// reaches its port may connect.
struct Secret {
  uint64_t words[2];

  bool operator==(const Secret& other) const {
    return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1])) == 0;
  }
};

// An active message is the secret of whom it is for, then one move or several, each followed by
// `bytes` of its own, padded to whole words. They stand in its head, and its body belongs to the
// last; or, where it has no head, they stand in its body.
struct Move {
  enum Kind : uint32_t { kNone, kPut, kWord, kGet, kGot, kLand, kMessage };
  Kind kind;
  uint32_t region;  // the key's number; kLand: the rank
  uint64_t at;
  uint64_t word;  // kGet: so many bytes; kPut: those of all its pieces; kLand: the turn
  uint64_t token;  // of kGet, and of the kGot that answers
  // Of kPut and kLand: what is stored behind them there. kGet: the last two are the secret of whom
  // the answer is for.
  uint32_t wordRegion = kNoRegion;
  uint32_t bytes = 0;
  uint64_t wordAt = 0;
  uint64_t wordValue = 0;

  static constexpr uint32_t kNoRegion = ~0u;
};
static_assert(sizeof(Move) == 56, "Hosts' kProtocol is another one for another layout");

// How a message begins.
struct Start {
  Secret secret;
  Move move;
};

constexpr uint64_t wholeWords(uint64_t bytes) {
  return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
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
  bool send(uint32_t peer, const Part* parts, uint32_t count, const Unread& unread) override;
  bool sendSoon(uint32_t peer, const Part* parts, uint32_t count, const Unread& unread) override;
  void linger(bool may) override;
  bool sendPast(uint32_t peer, const Part* parts, uint32_t count) override;
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
  struct Region {
    uint32_t number;
    uint64_t bytes;
  };
  // A piece of what is taken from a peer.
  struct Get {
    There from;
    unsigned char* into;
    uint64_t bytes;
    Unread unread;
  };
  struct Peer;
  // What a send in flight reads, or keeps.
  struct Held {
    UcpWire* wire;
    Peer* peer;       // nullptr: none yet; or it answers a get, which `handed` doesn't count
    uint64_t handed;  // of what UCX has for that peer
    std::vector<unsigned char> bytes;
    uint64_t headBytes;  // of those
    Unread unread;
  };
  // What is sent in pieces of kPieceBytes, with the word of `move` behind the last; or a message.
  struct Send {
    Move move;
    const unsigned char* from;
    uint64_t bytes;
    Unread unread;
    Held* message;  // nullptr: it is none
  };
  struct Peer {
    UcpWire* wire = nullptr;
    uint32_t number = 0;
    Secret secret = {};
    ucp_ep_h endpoint = nullptr;
    std::vector<Region> regions;
    uint64_t handed = 0;      // to UCX, which has not sent it
    uint64_t takesAtOnce = 0;  // the most bytes that UCX has taken so, heads among them
    int64_t refusedNs = 0;    // since when its next piece is refused so; 0: it isn't
    std::deque<Send> queue;   // behind that; empty once the peer is lost
    Held* lingering = nullptr;  // moves behind that, which may wait
    std::deque<Get> wanted;   // and not asked for
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
  // What UCX sends as one message, from where it lies.
  struct Message {
    Part head;
    Part body;
  };
  // Throws std::bad_alloc.
  Held* hold();
  // A message of copies of a move and its parts, without a head; nullptr: there is no memory for
  // it.
  Held* hold(const Secret& secret, const Move& move, const Part* parts, uint32_t count);
  // Has what it holds be the head of a copy of that. False: there is no memory, and it's released.
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
  // nullptr: the peer is lost, as it is where it has no such memory.
  const Region* regionOf(const There& to, uint64_t bytes);
  // What lies there in this process; nullptr: it shares no such memory.
  unsigned char* sharedAt(uint32_t number, uint64_t at, uint64_t bytes) const;
  // With the word behind it, if any.
  bool sendWithWord(Peer& peer, Move move, const void* from, uint64_t bytes, const Unread& unread,
                    const Word* behind);
  // Sends a move with its parts, in one message with what lingers. A long last part goes from where
  // it lies if UCX takes it at once. False: as send().
  bool sendMove(Peer& peer, const Move& move, const Part* parts, uint32_t count,
                const Unread& unread);
  // Adds a move with its parts to what lingers, which is sent first where both together have more
  // than so many bytes. False: as send().
  bool addToLingering(Peer& peer, const Move& move, const Part* parts, uint32_t count,
                      const Unread& unread, uint64_t mostBytes);
  // Adds a move and copies of its parts. Throws std::bad_alloc, and has added nothing then.
  static void append(Held& held, Move move, const Part* parts, uint32_t count);
  // What lingers, if anything, as the head of `body` where that has bytes; false: there is no
  // memory for that, and it is lost.
  bool sendLingering(Peer& peer, const Part& body = {nullptr, 0});
  void sendAllLingering();
  // Hands it over where nothing waits, else has it wait; false: there is no memory for that, and
  // `message` of it is the caller's.
  bool sendOrQueue(Peer& peer, Send&& send);
  static bool hasRoom(const Peer& peer) { return peer.handed < kMostHandedBytes; }
  // Hands over what waits, as far as there is room.
  void pump(Peer& peer);
  // To UCX the next piece, which `send` is without then, or all of a message. UCS_ERR_NO_MEMORY,
  // UCS_ERR_NO_RESOURCE: nothing yet; any other error loses the peer.
  ucs_status_t handOver(Peer& peer, Send& send);
  ucs_status_t handMessage(Peer& peer, Send& send);
  ucs_status_t handPiece(Peer& peer, Send& send);
  static Message messageOf(const Held& held);
  // `message` stays until sent() has `held`.
  static ucs_status_ptr_t begin(ucp_ep_h endpoint, const Message& message, Held* held,
                                uint32_t flags);
  ucs_status_t handHeld(Peer& peer, const Message& message, Held* held, uint32_t flags);
  // Sends what UCX takes at once, and no byte of it is read once this returns. UCS_ERR_NO_RESOURCE:
  // nothing was sent: something else is under way to that peer, or there is no room for so much.
  static ucs_status_t handAtOnce(Peer& peer, const Message& message, uint32_t flags);
  static void advance(Send& send, uint64_t bytes);
  // UCX's, and what goes on by it; how much there was.
  unsigned drive();
  void storeWord(uint32_t number, uint64_t at, uint64_t word) const;
  // False: there is no memory for it.
  bool ask(Peer& peer);
  void answer(ucp_ep_h endpoint, const Move& wanted);
  void moveHere(const Move& move, const unsigned char* own, const void* rest, uint64_t bytes);
  // Nothing is driven after it: a connection whose endpoint is gone, and that had something to
  // send, has UCX 1.13 use what it has freed, once its peer goes as well.
  void close(Peer& peer);
  // What waits for that peer, and what lingers.
  void discard(Peer& peer);
  void lose(Peer& peer, const char* why);
  void lose(Peer& peer, ucs_status_t why);
  // What a call that sends came to: `held` is kept until it is over, and is the caller's again
  // where UCX had no memory or no room.
  ucs_status_t settle(Peer& peer, ucs_status_ptr_t request, Held* held);
  static void sent(void* request, ucs_status_t status, void* held);
  static ucs_status_t arrived(void* wire, const void* header, size_t headerBytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param);
  static void broken(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  WireEnds& ends_;
  UcxMutex mutex_;  // recursive: what a peer tells may be answered at once
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  Secret secret_ = {};  // of this one
  std::vector<SharedMemory> shared_;
  uint32_t shares_ = 0;  // over all time
  std::vector<Received> received_;
  int file_ = -1;
  uint64_t mostHeadBytes_ = kMostHeadBytes;
  std::deque<Peer> peers_;
  std::deque<Held> held_;
  std::vector<Held*> free_;
  uint64_t keptBytes_ = 0;  // by those
  std::unordered_map<uint64_t, Get> asked_;  // by their tokens
  uint64_t tokens_ = 0;                      // over all time
  uint32_t flying_ = 0;                      // requests that are not over
  uint32_t waiting_ = 0;                     // in the queues of all peers
  std::atomic<bool> lingers_{false};         // whether anything may
  std::atomic<uint32_t> lingering_{0};       // peers of which something does
};

}  // namespace windlass
