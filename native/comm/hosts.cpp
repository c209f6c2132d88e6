// SPDX-License-Identifier: Apache-2.0
#include "native/comm/hosts.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "native/base/clock.h"
#include "native/base/dtype.h"
#include "native/base/extent.h"
#include "native/base/no_signals.h"
#include "native/comm/failure_text.h"
#include "native/comm/group.h"
#include "native/comm/kernels.h"

namespace windlass {
namespace {

constexpr uint32_t kMostHosts = 64;
constexpr int64_t kBeatNs = 100'000'000;
// Of a host that nothing has come from yet: where packets are lost, TCP asks for a connection again
// after 1, 3 and 7 s.
constexpr int64_t kFirstNs = 10'000'000'000;
// How long this process's thread leaves the wire to ranks that drove it last.
constexpr int64_t kLeftNs = 200'000;
// After a failure: between two looks at connections, and how long one is left to be refused; and
// how long one lasts that was not.
constexpr int64_t kLookNs = 20'000'000;
constexpr int64_t kLastingNs = 1'000'000'000;
// Between the loss of a connection and the first try at another: a process that is dying takes one
// yet, and UCX 1.13 then ends this one.
constexpr int64_t kDyingNs = 50'000'000;
// How often in a row each process of a host refuses before the host is lost.
constexpr uint32_t kMostRefusals = 3;
// For what was sent to leave, and for others to leave as well, before the wire is closed; after a
// failure, for other hosts to say that they know of it.
constexpr int64_t kCloseNs = 1'000'000'000;
constexpr int64_t kFailedCloseNs = 200'000'000;
constexpr uint32_t kHelloMagic = 0x57484f31;

// How a process is named to others: this, its ranks, the key of its block, and its wire.
struct Hello {
  uint32_t magic;
  uint32_t host;
  uint32_t ranks;
  int32_t pid;
  uint64_t layout;
  uint64_t blockBytes;
  uint32_t keyBytes;
  char hostName[60];
};

enum class Kind : uint32_t { kStore = 1, kLeft, kLost, kFailure, kDropped, kMove };

// What follows of kMove, before its elements, packed in the order of its dimensions.
struct View {
  uint32_t rank;
  uint32_t window;
  uint64_t offset;
  uint32_t adds;
  uint32_t dtype;
  uint32_t ndim;
  uint32_t unused;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
};

// What a rank's state tells its peers: what stands before `closing`.
constexpr uint64_t kStateBytes = offsetof(State, closing);
// Of an ENTER, behind its sequence and its core, which is of another machine.
constexpr uint64_t kEntryAt = offsetof(Entry, descriptor);

}  // namespace

// Bytes of each range follow; the word is stored behind them.
struct Hosts::Message {
  static constexpr uint32_t kMostRanges = 2 + kMostRiding;

