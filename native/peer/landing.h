// SPDX-License-Identifier: Apache-2.0
// Sends long data without a staging buffer if only one rank of another host needs it. The owner's
// process puts the data into the receive buffer of that rank. The receiver names the buffer before
// it enters the operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/hosts/ucx/wire.h"

namespace windlass {

class Comm;
class Hosts;

class Landing {
 public:
  explicit Landing(Comm& comm);

  // Sets the receive buffer of the operation. Call it before other ranks see this rank enter.
  void receive(void* into, uint64_t bytes);
  // Sends bytes to offset `at` of the receive buffer of `to`. After all of them, stores `value` in
  // `word` of its control block. The bytes must not change until awaitSent().
  Code send(uint32_t to, uint64_t at, const void* from, uint64_t bytes,
            const std::atomic<uint64_t>& word, uint64_t value);
  // Blocks until the bytes of all send() calls have been read.
  Code awaitSent(Deadline& deadline);
  // Ends the operation, after awaitSent() or a failure. Nothing is received or read any more.
  void end();

 private:
  Comm& comm_;
  Hosts* const hosts_;
  bool receives_ = false;
  std::vector<uint32_t> to_;  // ranks that data is in flight to
  Unread unread_;             // number of sends whose bytes are still read
};

}  // namespace windlass
