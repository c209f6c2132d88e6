// SPDX-License-Identifier: Apache-2.0
// A wire over UCX's protocol layer, by its active messages alone, sent eagerly, which arrive in the
// order in which they were sent: what is put is a message as well, which the peer's process stores
// where it shares memory. UCX's own puts are no more over TCP, but that the target answers each,
// and UCX 1.13 ends the process whose answer finds that the peer has died. One worker, which one
// thread at a time is inside.
//
// What UCX has taken stands in one line, before whatever is sent next; so it is handed little at a
// time, and what is more waits in a queue of the peer, which goes on as sends end.
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "native/base/clock.h"
#include "native/base/no_signals.h"
#include "native/window/ucx/library/ucx_devices.h"
#include "native/window/ucx/wire.h"

namespace windlass {
namespace {

// Their numbers among active messages.
constexpr unsigned kMessage = 7;
constexpr unsigned kMove = 8;
// Of what is moved at once: less than a segment, so that it is stored from where it was received.
constexpr uint64_t kPieceBytes = uint64_t{512} << 10;
// Pieces that a peer may be asked for before the first of them has come.
constexpr uint32_t kMostAsked = 8;
// What UCX has of a peer's at a time, to which a piece may come.
constexpr uint64_t kMostHandedBytes = uint64_t{2} << 20;
// What it keeps of any send, about, besides its bytes.
constexpr uint64_t kSendBytes = 256;
// Of a message that may linger.
constexpr uint64_t kShortBytes = uint64_t{4} << 10;
// What is kept of the memory of what was sent, in all.
constexpr uint64_t kMostKeptBytes = uint64_t{16} << 20;
constexpr uint32_t kNameMagic = 0x57444e31;
constexpr uint32_t kKeyMagic = 0x57444b31;
constexpr uint64_t kMostNameBytes = 1u << 16;

// What names a wire to others, before the worker's address; and memory that one shares.
struct Name {
  uint32_t magic;
  uint32_t bytes;
};
struct Key {
  uint32_t magic;
  uint32_t number;
  uint64_t bytes;
};

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

Code failed(const char* call, ucs_status_t status, wl_error_t* error) {
  const Code code = status == UCS_ERR_NO_MEMORY     ? WL_RESOURCE
                    : status == UCS_ERR_UNSUPPORTED ? WL_UNSUPPORTED
                    : status == UCS_ERR_NO_DEVICE   ? WL_UNSUPPORTED
                                                    : WL_INTERNAL;
  return fail(error, code, "%s: %s", call, ucs_status_string(status));
}

// FIRST-LAST, or one port: UCX takes what it can't read for any.
bool isPortRange(const char* text) {
  unsigned first = 0;
  unsigned last = 0;
  int one = 0;
  int two = 0;
  const int count = std::sscanf(text, "%5u%n-%5u%n", &first, &one, &last, &two);
  const size_t length = std::strlen(text);
  const bool isOne = count == 1 && length == static_cast<size_t>(one);
  const bool isTwo = count == 2 && length == static_cast<size_t>(two);
  if (isOne) last = first;
  return (isOne || isTwo) && first >= 1 && first <= last && last <= 65'535;
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

Code UcpWire::open(const WireSettings& settings, wl_error_t* error) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed("ucp_config_read", status, error);
  const auto set = [&](const char* name, const char* value, const char* of) -> Code {
    if (value == nullptr) return WL_OK;
    status = ucp_config_modify(config, name, value);
    if (status == UCS_OK) return WL_OK;
    return fail(error, WL_INVALID_ARGUMENT, "UCX takes no %s of \"%s\": %s", of, value,
                ucs_status_string(status));
  };
  Code code = set("NET_DEVICES", settings.devices, "network device");
  if (code == WL_OK) code = set("TLS", settings.transports, "transports");
  if (code == WL_OK && settings.ports != nullptr && !isPortRange(settings.ports)) {
    code = fail(error, WL_INVALID_ARGUMENT,
                "WINDLASS_UCX_PORT_RANGE is \"%s\"; it has the first and the last port, such as "
                "7100-7199",
                settings.ports);
  }
  if (code == WL_OK) code = set("PORT_RANGE", settings.ports, "port range");
  // Threefold what it moves over TCP.
  if (code == WL_OK) code = set("TX_SEG_SIZE", "1M", "segment");
  if (code == WL_OK) code = set("RX_SEG_SIZE", "2M", "segment");
  // Messages of several lanes would overtake one another.
  if (code == WL_OK) code = set("MAX_EAGER_LANES", "1", "number of lanes");
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  if (code == WL_OK) code = requireDevice(settings.devices, error);
  const NoSignals masked;  // of UCX's own thread, which it makes here
  if (code == WL_OK) {
    status = ucp_init(&params, config, &context_);
    if (status != UCS_OK) {
      const char* const transports = settings.transports;
      code = fail(error, WL_UNSUPPORTED,
                  "UCX finds nothing to reach other hosts by on \"%s\"%s%s%s (%s): name the "
                  "network by WINDLASS_UCX_NET_DEVICES, as `ip link` has it%s",
                  settings.devices, transports == nullptr ? "" : " with the transports \"",
                  transports == nullptr ? "" : transports, transports == nullptr ? "" : "\"",
                  ucs_status_string(status),
                  transports == nullptr ? "" : ", and transports that it has by WINDLASS_UCX_TLS");
    }
  }
  ucp_config_release(config);
  if (code != WL_OK) return code;
  ucp_worker_params_t worker = {};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = ucp_worker_create(context_, &worker, &worker_);
  if (status == UCS_ERR_BUSY && settings.ports != nullptr) {
    return fail(error, WL_RESOURCE,
                "none of the ports %s, of WINDLASS_UCX_PORT_RANGE, is free on \"%s\": give it as "
                "many as this host has processes, and some more",
                settings.ports, settings.devices);
  }
  if (status != UCS_OK) return failed("ucp_worker_create", status, error);
  const std::pair<unsigned, ucp_am_recv_callback_t> handlers[] = {{kMessage, arrived},
                                                                  {kMove, moved}};
  for (const auto& [number, callback] : handlers) {
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = number;
    handler.cb = callback;
    handler.arg = this;
    status = ucp_worker_set_am_recv_handler(worker_, &handler);
    if (status != UCS_OK) return failed("ucp_worker_set_am_recv_handler", status, error);
  }
  status = ucp_worker_get_efd(worker_, &file_);
  return status == UCS_OK ? WL_OK : failed("ucp_worker_get_efd", status, error);
}

void UcpWire::close(Peer& peer) {
  peer.regions.clear();
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
}

void UcpWire::forget(uint32_t number, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  const auto isOf = [&](const auto& each) { return each.unread == unread; };
  const auto sent = std::remove_if(peer.queue.begin(), peer.queue.end(), [&](const Send& send) {
    return isOf(send) && send.from != nullptr;
  });
  waiting_ -= static_cast<uint32_t>(peer.queue.end() - sent);
  peer.queue.erase(sent, peer.queue.end());
  peer.wanted.erase(std::remove_if(peer.wanted.begin(), peer.wanted.end(), isOf),
                    peer.wanted.end());
  for (auto each = asked_.begin(); each != asked_.end();) {
    if (each->second.from.peer != number || !isOf(each->second)) {
      ++each;
      continue;
    }
    --peer.asked;
    each = asked_.erase(each);
  }
}

UcpWire::~UcpWire() {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  for (Peer& peer : peers_) {
    clear(peer);
    close(peer);
  }
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Code UcpWire::address(std::vector<unsigned char>* name, wl_error_t* error) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK) return failed("ucp_worker_get_address", status, error);
  const Name head = {kNameMagic, static_cast<uint32_t>(bytes)};
  name->resize(sizeof head + bytes);
  std::memcpy(name->data(), &head, sizeof head);
  std::memcpy(name->data() + sizeof head, address, bytes);
  ucp_worker_release_address(worker_, address);
  return WL_OK;
}

Code UcpWire::share(void* memory, uint64_t bytes, std::vector<unsigned char>* key, wl_error_t*) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Key head = {kKeyMagic, shares_, bytes};
  key->resize(sizeof head);
  std::memcpy(key->data(), &head, sizeof head);
  shared_.push_back({static_cast<unsigned char*>(memory), bytes, shares_++});
  return WL_OK;
}