  Kind kind = Kind::kStore;
  // Of ranges; kLeft, kLost: the rank; kFailure: a rank of who tells; kDropped: the window.
  uint32_t count = 0;
  uint64_t wordAt = 0;
  uint64_t word = 0;
  uint32_t wordBytes = 0;  // 4 or 8; 0: there is none
  uint32_t unused = 0;
  struct Range {
    uint64_t at;
    uint64_t bytes;
  } ranges[kMostRanges] = {};
};

Hosts::Hosts(Group& group, std::vector<uint32_t> ranks) : group_(group), ranks_(std::move(ranks)) {}

Code Hosts::open(Group& group, const WireSettings& settings, std::vector<uint32_t> ranks,
                 std::unique_ptr<Hosts>* hosts, wl_error_t* error) {
  std::unique_ptr<Hosts> made(new Hosts(group, std::move(ranks)));
  const uint32_t count = group.config().hosts;
  if (count > kMostHosts)
    return fail(error, WL_UNSUPPORTED, "%u hosts, of which %u may meet", count, kMostHosts);
  made->own_ = made->hostOf(made->ranks_[0]);
  for (const uint32_t rank : made->ranks_) {
    if (made->hostOf(rank) == made->own_) continue;
    return fail(error, WL_INVALID_ARGUMENT, "ranks %u and %u of one process are on two hosts",
                made->ranks_[0], rank);
  }
  made->names_.resize(count);
  made->peers_ = std::vector<std::atomic<uint32_t>>(count);
  for (std::atomic<uint32_t>& peer : made->peers_) peer.store(kNone, std::memory_order_relaxed);
  made->routes_ = std::vector<Route>(count);
  made->toldGone_.resize(group.ranks());
  made->far_.resize(count, std::vector<FarWindow>(kMostWindows));
  made->keys_.resize(kMostWindows);
  made->beats_.resize(count);
  made->quietNs_.resize(count);
  made->bell_ = OpenFile(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->bell_)
    return fail(error, WL_RESOURCE, "no event file for the wire: %s", std::strerror(errno));
  if (Code code = openWire(settings, *made, &made->wire_, error); code != WL_OK) return code;
  const ControlBlock& block = group.block();
  std::vector<unsigned char> wire;
  std::vector<unsigned char> key;
  const uint64_t blockBytes = ControlBlock::bytes(group.config());
  if (Code code = made->wire_->address(&wire, error); code != WL_OK) return code;
  Code code = made->wire_->share(reinterpret_cast<void*>(block.base()), blockBytes, &key, error);
  if (code != WL_OK) return code;
  Hello hello = {};
  hello.magic = kHelloMagic;
  hello.host = made->own_;
  hello.ranks = static_cast<uint32_t>(made->ranks_.size());
  hello.pid = getpid();
  hello.layout = group.shared().layout.load(std::memory_order_relaxed);
  hello.blockBytes = blockBytes;
  hello.keyBytes = static_cast<uint32_t>(key.size());
  const char* const named = std::getenv("WINDLASS_HOST");
  if (named != nullptr && *named != 0)
    std::snprintf(hello.hostName, sizeof hello.hostName, "%s", named);
  else if (gethostname(hello.hostName, sizeof hello.hostName - 1) != 0)
    hello.hostName[0] = '?';
  std::vector<unsigned char>& name = made->name_;
  const auto add = [&](const void* bytes, uint64_t length) {
    const auto* from = static_cast<const unsigned char*>(bytes);
    name.insert(name.end(), from, from + length);
  };
  add(&hello, sizeof hello);
  add(made->ranks_.data(), made->ranks_.size() * sizeof(uint32_t));
  add(key.data(), key.size());
  add(wire.data(), wire.size());
  *hosts = std::move(made);
  return WL_OK;
}

Code Hosts::read(const std::vector<unsigned char>& name, Process* process,
                 wl_error_t* error) const {
  Hello hello;
  const uint32_t ranks = group_.ranks();
  if (name.size() >= sizeof hello) std::memcpy(&hello, name.data(), sizeof hello);
  if (name.size() < sizeof hello || hello.magic != kHelloMagic || hello.ranks == 0 ||
      hello.ranks > ranks || hello.host >= count() ||
      hello.keyBytes > Wire::kMostKeyBytes ||
      name.size() < sizeof hello + hello.ranks * sizeof(uint32_t) + hello.keyBytes) {
    return fail(error, WL_INVALID_ARGUMENT, "%zu bytes name no process of this communicator",
                name.size());
  }
  if (hello.layout != group_.shared().layout.load(std::memory_order_relaxed) ||
      hello.blockBytes != ControlBlock::bytes(group_.config())) {
    return fail(error, WL_INVALID_ARGUMENT,
                "a process of host %u has another version of this library, or another "
                "configuration of the communicator; have the same on all hosts",
                hello.host);
  }
  process->host = hello.host;
  process->pid = hello.pid;
  process->hostName.assign(hello.hostName, strnlen(hello.hostName, sizeof hello.hostName));
  process->ranks.resize(hello.ranks);
  const unsigned char* at = name.data() + sizeof hello;
  std::memcpy(process->ranks.data(), at, hello.ranks * sizeof(uint32_t));
  for (const uint32_t rank : process->ranks) {
    if (rank < ranks && hostOf(rank) == hello.host) continue;
    return fail(error, WL_INVALID_ARGUMENT, "a process of host %u says that it has rank %u",
                hello.host, rank);
  }
  at += hello.ranks * sizeof(uint32_t);
  process->key.assign(at, at + hello.keyBytes);
  process->wire.assign(at + hello.keyBytes, name.data() + name.size());
  return WL_OK;
}

Code Hosts::connect(const std::vector<std::vector<unsigned char>>& names, int64_t silenceNs,
                    wl_error_t* error) {
  std::vector<std::vector<Process>> all(count());
  std::vector<bool> told(group_.ranks());
  for (const std::vector<unsigned char>& name : names) {
    Process process;
    if (Code code = read(name, &process, error); code != WL_OK) return code;
    for (const uint32_t rank : process.ranks) {
      if (told[rank])
        return fail(error, WL_INVALID_ARGUMENT, "two processes say that they have rank %u", rank);
      told[rank] = true;
    }
    all[process.host].push_back(std::move(process));
  }
  for (uint32_t rank = 0; rank < told.size(); ++rank)
    if (!told[rank])
      return fail(error, WL_INVALID_ARGUMENT, "no process says that it has rank %u", rank);
  size_t index = 0;  // of this process, on its host
  for (std::vector<Process>& processes : all) {
    std::sort(processes.begin(), processes.end(),
              [](const Process& a, const Process& b) { return a.ranks[0] < b.ranks[0]; });
  }
  while (all[own_][index].ranks[0] != ranks_[0]) ++index;
  for (uint32_t host = 0; host < count(); ++host) {
    names_[host] = all[host][0].hostName;
    if (host == own_) continue;
    for (const Process& process : all[host]) {
      for (const uint32_t rank : process.ranks) {
        Member& member = group_.member(rank);
        member.pid.store(process.pid, std::memory_order_relaxed);
        member.joined.store(1, std::memory_order_release);
      }
    }
  }
  partners_.resize(count());
  peerOf_ = std::vector<std::atomic<uint32_t>>(group_.ranks());
  for (std::atomic<uint32_t>& peer : peerOf_) peer.store(kNone, std::memory_order_relaxed);
  connections_ = std::vector<Connection>(names.size());
  processes_ = std::move(all);
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    partners_[host] = index % processes_[host].size();
    if (Code code = connectProcess(host, partners_[host], error); code != WL_OK) return code;
    const uint32_t peer = peerOf_[processes_[host][partners_[host]].ranks[0]];
    peers_[host] = peer;
    routes_[host].peer = peer;
    routes_[host].tried = peer;
    routes_[host].next = partners_[host];
  }
  silenceNs_ = silenceNs;
  lookedNs_ = clockNs();
  const NoSignals masked;
  thread_ = std::thread([this] { run(); });
  return WL_OK;
}

