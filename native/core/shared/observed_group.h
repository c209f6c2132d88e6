// SPDX-License-Identifier: Apache-2.0
// A communicator whose ranks live in several processes, seen by a process that has none of them.
// The process maps the control block read-only, so that it disturbs no rank. It trusts none of the
// content: it checks the bounds of numbers and terminates texts.
#pragma once

#include <memory>

#include "native/base/error.h"
#include "native/core/control_block.h"
#include "native/memory/shared_mapping.h"

namespace windlass {

class ObservedGroup {
 public:
  // Opens the control block that `owner` has open as file `number`. The content stays in its last
  // state after all its processes are gone. WL_INVALID_ARGUMENT: the file is not a control block of
  // this library. Throws std::bad_alloc.
  static Code open(const wl_process_t& owner, int32_t number,
                   std::unique_ptr<ObservedGroup>* group, wl_error_t* error);

  const GroupConfig& config() const { return config_; }
  const ControlBlock& block() const { return block_; }
  // The reason of the communicator's failure; WL_OK if it is alive.
  Code failure(wl_error_t* error) const;

 private:
  ObservedGroup() = default;

  SharedMapping mapping_;
  GroupConfig config_;
  ControlBlock block_;
};

}  // namespace windlass