void UcpWire::hide(void* memory) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto found = std::find_if(shared_.begin(), shared_.end(), [&](const SharedMemory& each) {
    return each.memory == memory;
  });
  if (found != shared_.end()) shared_.erase(found);
}

unsigned char* UcpWire::sharedAt(uint32_t number, uint64_t at, uint64_t bytes) const {
  const auto found = std::find_if(shared_.begin(), shared_.end(), [&](const SharedMemory& each) {
    return each.number == number;
  });
  const bool isThere =
      found != shared_.end() && at <= found->bytes && bytes <= found->bytes - at;
  return isThere ? found->memory + at : nullptr;
}

Code UcpWire::reach(uint32_t number, const unsigned char* key, uint64_t bytes, uint32_t* region,
                    wl_error_t* error) {
  Key head;
  if (bytes >= sizeof head) std::memcpy(&head, key, sizeof head);
  if (bytes < sizeof head || head.magic != kKeyMagic)
    return fail(error, WL_INVALID_ARGUMENT, "%llu bytes are no key of memory",
                static_cast<unsigned long long>(bytes));
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return fail(error, WL_PEER_LOST, "the peer is lost");
  peer.regions.push_back({head.number, head.bytes});
  *region = static_cast<uint32_t>(peer.regions.size() - 1);
  return WL_OK;
}