Code Hosts::connectProcess(uint32_t host, size_t number, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(connecting_);
  const Process& process = processes_[host][number];
  if (peerOf_[process.ranks[0]] != kNone) return WL_OK;
  uint32_t peer = 0;
  uint32_t region = 0;
  Code code = wire_->connect(process.wire.data(), process.wire.size(), &peer, error);
  if (code == WL_OK)
    code = wire_->reach(peer, process.key.data(), process.key.size(), &region, error);
  if (code != WL_OK) return code;
  // Who connects anew after a failure counts on.
  if (peer >= connections_.size()) return fail(error, WL_PEER_LOST, "the communicator has failed");
  connections_[peer].process = number;
  connections_[peer].host.store(host, std::memory_order_release);
  for (const uint32_t rank : process.ranks) peerOf_[rank].store(peer, std::memory_order_release);
  return WL_OK;
}

Code Hosts::connectTo(uint32_t rank, wl_error_t* error) {
  if (peerOf_[rank] != kNone) return WL_OK;
  const std::vector<Process>& all = processes_[hostOf(rank)];
  const auto found = std::find_if(all.begin(), all.end(), [&](const Process& process) {
    return std::find(process.ranks.begin(), process.ranks.end(), rank) != process.ranks.end();
  });
  return connectProcess(hostOf(rank), static_cast<size_t>(found - all.begin()), error);
}

void Hosts::receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) {
  wire_->receive(rank, turn, into, bytes);
}

void Hosts::land(uint32_t rank, uint64_t turn, uint64_t at, const void* from, uint64_t bytes,
                 const Unread& unread, const std::atomic<uint64_t>& word, uint64_t value) {
  const uint32_t peer = peerOf_[rank];
  if (bytes == 0) return wire_->putWord({peer, kBlock, offsetOf(&word)}, value);
  wire_->land({peer, rank, turn, at}, from, bytes, unread, {kBlock, offsetOf(&word), value});
}

Hosts::~Hosts() {
  if (thread_.joinable()) {
    // Others may still read what they were sent last, or send what this process drops.
    const int64_t start = clockNs();
    const auto mayEnd = [&] {
      if (group_.failure() == nullptr) return haveAllLeft();
      return haveAllHeard() && (haveHostsFailed() || clockNs() - start > kFailedCloseNs);
    };
    while (!mayEnd() && clockNs() - start < kCloseNs) usleep(200);
    ends_.store(true);
    ring();
    thread_.join();
    wire_->flush(kCloseNs);
  }
  wire_.reset();
}

bool Hosts::haveAllLeft() const {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank)
    if (group_.lines(rank).state.left.load(std::memory_order_seq_cst) == 0) return false;
  return true;
}

