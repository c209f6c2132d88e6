// SPDX-License-Identifier: Apache-2.0
// A wire over UCX's protocol layer. Messages are active messages, sent eagerly; what is put goes to
// memory that the peer has exposed, and the word behind it is put after a fence. One worker, which
// one thread at a time is inside.
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>

#include "native/base/clock.h"
#include "native/window/ucx/library/ucx_devices.h"
#include "native/window/ucx/wire.h"

namespace windlass {
namespace {

constexpr unsigned kMessage = 7;  // its number among active messages
constexpr uint32_t kNameMagic = 0x57444e31;
constexpr uint32_t kKeyMagic = 0x57444b31;
constexpr uint64_t kMostNameBytes = 1u << 16;

// What names a wire to others, before the worker's address; and memory, before its key.
struct Name {
  uint32_t magic;
  uint32_t bytes;
};
struct Key {
  uint32_t magic;
  uint32_t bytes;
  uint64_t memory;
  uint64_t memoryBytes;
};

Code failed(const char* call, ucs_status_t status, wl_error_t* error) {
  const Code code = status == UCS_ERR_NO_MEMORY     ? WL_RESOURCE
                    : status == UCS_ERR_UNSUPPORTED ? WL_UNSUPPORTED
                    : status == UCS_ERR_NO_DEVICE   ? WL_UNSUPPORTED
                                                    : WL_INTERNAL;
  return fail(error, code, "%s: %s", call, ucs_status_string(status));
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
  void send(uint32_t peer, const Part* parts, uint32_t count) override;
  void put(const There& to, const void* from, uint64_t bytes, const Unread& unread) override;
  void putWord(const There& to, uint64_t word) override;
  void get(const There& from, void* into, uint64_t bytes, const Unread& unread) override;
  void drop(uint32_t peer) override;
  uint32_t progress() override;
  bool arm() override;
  int file() const override { return file_; }
  bool flush(int64_t limitNs) override;

 private:
  struct Region {
    ucp_rkey_h key;
    uint64_t memory;
    uint64_t bytes;
  };
  struct Peer {
    UcpWire* wire = nullptr;
    uint32_t number = 0;
    ucp_ep_h endpoint = nullptr;
    std::vector<Region> regions;
    bool isLost = false;
  };
  struct SharedMemory {
    void* memory;
    ucp_mem_h handle;
  };
  // What a send in flight reads, or keeps.
  struct Held {
    UcpWire* wire;
    uint64_t word;
    std::vector<unsigned char> bytes;
    Unread unread;
  };

  Held* hold();
  void release(Held* held) {
    if (held->unread != nullptr) held->unread->fetch_sub(1, std::memory_order_release);
    held->unread.reset();
    free_.push_back(held);
  }
  // nullptr: the peer is lost, as it is where it has no such memory.
  const Region* regionOf(const There& to, uint64_t bytes);
  void close(Peer& peer);
  void lose(Peer& peer, const char* why);
  // What a call that sends came to: `held` until it is over.
  void settle(Peer& peer, ucs_status_ptr_t request, Held* held, const char* call);
  static void sent(void* request, ucs_status_t status, void* held);
  static ucs_status_t arrived(void* wire, const void* header, size_t headerBytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param);
  static void broken(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  WireEnds& ends_;
  std::recursive_mutex mutex_;  // what a peer tells may be answered at once
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<SharedMemory> shared_;
  int file_ = -1;
  std::deque<Peer> peers_;
  std::deque<Held> held_;
  std::vector<Held*> free_;
  uint32_t flying_ = 0;  // requests that are not over
  uint32_t seen_ = 0;    // messages, over all time
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
  // Inside a host memory is shared by other means.
  if (code == WL_OK) code = set("TLS", settings.transports, "transports");
  if (code == WL_OK) code = set("PORT_RANGE", settings.ports, "port range");
  // Threefold what it moves over TCP.
  if (code == WL_OK) code = set("TX_SEG_SIZE", "1M", "segment");
  if (code == WL_OK) code = set("RX_SEG_SIZE", "2M", "segment");
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  if (code == WL_OK) code = requireDevice(settings.devices, error);
  if (code == WL_OK) {
    status = ucp_init(&params, config, &context_);
    if (status != UCS_OK) {
      code = fail(error, WL_UNSUPPORTED,
                  "UCX finds nothing to reach other hosts by on \"%s\" (%s): name the network by "
                  "WINDLASS_UCX_NET_DEVICES, as `ip link` has it",
                  settings.devices, ucs_status_string(status));
    }
  }
  ucp_config_release(config);
  if (code != WL_OK) return code;
  ucp_worker_params_t worker = {};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = ucp_worker_create(context_, &worker, &worker_);
  if (status != UCS_OK) return failed("ucp_worker_create", status, error);
  ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessage;
  handler.cb = arrived;
  handler.arg = this;
  status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return failed("ucp_worker_set_am_recv_handler", status, error);
  status = ucp_worker_get_efd(worker_, &file_);
  return status == UCS_OK ? WL_OK : failed("ucp_worker_get_efd", status, error);
}

void UcpWire::close(Peer& peer) {
  for (const Region& region : peer.regions) ucp_rkey_destroy(region.key);
  peer.regions.clear();
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  if (!UCS_PTR_IS_PTR(request)) return;
  const int64_t start = clockNs();
  while (ucp_request_check_status(request) == UCS_INPROGRESS &&
         clockNs() - start < 1'000'000'000) {
    ucp_worker_progress(worker_);
  }
  ucp_request_free(request);
}

void UcpWire::drop(uint32_t number) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  lose(peer, "this process gave it up");
  close(peer);
}

UcpWire::~UcpWire() {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  for (Peer& peer : peers_) close(peer);
  for (const SharedMemory& each : shared_) ucp_mem_unmap(context_, each.handle);
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

Code UcpWire::share(void* memory, uint64_t bytes, std::vector<unsigned char>* packed,
                    wl_error_t* error) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  shared_.reserve(shared_.size() + 1);
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory;
  params.length = bytes;
  ucp_mem_h handle = nullptr;
  ucs_status_t status = ucp_mem_map(context_, &params, &handle);
  if (status != UCS_OK) return failed("ucp_mem_map", status, error);
  shared_.push_back({memory, handle});
  void* key = nullptr;
  size_t keyBytes = 0;
  status = ucp_rkey_pack(context_, handle, &key, &keyBytes);
  if (status != UCS_OK) return failed("ucp_rkey_pack", status, error);
  const Key head = {kKeyMagic, static_cast<uint32_t>(keyBytes),
                    reinterpret_cast<uint64_t>(memory), bytes};
  packed->resize(sizeof head + keyBytes);
  std::memcpy(packed->data(), &head, sizeof head);
  std::memcpy(packed->data() + sizeof head, key, keyBytes);
  ucp_rkey_buffer_release(key);
  if (packed->size() <= kMostKeyBytes) return WL_OK;
  return fail(error, WL_UNSUPPORTED, "UCX's keys of memory take %zu bytes here, more than %llu",
              packed->size(), static_cast<unsigned long long>(kMostKeyBytes));
}

void UcpWire::hide(void* memory) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto found = std::find_if(shared_.begin(), shared_.end(), [&](const SharedMemory& each) {
    return each.memory == memory;
  });
  if (found == shared_.end()) return;
  ucp_mem_unmap(context_, found->handle);
  shared_.erase(found);
}

Code UcpWire::reach(uint32_t number, const unsigned char* key, uint64_t bytes, uint32_t* region,
                    wl_error_t* error) {
  Key head;
  if (bytes >= sizeof head) std::memcpy(&head, key, sizeof head);
  if (bytes < sizeof head || head.magic != kKeyMagic || bytes < sizeof head + head.bytes)
    return fail(error, WL_INVALID_ARGUMENT, "%llu bytes are no key of memory",
                static_cast<unsigned long long>(bytes));
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return fail(error, WL_PEER_LOST, "the peer is lost");
  peer.regions.reserve(peer.regions.size() + 1);
  ucp_rkey_h unpacked = nullptr;
  const ucs_status_t status = ucp_ep_rkey_unpack(peer.endpoint, key + sizeof head, &unpacked);
  if (status != UCS_OK) return failed("ucp_ep_rkey_unpack", status, error);
  *region = static_cast<uint32_t>(peer.regions.size());
  peer.regions.push_back({unpacked, head.memory, head.memoryBytes});
  return WL_OK;
}

const UcpWire::Region* UcpWire::regionOf(const There& to, uint64_t bytes) {
  Peer& peer = peers_[to.peer];
  if (peer.isLost) return nullptr;
  if (to.region < peer.regions.size()) {
    const Region& region = peer.regions[to.region];
    if (to.at <= region.bytes && bytes <= region.bytes - to.at) return &region;
  }
  lose(peer, "this process would put where it has nothing");
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
    peer.endpoint = nullptr;
    if (status == UCS_ERR_UNREACHABLE) {
      return fail(error, WL_UNSUPPORTED,
                  "UCX finds no way to another host's process: have WINDLASS_UCX_NET_DEVICES name "
                  "a network that both are on, and WINDLASS_UCX_TLS, if set, what both have");
    }
    return failed("ucp_ep_create", status, error);
  }
  *number = peer.number;
  return WL_OK;
}

