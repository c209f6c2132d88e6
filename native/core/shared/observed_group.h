// SPDX-License-Identifier: Apache-2.0
// A communicator whose ranks live in several processes, as a process sees it that has none of them.
// It maps the control block to read it alone, so that it disturbs nobody, and trusts nothing that
// stands there: numbers are kept within their bounds, and texts end.
#pragma once

#include <memory>

#include "native/base/error.h"
#include "native/core/control_block.h"
#include "native/memory/shared_mapping.h"

namespace windlass {

class ObservedGroup {
 public:
  // What `owner` has open as `number`; it stays as it was last, once all its processes are gone.
  // WL_INVALID_ARGUMENT: it is no control block of this library. Throws std::bad_alloc.
  static Code open(const wl_process_t& owner, int32_t number,
                   std::unique_ptr<ObservedGroup>* group, wl_error_t* error);

  const GroupConfig& config() const { return config_; }
  const ControlBlock& block() const { return block_; }
  // Why it is dead; WL_OK while it lives.
  Code failure(wl_error_t* error) const;

 private:
  ObservedGroup() = default;

  SharedMapping mapping_;
  GroupConfig config_;
  ControlBlock block_;
};

}  // namespace windlass
