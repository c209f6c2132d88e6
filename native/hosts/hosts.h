// SPDX-License-Identifier: Apache-2.0
// The hosts of a communicator that spans several. Each has a control block of its own, laid out
// alike, in which a line has its one writer as on one host: what a rank writes there for others its
// process repeats to one process of each other host, which stores it at the same offset.
//
// A message holds what is small: bytes, and behind them the word that says that they are there.
// What is large is put where it belongs, and its word behind it; both by a wire, which a rank that
// waits drives, and a thread of this process where none has for a while.
//
// A communicator that has failed goes on telling messages, by which its ranks shrink it: where a
// connection is lost, as where its process died or an operation ended with bytes on their way, the
// thread connects anew, to any process of that host that is not lost. A host none of whose
// processes takes a connection, or that is silent, is lost with all its ranks.
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
#include "native/core/control_block.h"
#include "native/hosts/ucx/wire.h"
#include "windlass/kernel.h"

namespace windlass {

class Group;

class Hosts final : private WireEnds {
 public:
  // For a group whose control block says which rank lives on which host; these ranks live in this
  // process. WL_UNSUPPORTED: more hosts than may meet, or as openWire(). WL_INVALID_ARGUMENT: they
  // live on two, or as openWire(). WL_RESOURCE: their name has no room. Throws std::bad_alloc.
  static Code open(Group& group, const WireSettings& settings, std::vector<uint32_t> ranks,
                   std::unique_ptr<Hosts>* hosts, wl_error_t* error);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // By which other processes find this one; kMostNameBytes at most.
  static constexpr uint64_t kMostNameBytes = ShrinkNote::kMostNameBytes;
  const std::vector<unsigned char>& name() const { return name_; }
  // `names`: of all processes, this one's among them. A host of which nothing is heard for that
  // long is lost, before the first time 10 s at least; 0: it may be silent. WL_INVALID_ARGUMENT:
  // they name no such processes, and this is as it was. Throws std::bad_alloc, std::system_error.
  Code connect(const std::vector<std::vector<unsigned char>>& names, int64_t silenceNs,
               wl_error_t* error);
  // Once it is connected, before it goes, while the group still has it: waits till others have what
  // they were told, two seconds at most, and longer where they are in operations that a rank of
  // this process has ended, till those end; and what was dropped is unmapped. Nothing comes from
  // them any more.
  void close();
  bool isConnected() const { return thread_.joinable(); }
  int64_t silenceNs() const { return silenceNs_; }
  // Whether this host stood still for about as long just before the communicator failed, so that
  // others may have lost it. Waits until this process's thread runs again as well.
  bool hasStoodStill() const;
  // Of this process's ranks the lowest.
  uint32_t first() const { return ranks_[0]; }

  uint32_t own() const { return own_; }
  uint32_t hostOf(uint32_t rank) const;
  bool isBeside(uint32_t rank) const { return hostOf(rank) == own_; }
  // Of parts of so many bytes, one for each rank, from the first of that host's to the last.
  Part partsOf(uint32_t host, uint64_t bytes) const;
  const char* nameOf(uint32_t host) const { return names_[host].c_str(); }
  uint32_t count() const { return static_cast<uint32_t>(names_.size()); }

