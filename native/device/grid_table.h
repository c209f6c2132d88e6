// SPDX-License-Identifier: Apache-2.0
// The table of grids: of how many of a device's cores a rank makes use in an operation, as a bench
// has measured it. docs/cuda.md says how it is written.
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

  // What an operation is told apart by.
  struct Case {
    DeviceKind device;
    int32_t operation;  // wl_operation
    uint32_t ranks;     // of the communicator
    uint32_t sharers;   // those of this rank's process on its device
    uint64_t bytes;     // the larger of input and output, on the rank that has most
  };

  // Takes what `text` says. WL_INVALID_ARGUMENT says which line is wrong, and this is as it was.
  // Throws std::bad_alloc.
  Code read(std::string_view text, wl_error_t* error);
  // The cores of a rank; 0: no row is of that.
  uint32_t cores(const Case& of) const;
  // How many rows are of devices of that kind.
  uint32_t rowsOf(const DeviceKind& device) const;
  bool isEmpty() const { return rows_.empty(); }

 private:
  struct Row {
    Case of;  // from these bytes
    uint64_t to;
    uint32_t cores;
    uint32_t line;
  };
  class Reader;

  std::vector<Row> rows_;  // ascending, and no two of one case
};

}  // namespace windlass