bool Hosts::haveHostsFailed() const {
  const wl_error_t& failure = *group_.failure();
  const int32_t* const end =
      failure.culprits + std::min<int32_t>(failure.culprit_count, WL_ERROR_CULPRITS);
  for (uint32_t host = 0; host < count(); ++host) {
    bool knows = host == own_;
    bool mayLive = false;
    for (uint32_t rank = 0; rank < group_.ranks() && !knows; ++rank) {
      if (hostOf(rank) != host) continue;
      const Member& member = group_.member(rank);
      knows = member.saysFailed.load(std::memory_order_relaxed) != 0;
      mayLive |= member.lost.load(std::memory_order_relaxed) == 0 &&
                 group_.lines(rank).state.left.load(std::memory_order_relaxed) == 0 &&
                 std::find(failure.culprits, end, static_cast<int32_t>(rank)) == end;
    }
    if (mayLive && !knows) return false;
  }
  return true;
}

bool Hosts::haveAllHeard() const {
  const Agreement agreed = group_.agreement();
  if (agreed.step != Agreement::kAgreed) return true;
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    const Member& member = group_.member(rank);
    const bool holds =
        member.shrink.load(std::memory_order_acquire) == Agreement::holds(agreed.round);
    const bool isGone = member.lost.load(std::memory_order_relaxed) != 0 ||
                        group_.lines(rank).state.left.load(std::memory_order_relaxed) != 0;
    const Agreement theirs = Agreement::of(member.agreement.load(std::memory_order_acquire));
    if (!isHere(rank) && holds && !isGone && theirs.step != Agreement::kAgreed) return false;
  }
  return true;
}

uint32_t Hosts::hostOf(uint32_t rank) const {
  return group_.member(rank).host;
}

uint64_t Hosts::offsetOf(const void* at) const {
  return reinterpret_cast<uint64_t>(at) - group_.block().base();
}

void Hosts::send(uint32_t host, const Message& message, const Wire::Part* parts, uint32_t count) {
  const uint32_t peer = routes_[host].peer.load(std::memory_order_acquire);
  if (peer == kNone) return;
  Wire::Part all[1 + Message::kMostRanges] = {{&message, sizeof message}};
  for (uint32_t i = 0; i < count; ++i) all[1 + i] = parts[i];
  wire_->send(peer, all, 1 + count);
}

void Hosts::sendAll(const Message& message, const Wire::Part* parts, uint32_t count) {
  for (uint32_t host = 0; host < this->count(); ++host) send(host, message, parts, count);
}

void Hosts::tellEntry(uint32_t rank, uint64_t sequence, const Riding* riding, uint32_t count) {
  const RankLines& lines = group_.lines(rank);
  const Entry& entry = lines.entry[sequence & 1];
  Message message;
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
  sendAll(message, parts, message.count);
}

void Hosts::tell(const std::atomic<uint64_t>& word) {
  for (uint32_t host = 0; host < count(); ++host) tell(host, word);
}

void Hosts::tell(uint32_t host, const std::atomic<uint64_t>& word) {
  Message message;
  message.wordAt = offsetOf(&word);
  message.word = word.load(std::memory_order_relaxed);
  message.wordBytes = sizeof(uint64_t);
  send(host, message, nullptr, 0);
}

void Hosts::tell(const std::atomic<uint32_t>& word) {
  Message message;
  message.wordAt = offsetOf(&word);
  message.word = word.load(std::memory_order_relaxed);
  message.wordBytes = sizeof(uint32_t);
  sendAll(message, nullptr, 0);
}

void Hosts::tellBytes(const void* at, uint64_t bytes) {
  Message message;
  message.count = 1;
  message.ranges[0] = {offsetOf(at), bytes};
  const Wire::Part part = {at, bytes};
  sendAll(message, &part, 1);
}

void Hosts::tellLeft(uint32_t rank) {
  // Whoever told of the failure did so to other processes, which may hear of it later, or be gone.
  if (const wl_error_t* failure = group_.failure()) tellFailure(*failure);
  Message message;
  message.kind = Kind::kLeft;
  message.count = rank;
  sendAll(message, nullptr, 0);
}

void Hosts::tellFailure(const wl_error_t& failure) {
  Message message;
  message.kind = Kind::kFailure;
  message.count = first();
  const Wire::Part part = {&failure, sizeof failure};
  sendAll(message, &part, 1);
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
  wire_->put({peers_[host], kBlock, offsetOf(at)}, at, bytes, nullptr, nullptr);
}