  // native/hosts/hosts_messages.cpp
  //
  // Once this process has stored it: tells the other hosts. What is told is short, and goes on
  // being told after a failure; what is put may be long, goes by what operations go by, and its
  // word lies behind it.
  //
  // A rank's ENTER, and what rides with it beside its line.
  struct Riding {
    const void* at;
    uint64_t bytes;
  };
  static constexpr uint32_t kMostRiding = 2;
  void tellEntry(uint32_t host, uint32_t rank, uint64_t sequence, const Riding* riding,
                 uint32_t count);
  void tell(const std::atomic<uint64_t>& word);
  void tell(const std::atomic<uint32_t>& word);
  // That host alone.
  void tell(uint32_t host, const std::atomic<uint64_t>& word);
  // What nobody waits for before this process sends there anew, as its next ENTER, or drives the
  // wire: it may go with that.
  void tellSoon(const std::atomic<uint64_t>& word);
  void tellSoon(uint32_t host, const std::atomic<uint64_t>& word);
  void tellLeft(uint32_t rank);
  void tellFailure(const wl_error_t& failure);
  // What a rank of this process says in a shrink, with its note. Any thread.
  void tellShrink(uint32_t rank);
  // Puts bytes of the control block, which stay as they are until that host has said that it took
  // them; then the word that says so.
  void put(uint32_t host, const void* at, uint64_t bytes);
  void put(uint32_t host, const void* at, uint64_t bytes, const std::atomic<uint64_t>& word,
           uint64_t value);
  void putWord(uint32_t host, const std::atomic<uint64_t>& word, uint64_t value);

  // native/hosts/hosts.cpp
  //
  // What is long goes to the process that wants it, by a connection of its own from the first time
  // on. Others land() there while `rank`, of this process, is in that turn; nullptr: no more.
  void receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes);
  // Makes the connection to that rank's process. WL_RESOURCE: this one has no memory for it;
  // WL_PEER_LOST: it takes none, and the communicator has failed.
  Code connectTo(uint32_t rank, wl_error_t* error);
  // What lies at `from` goes `at` bytes behind where that rank receives; behind all of it, that
  // word of the control block.
  void land(uint32_t rank, uint64_t turn, uint64_t at, const void* from, uint64_t bytes,
            const Unread& unread, const std::atomic<uint64_t>& word, uint64_t value);

  // native/hosts/hosts_windows.cpp
  //
  // Windows, which each host makes and numbers by itself: theirs for this host's `window`, a new
  // one. Each rank of this process comes here before any uses it.
  void nameWindow(uint32_t window, uint32_t host, uint32_t theirs);
  // What others reach one by: told by every process, which shares it once, then taken for every
  // other host. Throws std::bad_alloc.
  struct WindowKey {
    uint64_t stride;
    uint32_t bytes;
    unsigned char key[Wire::kMostKeyBytes];
  };
  Code shareWindow(void* base, uint64_t stride, WindowKey* key, wl_error_t* error);
  // `keys`: of each rank, what its process told.
  Code reachWindow(uint32_t window, const WindowKey* keys, wl_error_t* error);
  // Before it is unmapped.
  void hideWindow(void* base);
  // A rank of this process has dropped it.
  void tellDropped(uint32_t window);

  // One-sided, to `rank`'s part of the window there, or of it.
  using Move = enum : uint32_t { kStores, kAdds };
  // Before anything; false: who carried it there has closed, and the communicator has failed.
  [[nodiscard]] bool mayMove(uint32_t rank);
  // A piece of at most kMostPieceBytes: copied at once.
  static constexpr uint64_t kMostPieceBytes = uint64_t{32} << 10;
  // False of these: this process has no memory for all of it.
  [[nodiscard]] bool move(Move how, uint32_t rank, Place at, const StridedView& remote,
                          const StridedView& local, const Unread& unread);
  [[nodiscard]] bool putIn(uint32_t rank, Place at, const void* from, uint64_t bytes,
                           const Unread& unread);
  [[nodiscard]] bool getFrom(uint32_t rank, Place at, void* into, uint64_t bytes,
                             const Unread& unread);
  // `unread` counts none once all that this process has moved to that host before is there; `into`
  // is written till then.
  [[nodiscard]] bool flush(uint32_t host, uint64_t* into, const Unread& unread);
  // Behind all that this process has moved there before.
  [[nodiscard]] bool notify(uint32_t rank, Place at, uint32_t value, const Unread& unread);
  // What this process has last notified there in this window; 0: nothing.
  uint32_t notified(uint32_t rank, Place at);
  // Has nothing read or written any more that is under way there by that `unread`.
  void forget(uint32_t rank, const Unread& unread);

