// SPDX-License-Identifier: Apache-2.0
// Opens, connects and drives a wire, and shares memory through it.
#include "native/hosts/ucx/library/ucp_wire.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native/base/clock.h"
#include "native/base/makes_threads.h"

namespace windlass {
namespace {

constexpr uint32_t kNameMagic = 0x57444e32;
constexpr uint32_t kKeyMagic = 0x57444b31;
constexpr uint64_t kMostNameBytes = 1u << 16;

// Name: head of a wire's name, before the worker's address. Key: name of shared memory.
struct Name {
  uint32_t magic;
  uint32_t bytes;
  Secret secret;
};
struct Key {
  uint32_t magic;
  uint32_t number;
  uint64_t bytes;
};

Code failed(const char* call, ucs_status_t status, wl_error_t* error) {
  const Code code = status == UCS_ERR_NO_MEMORY     ? WL_RESOURCE
                    : status == UCS_ERR_UNSUPPORTED ? WL_UNSUPPORTED
                    : status == UCS_ERR_NO_DEVICE   ? WL_UNSUPPORTED
                                                    : WL_INTERNAL;
  return fail(error, code, "%s: %s", call, ucs_status_string(status));
}

Code ended(wl_error_t* error) {
  return fail(error, WL_CLOSED, "%s", kUcxHasEnded);
}

// True for FIRST-LAST or one port. UCX treats text that it can't parse as any port.
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

}  // namespace

Code UcpWire::open(const WireSettings& settings, wl_error_t* error) {
  const UcxCalls calls(mutex_);
  if (!calls) return ended(error);
  if (getrandom(&secret_, sizeof secret_, 0) != ssize_t{sizeof secret_})
    return fail(error, WL_RESOURCE, "no random bytes: getrandom: %s", std::strerror(errno));
  if (settings.ports != nullptr && !isPortRange(settings.ports)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "WINDLASS_UCX_PORT_RANGE is \"%s\"; it has the first and the last port, such as "
                "7100-7199",
                settings.ports);
  }
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed("ucp_config_read", status, error);
  const bool setsBuffer = std::strcmp(settings.devices, "lo") != 0 &&
                          std::getenv("UCX_TCP_SNDBUF") == nullptr &&
                          std::getenv("UCX_SNDBUF") == nullptr;
  const struct {
    const char* name;
    const char* value;  // nullptr: UCX's default
    const char* of;
  } wanted[] = {
      {"NET_DEVICES", settings.devices, "network device"},
      {"TLS", settings.transports, "transports"},
      {"PORT_RANGE", settings.ports, "port range"},
      // Triples the throughput over TCP.
      {"TX_SEG_SIZE", "1M", "segment"},
      {"RX_SEG_SIZE", "2M", "segment"},
      // Data in a longer buffer has left the caches before it is read. The cost is in
      // docs/explanation/speed-hosts.md, and docs/reference/settings.md has the limit that this
      // buffer sets. Loopback keeps its default, because its segments have 64 KiB. So few of them
      // would be in flight that the peer delays acknowledgements by up to 200 ms.
      {"SNDBUF", setsBuffer ? "256K" : nullptr, "send buffer"},
      // connect() does not block while packets are lost, for example on a cut link.
      {"CONN_NB", "y", "way to connect"},
      // Several lanes would reorder messages.
      {"MAX_EAGER_LANES", "1", "number of lanes"},
  };
  Code code = WL_OK;
  for (const auto& [name, value, of] : wanted) {
    if (code != WL_OK || value == nullptr) continue;
    status = ucp_config_modify(config, name, value);
    if (status != UCS_OK) {
      code = fail(error, WL_INVALID_ARGUMENT, "UCX takes no %s of \"%s\": %s", of, value,
                  ucs_status_string(status));
    }
  }
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  if (code == WL_OK) code = requireDevice(settings.devices, error);
  const MakesThreads making;  // ucp_init makes UCX's own thread
  if (code == WL_OK) {
    status = ucp_init(&params, config, &context_);
    if (status != UCS_OK) {
      const bool isOwn = settings.transports != nullptr;
      const char* const transports = isOwn ? settings.transports : std::getenv("UCX_TLS");
      const bool isAny = transports == nullptr || *transports == 0;
      code = fail(error, WL_UNSUPPORTED,
                  "UCX finds nothing to reach other hosts by on \"%s\"%s%s%s (%s): name the "
                  "network by WINDLASS_UCX_NET_DEVICES, as `ip link` has it%s%s",
                  settings.devices, isAny ? "" : " with the transports \"",
                  isAny ? "" : transports, isAny ? "" : "\"", ucs_status_string(status),
                  isAny ? "" : ", and transports that it has by ",
                  isAny ? "" : isOwn ? "WINDLASS_UCX_TLS" : "UCX_TLS");
    }
  }
  ucp_config_release(config);
  return code == WL_OK ? openWorker(settings, error) : code;
}

Code UcpWire::openWorker(const WireSettings& settings, wl_error_t* error) {
  ucp_worker_params_t worker = {};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(context_, &worker, &worker_);
  if (status == UCS_ERR_BUSY && settings.ports != nullptr) {
    return fail(error, WL_RESOURCE,
                "none of the ports %s, of WINDLASS_UCX_PORT_RANGE, is free on \"%s\": give it as "
                "many as this host has processes, and some more",
                settings.ports, settings.devices);
  }
  if (status != UCS_OK) return failed("ucp_worker_create", status, error);
  ucp_worker_attr_t attributes = {};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  status = ucp_worker_query(worker_, &attributes);
  if (status != UCS_OK) return failed("ucp_worker_query", status, error);
  mostHeadBytes_ = std::min<uint64_t>(kMostHeadBytes, attributes.max_am_header);
  ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMoves;
  handler.cb = arrived;
  handler.arg = this;
  status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return failed("ucp_worker_set_am_recv_handler", status, error);
  status = ucp_worker_get_efd(worker_, &file_);
  return status == UCS_OK ? WL_OK : failed("ucp_worker_get_efd", status, error);
}