const UcpWire::Region* UcpWire::regionOf(const There& to, uint64_t bytes) {
  Peer& peer = peers_[to.peer];
  if (peer.isLost) return nullptr;
  if (to.region < peer.regions.size()) {
    const Region& region = peer.regions[to.region];
    if (to.at <= region.bytes && bytes <= region.bytes - to.at) return &region;
  }
  lose(peer, "this process would reach where it has nothing");
  return nullptr;
}

Code UcpWire::connect(const unsigned char* name, uint64_t bytes, uint32_t* number,
                      wl_error_t* error) {
  Name head;
  if (bytes >= sizeof head) std::memcpy(&head, name, sizeof head);
  if (bytes < sizeof head || bytes > kMostNameBytes || head.magic != kNameMagic ||
      bytes != sizeof head + uint64_t{head.bytes}) {
    return fail(error, WL_INVALID_ARGUMENT, "%llu bytes are no name of a wire",
                static_cast<unsigned long long>(bytes));
  }
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_.emplace_back();
  peer.wire = this;
  peer.number = static_cast<uint32_t>(peers_.size() - 1);
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(name + sizeof head);
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = broken;
  params.err_handler.arg = &peer;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &peer.endpoint);
  if (status != UCS_OK) {
    peers_.pop_back();
    if (status == UCS_ERR_UNREACHABLE) {
      return fail(error, WL_UNSUPPORTED,
                  "UCX finds no way there: it has ended, or is on another network; have "
                  "WINDLASS_UCX_NET_DEVICES name one that both are on, and WINDLASS_UCX_TLS, if "
                  "set, what both have");
    }
    return failed("ucp_ep_create", status, error);
  }
  *number = peer.number;
  return WL_OK;
}

bool UcpWire::isLost(uint32_t peer) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  return peers_[peer].isLost;
}

UcpWire::Held* UcpWire::hold() {
  if (free_.empty()) {
    free_.reserve(held_.size() + 1);
    held_.push_back({this, nullptr, 0, {}, {}, nullptr});
    return &held_.back();
  }
  Held* const held = free_.back();
  free_.pop_back();
  keptBytes_ -= held->bytes.capacity();
  return held;
}

void UcpWire::clear(Peer& peer) {
  for (Send& send : peer.queue) {
    if (send.message != nullptr) release(send.message);
    if (send.unread != nullptr) send.unread->fetch_sub(1, std::memory_order_release);
  }
  waiting_ -= static_cast<uint32_t>(peer.queue.size());
  peer.queue.clear();
  if (peer.lingering == nullptr) return;
  release(std::exchange(peer.lingering, nullptr));
  --lingering_;
}

void UcpWire::lose(Peer& peer, const char* why) {
  if (peer.isLost) return;
  peer.isLost = true;
  clear(peer);
  // Those that wait for what was taken from it learn of the loss by other ways, not that it came.
  peer.wanted.clear();
  for (auto each = asked_.begin(); each != asked_.end();)
    each = each->second.from.peer == peer.number ? asked_.erase(each) : std::next(each);
  ends_.lost(peer.number, why);
}

