// SPDX-License-Identifier: Apache-2.0
// Devices of the ranks of a group. native/device implements them.
#pragma once

#include <cstdint>
#include <memory>

namespace windlass {

class Comm;

class Devices {
 public:
  // Makes the devices of a group whose ranks all live in this process. Both throw std::bad_alloc.
  static std::shared_ptr<Devices> make(uint32_t ranks);
  // Returns the devices of the group whose control block has this `id`. All ranks of this process
  // that attach that block share them.
  static std::shared_ptr<Devices> ofShared(uint64_t id, uint32_t ranks);
  virtual ~Devices() = default;

  // Marks the rank as one of this process.
  virtual void join(uint32_t rank) = 0;
  // Sets the number of ranks, at most the initial one. Call before any use.
  virtual void settle(uint32_t ranks) = 0;
  // Gives `rank` the device that rank `former` has in `whole`. All processes that attach the group
  // pass the same `former`.
  virtual void keep(uint32_t rank, const Devices& whole, uint32_t former) = 0;
  // Returns true if the rank's device may still access memory of the group's operations.
  virtual bool mayAccess(uint32_t rank) const = 0;
  // Ends the rank's unfinished operations on streams, because the rank closes.
  virtual void endEnqueued(Comm& comm) = 0;
  // Call when the rank has left the communicator and is in no call. The last rank of this process
  // releases the device memory, within 5 s. Memory that an unfinished kernel or call may access is
  // kept and counted.
  virtual void close(uint32_t rank) = 0;
};

}  // namespace windlass