  // native/hosts/hosts_watch.cpp
  //
  // Has what came arrive, and wakes who waits for it.
  void progress();

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kBlock = 0;  // of a peer's memory, what it shares first

  struct Message;
  struct Parts;  // a message's head, and what follows
  struct Rest;
  struct Process {
    uint32_t host;
    std::vector<uint32_t> ranks;
    int32_t pid;
    std::string hostName;
    std::vector<unsigned char> key;
    std::vector<unsigned char> wire;
  };

  // Of a connection, by the wire's number.
  struct Connection {
    std::atomic<uint32_t> host{kNone};  // once `process` is there
    size_t process = 0;                 // of that host's
    std::atomic<bool> isLost{false};  // once `why` is there
    int64_t seenNs = 0;               // when that was seen first
    bool isTold = false;
    char why[128];
  };

  // By what messages to another host go: until a failure by what all goes by.
  struct Route {
    std::atomic<uint32_t> peer{kNone};  // the wire's number
    std::atomic<bool> moves{false};     // this process has moved something there, one-sided
    // What it ended at has closed, while others there have not: messages go to one of them by now,
    // and nothing else does.
    std::atomic<bool> hasLeft{false};
    // Written by the thread alone, once the communicator has failed, or it has left.
    uint32_t tried = kNone;    // the wire's number of what was connected last,
    size_t triedProcess = 0;   // of that host's processes
    size_t next = 0;           // of that host's processes, what it tries next
    uint32_t refusals = 0;     // by those that may live, in a row
    int64_t triedNs = 0;       // when that was
  };

  // A window as another host has it.
  struct TheirWindow {
    uint32_t number = kNone;
    uint32_t region = kNone;
    uint64_t stride = 0;
    std::map<std::tuple<uint32_t, uint64_t>, uint32_t> notified;  // by rank and offset
  };

  Hosts(Group& group, std::vector<uint32_t> ranks);

  void arrived(Run first, Run second) override;
  void lost(uint32_t peer, const char* why) override;
  // Fails the communicator, and has the thread tell others again once there is memory.
  void lackMemory() override;
  void hear(const Message& message, Rest rest);
  void store(const Message& message, Rest rest);
  void moveHere(Rest rest);
  Wire::There thereOf(uint32_t rank, Place at);
  // Publishes it, too.
  bool hasRouteLeft(uint32_t host);
  void publishRouteLeft(uint32_t host);

  // As Wire::connect(), and makes room to note the loss of that connection. WL_RESOURCE: there is
  // no memory for it.
  Code connectWire(const Process& process, uint32_t* peer, wl_error_t* error);
  void noteLost(uint32_t peer, const char* why);
  Connection& connectionOf(uint32_t peer);
  Code connectProcess(uint32_t host, size_t process, wl_error_t* error);
  Code read(const std::vector<unsigned char>& name, Process* process, wl_error_t* error) const;
  uint64_t offsetOf(const void* at) const;
  Message messageOf(const std::atomic<uint64_t>& word) const;
  // A message with its parts, behind all that was sent and put there before, and waits.
  void send(uint32_t host, const Message& message, const Wire::Part* parts, uint32_t count);
  void sendAll(const Message& message, const Wire::Part* parts, uint32_t count);
  // What may wait for what is sent there next.
  void sendSoon(uint32_t host, const Message& message);
  // Past what waits: what says that this process lives, or that the communicator has failed, after
  // which all is sent so.
  void sendPast(uint32_t host, const Message& message, const Wire::Part* parts, uint32_t count);
  void sendAllPast(const Message& message, const Wire::Part* parts, uint32_t count);
  void run();
  // Has the thread look at once.
  void ring();
  void beat();
  // Names hosts that were lost, or are silent.
  void look(int64_t now);
  // False: all of them have closed.
  bool lose(uint32_t host, const std::vector<uint32_t>& ranks, const char* why);
  void leave(uint32_t host, const Connection& connection);
  void lookAtOwn(int64_t looked);
  // How long a standstill has to be for others to have lost this host: they count from its last
  // beat, which went out up to one beat, and a turn, before.
  int64_t standstillNs() const;
  // What it was `slept` after it looked last, and before lookAtOwn().
  void noteStandstill(int64_t now, int64_t slept);
  // Whether who hears that process of another host, for this one, is awake by its own beats.
  bool isHeard(size_t process) const;
  // Has what was dropped unmapped, which may take long, by another thread.
  void sweep();
  // After a failure, or where a route has left: sees that messages reach the other hosts, and have
  // what was missed told. False: it is about to.
  bool reconnect(int64_t now);
  void tryNext(uint32_t host, Route& route);
  // Throws std::bad_alloc.
  std::vector<uint32_t> ranksOf(uint32_t host) const;
  void giveUp(uint32_t host);
  bool mayLive(const Process& process) const;
  // Which ranks of this host have left or are lost: all of them, or those that nobody was told of.
  void tellGone(bool all);
  bool haveAllLeft() const;
  // Whether a rank of another host is still in an operation that one of this process has ended.
  bool isAnyInside();
  // Of a process of another host: whether it is this one that it tells of what it does.
  bool hears(const Connection& connection) const;
  // Whether each other host, or what is left of it, knows that the communicator has failed: it
  // blames no process for closing its wire.
  bool haveHostsFailed() const;
  // Whether other hosts' ranks that hold what a shrink made have heard that ranks agreed on it.
  bool haveAllHeard() const;

