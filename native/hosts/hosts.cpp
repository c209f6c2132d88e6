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
#include "native/base/text.h"

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

Hosts::Hosts(Group& group, std::vector<uint32_t> ranks)
    : group_(group),
      ranks_(std::move(ranks)),
      own_(hostOf(ranks_[0])),
      hosts_(group.config().hosts),
      known_(group.ranks()) {
  for (uint32_t rank = 0; rank < group.ranks(); ++rank) hosts_[hostOf(rank)].ranks.push_back(rank);
}

Code OtherHosts::open(Group& group, std::vector<uint32_t> ranks,
                      std::unique_ptr<OtherHosts>* hosts, wl_error_t* error) {
  auto made = std::make_unique<Hosts>(group, std::move(ranks));
  const Code code = made->open(error);
  if (code == WL_OK) *hosts = std::move(made);
  return code;
}

Code Hosts::open(wl_error_t* error) {
  if (count() > kMostHosts)
    return fail(error, WL_UNSUPPORTED, "%u hosts, of which %u may join", count(), kMostHosts);
  for (const uint32_t rank : ranks_) {
    if (isBeside(rank)) continue;
    return fail(error, WL_INVALID_ARGUMENT, "ranks %u and %u of one process are on two hosts",
                first(), rank);
  }
  bell_ = OpenFile(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_)
    return fail(error, WL_RESOURCE, "no event file for the wire: %s", std::strerror(errno));
  const Code code = openWire(WireSettings::ofEnvironment(), *this, &wire_, error);
  return code == WL_OK ? makeName(error) : code;
}

