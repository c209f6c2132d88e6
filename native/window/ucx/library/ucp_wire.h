// SPDX-License-Identifier: Apache-2.0
// A wire over UCX's protocol layer, by its active messages alone, sent eagerly, which arrive in the
// order in which they were sent: what is put is a message as well, which the peer's process stores
// where it shares memory. UCX's own puts are no more over TCP, but that the target answers each,
// and UCX 1.13 ends the process whose answer finds that the peer has died. One worker, which one
// thread at a time is inside.
//
// What UCX has taken stands in one line, before whatever is sent next; so it is handed little at a
// time, and what is more waits in a queue of the peer, which goes on as sends end. Each message is
// a system call, in which the kernel takes it to the peer: one that may linger waits for its word.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/window/ucx/wire.h"

namespace windlass {

// Their numbers among active messages.
constexpr unsigned kMessage = 7;
constexpr unsigned kMove = 8;
// Of what is moved at once: less than a segment, so that it is stored from where it was received.
constexpr uint64_t kPieceBytes = uint64_t{512} << 10;
// What UCX has of a peer's at a time, to which a piece may come.
constexpr uint64_t kMostHandedBytes = uint64_t{2} << 20;
// What is kept of the memory of what was sent, in all.
constexpr uint64_t kMostKeptBytes = uint64_t{16} << 20;

// Before what is put there, or of what is wanted from there.
struct Move {
  // kMessage: it is one, which a word follows.
  enum Kind : uint32_t { kNone, kPut, kWord, kGet, kGot, kLand, kMessage };
  Kind kind;
  uint32_t region;  // the key's number; kLand: the rank
  uint64_t at;
  uint64_t word;  // kGet: so many bytes; kLand: the turn
  uint64_t token;  // of kGet, and of the kGot that answers
  // Of kPut, kLand and kMessage: what is stored behind them there.
  uint32_t wordRegion = kNoRegion;
  uint32_t unused = 0;
  uint64_t wordAt = 0;
  uint64_t wordValue = 0;

  static constexpr uint32_t kNoRegion = ~0u;
};

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
    Peer* peer;       // nullptr: what it asked for, which it has asked for little of
    uint64_t handed;  // of what UCX has for that peer
    Move move;        // of a message: kMessage where a word follows, else kNone
    std::vector<unsigned char> bytes;
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
    ucp_ep_h endpoint = nullptr;
    std::vector<Region> regions;
    uint64_t handed = 0;      // to UCX, which has not sent it
    std::deque<Send> queue;   // behind that; empty once the peer is lost
    Held* lingering = nullptr;  // a message behind that, which may wait
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
  // Throws std::bad_alloc.
  Held* hold();
  void release(Held* held) {
    if (held->unread != nullptr) held->unread->fetch_sub(1, std::memory_order_release);
    held->unread.reset();
    const uint64_t bytes = held->bytes.capacity();
    if (bytes > kPieceBytes || keptBytes_ + bytes > kMostKeptBytes) {
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
  bool goBehind(Peer& peer, Move move, const void* from, uint64_t bytes, const Unread& unread,
                const Word* behind);
  // nullptr: there is no memory for it.
  Held* messageOf(const Part* parts, uint32_t count, const Unread& unread);
  // Hands it over where nothing waits, else has it wait; false: there is no memory for that, and
  // `message` of it is the caller's.
  bool go(Peer& peer, Send&& send);
  // What lingers; false: there is no memory for that, and it is lost.
  bool letGo(Peer& peer);
  void letGoAll();
  static bool hasRoom(const Peer& peer) { return peer.handed < kMostHandedBytes; }
  // Hands over what waits, as far as there is room.
  void pump(Peer& peer);
  // To UCX the next piece, which `send` is without then, or all of a message. UCS_ERR_NO_MEMORY:
  // nothing; any other error loses the peer.
  ucs_status_t handOver(Peer& peer, Send& send);
  ucs_status_t handMessage(Peer& peer, Held* message);
  // UCX's, and what goes on by it; how much there was.
  unsigned drive();
  void storeWord(uint32_t number, uint64_t at, uint64_t word) const;
  // False: there is no memory for it.
  bool ask(Peer& peer);
  void answer(ucp_ep_h endpoint, const Move& wanted);
  void moveHere(const Move& move, const void* data, uint64_t bytes);
  // Nothing is driven after it: a connection whose endpoint is gone, and that had something to
  // send, has UCX 1.13 use what it has freed, once its peer goes as well.
  void close(Peer& peer);
  // Lets go of what waits.
  void clear(Peer& peer);
  void lose(Peer& peer, const char* why);
  void lose(Peer& peer, ucs_status_t why);
  // What a call that sends came to: `held` until it is over, and the caller's where the status is
  // UCS_ERR_NO_MEMORY.
  ucs_status_t settle(Peer& peer, ucs_status_ptr_t request, Held* held);
  static ucp_request_param_t paramOf(Held* held);
  static void sent(void* request, ucs_status_t status, void* held);
  static ucs_status_t arrived(void* wire, const void* header, size_t headerBytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param);
  static ucs_status_t moved(void* wire, const void* header, size_t headerBytes, void* data,
                            size_t bytes, const ucp_am_recv_param_t* param);
  static void broken(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  WireEnds& ends_;
  std::recursive_mutex mutex_;  // what a peer tells may be answered at once
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<SharedMemory> shared_;
  uint32_t shares_ = 0;  // over all time
  std::vector<Received> received_;
  int file_ = -1;
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
