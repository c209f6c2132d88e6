// SPDX-License-Identifier: Apache-2.0
// One rank's moves to and from windows of peers on other hosts. native/hosts has them.
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
  // For a rank of a group that spans hosts. nullptr: memory is short.
  static std::unique_ptr<HostMoves> make(Comm& comm);
  virtual ~HostMoves() = default;

  // `remote` lies in this process's mapping of the peer's part, which holds nothing. On return
  // `local` may change. All of them throw std::bad_alloc.
  virtual Code put(uint32_t peer, const StridedView& remote, const StridedView& local,
                   bool adds) = 0;
  virtual Code get(uint32_t peer, const StridedView& local, const StridedView& remote) = 0;
  // The peer's signal lies at `place` in its window, and at `signal` if it lives on this host.
  // Whoever sees the value sees all that this rank has put before, on any host.
  virtual Code notify(uint32_t peer, Place place, uint32_t* signal, uint32_t value) = 0;
  // Until all that this rank has put is there, on all hosts.
  virtual Code flush(Deadline& deadline) = 0;
  // What this process has last notified there, on another host; 0: nothing.
  virtual uint32_t notified(uint32_t peer, Place place) = 0;
};

}  // namespace windlass