UcpWire::Held* UcpWire::hold() {
  if (free_.empty()) {
    free_.reserve(held_.size() + 1);
    held_.push_back({this, 0, {}, nullptr});
    return &held_.back();
  }
  Held* const held = free_.back();
  free_.pop_back();
  return held;
}

void UcpWire::lose(Peer& peer, const char* why) {
  if (peer.isLost) return;
  peer.isLost = true;
  ends_.lost(peer.number, why);
}

void UcpWire::settle(Peer& peer, ucs_status_ptr_t request, Held* held, const char* call) {
  if (UCS_PTR_IS_PTR(request)) {
    ++flying_;
    return;
  }
  if (held != nullptr) release(held);
  if (!UCS_PTR_IS_ERR(request)) return;
  char why[128];
  std::snprintf(why, sizeof why, "%s: %s", call, ucs_status_string(UCS_PTR_STATUS(request)));
  lose(peer, why);
}

void UcpWire::sent(void* request, ucs_status_t, void* context) {
  auto* const held = static_cast<Held*>(context);
  --held->wire->flying_;
  held->wire->release(held);
  ucp_request_free(request);
}

void UcpWire::send(uint32_t number, const Part* parts, uint32_t count) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  Peer& peer = peers_[number];
  if (peer.isLost) return;
  Held* held = nullptr;
  try {
    held = hold();
    held->bytes.clear();
    for (uint32_t i = 0; i < count; ++i) {
      const auto* from = static_cast<const unsigned char*>(parts[i].from);
      held->bytes.insert(held->bytes.end(), from, from + parts[i].bytes);
    }
  } catch (const std::bad_alloc&) {
    if (held != nullptr) release(held);
    return lose(peer, "this process has no memory to send by");
  }
  ucp_request_param_t param = {};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = sent;
  param.user_data = held;
  settle(peer,
         ucp_am_send_nbx(peer.endpoint, kMessage, nullptr, 0, held->bytes.data(),
                         held->bytes.size(), &param),
         held, "ucp_am_send_nbx");
}

