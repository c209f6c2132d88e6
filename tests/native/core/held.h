// SPDX-License-Identifier: Apache-2.0
// What a process has that communicators, windows and pools take.
#pragma once

#include <dirent.h>

#include <cstdio>
#include <cstring>

namespace windlass_test {

// Compared before and after.
struct Held {
  int files;
  int threads;
  int mappings;  // of memory that processes share

  static Held look() {
    return {entries("/proc/self/fd"), entries("/proc/self/task"), sharedMappings()};
  }
  // No more of anything. A thread that was joined may be listed for a moment still.
  bool isWithin(const Held& other) const {
    return files <= other.files && threads <= other.threads && mappings <= other.mappings;
  }

 private:
  static int entries(const char* path) {
    DIR* folder = opendir(path);
    int count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
  }
  static int sharedMappings() {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    char line[512];
    int count = 0;
    while (std::fgets(line, sizeof line, maps) != nullptr)
      if (std::strstr(line, "memfd:windlass") != nullptr) ++count;
    std::fclose(maps);
    return count;
  }
};

}  // namespace windlass_test