void UcpWire::lose(Peer& peer, ucs_status_t status) {
  char why[128];
  std::snprintf(why, sizeof why, "ucp_am_send_nbx: %s", ucs_status_string(status));
  lose(peer, why);
}

ucs_status_t UcpWire::settle(Peer& peer, ucs_status_ptr_t request, Held* held) {
  if (UCS_PTR_IS_PTR(request)) {
    ++flying_;
    held->peer = &peer;
    peer.handed += held->handed;
    return UCS_OK;
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (status != UCS_ERR_NO_MEMORY) release(held);
  return status;
}

void UcpWire::sent(void* request, ucs_status_t, void* context) {
  auto* const held = static_cast<Held*>(context);
  --held->wire->flying_;
  if (held->peer != nullptr) held->peer->handed -= held->handed;
  held->wire->release(held);
  ucp_request_free(request);
}

ucp_request_param_t UcpWire::paramOf(Held* held) {
  ucp_request_param_t param = {};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = sent;
  param.user_data = held;
  return param;
}

ucs_status_t UcpWire::handMessage(Peer& peer, Held* message) {
  const ucp_request_param_t param = paramOf(message);
  message->handed = kSendBytes + message->bytes.size();
  const bool hasWord = message->move.kind == Move::kMessage;
  return settle(peer,
                ucp_am_send_nbx(peer.endpoint, hasWord ? kMove : kMessage,
                                hasWord ? &message->move : nullptr,
                                hasWord ? sizeof message->move : 0, message->bytes.data(),
                                message->bytes.size(), &param),
                message);
}

ucs_status_t UcpWire::handOver(Peer& peer, Send& send) {
  if (send.message != nullptr) {
    // A call that finds the peer lost clears its queue, `send` with it.
    Held* const message = std::exchange(send.message, nullptr);
    const ucs_status_t status = handMessage(peer, message);
    if (status == UCS_ERR_NO_MEMORY && !peer.isLost) {
      send.message = message;
    } else if (status == UCS_ERR_NO_MEMORY) {
      release(message);
      return UCS_OK;
    }
    return status;
  }
  Held* held = nullptr;
  try {
    held = hold();
  } catch (const std::bad_alloc&) {
    return UCS_ERR_NO_MEMORY;
  }
  const uint64_t count = std::min(kPieceBytes, send.bytes);
  held->move = send.move;
  if (count < send.bytes) held->move.wordRegion = Move::kNoRegion;
  held->handed = kSendBytes + count;
  // What its owner may take back at any time UCX reads of a copy, since it does not give it back.
  const unsigned char* from = send.from;
  if (from != nullptr && send.unread != nullptr) {
    try {
      held->bytes.assign(from, from + count);
    } catch (const std::bad_alloc&) {
      release(held);
      return UCS_ERR_NO_MEMORY;
    }
    from = held->bytes.data();
  } else {
    held->unread = send.unread;
    if (held->unread != nullptr) held->unread->fetch_add(1, std::memory_order_relaxed);
  }
  ucp_request_param_t param = paramOf(held);
  if (send.move.kind == Move::kGet) param.flags |= UCP_AM_SEND_FLAG_REPLY;
  const ucs_status_t status =
      settle(peer,
             ucp_am_send_nbx(peer.endpoint, kMove, &held->move, sizeof held->move, from, count,
                             &param),
             held);
  if (status == UCS_ERR_NO_MEMORY) release(held);
  if (status != UCS_OK || peer.isLost) return status;
  send.move.at += count;
  send.from += count;
  send.bytes -= count;
  return status;
}

void UcpWire::pump(Peer& peer) {
  while (!peer.queue.empty() && hasRoom(peer)) {
    Send& next = peer.queue.front();
    const ucs_status_t status = handOver(peer, next);
    if (status == UCS_ERR_NO_MEMORY) return;  // there may be some in the next turn
    if (status != UCS_OK) lose(peer, status);
    if (peer.isLost) return;  // and its queue is empty
    if (next.bytes > 0) continue;
    if (next.unread != nullptr) next.unread->fetch_sub(1, std::memory_order_release);
    peer.queue.pop_front();
    --waiting_;
  }
}

bool UcpWire::go(Peer& peer, Send&& send) {
  if (!letGo(peer)) return false;
  if (peer.isLost) {
    if (send.message != nullptr) release(send.message);
    return true;
  }
  if (peer.queue.empty() && hasRoom(peer) && send.bytes <= kPieceBytes) {
    const ucs_status_t status = handOver(peer, send);
    if (status != UCS_OK && status != UCS_ERR_NO_MEMORY) lose(peer, status);
    if (status != UCS_ERR_NO_MEMORY) return true;
  }
  try {
    peer.queue.push_back(std::move(send));
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++waiting_;
  const Unread& unread = peer.queue.back().unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  pump(peer);
  return true;
}

UcpWire::Held* UcpWire::messageOf(const Part* parts, uint32_t count, const Unread& unread) {
  Held* held = nullptr;
  try {
    held = hold();
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += parts[i].bytes;
    held->bytes.clear();
    held->bytes.reserve(bytes);
  } catch (const std::bad_alloc&) {
    if (held != nullptr) release(held);
    return nullptr;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const unsigned char*>(parts[i].from);
    held->bytes.insert(held->bytes.end(), from, from + parts[i].bytes);
  }
  held->move = {};
  held->unread = unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  return held;
}

bool UcpWire::send(uint32_t number, const Part* parts, uint32_t count, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return true;
  Held* const message = messageOf(parts, count, unread);
  if (message == nullptr) return false;
  if (go(peer, {{}, nullptr, 0, nullptr, message})) return true;
  release(message);
  return false;
}

bool UcpWire::sendSoon(uint32_t number, const Part* parts, uint32_t count, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) bytes += parts[i].bytes;
  if (!lingers_ || bytes > kShortBytes || !peer.queue.empty() || !hasRoom(peer))
    return send(number, parts, count, unread);
  if (!letGo(peer)) return false;
  if (peer.isLost) return true;
  peer.lingering = messageOf(parts, count, unread);
  if (peer.lingering == nullptr) return false;
  ++lingering_;
  return lingers_ || letGo(peer);
}

void UcpWire::linger(bool may) {
  lingers_ = may;
  if (may || lingering_ == 0) return;
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  letGoAll();
}

bool UcpWire::letGo(Peer& peer) {
  if (peer.lingering == nullptr) return true;
  Held* const message = std::exchange(peer.lingering, nullptr);
  --lingering_;
  if (go(peer, {{}, nullptr, 0, nullptr, message})) return true;
  release(message);
  return false;
}

void UcpWire::letGoAll() {
  for (Peer& peer : peers_)
    if (!letGo(peer)) ends_.lackMemory();
}

bool UcpWire::sendPast(uint32_t number, const Part* parts, uint32_t count) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return true;
  Held* const message = messageOf(parts, count, nullptr);
  if (message == nullptr) return false;
  const ucs_status_t status = handMessage(peer, message);
  if (status == UCS_ERR_NO_MEMORY) {
    release(message);
    return false;
  }
  if (status != UCS_OK) lose(peer, status);
  return true;
}

