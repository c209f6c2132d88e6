// SPDX-License-Identifier: Apache-2.0
// Connects the hosts of a communicator that spans several. Each host has its own control block, all
// of one layout. As on one host, each line has a single writer. When a rank writes a line for its
// peers, its process sends the bytes to one process of each other host. That process stores them at
// the same offset.
//
// A message carries a few bytes and then the word that announces them. Large data is put straight
// at its destination, and its word follows. A wire carries both. A waiting rank drives the wire. If
// no rank has driven it for a while, a thread of this process does.
//
// Messages still flow after the communicator has failed, so that its ranks can shrink it. A
// connection is lost if its process dies, or if an operation ends with bytes in flight. The thread
// then connects to any process of that host that is not lost. A host is lost with all its ranks if
// none of its processes accepts a connection, or if it is silent.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <thread>
#include <vector>

#include "native/base/error.h"
#include "native/base/open_file.h"
#include "native/core/group.h"
#include "native/core/watch.h"
#include "native/hosts/ucx/wire.h"
#include "windlass/kernel.h"

namespace windlass {

struct Call;

class Hosts final : public OtherHosts, private WireEnds {
 public:
  Hosts(Group& group, std::vector<uint32_t> ranks);
  // Implements OtherHosts::open(). Call it once, before anything else.
  Code open(wl_error_t* error);

  const std::vector<unsigned char>& name() const override { return name_; }
  Code connect(const std::vector<std::vector<unsigned char>>& names, int64_t silenceNs,
               wl_error_t* error) override;
  void close() override;
  bool isConnected() const override { return thread_.joinable(); }
  int64_t silenceNs() const override { return silenceNs_; }
  bool hasStoodStill() const override;
  uint32_t first() const override { return ranks_[0]; }

  uint32_t own() const { return own_; }
  uint32_t hostOf(uint32_t rank) const override { return group_.member(rank).host; }
  bool isBeside(uint32_t rank) const override { return hostOf(rank) == own_; }
  // Ranks of `host`, in order. There is at least one.
  const std::vector<uint32_t>& ranksOf(uint32_t host) const { return hosts_[host].ranks; }
  const char* nameOf(uint32_t host) const override { return hosts_[host].name.c_str(); }
  uint32_t count() const { return static_cast<uint32_t>(hosts_.size()); }

  // native/hosts/hosts_messages.cpp
  //
  // Sends to other hosts what this process has stored. Messages are short, and continue after a
  // failure. Puts may be long, and use the connection of operations. The word of a put follows it.
  //
  // Sends the rank's ENTER, with its input if it is eager, to the other hosts.
  void tellEntry(const Call& call, uint32_t rank, uint64_t sequence, bool eager);
  // Word of the control block, with its value.
  struct Word {
    template <class T>
    Word(const std::atomic<T>& word) : at(&word), value(word.load()), bytes(sizeof(T)) {}

    const void* at;
    uint64_t value;
    uint32_t bytes;
  };
  static constexpr uint32_t kAll = ~0u;  // all other hosts
  // Sends the word to `host`.
  void tell(const Word& word, uint32_t host = kAll);
  // Sends the word lazily. It may wait for this process's next message to that host, such as an
  // ENTER, or until this process drives the wire. Use it if no rank needs the word sooner.
  void tellSoon(const Word& word, uint32_t host = kAll);
  void tellLeft(uint32_t rank) override;
  void tellFailure(const wl_error_t& failure) override;
  void tellShrink(uint32_t rank) override;
  // Puts bytes of the control block. They must not change until `host` reports that it took them.
  // Then stores `value` in `word` there, unless `word` is nullptr.
  void put(uint32_t host, const void* at, uint64_t bytes,
           const std::atomic<uint64_t>* word = nullptr, uint64_t value = 0);

  void store(uint32_t rank, Bytes first, Bytes second, StoredWord word) override;
  void put(uint32_t rank, Bytes data, const std::atomic<uint64_t>& word, uint64_t value) override {
    put(hostOf(rank), data.at, data.bytes, &word, value);
  }

  // native/hosts/hosts.cpp
  //
  // Long data goes to the process that needs it, over a connection that connectTo() opens once.
  // receive() sets the buffer for land() calls of other processes while `rank`, of this process, is
  // in `turn`. nullptr removes the buffer.
  void receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) {
    wire_->receive(rank, turn, into, bytes);
  }
  // Connects to the process of `rank`. WL_RESOURCE: this process lacks memory for the connection,
  // or that process has closed. WL_PEER_LOST: that process accepts no connection, and the
  // communicator has failed.
  Code connectTo(uint32_t rank, wl_error_t* error);
  // Sends `from` to offset `at` of the receive buffer of `rank`. After all bytes, stores `value` in
  // `word` of the control block there.
  void land(uint32_t rank, uint64_t turn, uint64_t at, const void* from, uint64_t bytes,
            const Unread& unread, const std::atomic<uint64_t>& word, uint64_t value);

