// SPDX-License-Identifier: Apache-2.0
// A communicator that some ranks of another one make, whose ranks live in several processes: a
// color of a split, or those that are left after a failure.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "native/core/group.h"
#include "native/memory/shared_mapping.h"

namespace windlass {

// Whether what a process has mapped is the control block of a part of `whole`: its members are told
// there by their ranks in that. WL_INVALID_ARGUMENT: it is something else.
Code checkPart(const SharedMapping& mapping, const Group& whole, wl_error_t* error);

// As one process holds it: whichever of its ranks comes first does each step.
class SharedGroup {
 public:
  SharedMapping& mapping() { return mapping_; }
  Group* group() { return group_.get(); }

  // Its memory on this host, for `members` of the whole, as they are numbered there. Throws
  // std::bad_alloc.
  Code make(const Group& whole, const std::vector<uint32_t>& members, wl_error_t* error);
  // Once it is mapped. Where members live on several hosts, opens this process's wire; else that is
  // all, and it watches, as below. Throws std::bad_alloc, std::system_error.
  Code attach(Group& whole, wl_error_t* error);
  // Once all are attached: by the wires that their processes opened, once a process. Watches the
  // processes of all members that live elsewhere on this host. Throws as attach().
  Code connect(Group& whole, const std::vector<std::vector<unsigned char>>& names,
               wl_error_t* error);

 private:
  static Code watchOthers(Group& whole, Group& made, wl_error_t* error);

  SharedMapping mapping_;
  std::mutex mutex_;
  std::shared_ptr<Group> group_;
};

}  // namespace windlass