bool UcpWire::goBehind(Peer& peer, Move move, const void* from, uint64_t bytes,
                       const Unread& unread, const Word* behind) {
  if (peer.isLost || bytes == 0) return true;
  if (behind != nullptr) {
    const Region* const region =
        regionOf({peer.number, behind->region, behind->at}, sizeof behind->value);
    if (region == nullptr) return true;
    move.wordRegion = region->number;
    move.wordAt = behind->at;
    move.wordValue = behind->value;
  }
  return go(peer, {move, static_cast<const unsigned char*>(from), bytes, unread, nullptr});
}

bool UcpWire::put(const There& to, const void* from, uint64_t bytes, const Unread& unread,
                  const Word* behind) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(to, bytes);
  if (region == nullptr) return true;
  return goBehind(peers_[to.peer], {Move::kPut, region->number, to.at, 0, 0}, from, bytes, unread,
                  behind);
}

bool UcpWire::putWord(const There& to, uint64_t word, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(to, sizeof word);
  if (region == nullptr) return true;
  Peer& peer = peers_[to.peer];
  if (Held* const message = peer.lingering; message != nullptr && message->unread == unread) {
    message->move.kind = Move::kMessage;
    message->move.wordRegion = region->number;
    message->move.wordAt = to.at;
    message->move.wordValue = word;
    return letGo(peer);
  }
  return go(peer, {{Move::kWord, region->number, to.at, word, 0}, nullptr, 0, unread, nullptr});
}

