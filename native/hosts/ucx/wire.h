// SPDX-License-Identifier: Apache-2.0
// Wire that carries bytes between hosts, for one process. It calls UCX through a separate library,
// so that a process on a single host needs no UCX. Received data is in this process's memory once
// progress() has seen it. Over TCP, no data is there before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/base/error.h"

namespace windlass {

// Callbacks of a wire. They run in progress() and in calls that send, in the thread that holds the
// wire.
class WireEnds {
 public:
  // Message of a peer, as two runs of whole parts. The runs are valid until the call returns.
  struct Run {
    const unsigned char* at;
    uint64_t bytes;
  };
  virtual void arrived(Run first, Run second) = 0;
  // The peer is lost: nothing reaches it any more.
  virtual void lost(uint32_t peer, const char* why) = 0;
  // This process has no memory to answer a peer.
  virtual void lackMemory() = 0;

 protected:
  ~WireEnds() = default;
};

struct WireSettings {
  const char* devices;    // UCX_NET_DEVICES: the network that ranks trust
  const char* ports;      // UCX_TCP_PORT_RANGE; nullptr: any
  const char* transports;  // UCX_TLS; nullptr: as in the environment; all if it is not set

  // Reads WINDLASS_UCX_NET_DEVICES, _PORT_RANGE and _TLS. The default device is loopback.
  static WireSettings ofEnvironment();
};

// Number of operations in flight: puts that still read their source, messages and words that this
// process holds, or gets whose bytes have not arrived.
using Unread = std::shared_ptr<std::atomic<uint32_t>>;

// UCX ends before the threads of a process that ends. After that, calls that send drop their data,
// other calls of UCX return WL_CLOSED, and progress() returns 0.
class Wire {
 public:
  struct Part {
    const void* from;
    uint64_t bytes;
  };
  // Memory of a peer, `at` bytes from the start of a region.
  struct There {
    uint32_t peer;
    uint32_t region;  // number from reach()
    uint64_t at;
  };

  virtual ~Wire() = default;

  // Name for connect() in other processes.
  virtual Code address(std::vector<unsigned char>* name, wl_error_t* error) = 0;
  // Connects to a peer. *peer: its number, from 0 on. Its messages may arrive from now on.
  virtual Code connect(const unsigned char* name, uint64_t bytes, uint32_t* peer,
                       wl_error_t* error) = 0;
  // True if nothing reaches the peer any more. It may be connected again, under another number.
  virtual bool isLost(uint32_t peer) = 0;
  // Lets peers put into the memory after they reach() it, until hide(). *key: the key for reach(),
  // of at most kMostKeyBytes.
  static constexpr uint64_t kMostKeyBytes = 512;
  virtual Code share(void* memory, uint64_t bytes, std::vector<unsigned char>* key,
                     wl_error_t* error) = 0;
  virtual void hide(void* memory) = 0;
  // Opens a region of a peer. *region: its number among that peer's, from 0 on.
  virtual Code reach(uint32_t peer, const unsigned char* key, uint64_t bytes, uint32_t* region,
                     wl_error_t* error) = 0;

  // The calls below send to a peer, in the order of the calls. Any thread may call them, also in a
  // callback. If a send fails, the peer is lost(). False: this process lacks memory for all of the
  // operation, and a part may be in flight. A few MiB are in flight to a peer at a time. The rest
  // is queued.
  //
  // kQueued: in the order of the calls. kSoon: after delay(true), a short message may wait for
  // progress(), or for the next message or word to that peer, and travel with it. kPast: ahead of
  // the queue; only such messages are ordered with one another, and `unread` does not count them.
  enum class Order { kQueued, kSoon, kPast };
  // Sends a message of these parts, which are not read after the call returns. `unread` counts it;
  // nullptr: it is not counted. A long last part may be sent without a copy.
  [[nodiscard]] virtual bool send(uint32_t peer, const Part* parts, uint32_t count,
                                  const Unread& unread, Order order = Order::kQueued) = 0;
  // Sets whether kSoon may hold messages back. False sends those that wait. A caller that passes
  // true passes false soon after.
  virtual void delay(bool may) = 0;
  // Puts bytes that must not change until `unread`, which counts the put, is 0. If `unread` is
  // nullptr, they must not change until the peer reports that they arrived. `behind`: word of the
  // same peer that is stored after all of the bytes, if there are any; nullptr: none.
  struct Word {
    uint32_t region;
    uint64_t at;
    uint64_t value;
  };
  [[nodiscard]] virtual bool put(const There& to, const void* from, uint64_t bytes,
                                 const Unread& unread, const Word* behind) = 0;
  // Stores a word that only grows, after all earlier puts to that peer. `unread` is as in send().
  [[nodiscard]] virtual bool putWord(const There& to, uint64_t word, const Unread& unread) = 0;
  // Reads bytes of a peer into `into`. They have arrived once `unread` is 0.
  [[nodiscard]] virtual bool get(const There& from, void* into, uint64_t bytes,
                                 const Unread& unread) = 0;
  // Sets the buffer for land() calls of peers while `rank`, of this process, is in `turn`. nullptr
  // removes the buffer before the call returns.
  virtual void receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) = 0;
  // Like put(), into the receive buffer of a rank of the peer, `at` bytes from its start. The peer
  // drops data of any other turn.
  struct Landing {
    uint32_t peer;
    uint32_t rank;
    uint64_t turn;
    uint64_t at;
  };
  [[nodiscard]] virtual bool land(const Landing& to, const void* from, uint64_t bytes,
                                  const Unread& unread, const Word& behind) = 0;
  // Cancels operations with the peer that `unread` counts. Their memory is not used after the call
  // returns. Data that has not left is not sent.
  virtual void forget(uint32_t peer, const Unread& unread) = 0;

  // Receives what has arrived, and returns how much. Returns 0 also while another thread is inside.
  virtual uint32_t progress() = 0;
  // True if nothing has arrived. file() then turns readable with the next arrival.
  virtual bool arm() = 0;
  virtual int file() const = 0;
  // Blocks until all data has left, for at most `limitNs`. False if it has not, or UCX has ended.
  virtual bool flush(int64_t limitNs) = 0;
};

// Loads the library of wires from `path`, once a process. nullptr: from the folder of this code, or
// where the linker looks. WL_UNSUPPORTED: UCX is not installed; the error says what to install.
// Throws std::bad_alloc, as do the functions below.
Code findWires(const char* path, wl_error_t* error);

// Opens a wire. WL_UNSUPPORTED also if UCX reaches nothing with these settings.
Code openWire(const WireSettings& settings, WireEnds& ends, std::unique_ptr<Wire>* wire,
              wl_error_t* error);

// Returns UCX's version and this host's network devices, as "1.13.1: eth0 lo". Fails as openWire().
Code describeWires(const WireSettings& settings, std::string* text, wl_error_t* error);

// Functions that the library exports, with their names.
using OpenWire = Code (*)(const WireSettings& settings, WireEnds& ends, Wire** wire,
                          wl_error_t* error);
constexpr const char* kOpenWire = "windlass_open_wire_7";
using DescribeWires = Code (*)(std::string* text, wl_error_t* error);
constexpr const char* kDescribeWires = "windlass_describe_wires_1";

}  // namespace windlass
