// SPDX-License-Identifier: Apache-2.0
// A shared library that a caller names by its file. The dynamic linker trusts the file, so load()
// first checks the file's headers against this machine and the file's length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/error.h"

namespace windlass {

class SharedLibrary {
 public:
  // Loads the library for the rest of the process's life. Throws std::bad_alloc.
  static Code load(const std::string& path, SharedLibrary* library, wl_error_t* error);

  // Address of a symbol that this library itself defines; nullptr if there is none.
  const void* find(const char* symbol) const;
  // True if [memory, memory + bytes) lies in one readable segment of the loaded library.
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