void Hosts::put(uint32_t host, const void* at, uint64_t bytes, const std::atomic<uint64_t>& word,
                uint64_t value) {
  if (bytes == 0) return putWord(host, word, value);
  const Wire::Word behind = {kBlock, offsetOf(&word), value};
  wire_->put({peers_[host], kBlock, offsetOf(at)}, at, bytes, nullptr, &behind);
}

void Hosts::putWord(uint32_t host, const std::atomic<uint64_t>& word) {
  putWord(host, word, word.load(std::memory_order_relaxed));
}

void Hosts::putWord(uint32_t host, const std::atomic<uint64_t>& word, uint64_t value) {
  wire_->putWord({peers_[host], kBlock, offsetOf(&word)}, value);
}

void Hosts::putWord(const std::atomic<uint64_t>& word) {
  for (uint32_t host = 0; host < count(); ++host)
    if (peers_[host] != kNone) putWord(host, word);
}

void Hosts::arrived(const unsigned char* bytes, uint64_t count) {
  Message message;
  if (count < sizeof message) return;
  std::memcpy(&message, bytes, sizeof message);
  const unsigned char* at = bytes + sizeof message;
  const uint64_t left = count - sizeof message;
  switch (message.kind) {
    case Kind::kLeft:
      if (message.count >= group_.ranks() || isHere(message.count)) return;
      if (group_.lines(message.count).state.left.exchange(1, std::memory_order_seq_cst) == 0)
        group_.shared().leavers.fetch_add(1, std::memory_order_seq_cst);
      return;
    case Kind::kLost:
      if (message.count >= group_.ranks() || isHere(message.count)) return;
      group_.member(message.count).lost.store(1, std::memory_order_seq_cst);
      return;
    case Kind::kFailure: {
      if (left != sizeof(wl_error_t)) return;
      wl_error_t record;
      std::memcpy(&record, at, sizeof record);
      record.struct_size = sizeof record;
      record.message[sizeof record.message - 1] = 0;
      record.culprit_count = std::clamp<int32_t>(record.culprit_count, 0,
                                                 static_cast<int32_t>(group_.ranks()));
      if (record.code <= WL_OK || record.code > WL_INTERNAL) return;
      group_.publishHere(record);
      if (message.count < group_.ranks() && !isHere(message.count))
        group_.member(message.count).saysFailed.store(1, std::memory_order_relaxed);
      // The thread tells others that this host knows.
      ring();
      return;
    }
    case Kind::kDropped:
      if (message.count >= kMostWindows) return;
      group_.shared().holders[message.count].fetch_sub(1, std::memory_order_seq_cst);
      dropped_.store(true, std::memory_order_release);
      return;
    case Kind::kMove:
      return moveHere(message, at, left);
    case Kind::kStore:
      return store(message, at, left);
  }
}

void Hosts::store(const Message& message, const unsigned char* at, uint64_t left) {
  auto* const base = reinterpret_cast<unsigned char*>(group_.block().base());
  const uint64_t end = ControlBlock::bytes(group_.config());
  const auto isWithin = [&](uint64_t from, uint64_t length) {
    return from >= sizeof(SharedLines) && from <= end && length <= end - from;
  };
  if (message.count > Message::kMostRanges) return;
  for (uint32_t i = 0; i < message.count; ++i) {
    const Message::Range& range = message.ranges[i];
    if (range.bytes > left || !isWithin(range.at, range.bytes)) return;
    std::memcpy(base + range.at, at, range.bytes);
    at += range.bytes;
    left -= range.bytes;
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

// The wire is held: what follows of it comes with look().
void Hosts::lost(uint32_t peer, const char* why) {
  if (peer < connections_.size()) {
    Connection& connection = connections_[peer];
    std::snprintf(connection.why, sizeof connection.why, "%s", why);
    connection.isLost.store(true, std::memory_order_release);
  }
  ring();
}

void Hosts::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.number(), &one, sizeof one);
}

void Hosts::nameWindow(uint32_t window, uint32_t host, uint32_t theirs) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  far_[host][window] = {theirs, kNone, 0};
}

Code Hosts::shareWindow(uint32_t window, void* base, uint64_t stride, WindowKey* key,
                        wl_error_t* error) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  std::vector<unsigned char>& own = keys_[window];
  if (own.empty()) {
    std::vector<unsigned char> made;
    if (Code code = wire_->share(base, stride * group_.ranks(), &made, error); code != WL_OK)
      return code;
    own = std::move(made);
  }
  key->stride = stride;
  key->bytes = static_cast<uint32_t>(own.size());
  std::copy(own.begin(), own.end(), key->key);
  return WL_OK;
}