void UcpWire::put(const There& to, const void* from, uint64_t bytes, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(to, bytes);
  if (region == nullptr) return;
  Peer& peer = peers_[to.peer];
  Held* held = nullptr;
  try {
    held = hold();
  } catch (const std::bad_alloc&) {
    return lose(peer, "this process has no memory to send by");
  }
  held->unread = unread;
  if (unread != nullptr) unread->fetch_add(1, std::memory_order_relaxed);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = sent;
  param.user_data = held;
  settle(peer,
         ucp_put_nbx(peer.endpoint, from, bytes, region->memory + to.at, region->key, &param),
         held, "ucp_put_nbx");
}

void UcpWire::get(const There& from, void* into, uint64_t bytes, const Unread& unread) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(from, bytes);
  if (region == nullptr) return;
  Peer& peer = peers_[from.peer];
  Held* held = nullptr;
  try {
    held = hold();
  } catch (const std::bad_alloc&) {
    return lose(peer, "this process has no memory to receive by");
  }
  held->unread = unread;
  unread->fetch_add(1, std::memory_order_relaxed);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = sent;
  param.user_data = held;
  settle(peer,
         ucp_get_nbx(peer.endpoint, into, bytes, region->memory + from.at, region->key, &param),
         held, "ucp_get_nbx");
}

void UcpWire::putWord(const There& to, uint64_t word) {
  std::lock_guard<std::recursive_mutex> lock(mutex_);
  const Region* const region = regionOf(to, sizeof word);
  if (region == nullptr) return;
  Peer& peer = peers_[to.peer];
  Held* held = nullptr;
  try {
    held = hold();
  } catch (const std::bad_alloc&) {
    return lose(peer, "this process has no memory to send by");
  }
  held->word = word;
  if (const ucs_status_t status = ucp_worker_fence(worker_); status != UCS_OK) {
    release(held);
    return lose(peer, ucs_status_string(status));
  }
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = sent;
  param.user_data = held;
  settle(peer,
         ucp_put_nbx(peer.endpoint, &held->word, sizeof held->word, region->memory + to.at,
                     region->key, &param),
         held, "ucp_put_nbx");
}

uint32_t UcpWire::progress() {
  std::unique_lock<std::recursive_mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  uint32_t came = 0;
  for (int turn = 0; turn < 64; ++turn) {
    const unsigned events = ucp_worker_progress(worker_);
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
      while (ucp_worker_progress(worker_) != 0) {
      }
      if (flying_ == 0) break;
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
  ++wire.seen_;
  wire.ends_.arrived(static_cast<const unsigned char*>(data), bytes);
  return UCS_OK;
}

void UcpWire::broken(void* context, ucp_ep_h, ucs_status_t status) {
  Peer& peer = *static_cast<Peer*>(context);
  peer.wire->lose(peer, ucs_status_string(status));
}

}  // namespace
}  // namespace windlass

extern "C" __attribute__((visibility("default"))) windlass::Code windlass_open_wire_1(
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
