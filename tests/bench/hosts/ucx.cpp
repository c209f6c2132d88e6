// SPDX-License-Identifier: Apache-2.0
// UCX by itself, between two hosts: a put and a put of a counter behind a fence, whose waiter
// polls. Half of a round trip, and the bandwidth of puts that are answered one by one.
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#include <atomic>
#include <cstring>
#include <string>

#include "sampling.h"
#include "tests/native/core/namespaces.h"
#include "ucx_worker.h"

namespace {

using hosts_bench::check;

constexpr uint64_t kMost = hosts_bench::kLongPut;
constexpr uint64_t kRoom = 4096;

// Memory that both processes map, by which they find one another.
struct Shared {
  struct Side {
    std::atomic<uint32_t> steps;
    uint64_t addressBytes, keyBytes, memory;
    unsigned char address[kRoom], key[kRoom];
  } sides[2];
};

class End {
 public:
  End(Shared& both, int own) : shared_(both), own_(own) {
    hosts_bench::makeWorker(UCP_FEATURE_RMA, &context_, &worker_);
    memory_ = static_cast<unsigned char*>(mmap(nullptr, kMost + kRoom, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = memory_;
    map.length = kMost + kRoom;
    ucp_mem_h handle;
    check(ucp_mem_map(context_, &map, &handle), "ucp_mem_map");
    Shared::Side& side = shared_.sides[own_];
    void* key = nullptr;
    size_t bytes = 0;
    check(ucp_rkey_pack(context_, handle, &key, &bytes), "ucp_rkey_pack");
    std::memcpy(side.key, key, bytes);
    ucp_address_t* address = nullptr;
    check(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
    std::memcpy(side.address, address, bytes);
    side.memory = reinterpret_cast<uint64_t>(memory_);
    arriveAndWait();
    const Shared::Side& other = shared_.sides[1 - own_];
    there_ = other.memory;
    ucp_ep_params_t end = {};
    end.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    end.address = reinterpret_cast<const ucp_address_t*>(other.address);
    check(ucp_ep_create(worker_, &end, &endpoint_), "ucp_ep_create");
    check(ucp_ep_rkey_unpack(endpoint_, other.key, &key_), "ucp_ep_rkey_unpack");
    flush();
    arriveAndWait();
  }

  void arriveAndWait() {
    const uint32_t step = shared_.sides[own_].steps.fetch_add(1) + 1;
    while (shared_.sides[1 - own_].steps.load() < step) ucp_worker_progress(worker_);
  }

  void put(uint64_t bytes) {
    ucp_request_param_t param = {};
    const auto request =
        ucp_put_nbx(endpoint_, memory_ + kRoom, bytes, there_ + kRoom, key_, &param);
    check(ucp_worker_fence(worker_), "ucp_worker_fence");
    ++told_;
    const auto told = ucp_put_nbx(endpoint_, &told_, sizeof told_, there_, key_, &param);
    finish(request);
    finish(told);
  }

  void await(uint64_t count) {
    while (reinterpret_cast<std::atomic<uint64_t>*>(memory_)->load(std::memory_order_acquire) <
           count) {
      ucp_worker_progress(worker_);
    }
  }

  void flush() {
    ucp_request_param_t param = {};
    finish(ucp_ep_flush_nbx(endpoint_, &param));
  }

 private:
  void finish(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return check(UCS_PTR_STATUS(request), "request");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

  Shared& shared_;
  const int own_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  unsigned char* memory_ = nullptr;
  uint64_t there_ = 0;
  uint64_t told_ = 0;
};

void run(Shared& both, int own) {
  End end(both, own);
  uint64_t count = 0;
  for (const uint64_t bytes : {hosts_bench::kShortPut, hosts_bench::kLongPut}) {
    const double us = hosts_bench::sample(bytes, [&] {
      ++count;
      if (own == 0) {
        end.put(bytes);
        end.await(count);
      } else {
        end.await(count);
        end.put(8);
      }
    });
    if (own == 0) hosts_bench::print("put-notify", bytes, us);
    end.arriveAndWait();
  }
}

}  // namespace

int main() {
  void* shared = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
  auto& both = *new (shared) Shared();
  const pid_t child = fork();
  const int own = child == 0 ? 1 : 0;
  windlass_test::enterHost(own);
  run(both, own);
  if (child == 0) std::_Exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
