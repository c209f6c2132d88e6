// SPDX-License-Identifier: Apache-2.0
// Progress of the operation in progress, as far as one rank sees it. Reports of a passed
// deadline name the ranks that made the least progress.
#pragma once

#include "windlass/windlass.h"

namespace windlass {

class Text;

// Steps of an operation. A step is a phase, or a round of a phase that goes through staging
// buffers.
class Steps {
 public:
  // Number of steps that ranks see. 0: they see the phases that DONE counts.
  virtual uint32_t count() const = 0;
  // Number of steps that all items of `rank` have completed. Call only if count() is not 0.
  virtual uint32_t over(uint32_t rank) const = 0;
  // True if devices run the steps. Devices do not report whom they wait for.
  virtual bool areOfDevices() const { return false; }
  // True if this rank waits for `peer` before the steps, and no other peer is further behind.
  virtual bool isUnmet(uint32_t /*peer*/) const { return false; }
  // Adds the progress of the record's faulty ranks to a report.
  virtual void write(Text& /*out*/, const wl_error_t& /*record*/) const {}

 protected:
  ~Steps() = default;
};

}  // namespace windlass