Code Hosts::reachWindow(uint32_t window, const WindowKey* keys, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    FarWindow& far = far_[host][window];
    if (far.region != kNone) continue;  // by another rank of this process
    const WindowKey& key = keys[processes_[host][partners_[host]].ranks[0]];
    if (key.bytes > sizeof key.key)
      return fail(error, WL_INVALID_ARGUMENT, "host %u tells no key of a window", host);
    const Code code = wire_->reach(peers_[host], key.key, key.bytes, &far.region, error);
    if (code != WL_OK) return code;
    far.stride = key.stride;
  }
  return WL_OK;
}

void Hosts::hideWindow(uint32_t window, void* base) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  if (keys_[window].empty()) return;
  keys_[window].clear();
  wire_->hide(base);
}

void Hosts::tellDropped(uint32_t window) {
  for (uint32_t host = 0; host < count(); ++host) {
    Message message;
    message.kind = Kind::kDropped;
    {
      std::lock_guard<std::mutex> lock(windowMutex_);
      message.count = far_[host][window].number;
    }
    if (message.count != kNone) send(host, message, nullptr, 0);
  }
}

Wire::There Hosts::thereOf(uint32_t rank, Place at) {
  const uint32_t host = hostOf(rank);
  std::lock_guard<std::mutex> lock(windowMutex_);
  const FarWindow& far = far_[host][at.window()];
  return {peers_[host], far.region, rank * far.stride + at.offset()};
}

void Hosts::move(Move how, uint32_t rank, Place at, const StridedView& remote,
                 const StridedView& local) {
  alignas(16) unsigned char packed[kMostPieceBytes];
  const uint32_t host = hostOf(rank);
  View view = {};
  view.rank = rank;
  view.offset = at.offset();
  view.adds = how == kAdds ? 1 : 0;
  view.dtype = static_cast<uint32_t>(remote.dtype);
  view.ndim = remote.ndim;
  int64_t dense[kMaxDims];
  auto bytes = static_cast<int64_t>(sizeOf(remote.dtype));
  int64_t step = 1;
  for (uint32_t d = remote.ndim; d-- > 0; step *= remote.shape[d]) {
    view.shape[d] = remote.shape[d];
    view.strides[d] = remote.strides[d];
    dense[d] = step;
    bytes *= remote.shape[d];
  }
  kKernels.get({packed, local.dtype, local.ndim, local.shape, dense}, local);
  Message message;
  message.kind = Kind::kMove;
  {
    std::lock_guard<std::mutex> lock(windowMutex_);
    view.window = far_[host][at.window()].number;
  }
  const Wire::Part parts[] = {{&view, sizeof view}, {packed, static_cast<uint64_t>(bytes)}};
  send(host, message, parts, 2);
}

void Hosts::moveHere(const Message&, const unsigned char* at, uint64_t left) {
  View view;
  if (left < sizeof view) return;
  std::memcpy(&view, at, sizeof view);
  left -= sizeof view;
  if (view.rank >= group_.ranks() || !isHere(view.rank) || view.window <= kControlBlock ||
      view.window >= kMostWindows || view.ndim > kMaxDims || view.dtype >= WL_DTYPE_COUNT) {
    return;
  }
  const auto dtype = static_cast<DType>(view.dtype);
  const uint64_t elementBytes = sizeOf(dtype);
  uint64_t elements = 1;
  int64_t dense[kMaxDims];
  for (uint32_t d = view.ndim; d-- > 0;) {
    if (view.shape[d] < 0 || view.strides[d] < 0) return;
    dense[d] = static_cast<int64_t>(elements);
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(view.shape[d]), &elements)) return;
  }
  int64_t reach = 0;
  if (elements == 0 || left / elementBytes != elements || left % elementBytes != 0 ||
      left > kMostPieceBytes ||
      !extentOf(view.ndim, view.shape, view.strides, elementBytes, &reach)) {
    return;
  }
  void* const there =
      group_.within(view.rank, view.window, view.offset, static_cast<uint64_t>(reach));
  if (there == nullptr || reinterpret_cast<uint64_t>(there) % elementBytes != 0) return;
  alignas(16) unsigned char packed[kMostPieceBytes];
  std::memcpy(packed, at + sizeof view, left);
  const StridedView to = {there, dtype, view.ndim, view.shape, view.strides};
  const StridedView from = {packed, dtype, view.ndim, view.shape, dense};
  if (view.adds == 0) {
    kKernels.put(to, from);
  } else if (canAccumulate(dtype)) {
    kKernels.accumulate(to, from);
  }
}

