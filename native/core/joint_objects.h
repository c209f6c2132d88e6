// SPDX-License-Identifier: Apache-2.0
// Objects that ranks of one process make together in one operation.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace windlass {

// A rank's hold of such an object.
template <class T>
using Joint = std::shared_ptr<const std::shared_ptr<T>>;

class JointObjects {
 public:
  // Numbers of the objects. Numbers from 0 are the groups of a color. The proposal of rank r in a
  // round of a shrink is kShrink - r.
  enum Part : int32_t { kShrink = -3, kTransfer = -2, kWindow = -1 };

  // Returns the object `part` that ranks of this process make together in the operation `sequence`.
  // The first rank that calls makes it, and later ranks get it while any rank holds a Joint. Each
  // rank calls before it enters the operation and holds its Joint until it has left.
  // The object may live longer, but a later operation with the same 32 bits does not find it. A
  // part has one type, whatever operations ranks call. Throws std::bad_alloc.
  template <class T, class Make>
  Joint<T> make(uint32_t sequence, int32_t part, Make&& create) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto entry = all_.begin(); entry != all_.end();)
      entry = entry->second.expired() ? all_.erase(entry) : std::next(entry);
    std::weak_ptr<const void>& held = all_[{sequence, part}];
    if (const std::shared_ptr<const void> made = held.lock())
      return std::static_pointer_cast<const std::shared_ptr<T>>(made);
    Joint<T> made = std::make_shared<const std::shared_ptr<T>>(create());
    held = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<uint32_t, int32_t>, std::weak_ptr<const void>> all_;
};

}  // namespace windlass