  Group& group_;
  const std::vector<uint32_t> ranks_;
  uint32_t own_ = 0;
  std::vector<unsigned char> name_;
  std::vector<std::string> names_;          // of hosts
  // Of each host: the wire's number of what operations go by; kNone of this one, and until it is
  // connected.
  std::vector<std::atomic<uint32_t>> peers_;
  std::vector<Route> routes_;               // of each host
  std::vector<std::vector<Process>> processes_;  // of each host, by their lowest ranks
  size_t index_ = 0;                        // of this process, among those of this host
  std::vector<size_t> partners_;            // of each host: which of them hears all
  std::mutex connecting_;
  std::vector<std::atomic<uint32_t>> peerOf_;  // of each rank: the wire's number, or kNone
  std::mutex connectionsMutex_;             // guards which there are, and who notes a loss
  std::deque<Connection> connections_;      // by the wire's numbers
  std::mutex shrinkMutex_;                  // what is told of a shrink last was so last
  std::mutex windowMutex_;                  // guards
  std::vector<std::vector<TheirWindow>> theirs_;  // of each host, by this one's numbers
  std::atomic<bool> dropped_{false};        // by others
  std::atomic<bool> untold_{false};         // there was no memory for what was told
  OpenFile bell_;
  std::unique_ptr<Wire> wire_;              // which may ring as it goes
  std::vector<bool> toldGone_;              // of each rank of this host
  int64_t silenceNs_ = 0;
  // Of a rank, or of a process by its first one: its beats when this process looked last, and for
  // how long it has looked and seen no more.
  struct Quiet {
    uint32_t beats = 0;
    int64_t ns = 0;

    void look(uint32_t now, int64_t looked) {
      ns = now == beats ? ns + looked : 0;
      beats = now;
    }
  };
  std::vector<Quiet> quiet_;                // by rank
  // What was heard last of a rank while this process closes.
  struct Heard {
    uint32_t beats = 0;
    int64_t atNs = 0;  // 0: nothing yet
  };
  std::vector<Heard> heard_;                // by rank
  std::atomic<int64_t> lookedNs_{0};        // when this process looked last
  std::atomic<int64_t> stoodStillNs_{0};  // when it found so; 0: others go on with it since
  std::atomic<int64_t> drivenNs_{0};        // when a rank drove the wire last
  std::atomic<bool> ends_{false};
  std::thread thread_;
  std::thread sweeper_;
  std::atomic<bool> sweeps_{false};
};

}  // namespace windlass