void Hosts::put(uint32_t rank, Place at, const void* from, uint64_t bytes, const Unread& unread) {
  wire_->put(thereOf(rank, at), from, bytes, unread, nullptr);
}

void Hosts::get(uint32_t rank, Place at, void* into, uint64_t bytes, const Unread& unread) {
  wire_->get(thereOf(rank, at), into, bytes, unread);
}

void Hosts::notify(uint32_t rank, Place at, uint32_t value) {
  {
    std::lock_guard<std::mutex> lock(windowMutex_);
    notified_[{rank, at.word}] = value;
  }
  wire_->putWord(thereOf(rank, at), value);
}

uint32_t Hosts::notified(uint32_t rank, Place at) {
  std::lock_guard<std::mutex> lock(windowMutex_);
  const auto found = notified_.find({rank, at.word});
  return found == notified_.end() ? 0 : found->second;
}

void Hosts::drop(uint32_t rank) {
  wire_->drop(peers_[hostOf(rank)]);
  const uint32_t own = peerOf_[rank];
  if (own != kNone && own != peers_[hostOf(rank)]) wire_->drop(own);
}

void Hosts::progress() {
  if (wire_->progress() > 0) group_.wakeSleepers();
  drivenNs_.store(clockNs(), std::memory_order_relaxed);
}

void Hosts::lose(uint32_t host, const std::vector<uint32_t>& ranks, const char* why) {
  wl_error_t record = blankError(WL_PEER_LOST);
  Text out(record.message, sizeof record.message);
  const auto hasLeft = [&](uint32_t rank) {
    return group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
  };
  uint32_t lost = 0;
  for (const uint32_t rank : ranks) {
    if (hasLeft(rank)) continue;
    if (lost < WL_ERROR_CULPRITS) record.culprits[lost] = static_cast<int32_t>(rank);
    ++lost;
  }
  if (lost == 0) return;
  record.culprit_count = static_cast<int32_t>(lost);
  record.observer = static_cast<int32_t>(ranks_[0]);
  out.add("host %u (%s) is lost, with", host, nameOf(host));
  for (uint32_t i = 0; i < std::min<uint32_t>(lost, 8); ++i)
    out.add("%s rank %d", i == 0 ? "" : ",", record.culprits[i]);
  if (lost > 8) out.add(" and %u more", lost - 8);
  out.add(": %s", why);
  group_.publishFailure(record);
}

void Hosts::look(int64_t now) {
  for (Connection& connection : connections_) {
    const uint32_t host = connection.host.load(std::memory_order_acquire);
    if (connection.isTold || host == kNone || !connection.isLost.load(std::memory_order_acquire))
      continue;
    connection.isTold = true;
    const Process& process = processes_[host][connection.process];
    char why[256];
    std::snprintf(why, sizeof why, "the connection to its process %d broke (%s)", process.pid,
                  connection.why);
    lose(host, process.ranks, why);
  }
  // What this process has slept through says nothing of others.
  const int64_t looked = std::min(now - lookedNs_, 2 * kBeatNs);
  lookedNs_ = now;
  if (silenceNs_ == 0) return;
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    uint32_t beats = 0;
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
      if (hostOf(rank) != host) continue;
      beats += group_.member(rank).beats.load(std::memory_order_relaxed);
      ranks.push_back(rank);
    }
    int64_t& quiet = quietNs_[host];
    quiet = beats == beats_[host] ? quiet + looked : 0;
    beats_[host] = beats;
    if (quiet <= (beats == 0 ? std::max(silenceNs_, kFirstNs) : silenceNs_)) continue;
    char why[256];
    std::snprintf(why, sizeof why,
                  "nothing came from it for %.1f s: the link is cut, or the host stands still",
                  static_cast<double>(quiet) / 1e9);
    quiet = 0;
    lose(host, ranks, why);
    giveUp(host);
  }
}

// Tells what peers may want to know of ranks that wait, and that this process lives.
void Hosts::beat() {
  for (const uint32_t rank : ranks_) {
    const State& state = group_.lines(rank).state;
    Member& member = group_.member(rank);
    Message message;
    message.count = 1;
    message.ranges[0] = {offsetOf(&state), kStateBytes};
    message.wordAt = offsetOf(&member.beats);
    message.word = member.beats.fetch_add(1, std::memory_order_relaxed) + 1;
    message.wordBytes = sizeof(uint32_t);
    const Wire::Part part = {&state, kStateBytes};
    sendAll(message, &part, 1);
    // It may have found no connection when it said so.
    if (member.shrink.load(std::memory_order_seq_cst) != 0) tellShrink(rank);
  }
}

