// SPDX-License-Identifier: Apache-2.0
// UCX by itself, as an all-to-all of 2 hosts of 2 ranks needs it: each process sends a quarter of
// so many bytes to each one of the other host by active messages, and copies as much of its own
// and of the one beside it. What arrives is dropped, or copied to where it belongs.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <vector>

#include "sampling.h"
#include "tests/native/core/namespaces.h"
#include "ucx_worker.h"

namespace {

using hosts_bench::check;

constexpr int kRanks = 4;
constexpr uint64_t kPieceBytes = uint64_t{512} << 10;  // as Windlass sends
constexpr uint64_t kMost = uint64_t{64} << 20;

// Memory that all processes map.
struct Shared {
  std::atomic<uint32_t> steps[kRanks];
  unsigned char addresses[kRanks][4096];
};

class End {
 public:
  End(Shared& shared, unsigned char* inputs, int own)
      : shared_(shared), inputs_(inputs), own_(own), output_(kMost, 1) {
    hosts_bench::makeWorker(UCP_FEATURE_AM, &context_, &worker_);
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 1;
    handler.cb = arrived;
    handler.arg = this;
    check(ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
    ucp_address_t* address = nullptr;
    size_t bytes = 0;
    check(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
    std::memcpy(shared_.addresses[own_], address, bytes);
    arriveAndWait();
    for (int other = 0; other < kRanks; ++other) {
      if (isBeside(other)) continue;
      ucp_ep_params_t end = {};
      end.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
      end.address = reinterpret_cast<const ucp_address_t*>(shared_.addresses[other]);
      check(ucp_ep_create(worker_, &end, &endpoints_[other]), "ucp_ep_create");
    }
    exchange(4096, true);
    arriveAndWait();
  }

  void arriveAndWait() {
    const uint32_t step = shared_.steps[own_].fetch_add(1) + 1;
    for (int other = 0; other < kRanks; ++other)
      while (shared_.steps[other].load() < step) drive();
  }

  void exchange(uint64_t bytes, bool stores) {
    stores_ = stores;
    const uint64_t part = bytes / kRanks;
    const unsigned char* const input = inputs_ + static_cast<uint64_t>(own_) * kMost;
    for (int other = 0; other < kRanks; ++other) {
      expected_[other] += part;
      if (isBeside(other)) continue;
      for (uint64_t at = 0; at < part; at += kPieceBytes) {
        // The number of this process rides along, and where it lies.
        const uint64_t head = static_cast<uint64_t>(own_) << 32 | at;
        heads_.push_back(head);
        send(endpoints_[other], input + static_cast<uint64_t>(other) * part + at,
             std::min(kPieceBytes, part - at));
      }
    }
    for (const int other : {own_, own_ ^ 1}) {
      std::memcpy(output_.data() + static_cast<uint64_t>(other) * part,
                  inputs_ + static_cast<uint64_t>(other) * kMost +
                      static_cast<uint64_t>(own_) * part,
                  part);
    }
    part_ = part;
    const auto isOver = [&] {
      for (int other = 0; other < kRanks; ++other)
        if (!isBeside(other) && arrived_[other] < expected_[other]) return false;
      return flying_ == 0;
    };
    while (!isOver()) drive();
    heads_.clear();
  }

 private:
  bool isBeside(int other) const { return other / 2 == own_ / 2; }
  void drive() {
    if (ucp_worker_progress(worker_) == 0) sched_yield();
  }
  void send(ucp_ep_h endpoint, const unsigned char* from, uint64_t bytes) {
    ucp_request_param_t param = {};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = [](void* request, ucs_status_t, void* flying) {
      --*static_cast<int*>(flying);
      ucp_request_free(request);
    };
    param.user_data = &flying_;
    const auto request =
        ucp_am_send_nbx(endpoint, 1, &heads_.back(), sizeof(uint64_t), from, bytes, &param);
    if (UCS_PTR_IS_PTR(request)) {
      ++flying_;
    } else {
      check(UCS_PTR_STATUS(request), "ucp_am_send_nbx");
    }
  }
  static ucs_status_t arrived(void* context, const void* header, size_t, void* data, size_t bytes,
                              const ucp_am_recv_param_t*) {
    auto& end = *static_cast<End*>(context);
    uint64_t head = 0;
    std::memcpy(&head, header, sizeof head);
    const uint64_t from = head >> 32;
    if (end.stores_)
      std::memcpy(end.output_.data() + from * end.part_ + (head & 0xffffffffu), data, bytes);
    end.arrived_[from] += bytes;
    return UCS_OK;
  }

  Shared& shared_;
  unsigned char* const inputs_;
  const int own_;
  std::vector<unsigned char> output_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoints_[kRanks] = {};
  std::deque<uint64_t> heads_;
  int flying_ = 0;
  bool stores_ = false;
  uint64_t part_ = 0;
  uint64_t arrived_[kRanks] = {};
  uint64_t expected_[kRanks] = {};
};

void run(Shared& shared, unsigned char* inputs, int own) {
  End end(shared, inputs, own);
  for (const uint64_t bytes : hosts_bench::sizes()) {
    for (const bool stores : {false, true}) {
      const double us = hosts_bench::sample(bytes, [&] { end.exchange(bytes, stores); });
      if (own == 0)
        hosts_bench::print(stores ? "stored all-to-all" : "dropped all-to-all", bytes, us);
      end.arriveAndWait();
    }
  }
}

}  // namespace

int main() {
  const auto share = [](uint64_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  };
  auto& shared = *new (share(sizeof(Shared))) Shared();
  auto* const inputs = static_cast<unsigned char*>(share(kRanks * kMost));
  std::memset(inputs, 1, kRanks * kMost);
  int own = 0;
  for (int rank = 1; rank < kRanks && own == 0; ++rank)
    if (fork() == 0) own = rank;
  windlass_test::enterHost(own / 2);
  run(shared, inputs, own);
  if (own != 0) std::_Exit(0);
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed += status != 0 ? 1 : 0;
  return failed == 0 ? 0 : 1;
}
