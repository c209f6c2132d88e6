// SPDX-License-Identifier: Apache-2.0
#include "native/hosts/hosts.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "native/base/clock.h"
#include "native/base/makes_threads.h"
#include "native/core/group.h"

namespace windlass {
namespace {

constexpr uint32_t kMostHosts = 64;
// Limits on close(). kCloseNs: for messages to leave, and for other hosts to leave. kFailedCloseNs:
// after a failure, for other hosts to report that they know of it.
constexpr int64_t kCloseNs = 1'000'000'000;
constexpr int64_t kFailedCloseNs = 200'000'000;
// During close(), a rank that sends nothing for this long no longer counts as inside an operation.
constexpr int64_t kHeardNs = 2'000'000'000;
constexpr uint32_t kHelloMagic = 0x57484f31;
// Version of the protocol between hosts (native/hosts/hosts_message.h, and Move in
// native/hosts/ucx/library). Change it with any change of the protocol.
constexpr uint64_t kProtocol = 4;

// Head of a process's name. Its ranks, the key of its control block and its wire's name follow.
struct Hello {
  uint32_t magic;
  uint32_t host;
  uint32_t ranks;
  int32_t pid;
  uint64_t layout;
  uint64_t blockBytes;
  uint32_t keyBytes;
  char hostName[HOST_NAME_MAX + 1];
};

}  // namespace

Hosts::Hosts(Group& group, std::vector<uint32_t> ranks) : group_(group), ranks_(std::move(ranks)) {}

Code OtherHosts::open(Group& group, std::vector<uint32_t> ranks,
                      std::unique_ptr<OtherHosts>* hosts, wl_error_t* error) {
  return Hosts::open(group, WireSettings::ofEnvironment(), std::move(ranks), hosts, error);
}

Code Hosts::open(Group& group, const WireSettings& settings, std::vector<uint32_t> ranks,
                 std::unique_ptr<OtherHosts>* hosts, wl_error_t* error) {
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
  made->theirs_.resize(count, std::vector<TheirWindow>(kMostWindows));
  made->quiet_.resize(group.ranks());
  made->heard_.resize(group.ranks());
  made->bell_ = OpenFile(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->bell_)
    return fail(error, WL_RESOURCE, "no event file for the wire: %s", std::strerror(errno));
  if (Code code = openWire(settings, *made, &made->wire_, error); code != WL_OK) return code;
  const ControlBlock& block = group.block();
  std::vector<unsigned char> wire;
  std::vector<unsigned char> key;
  const uint64_t blockBytes = ControlBlock::bytes(group.config());
  if (Code code = made->wire_->address(&wire, error); code != WL_OK) return code;
  auto* const base = reinterpret_cast<void*>(block.base());
  Code code = made->wire_->share(base, blockBytes, &key, error);
  if (code != WL_OK) return code;
  Hello hello = {};
  hello.magic = kHelloMagic;
  hello.host = made->own_;
  hello.ranks = static_cast<uint32_t>(made->ranks_.size());
  hello.pid = getpid();
  hello.layout = group.shared().layout.load(std::memory_order_relaxed) + kProtocol;
  hello.blockBytes = blockBytes;
  hello.keyBytes = static_cast<uint32_t>(key.size());
  const char* const named = std::getenv("WINDLASS_HOST");
  if (named != nullptr && *named != 0)
    std::snprintf(hello.hostName, sizeof hello.hostName, "%s", named);
  else if (gethostname(hello.hostName, sizeof hello.hostName) != 0)
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
  if (name.size() > kMostNameBytes) {
    return fail(error, WL_RESOURCE,
                "what names the process of rank %u to other hosts takes %zu bytes, and there is "
                "room for %llu: have WINDLASS_UCX_NET_DEVICES name one network, and this process "
                "fewer ranks than %zu",
                made->first(), name.size(), static_cast<unsigned long long>(kMostNameBytes),
                made->ranks_.size());
  }
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
  if (hello.layout != group_.shared().layout.load(std::memory_order_relaxed) + kProtocol ||
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
  bool isAmongThem = false;
  for (const std::vector<unsigned char>& name : names) {
    isAmongThem |= name == name_;
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
  if (!isAmongThem) {
    return fail(error, WL_INVALID_ARGUMENT,
                "the names lack what this process, which has rank %u, is named by", first());
  }
  for (std::vector<Process>& processes : all) {
    std::sort(processes.begin(), processes.end(),
              [](const Process& a, const Process& b) { return a.ranks[0] < b.ranks[0]; });
  }
  index_ = 0;
  while (all[own_][index_].ranks[0] != ranks_[0]) ++index_;
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
  processes_ = std::move(all);
  for (uint32_t host = 0; host < count(); ++host) {
    if (host == own_) continue;
    partners_[host] = index_ % processes_[host].size();
    wl_error_t why = blankError();
    if (connectProcess(host, partners_[host], &why) != WL_OK) {
      const Process& process = processes_[host][partners_[host]];
      char whom[128];
      std::snprintf(whom, sizeof whom, "process %d of host %u (%s), with rank %u: ", process.pid,
                    host, nameOf(host), process.ranks[0]);
      return copyError(error, why, whom);
    }
    const uint32_t peer = peerOf_[processes_[host][partners_[host]].ranks[0]];
    peers_[host] = peer;
    routes_[host].peer = peer;
    routes_[host].tried = peer;
    routes_[host].next = partners_[host];
  }
  silenceNs_ = silenceNs;
  lookedNs_ = clockNs();
  const MakesThreads making;
  thread_ = std::thread([this] { run(); });
  return WL_OK;
}

Code Hosts::connectWire(const Process& process, uint32_t* peer, wl_error_t* error) {
  try {
    Code code = wire_->connect(process.wire.data(), process.wire.size(), peer, error);
    if (code != WL_OK) return code;
    std::lock_guard<std::mutex> lock(connectionsMutex_);
    while (connections_.size() <= *peer) connections_.emplace_back();
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory");
  }
  // The loss may have been reported before the record existed.
  if (wire_->isLost(*peer)) noteLost(*peer, "it was refused");
  return WL_OK;
}

void Hosts::noteLost(uint32_t peer, const char* why) {
  std::lock_guard<std::mutex> lock(connectionsMutex_);
  if (peer >= connections_.size() || connections_[peer].isLost) return;
  std::snprintf(connections_[peer].why, sizeof connections_[peer].why, "%s", why);
  connections_[peer].isLost.store(true, std::memory_order_release);
}

Hosts::Connection& Hosts::connectionOf(uint32_t peer) {
  std::lock_guard<std::mutex> lock(connectionsMutex_);
  return connections_[peer];
}

Code Hosts::connectProcess(uint32_t host, size_t number, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(connecting_);
  const Process& process = processes_[host][number];
  if (peerOf_[process.ranks[0]] != kNone) return WL_OK;
  uint32_t peer = 0;
  uint32_t region = 0;
  Code code = connectWire(process, &peer, error);
  if (code == WL_OK)
    code = wire_->reach(peer, process.key.data(), process.key.size(), &region, error);
  if (code != WL_OK) return code;
  Connection& connection = connectionOf(peer);
  connection.process = number;
  connection.host.store(host, std::memory_order_release);
  for (const uint32_t rank : process.ranks) peerOf_[rank].store(peer, std::memory_order_release);
  return WL_OK;
}

Code Hosts::connectTo(uint32_t rank, wl_error_t* error) {
  if (peerOf_[rank] != kNone) return WL_OK;
  const uint32_t host = hostOf(rank);
  const std::vector<Process>& all = processes_[host];
  const auto found = std::find_if(all.begin(), all.end(), [&](const Process& process) {
    return std::find(process.ranks.begin(), process.ranks.end(), rank) != process.ranks.end();
  });
  const Code code = connectProcess(host, static_cast<size_t>(found - all.begin()), error);
  if (code == WL_OK || code == WL_RESOURCE) return code;
  char why[1024];
  std::snprintf(why, sizeof why, "its process %d takes no connection: %.900s", found->pid,
                error->message);
  // A process that has left needs nothing of this operation.
  const bool hasFailed = lose(host, found->ranks, why) || group_.failure() != nullptr;
  return hasFailed ? WL_PEER_LOST : WL_RESOURCE;
}

void Hosts::receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) {
  wire_->receive(rank, turn, into, bytes);
}

void Hosts::land(uint32_t rank, uint64_t turn, uint64_t at, const void* from, uint64_t bytes,
                 const Unread& unread, const std::atomic<uint64_t>& word, uint64_t value) {
  const uint32_t peer = peerOf_[rank];
  const bool goes =
      bytes == 0
          ? wire_->putWord({peer, kBlock, offsetOf(&word)}, value, nullptr)
          : wire_->land({peer, rank, turn, at}, from, bytes, unread,
                        {kBlock, offsetOf(&word), value});
  if (!goes) lackMemory();
}

void Hosts::close() {
  // Other hosts may still read the last messages, or send data that this process drops.
  const int64_t start = clockNs();
  const auto mayEnd = [&] {
    const int64_t waited = clockNs() - start;
    if (group_.failure() == nullptr)
      return haveAllLeft() || (waited > kCloseNs && !isAnyInside()) ||
             waited - kCloseNs > group_.config().deadlineNs;
    return waited > kCloseNs ||
           (haveAllHeard() && (haveHostsFailed() || waited > kFailedCloseNs));
  };
  while (!mayEnd()) usleep(200);
  ends_.store(true);
  ring();
  thread_.join();
  if (sweeper_.joinable()) sweeper_.join();
  wire_->flush(kCloseNs);
  wire_.reset();
}

bool Hosts::haveAllLeft() const {
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank)
    if (group_.lines(rank).state.left.load(std::memory_order_seq_cst) == 0) return false;
  return true;
}

// A rank may still send through this process, for example to the root of an operation. If it sends
// through another process, its end and its heartbeats don't arrive here.
bool Hosts::isAnyInside() {
  const int64_t now = clockNs();
  uint32_t ended = group_.lines(first()).state.sequence.load(std::memory_order_relaxed);
  for (const uint32_t rank : ranks_) {
    const uint32_t of = group_.lines(rank).state.sequence.load(std::memory_order_relaxed);
    if (static_cast<int32_t>(of - ended) > 0) ended = of;
  }
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    const State& state = group_.lines(rank).state;
    const uint32_t behind = ended - state.sequence.load(std::memory_order_relaxed);
    const uint32_t beats = group_.member(rank).beats.load(std::memory_order_relaxed);
    Heard& heard = heard_[rank];
    if (heard.atNs == 0 || heard.beats != beats) heard = {beats, now};
    const bool isGone = state.left.load(std::memory_order_seq_cst) != 0 ||
                        group_.member(rank).lost.load(std::memory_order_relaxed) != 0 ||
                        now - heard.atNs > kHeardNs;
    const bool isInside = state.busy.load(std::memory_order_relaxed) != 0 &&
                          takesSequence(state.operation.load(std::memory_order_relaxed));
    if (!isBeside(rank) && !isGone && isInside && static_cast<int32_t>(behind) >= 0) return true;
  }
  return false;
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
    if (!isBeside(rank) && holds && !isGone && theirs.step != Agreement::kAgreed) return false;
  }
  return true;
}

uint32_t Hosts::hostOf(uint32_t rank) const {
  return group_.member(rank).host;
}

Part Hosts::partsOf(uint32_t host, uint64_t bytes) const {
  uint32_t first = group_.ranks();
  uint32_t end = 0;
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (hostOf(rank) != host) continue;
    first = std::min(first, rank);
    end = rank + 1;
  }
  return end == 0 ? Part{0, 0} : Part{first * bytes, (end - first) * bytes};
}

uint64_t Hosts::offsetOf(const void* at) const {
  return reinterpret_cast<uint64_t>(at) - group_.block().base();
}

}  // namespace windlass