bool Hosts::mayLive(const Process& process) const {
  return std::any_of(process.ranks.begin(), process.ranks.end(), [&](uint32_t rank) {
    return group_.member(rank).lost.load(std::memory_order_relaxed) == 0;
  });
}

void Hosts::giveUp(uint32_t host) {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank)
    if (hostOf(rank) == host) group_.member(rank).lost.store(1, std::memory_order_seq_cst);
}

// What refuses a connection does so at once, or within kLookNs.
void Hosts::tryNext(uint32_t host, Route& route) {
  const std::vector<Process>& processes = processes_[host];
  for (size_t each = 0; each < processes.size(); ++each) {
    const Process& process = processes[route.next];
    route.next = (route.next + 1) % processes.size();
    if (!mayLive(process)) continue;
    if (++route.refusals > kMostRefusals * processes.size()) break;
    wl_error_t why = blankError();
    uint32_t peer = 0;
    if (wire_->connect(process.wire.data(), process.wire.size(), &peer, &why) == WL_OK)
      route.tried = peer;
    return;
  }
  giveUp(host);
}

void Hosts::reconnect(int64_t now) {
  for (uint32_t host = 0; host < count(); ++host) {
    Route& route = routes_[host];
    if (host == own_ || now - route.triedNs < kLookNs) continue;
    if (route.tried != kNone && !wire_->isLost(route.tried)) {
      if (now - route.triedNs > kLastingNs) route.refusals = 0;
      if (route.peer.load(std::memory_order_relaxed) == route.tried) continue;
      route.peer.store(route.tried, std::memory_order_release);
      // What was told meanwhile was told to nobody there.
      tellFailure(*group_.failure());
      tellGone(true);
      beat();
      continue;
    }
    const std::vector<Process>& processes = processes_[host];
    const bool isOver = std::none_of(processes.begin(), processes.end(),
                                     [&](const Process& process) { return mayLive(process); });
    if (route.tried != kNone) {
      route.tried = kNone;
      route.peer.store(kNone, std::memory_order_release);
      route.triedNs = now + kDyingNs - kLookNs;
      continue;
    }
    if (isOver) continue;
    route.triedNs = now;
    tryNext(host, route);
  }
}

void Hosts::tellGone(bool all) {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (!isHere(rank)) continue;
    const bool hasLeft = group_.lines(rank).state.left.load(std::memory_order_seq_cst) != 0;
    const bool isLost = group_.member(rank).lost.load(std::memory_order_seq_cst) != 0;
    if ((!hasLeft && !isLost) || (toldGone_[rank] && !all)) continue;
    toldGone_[rank] = true;
    Message message;
    message.count = rank;
    for (const Kind kind : {Kind::kLeft, Kind::kLost}) {
      message.kind = kind;
      if (kind == Kind::kLeft ? hasLeft : isLost) sendAll(message, nullptr, 0);
    }
  }
}

void Hosts::run() {
  int64_t beaten = 0;
  const wl_error_t* failure = nullptr;
  while (!ends_.load()) {
    const int64_t now = clockNs();
    if (failure == nullptr && (failure = group_.failure()) != nullptr) tellFailure(*failure);
    const bool beats = now - beaten >= kBeatNs;
    if (beats) {
      beaten = now;
      beat();
    }
    try {
      look(now);
      if (failure != nullptr) {
        reconnect(now);
        tellGone(beats);
      }
    } catch (const std::bad_alloc&) {
      // It looks again.
    }
    if (dropped_.exchange(false)) group_.sweepWindows();
    const int64_t driven = drivenNs_.load(std::memory_order_relaxed);
    if (now - driven < kLeftNs) {
      usleep(kLeftNs / 1000);
      if (clockNs() - drivenNs_.load(std::memory_order_relaxed) < kLeftNs) continue;
    }
    if (wire_->progress() > 0) {
      group_.wakeSleepers();
      continue;
    }
    if (!wire_->arm()) continue;
    pollfd files[2] = {{wire_->file(), POLLIN, 0}, {bell_.number(), POLLIN, 0}};
    const int64_t restNs = failure == nullptr ? kBeatNs : kLookNs;
    poll(files, 2, static_cast<int>(restNs / 1'000'000));
    uint64_t rung = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.number(), &rung, sizeof rung);
  }
}

}  // namespace windlass
