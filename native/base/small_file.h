// SPDX-License-Identifier: Apache-2.0
// Small files in which the system says what a process may use.
#pragma once

#include <cstddef>

namespace windlass {

// The start of a small file, read without the heap; empty when it cannot be read.
class FileText {
 public:
  explicit FileText(const char* path);
  char* text() { return text_; }
  const char* text() const { return text_; }

 private:
  char text_[4096] = {};
};

// The file `name` of this process's cgroup (v2), then of each above it up to the root of the
// hierarchy.
class CgroupFiles {
 public:
  CgroupFiles();
  // Goes to the next cgroup, the first one at first; false when there is none.
  bool next();
  // The file of that name, in the cgroup that next() went to; "" where it has none.
  FileText read(const char* name) const;
  // "/" or a path without a slash at its end.
  const char* path() const { return path_[0] == 0 ? "/" : path_; }

 private:
  char path_[4096];
  bool begun_ = false;
};

}  // namespace windlass
