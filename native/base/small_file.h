// SPDX-License-Identifier: Apache-2.0
// Small system files that state the resource limits of a process.
#pragma once

namespace windlass {

// The start of a small file, read without the heap. Empty if the file cannot be read.
class FileText {
 public:
  explicit FileText(const char* path);
  char* text() { return text_; }
  const char* text() const { return text_; }

 private:
  char text_[4096] = {};
};

// Reads files of this process's cgroup (v2), then of each ancestor up to the root.
class CgroupFiles {
 public:
  CgroupFiles();
  // Moves to the next cgroup; the first call moves to the first one. Returns false at the end.
  bool next();
  // File `name` of the current cgroup; "" if it does not exist.
  FileText read(const char* name) const;
  // "/", or a path without a trailing slash.
  const char* path() const { return path_[0] == 0 ? "/" : path_; }

 private:
  char path_[4096];
  bool begun_ = false;
};

}  // namespace windlass