void UcpWire::receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto found = std::find_if(received_.begin(), received_.end(),
                                  [&](const Received& each) { return each.rank == rank; });
  const Received now = {rank, turn, static_cast<unsigned char*>(into), bytes};
  if (found != received_.end()) {
    *found = now;
  } else if (into != nullptr) {
    received_.push_back(now);
  }
}

bool UcpWire::land(const Landing& to, const void* from, uint64_t bytes, const Unread& unread,
                   const Word& behind) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  return goBehind(peers_[to.peer], {Move::kLand, to.rank, to.at, to.turn, 0}, from, bytes, unread,
                  &behind);
}

bool UcpWire::get(const There& from, void* into, uint64_t bytes, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[from.peer];
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    unread->fetch_add(1, std::memory_order_relaxed);
    if (regionOf(from, bytes) == nullptr) return true;
    try {
      peer.wanted.push_back({{from.peer, from.region, from.at + at},
                             static_cast<unsigned char*>(into) + at,
                             std::min(kPieceBytes, bytes - at),
                             unread});
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  return ask(peer);
}

bool UcpWire::ask(Peer& peer) {
  while (!peer.isLost && !peer.wanted.empty() && peer.asked < kMostAsked) {
    const uint64_t token = ++tokens_;
    const There from = peer.wanted.front().from;
    const uint64_t bytes = peer.wanted.front().bytes;
    try {
      asked_.emplace(token, peer.wanted.front());  // which stays whole where this throws
    } catch (const std::bad_alloc&) {
      return false;
    }
    peer.wanted.pop_front();
    ++peer.asked;
    const uint32_t number = peer.regions[from.region].number;
    if (!go(peer, {{Move::kGet, number, from.at, bytes, token}, nullptr, 0, nullptr, nullptr}))
      return false;
  }
  return true;
}

// Of a copy: the memory may be hidden before it has left. Whoever has asked is not told where the
// window is dropped here.
void UcpWire::answer(ucp_ep_h endpoint, const Move& wanted) {
  if (wanted.word > kPieceBytes) return;
  const unsigned char* const from = sharedAt(wanted.region, wanted.at, wanted.word);
  if (from == nullptr) return;
  Held* held = nullptr;
  try {
    held = hold();
    held->bytes.assign(from, from + wanted.word);
  } catch (const std::bad_alloc&) {
    if (held != nullptr) release(held);
    return ends_.lackMemory();
  }
  held->peer = nullptr;
  held->move = {Move::kGot, 0, 0, 0, wanted.token};
  const ucp_request_param_t param = paramOf(held);
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint, kMove, &held->move, sizeof held->move, held->bytes.data(),
                      held->bytes.size(), &param);
  if (UCS_PTR_IS_PTR(request)) {
    ++flying_;
    return;
  }
  release(held);
  if (UCS_PTR_STATUS(request) == UCS_ERR_NO_MEMORY) ends_.lackMemory();
}

unsigned UcpWire::drive() {
  if (lingering_ > 0) letGoAll();
  const unsigned events = ucp_worker_progress(worker_);
  if (waiting_ > 0) {
    for (Peer& peer : peers_) pump(peer);
  }
  return events;
}

uint32_t UcpWire::progress() {
  std::unique_lock<std::recursive_mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  uint32_t came = 0;
  for (int turn = 0; turn < 64; ++turn) {
    const unsigned events = drive();
    if (events == 0) break;
    came += events;
  }
  return came;
}

bool UcpWire::arm() {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  return ucp_worker_arm(worker_) == UCS_OK;
}