  // native/hosts/hosts_windows.cpp
  //
  void nameWindow(uint32_t window, uint32_t host, uint32_t theirs) override;
  Code shareWindow(void* base, uint64_t stride, WindowKey* key, wl_error_t* error) override;
  Code reachWindow(uint32_t window, const WindowKey* keys, wl_error_t* error) override;
  void hideWindow(void* base) override { wire_->hide(base); }
  void tellDropped(uint32_t window) override;

  // One-sided operations on the part of the window that belongs to `rank`. Call mayMove() before
  // any of them. It returns false if the process of that host that received this process's
  // operations has closed. The communicator has then failed.
  [[nodiscard]] bool mayMove(uint32_t rank);
  // Largest piece for move(), which copies it before it returns.
  static constexpr uint64_t kMostPieceBytes = uint64_t{32} << 10;
  // The functions below return false if this process lacks memory for all of the operation. A part
  // of it may be in flight.
  [[nodiscard]] bool move(bool adds, uint32_t rank, Place at, const StridedView& remote,
                          const StridedView& local, const Unread& unread);
  [[nodiscard]] bool putIn(uint32_t rank, Place at, const void* from, uint64_t bytes,
                           const Unread& unread);
  [[nodiscard]] bool getFrom(uint32_t rank, Place at, void* into, uint64_t bytes,
                             const Unread& unread);
  // `unread` reaches 0 once all earlier moves of this process to `host` are complete there. `into`
  // is written until then.
  [[nodiscard]] bool flush(uint32_t host, uint64_t* into, const Unread& unread);
  // Stores `value` after all earlier moves of this process to that host.
  [[nodiscard]] bool notify(uint32_t rank, Place at, uint32_t value, const Unread& unread);
  // Value of this process's last notify() to that address. 0 if there was none.
  uint32_t notified(uint32_t rank, Place at);
  // Cancels operations with `rank` that `unread` counts. Their memory is not used any more.
  void forget(uint32_t rank, const Unread& unread);

  // native/hosts/hosts_watch.cpp
  //
  void progress() override;

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kBlock = 0;  // region of a peer that is shared first: its control block

  struct Message;
  struct Outgoing;  // a message's head, and its data
  struct Rest;
  struct Process {
    uint32_t host;
    size_t number;  // index among its host's processes
    std::vector<uint32_t> ranks;
    int32_t pid;
    std::string hostName;
    std::vector<unsigned char> key;
    std::vector<unsigned char> wire;
  };

  // A connection, indexed by its number in the wire.
  struct Connection {
    std::atomic<const Process*> process{nullptr};
    std::atomic<bool> isLost{false};  // set after `why`
    int64_t seenNs = 0;               // when look() first saw the loss
    bool isTold = false;
    char why[128];
  };

  // Connection for messages to another host. Until a failure it also carries operations.
  struct Route {
    std::atomic<uint32_t> peer{kNone};  // number of the connection in the wire; kNone: none
    std::atomic<bool> moves{false};     // this process has sent one-sided operations
    // True if the process at its end has closed while others of that host have not. Messages then
    // go to one of the others; operations fail.
    std::atomic<bool> hasLeft{false};
    // Written only by the thread, after the communicator failed or hasLeft was set.
    uint32_t tried = kNone;               // the wire's number of the last connection
    const Process* triedProcess = nullptr;
    size_t next = 0;                      // index of the next process to try
    uint32_t refusals = 0;                // consecutive refusals by processes that may live
    int64_t triedNs = 0;                  // time of the last attempt
  };

  // A window of another host.
  struct TheirWindow {
    uint32_t number = kNone;
    uint32_t region = kNone;
    uint64_t stride = 0;
    std::map<std::tuple<uint32_t, uint64_t>, uint32_t> notified;  // key: rank and offset
  };

  // The members after `processes` are unused for this host.
  struct Host {
    std::string name;
    std::vector<uint32_t> ranks;     // in order
    std::vector<Process> processes;  // by lowest rank; fixed after connect()
    std::atomic<uint32_t> peer{kNone};  // the wire's number of the connection for operations
    Route route;
    std::vector<TheirWindow> windows{kMostWindows};  // by local number; guarded by windowMutex_
  };

  // Heartbeats of a rank, or of a process under its lowest rank. `ns`: how long this process has
  // seen no new one.
  struct Quiet {
    uint32_t beats = 0;
    int64_t ns = 0;
  };

  // Data that this process keeps about a rank.
  struct Known {
    const Process* process = nullptr;
    std::atomic<uint32_t> peer{kNone};  // the wire's number of the connection to its process
    bool isToldGone = false;            // used for ranks of this host
    Quiet quiet;
    // Last heartbeat that was seen while this process closes.
    uint32_t heardBeats = 0;
    int64_t heardNs = 0;  // 0: nothing yet
  };

  void arrived(Run first, Run second) override;
  void lost(uint32_t peer, const char* why) override;
  // Fails the communicator. Has the thread send the failure again later.
  void lackMemory() override;
  void store(const Message& message, Rest rest);
  void moveHere(Rest rest);
  Wire::There thereOf(uint32_t rank, Place at);
  // True if hasLeft is set. The failure is then published.
  bool hasRouteLeft(uint32_t host);
  void publishRouteLeft(uint32_t host);

