// SPDX-License-Identifier: Apache-2.0
// Registry of objects that ranks of this process share in a window. One rank creates the object and
// sends its name to the others. The last rank to leave destroys it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace windlass::cuda {

template <class T>
class ByName {
 public:
  // Adds an object; the caller holds it. Throws std::bad_alloc.
  uint64_t add(T* one) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_[names_ + 1] = {one, 1};
    return ++names_;
  }
  // Returns nullptr if the object is gone.
  T* hold(uint64_t name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = all_.find(name);
    if (found == all_.end()) return nullptr;
    ++found->second.holders;
    return found->second.one;
  }
  // Returns true if nobody holds the object any more.
  bool leave(uint64_t name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = all_.find(name);
    if (--found->second.holders > 0) return false;
    all_.erase(found);
    return true;
  }

 private:
  struct Held {
    T* one;
    uint32_t holders;
  };

  std::mutex mutex_;  // guards what follows
  std::map<uint64_t, Held> all_;
  uint64_t names_ = 0;
};

}  // namespace windlass::cuda
