// SPDX-License-Identifier: Apache-2.0
// Sends and receives of tests.
#pragma once

#include "native/core/message/message_lane.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"

namespace windlass_test {
namespace messages_test {

using Bytes = std::vector<uint8_t>;

inline wl_message_t send(const void* data, uint64_t elements, int peer, int tag,
                         int dtype = WL_U8) {
  wl_message_t message = {};
  message.struct_size = sizeof message;
  message.operation = WL_OP_SEND;
  message.peer = peer;
  message.tag = tag;
  message.dtype = dtype;
  message.data = const_cast<void*>(data);
  message.elements = elements;
  return message;
}

inline wl_message_t receive(void* data, uint64_t elements, int peer, int tag, int dtype = WL_U8) {
  wl_message_t message = send(data, elements, peer, tag, dtype);
  message.operation = WL_OP_RECEIVE;
  return message;
}

inline int32_t run(wl_comm_t* comm, wl_message_t message, wl_error_t* error,
                   int64_t deadlineNs = 0) {
  return wl_messages(comm, &message, 1, deadlineNs, error);
}

inline void fill(uint8_t* data, uint64_t bytes, uint32_t round, int from, int to) {
  for (uint64_t i = 0; i < bytes; ++i)
    data[i] = static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(from),
                                         static_cast<uint32_t>(to), i));
}

inline bool isFilled(const uint8_t* data, uint64_t bytes, uint32_t round, int from, int to) {
  Bytes expected(bytes);
  fill(expected.data(), bytes, round, from, to);
  return bytes == 0 || std::memcmp(data, expected.data(), bytes) == 0;
}

// Messages that wl_messages_start began. awaitAll() awaits them as the thread of a caller does.
class Started {
 public:
  explicit Started(wl_comm_t* comm) : comm_(comm) {}

  int32_t start(std::vector<wl_message_t> messages, wl_error_t* error) {
    auto kept = std::make_unique<std::vector<wl_message_t>>(std::move(messages));
    uint64_t ticket = 0;
    const int32_t code = wl_messages_start(comm_, kept->data(),
                                           static_cast<uint32_t>(kept->size()), 0, &ticket, error);
    all_.push_back(std::move(kept));
    if (ticket != 0) open_.push_back(ticket);
    return code;
  }
  int32_t awaitAll(wl_error_t* error) {
    while (!open_.empty()) {
      uint64_t ticket = 0;
      if (int32_t code = wl_messages_next(comm_, 100 * kMs, &ticket, error)) return code;
      open_.erase(std::remove(open_.begin(), open_.end(), ticket), open_.end());
    }
    return WL_OK;
  }
  const wl_message_t& at(size_t call, size_t message = 0) const { return (*all_[call])[message]; }
  size_t open() const { return open_.size(); }
  uint64_t ticket(size_t i) const { return open_[i]; }

 private:
  wl_comm_t* comm_;
  std::vector<std::unique_ptr<std::vector<wl_message_t>>> all_;
  std::vector<uint64_t> open_;
};

}  // namespace messages_test
}  // namespace windlass_test