  // Calls Wire::connect(), and reserves a record for the loss of the connection. WL_RESOURCE: out
  // of memory.
  Code connectWire(const Process& process, uint32_t* peer, wl_error_t* error);
  void noteLost(uint32_t peer, const char* why);
  // nullptr: there is no such connection.
  Connection* connectionOf(uint32_t peer);
  Code connectProcess(const Process& process, wl_error_t* error);
  // Index of this process on its host.
  size_t number() const { return known_[first()].process->number; }
  // Process of another host that gets this process's messages.
  const Process& partnerOf(const Host& host) const {
    return host.processes[number() % host.processes.size()];
  }
  // Sets the name of this process.
  Code makeName(wl_error_t* error);
  Code read(const std::vector<unsigned char>& name, Process* process, wl_error_t* error) const;
  uint64_t offsetOf(const void* at) const {
    return reinterpret_cast<uint64_t>(at) - group_.block().base();
  }
  // `host` may be kAll. Heartbeats and failures are sent ahead of other messages. After a failure,
  // all messages are sent in this way.
  using Order = Wire::Order;
  void send(uint32_t host, const Outgoing& message, Order order = Order::kQueued);
  void run();
  // Wakes the thread.
  void ring();
  void beat();
  // Publishes hosts that are lost or silent.
  void look(int64_t now);
  // Publishes the loss of `ranks`. False if all of them have closed.
  bool lose(uint32_t host, const std::vector<uint32_t>& ranks, const char* why);
  void leave(const Process& process, const Connection& connection);
  // Shortest suspension after which other hosts may have declared this one lost. They count from
  // its last heartbeat, which was sent up to one heartbeat and one turn before.
  int64_t standstillNs() const { return silenceNs_ - 2 * kBeatNs; }
  // Records a suspension. This process last looked `slept` ns ago. Call it before look() updates
  // Known::quiet.
  void noteStandstill(int64_t now, int64_t slept);
  // True if the local process that receives the heartbeats of `process` is awake. Its own
  // heartbeats show this.
  bool isHeard(const Process& process) const;
  // Unmaps dropped windows in another thread, because that may take long.
  void sweep();
  // Restores the connections to other hosts after a failure, or after the process at the end of a
  // route has closed. Sends again what a host missed. False while it is still connecting.
  bool reconnect(int64_t now);
  void tryNext(uint32_t host);
  // Publishes the loss of a whole host, and marks its ranks as lost.
  void giveUp(uint32_t host, const char* why);
  bool hasLeft(uint32_t rank) const { return group_.lines(rank).state.left.load() != 0; }
  bool isLost(uint32_t rank) const { return group_.member(rank).lost.load() != 0; }
  bool isGone(uint32_t rank) const { return hasLeft(rank) || isLost(rank); }
  // True if a rank is neither lost nor has left.
  bool mayLive(const std::vector<uint32_t>& ranks) const;
  // Sends which ranks of this host have left or are lost. `all`: also those sent before.
  void tellGone(bool all);
  // True if a rank of another host is still in an operation that a rank of this process ended.
  bool isAnyInside();
  // True if each other host that may live knows of the failure. Such a host does not blame a
  // process for closing its wire.
  bool haveHostsFailed() const;
  // True if remote ranks that hold the result of a shrink have heard that ranks agreed on it.
  bool haveAllHeard() const;

  Group& group_;
  const std::vector<uint32_t> ranks_;
  const uint32_t own_;
  std::vector<Host> hosts_;
  std::vector<Known> known_;                // by rank
  std::vector<unsigned char> name_;
  std::mutex connecting_;
  std::mutex connectionsMutex_;             // guards the list, and records of losses
  std::deque<Connection> connections_;      // indexed by the wire's numbers
  std::mutex shrinkMutex_;                  // keeps shrink messages in order
  std::mutex windowMutex_;
  std::atomic<bool> dropped_{false};        // other hosts dropped windows
  std::atomic<bool> untold_{false};         // a message was lost for lack of memory
  OpenFile bell_;
  std::unique_ptr<Wire> wire_;              // its destruction may call ring()
  int64_t silenceNs_ = 0;
  std::atomic<int64_t> lookedNs_{0};        // when look() last ran in this process
  std::atomic<int64_t> stoodStillNs_{0};  // when a suspension that matters was found; 0: none
  std::atomic<int64_t> drivenNs_{0};        // time a rank last drove the wire
  std::atomic<bool> ends_{false};
  std::thread thread_;
  std::thread sweeper_;
  std::atomic<bool> sweeps_{false};
};

static_assert(OtherHosts::WindowKey::kMostBytes == Wire::kMostKeyBytes, "a key fits");

// The other hosts of a group as native/hosts makes them. nullptr: there is one host.
inline Hosts* hostsOf(const Group& group) { return static_cast<Hosts*>(group.hosts()); }

}  // namespace windlass
