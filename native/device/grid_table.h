// SPDX-License-Identifier: Apache-2.0
// Grid table: the number of device cores that a rank uses in an operation, as a benchmark measured
// it. docs/reference/gpus.md describes the format.
#pragma once

#include <string_view>
#include <vector>

#include "native/memory/device.h"

namespace windlass {

class GridTable {
 public:
  static constexpr uint64_t kMostTextBytes = uint64_t{1} << 20;
  static constexpr uint32_t kMostCores = 1024;  // of a row
  static constexpr uint64_t kMostBytes = kMostWindowBytes;

  // Properties that select a row.
  struct Case {
    DeviceKind device;
    int32_t operation;  // wl_operation
    uint32_t ranks;     // of the communicator
    uint32_t sharers;   // ranks of this process on the same device
    uint64_t bytes;     // the larger of input and output, on the rank that has most
  };

  // Parses `text`. On WL_INVALID_ARGUMENT, `error` names the wrong line and the table is unchanged.
  // Throws std::bad_alloc.
  Code read(std::string_view text, wl_error_t* error);
  // Returns the number of cores of a rank; 0 if no row matches.
  uint32_t cores(const Case& of) const;
  // Returns the number of rows for devices of that kind.
  uint32_t rowsOf(const DeviceKind& device) const;
  bool isEmpty() const { return rows_.empty(); }

 private:
  struct Row {
    Case of;  // its bytes are the lower limit
    uint64_t to;
    uint32_t cores;
    uint32_t line;
  };
  class Reader;

  std::vector<Row> rows_;  // ascending; byte ranges of one key don't overlap
};

}  // namespace windlass