Code Hosts::makeName(wl_error_t* error) {
  std::vector<unsigned char> wire;
  std::vector<unsigned char> key;
  Hello hello = {};
  hello.blockBytes = ControlBlock::bytes(group_.config());
  if (Code code = wire_->address(&wire, error)) return code;
  auto* const base = reinterpret_cast<void*>(group_.block().base());
  if (Code code = wire_->share(base, hello.blockBytes, &key, error)) return code;
  hello.magic = kHelloMagic;
  hello.host = own_;
  hello.ranks = static_cast<uint32_t>(ranks_.size());
  hello.pid = getpid();
  hello.layout = group_.shared().layout.load(std::memory_order_relaxed) + kProtocol;
  hello.keyBytes = static_cast<uint32_t>(key.size());
  const char* const named = std::getenv("WINDLASS_HOST");
  if (named != nullptr && *named != 0)
    std::snprintf(hello.hostName, sizeof hello.hostName, "%s", named);
  else if (gethostname(hello.hostName, sizeof hello.hostName) != 0)
    hello.hostName[0] = '?';
  const auto add = [&](const void* bytes, uint64_t length) {
    const auto* from = static_cast<const unsigned char*>(bytes);
    name_.insert(name_.end(), from, from + length);
  };
  add(&hello, sizeof hello);
  add(ranks_.data(), ranks_.size() * sizeof(uint32_t));
  add(key.data(), key.size());
  add(wire.data(), wire.size());
  if (name_.size() <= ShrinkNote::kMostNameBytes) return WL_OK;
  return fail(error, WL_RESOURCE,
              "what names the process of rank %u to other hosts takes %zu bytes, and there is room "
              "for %llu: have WINDLASS_UCX_NET_DEVICES name one network, and this process fewer "
              "ranks than %zu",
              first(), name_.size(), text(uint64_t{ShrinkNote::kMostNameBytes}), ranks_.size());
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
    if (Code code = read(name, &process, error)) return code;
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
  // An earlier call may have failed after some connections.
  for (Known& known : known_) known.peer = kNone;
  for (Connection& connection : connections_) connection.process = nullptr;
  for (uint32_t host = 0; host < count(); ++host) {
    std::vector<Process>& processes = hosts_[host].processes;
    processes = std::move(all[host]);
    std::sort(processes.begin(), processes.end(),
              [](const Process& a, const Process& b) { return a.ranks[0] < b.ranks[0]; });
    hosts_[host].name = processes[0].hostName;
    for (Process& process : processes) {
      process.number = static_cast<size_t>(&process - processes.data());
      for (const uint32_t rank : process.ranks) {
        known_[rank].process = &process;
        if (host == own_) continue;
        Member& member = group_.member(rank);
        member.pid.store(process.pid, std::memory_order_relaxed);
        member.joined.store(1, std::memory_order_release);
      }
    }
  }
  for (uint32_t number = 0; number < count(); ++number) {
    if (number == own_) continue;
    Host& host = hosts_[number];
    const Process& process = partnerOf(host);
    wl_error_t why = blankError();
    if (connectProcess(process, &why) != WL_OK) {
      char whom[128];
      std::snprintf(whom, sizeof whom, "process %d of host %u (%s), with rank %u: ", process.pid,
                    number, nameOf(number), process.ranks[0]);
      return copyError(error, why, whom);
    }
    const uint32_t peer = known_[process.ranks[0]].peer;
    host.peer = peer;
    host.route.peer = peer;
    host.route.tried = peer;
    host.route.next = process.number;
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

Hosts::Connection* Hosts::connectionOf(uint32_t peer) {
  std::lock_guard<std::mutex> lock(connectionsMutex_);
  return peer < connections_.size() ? &connections_[peer] : nullptr;
}

Code Hosts::connectProcess(const Process& process, wl_error_t* error) {
  std::lock_guard<std::mutex> lock(connecting_);
  if (known_[process.ranks[0]].peer != kNone) return WL_OK;
  uint32_t peer = 0;
  uint32_t region = 0;
  Code code = connectWire(process, &peer, error);
  if (code == WL_OK)
    code = wire_->reach(peer, process.key.data(), process.key.size(), &region, error);
  if (code != WL_OK) return code;
  connectionOf(peer)->process.store(&process, std::memory_order_release);
  for (const uint32_t rank : process.ranks)
    known_[rank].peer.store(peer, std::memory_order_release);
  return WL_OK;
}

Code Hosts::connectTo(uint32_t rank, wl_error_t* error) {
  if (known_[rank].peer != kNone) return WL_OK;
  const Process& process = *known_[rank].process;
  const Code code = connectProcess(process, error);
  if (code == WL_OK || code == WL_RESOURCE) return code;
  char why[1024];
  std::snprintf(why, sizeof why, "its process %d takes no connection: %.900s", process.pid,
                error->message);
  // A process that has left needs nothing of this operation.
  const bool hasFailed = lose(process.host, process.ranks, why) || group_.failure() != nullptr;
  return hasFailed ? WL_PEER_LOST : WL_RESOURCE;
}

void Hosts::land(uint32_t rank, uint64_t turn, uint64_t at, const void* from, uint64_t bytes,
                 const Unread& unread, const std::atomic<uint64_t>& word, uint64_t value) {
  const Wire::Word behind = {kBlock, offsetOf(&word), value};
  if (!wire_->land({known_[rank].peer, rank, turn, at}, from, bytes, unread, behind)) lackMemory();
}

void Hosts::close() {
  // Other hosts may still read the last messages, or send data that this process drops.
  const int64_t start = clockNs();
  const auto mayEnd = [&] {
    const int64_t waited = clockNs() - start;
    if (group_.failure() == nullptr)
      return group_.shared().leavers.load() == group_.ranks() ||
             (waited > kCloseNs && !isAnyInside()) ||
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
    Known& known = known_[rank];
    if (known.heardNs == 0 || known.heardBeats != beats) known.heardNs = now;
    known.heardBeats = beats;
    const bool isSilent = isGone(rank) || now - known.heardNs > kHeardNs;
    const bool isInside = state.busy.load(std::memory_order_relaxed) != 0 &&
                          takesSequence(state.operation.load(std::memory_order_relaxed));
    if (!isBeside(rank) && !isSilent && isInside && static_cast<int32_t>(behind) >= 0) return true;
  }
  return false;
}

bool Hosts::haveHostsFailed() const {
  const wl_error_t& failure = *group_.failure();
  const int32_t* const end =
      failure.faulty_ranks + std::min<int32_t>(failure.faulty_rank_count, WL_ERROR_FAULTY_RANKS);
  for (uint32_t host = 0; host < count(); ++host) {
    bool knows = host == own_;
    bool mayLive = false;
    for (const uint32_t rank : ranksOf(host)) {
      knows |= group_.member(rank).saysFailed.load(std::memory_order_relaxed) != 0;
      mayLive |= !isGone(rank) &&
                 std::find(failure.faulty_ranks, end, static_cast<int32_t>(rank)) == end;
    }
    if (mayLive && !knows) return false;
  }
  return true;
}

bool Hosts::haveAllHeard() const {
  const Agreement agreed = group_.agreement();
  if (agreed.step != Agreement::kAgreed) return true;
  for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (isBeside(rank) || isGone(rank)) continue;
    const Member& member = group_.member(rank);
    const bool holds =
        member.shrink.load(std::memory_order_acquire) == Agreement::holds(agreed.round);
    const Agreement theirs = Agreement::of(member.agreement.load(std::memory_order_acquire));
    if (holds && theirs.step != Agreement::kAgreed) return false;
  }
  return true;
}

}  // namespace windlass