bool UcpWire::flush(int64_t limitNs) {
  const int64_t start = clockNs();
  for (;;) {
    {
      std::lock_guard<std::recursive_mutex> lock(mutex_);
      // A peer may have more and more come.
      while (drive() != 0 && clockNs() - start <= limitNs) {
      }
      if (flying_ == 0 && waiting_ == 0) break;
    }
    if (clockNs() - start > limitNs) return false;
  }
  // What UCX has taken over may still stand in its own queues.
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  ucp_request_param_t param = {};
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_, &param);
  if (!UCS_PTR_IS_PTR(request)) return true;
  bool isOver = false;
  while (!(isOver = ucp_request_check_status(request) != UCS_INPROGRESS) &&
         clockNs() - start < limitNs) {
    ucp_worker_progress(worker_);
  }
  ucp_request_free(request);
  return isOver;
}

ucs_status_t UcpWire::arrived(void* context, const void*, size_t, void* data, size_t bytes,
                              const ucp_am_recv_param_t* param) {
  auto& wire = *static_cast<UcpWire*>(context);
  // Nobody sends what is announced first; it is dropped.
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  wire.ends_.arrived(static_cast<const unsigned char*>(data), bytes);
  return UCS_OK;
}

ucs_status_t UcpWire::moved(void* context, const void* header, size_t headerBytes, void* data,
                            size_t bytes, const ucp_am_recv_param_t* param) {
  auto& wire = *static_cast<UcpWire*>(context);
  Move move;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || headerBytes != sizeof move)
    return UCS_OK;
  std::memcpy(&move, header, sizeof move);
  if (move.kind != Move::kGet) {
    wire.moveHere(move, data, bytes);
  } else if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
    wire.answer(param->reply_ep, move);
  }
  return UCS_OK;
}

void UcpWire::storeWord(uint32_t number, uint64_t at, uint64_t word) const {
  unsigned char* const to = sharedAt(number, at, sizeof word);
  if (to == nullptr || reinterpret_cast<uint64_t>(to) % sizeof word != 0) return;
  reinterpret_cast<std::atomic<uint64_t>*>(to)->store(word, std::memory_order_release);
}

void UcpWire::moveHere(const Move& move, const void* data, uint64_t bytes) {
  if (move.kind == Move::kPut) {
    if (unsigned char* to = sharedAt(move.region, move.at, bytes)) std::memcpy(to, data, bytes);
  } else if (move.kind == Move::kWord) {
    storeWord(move.region, move.at, move.word);
  } else if (move.kind == Move::kLand) {
    for (const Received& each : received_) {
      const bool isThere = each.rank == move.region && each.turn == move.word &&
                           move.at <= each.bytes && bytes <= each.bytes - move.at;
      if (isThere && each.into != nullptr) std::memcpy(each.into + move.at, data, bytes);
    }
  } else if (move.kind == Move::kGot) {
    const auto found = asked_.find(move.token);
    if (found == asked_.end() || found->second.bytes != bytes) return;
    const Get got = std::move(found->second);
    asked_.erase(found);
    std::memcpy(got.into, data, bytes);
    got.unread->fetch_sub(1, std::memory_order_release);
    Peer& peer = peers_[got.from.peer];
    --peer.asked;
    if (!ask(peer)) lose(peer, "this process has no memory to receive by");
  } else if (move.kind == Move::kMessage) {
    ends_.arrived(static_cast<const unsigned char*>(data), bytes);
  }
  if (move.wordRegion != Move::kNoRegion)
    storeWord(move.wordRegion, move.wordAt, move.wordValue);
}

void UcpWire::broken(void* context, ucp_ep_h, ucs_status_t status) {
  Peer& peer = *static_cast<Peer*>(context);
  peer.wire->lose(peer, ucs_status_string(status));
}

}  // namespace
}  // namespace windlass

extern "C" __attribute__((visibility("default"))) windlass::Code windlass_open_wire_5(
    const windlass::WireSettings& settings, windlass::WireEnds& ends, windlass::Wire** wire,
    wl_error_t* error) {
  *wire = nullptr;
  auto* const made = new (std::nothrow) windlass::UcpWire(ends);
  if (made == nullptr) return windlass::fail(error, WL_RESOURCE, "out of memory");
  const windlass::Code code = made->open(settings, error);
  if (code == WL_OK) {
    *wire = made;
  } else {
    delete made;
  }
  return code;
}
