// SPDX-License-Identifier: Apache-2.0
// One rank's moves to and from windows of peers on other hosts. native/hosts implements them.
#pragma once

#include <cstdint>
#include <memory>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "windlass/kernel.h"

namespace windlass {

class Comm;

class HostMoves {
 public:
  // Makes the moves of a rank in a group that spans hosts. nullptr: memory is short.
  static std::unique_ptr<HostMoves> make(Comm& comm);
  virtual ~HostMoves() = default;

  // put() and get() move data between `local` and `remote`. `remote` is an address in this
  // process's mapping of the peer's part, which has no memory behind it. After put() returns, the
  // caller may change `local`. All methods throw std::bad_alloc.
  virtual Code put(uint32_t peer, const StridedView& remote, const StridedView& local,
                   bool adds) = 0;
  virtual Code get(uint32_t peer, const StridedView& local, const StridedView& remote) = 0;
  // Sets the peer's signal, at `place` in its window. `signal` is its address if the peer lives on
  // this host. A rank that sees the value sees all of this rank's earlier puts, on any host.
  virtual Code notify(uint32_t peer, Place place, uint32_t* signal, uint32_t value) = 0;
  // Blocks until all of this rank's puts are visible, on all hosts.
  virtual Code flush(Deadline& deadline) = 0;
  // The value that this process last notified at `place` on another host. 0: none.
  virtual uint32_t notified(uint32_t peer, Place place) = 0;
};

}  // namespace windlass
