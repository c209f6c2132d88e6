// SPDX-License-Identifier: Apache-2.0
// A communicator that some ranks of another one make and whose ranks live in several processes. It
// is a color of a split, or the survivors of a failure.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "native/core/group.h"
#include "native/memory/shared_mapping.h"

namespace windlass {

// Checks that the mapping is the control block of a part of `whole`. The block lists its members by
// their ranks in `whole`. WL_INVALID_ARGUMENT: the mapping is something else.
Code checkPart(const SharedMapping& mapping, const Group& whole, wl_error_t* error);

// A shared group as one process holds it. The first rank of the process that arrives does each
// step.
class SharedGroup {
 public:
  SharedMapping& mapping() { return mapping_; }
  Group* group() { return group_.get(); }

  // Makes the group's memory on this host, for `members`, numbered as in `whole`. Throws
  // std::bad_alloc.
  Code make(const Group& whole, const std::vector<uint32_t>& members, wl_error_t* error);
  // Attaches the mapped memory. If members live on several hosts, opens this process's wire.
  // Otherwise attaching is complete, and the process watches others as in connect(). Throws
  // std::bad_alloc, std::system_error.
  Code attach(Group& whole, wl_error_t* error);
  // Connects the wires that the members' processes opened, once per process, after all have
  // attached. Watches the other processes of this host in which members live. Throws as attach().
  Code connect(Group& whole, const std::vector<std::vector<unsigned char>>& names,
               wl_error_t* error);

 private:
  static Code watchOthers(Group& whole, Group& made, wl_error_t* error);

  SharedMapping mapping_;
  std::mutex mutex_;
  std::shared_ptr<Group> group_;
};

}  // namespace windlass
