// SPDX-License-Identifier: Apache-2.0
// A shared library that a caller names by its file. The dynamic linker trusts what it maps, so the
// file's headers are held against this machine and against its length first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/error.h"

namespace windlass {

class SharedLibrary {
 public:
  // Loads it, for as long as the process lives. Throws std::bad_alloc.
  static Code load(const std::string& path, SharedLibrary* library, wl_error_t* error);

  // Of this library itself; nullptr: it has no such symbol.
  const void* find(const char* symbol) const;
  // Whether so many bytes from there on are of the library, as its file lays them out.
  bool holds(const void* memory, uint64_t bytes) const;
  bool holdsCode(const void* function) const;

 private:
  struct Segment {
    uint64_t start;
    uint64_t end;
    bool isCode;
  };

  void* handle_ = nullptr;
  std::vector<Segment> segments_;
};

}  // namespace windlass