UcpWire::~UcpWire() {
  const UcxCalls calls(mutex_);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  for (Peer& peer : peers_) {
    discard(peer);
    if (!calls) continue;
    // Nothing drives the worker from now on. If the connection had something to send and the peer
    // closes as well, UCX 1.13 would use freed memory.
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  if (!calls) return;
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Code UcpWire::address(std::vector<unsigned char>* name, wl_error_t* error) {
  const UcxCalls calls(mutex_);
  if (!calls) return ended(error);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &bytes);
  if (status != UCS_OK) return failed("ucp_worker_get_address", status, error);
  const Name head = {kNameMagic, static_cast<uint32_t>(bytes), secret_};
  name->resize(sizeof head + bytes);
  std::memcpy(name->data(), &head, sizeof head);
  std::memcpy(name->data() + sizeof head, address, bytes);
  ucp_worker_release_address(worker_, address);
  return WL_OK;
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
  const UcxCalls calls(mutex_);
  if (!calls) return ended(error);
  Peer& peer = peers_.emplace_back();
  peer.wire = this;
  peer.number = static_cast<uint32_t>(peers_.size() - 1);
  peer.secret = head.secret;
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
  std::lock_guard<UcxMutex> lock(mutex_);
  return peers_[peer].isLost;
}

void UcpWire::lose(Peer& peer, const char* why) {
  if (peer.isLost) return;
  peer.isLost = true;
  discard(peer);
  // Ranks that wait for these bytes learn of the loss in other ways. Their gets never complete.
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

void UcpWire::broken(void* context, ucp_ep_h, ucs_status_t status) {
  Peer& peer = *static_cast<Peer*>(context);
  peer.wire->lose(peer, ucs_status_string(status));
}

Code UcpWire::share(void* memory, uint64_t bytes, std::vector<unsigned char>* key, wl_error_t*) {
  std::lock_guard<UcxMutex> lock(mutex_);
  const Key head = {kKeyMagic, shares_, bytes};
  key->resize(sizeof head);
  std::memcpy(key->data(), &head, sizeof head);
  shared_.push_back({static_cast<unsigned char*>(memory), bytes, shares_++});
  return WL_OK;
}

void UcpWire::hide(void* memory) {
  std::lock_guard<UcxMutex> lock(mutex_);
  const auto found = std::find_if(shared_.begin(), shared_.end(), [&](const SharedMemory& each) {
    return each.memory == memory;
  });
  if (found != shared_.end()) shared_.erase(found);
}

Code UcpWire::reach(uint32_t number, const unsigned char* key, uint64_t bytes, uint32_t* region,
                    wl_error_t* error) {
  Key head;
  if (bytes >= sizeof head) std::memcpy(&head, key, sizeof head);
  if (bytes < sizeof head || head.magic != kKeyMagic)
    return fail(error, WL_INVALID_ARGUMENT, "%llu bytes are no key of memory",
                static_cast<unsigned long long>(bytes));
  std::lock_guard<UcxMutex> lock(mutex_);
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

unsigned char* UcpWire::sharedAt(uint32_t number, uint64_t at, uint64_t bytes) const {
  for (const SharedMemory& each : shared_) {
    if (each.number == number && at <= each.bytes && bytes <= each.bytes - at)
      return each.memory + at;
  }
  return nullptr;
}

unsigned UcpWire::drive() {
  if (delayed_ > 0) sendAllDelayed();
  const unsigned events = ucp_worker_progress(worker_);
  if (waiting_ > 0) {
    for (Peer& peer : peers_) pump(peer);
  }
  return events;
}

uint32_t UcpWire::progress() {
  const UcxCalls calls(mutex_, std::try_to_lock);
  if (!calls) return 0;
  uint32_t came = 0;
  for (int turn = 0; turn < 64; ++turn) {
    const unsigned events = drive();
    if (events == 0) break;
    came += events;
  }
  return came;
}

bool UcpWire::arm() {
  const UcxCalls calls(mutex_);
  if (!calls) return true;
  return ucp_worker_arm(worker_) == UCS_OK;
}

bool UcpWire::flush(int64_t limitNs) {
  const int64_t start = clockNs();
  const auto isLate = [&] { return UcxMutex::haveEnded() || clockNs() - start > limitNs; };
  for (bool isEmpty = false; !isEmpty;) {
    const UcxCalls calls(mutex_);
    if (!calls) return false;
    // A peer may keep sending.
    while (drive() != 0 && !isLate()) continue;
    isEmpty = flying_ == 0 && waiting_ == 0;
    if (!isEmpty && isLate()) return false;
  }
  // UCX may still hold data in its own queues.
  const UcxCalls calls(mutex_);
  if (!calls) return false;
  ucp_request_param_t param = {};
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_, &param);
  if (!UCS_PTR_IS_PTR(request)) return true;
  bool isOver = false;
  while (!(isOver = ucp_request_check_status(request) != UCS_INPROGRESS) && !isLate())
    ucp_worker_progress(worker_);
  ucp_request_free(request);
  return isOver;
}

}  // namespace windlass

extern "C" __attribute__((visibility("default"))) windlass::Code windlass_open_wire_7(
    const windlass::WireSettings& settings, windlass::WireEnds& ends, windlass::Wire** wire,
    wl_error_t* error) {
  *wire = nullptr;
  auto made = std::make_unique<windlass::UcpWire>(ends);
  const windlass::Code code = made->open(settings, error);
  if (code == WL_OK) *wire = made.release();
  return code;
}
