// SPDX-License-Identifier: Apache-2.0
// What ranks of this process share in a window: one of them makes it and tells the others its name,
// and the last one to leave gives it back.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace windlass::cuda {

template <class T>
class ByName {
 public:
  // Whoever adds one holds it. Throws std::bad_alloc.
  uint64_t add(T* one) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_[names_ + 1] = {one, 1};
    return ++names_;
  }
  // nullptr: it isn't there any more.
  T* hold(uint64_t name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = all_.find(name);
    if (found == all_.end()) return nullptr;
    ++found->second.holders;
    return found->second.one;
  }
  // Whether nobody holds it now.
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
