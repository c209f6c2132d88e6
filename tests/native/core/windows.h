// SPDX-License-Identifier: Apache-2.0
// Windows of ranks, and views of them, for tests of one-sided operations.
#pragma once

#include <algorithm>
#include <numeric>

#include "tests/native/core/local_ranks.h"

namespace windlass_test {

// A window of each rank: `bytes` bytes, then signals.
class Windows {
 public:
  Windows(LocalRanks& ranks, uint64_t bytes, int signals)
      : ranks_(ranks),
        data_((bytes + WL_SIGNAL_LINE_BYTES - 1) / WL_SIGNAL_LINE_BYTES * WL_SIGNAL_LINE_BYTES),
        handles_(static_cast<size_t>(ranks.size())) {
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      ASSERT_EQ(WL_OK, wl_window_create(comm, signal(signals), 20'000 * kMs, &handle(rank), &error))
          << error.message;
    });
  }
  ~Windows() {
    for (wl_window_t* window : handles_) wl_window_free(window);
  }
  Windows(const Windows&) = delete;

  wl_window_t*& handle(int rank) { return handles_[static_cast<size_t>(rank)]; }
  uint8_t* at(int rank, uint64_t offset) {
    return static_cast<uint8_t*>(wl_window_address(handle(rank), rank)) + offset;
  }
  uint64_t signal(int index) const {
    return data_ + static_cast<uint64_t>(index * ranks_.size()) * WL_SIGNAL_LINE_BYTES;
  }

  int put(int rank, const wl_tensor_t& local, int peer, const wl_tensor_t& remote, Error* error) {
    return wl_put(comm(rank), handle(rank), &local, peer, &remote, error);
  }
  int accumulate(int rank, const wl_tensor_t& local, int peer, const wl_tensor_t& remote,
                 Error* error) {
    return wl_accumulate(comm(rank), handle(rank), &local, peer, &remote, error);
  }
  int get(int rank, const wl_tensor_t& local, int peer, const wl_tensor_t& remote, Error* error) {
    return wl_get(comm(rank), handle(rank), &local, peer, &remote, error);
  }
  int notify(int rank, int peer, int index, uint64_t value, Error* error) {
    return wl_notify(comm(rank), handle(rank), peer, signal(index), value, error);
  }
  int wait(int rank, int peer, int index, uint64_t value, Error* error, int64_t deadlineNs = 0) {
    return wl_wait(comm(rank), handle(rank), peer, signal(index), value, deadlineNs, error);
  }
  int test(int rank, int peer, int index, uint32_t value, int32_t* reached, Error* error) {
    return wl_test(comm(rank), handle(rank), peer, signal(index), value, reached, error);
  }

 private:
  wl_comm_t* comm(int rank) { return ranks_.comms[static_cast<size_t>(rank)]; }

  LocalRanks& ranks_;
  const uint64_t data_;
  std::vector<wl_window_t*> handles_;
};

// A contiguous row, or a strided view: dimensions laid out in random order, with gaps.
struct View {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  uint64_t elements = 1;  // from the first to the end of the last

  View(const std::vector<int64_t>& extents, bool isStrided, std::mt19937_64& random)
      : shape(extents), strides(extents.size()) {
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (isStrided) std::shuffle(order.begin(), order.end(), random);
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0;) {
      const size_t d = order[i];
      strides[d] = step;
      if (shape[d] > 0) elements += static_cast<uint64_t>(step * (shape[d] - 1));
      step *= std::max<int64_t>(shape[d], 1);
      if (isStrided && random() % 2 == 0) step += static_cast<int64_t>(random() % 3);
    }
  }

  wl_tensor_t tensor(void* data, int dtype) const {
    return {sizeof(wl_tensor_t), dtype,         static_cast<uint32_t>(shape.size()), 0, data,
            shape.data(),        strides.data()};
  }
};

// Reference of a move into the bytes of `to`, one element at a time.
inline void moveSlowly(uint8_t* to, const View& toView, const uint8_t* from, const View& fromView,
                       size_t elementBytes) {
  int64_t count = 1;
  for (const int64_t extent : toView.shape) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, toAt = 0, fromAt = 0;
    for (size_t d = toView.shape.size(); d-- > 0;) {
      const int64_t index = rest % toView.shape[d];
      rest /= toView.shape[d];
      toAt += index * toView.strides[d];
      fromAt += index * fromView.strides[d];
    }
    std::memcpy(to + static_cast<size_t>(toAt) * elementBytes,
                from + static_cast<size_t>(fromAt) * elementBytes, elementBytes);
  }
}

}  // namespace windlass_test
