// SPDX-License-Identifier: Apache-2.0
// What is long, and wanted by one rank of another host alone, goes there without a stage: its
// owner's process puts it into the memory that the other receives into, which that names before it
// enters the operation.
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

  // Before others see this rank enter: what they send in the operation lands there.
  void receive(void* into, uint64_t bytes);
  // Has bytes land `at` bytes behind where `to` receives, and behind all of them that word of its
  // control block. They stay as they are until awaitSent().
  Code send(uint32_t to, uint64_t at, const void* from, uint64_t bytes,
            const std::atomic<uint64_t>& word, uint64_t value);
  Code awaitSent(Deadline& deadline);
  // After that, or a failure: nothing lands any more, nor is read.
  void end();

 private:
  Comm& comm_;
  Hosts* const hosts_;
  bool receives_ = false;
  std::vector<uint32_t> to_;  // ranks to which something is on its way, and
  Unread unread_;             // what of it is not read yet
};

}  // namespace windlass
