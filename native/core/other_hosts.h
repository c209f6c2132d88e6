// SPDX-License-Identifier: Apache-2.0
// The other hosts of a group, as one process reaches them. native/hosts implements them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "native/base/error.h"
#include "native/core/control_block.h"

namespace windlass {

class Group;

class OtherHosts {
 public:
  // Opens the connections of a group, by the settings in the environment. Its control block assigns
  // each rank to a host, and `ranks` live in this process. WL_UNSUPPORTED: too many hosts, or there
  // is no network library. WL_INVALID_ARGUMENT: `ranks` are on two hosts, or the settings are
  // wrong. WL_RESOURCE: the name of this process is too long, or the system gives no event file.
  // Throws std::bad_alloc.
  static Code open(Group& group, std::vector<uint32_t> ranks, std::unique_ptr<OtherHosts>* hosts,
                   wl_error_t* error);
  virtual ~OtherHosts() = default;

  // Name by which other processes find this one. At most ShrinkNote::kMostNameBytes.
  virtual const std::vector<unsigned char>& name() const = 0;
  // Connects to other hosts. `names` has the name of every process, including this one. A host that
  // sends nothing for `silenceNs` is lost. The limit before its first message is at least 10 s. 0
  // disables the check. WL_INVALID_ARGUMENT: `names` does not describe these processes, and nothing
  // changed. Throws std::bad_alloc, std::system_error.
  virtual Code connect(const std::vector<std::vector<unsigned char>>& names, int64_t silenceNs,
                       wl_error_t* error) = 0;
  virtual bool isConnected() const = 0;
  // Closes the connections. Call it on a connected object that the group still holds. Blocks for at
  // most two seconds until other hosts have received this process's messages. Blocks longer, by
  // at most the group's deadline, while a peer is in an operation that a rank of this process has
  // ended. When it returns, dropped windows are unmapped, and no more messages arrive.
  virtual void close() = 0;
  virtual int64_t silenceNs() const = 0;
  // True if this host was suspended for about silenceNs() just before the communicator failed.
  // Other hosts may then have declared it lost. Blocks until this process's thread runs again, for
  // at most two seconds.
  virtual bool hasStoodStill() const = 0;

  // Lowest rank of this process.
  virtual uint32_t first() const = 0;
  virtual uint32_t hostOf(uint32_t rank) const = 0;
  // True if the rank lives on this host.
  virtual bool isBeside(uint32_t rank) const = 0;
  virtual const char* nameOf(uint32_t host) const = 0;

  // Receives what has arrived, and wakes the ranks that wait for it.
  virtual void progress() = 0;
  // Report what a rank of this process, or the process, has done.
  virtual void tellLeft(uint32_t rank) = 0;
  virtual void tellFailure(const wl_error_t& failure) = 0;
  // Sends the shrink state and the note of a rank of this process. Any thread.
  virtual void tellShrink(uint32_t rank) = 0;
  // Reports that a rank of this process has dropped the window.
  virtual void tellDropped(uint32_t window) = 0;

  // Messages. Both functions send data of the control block to the host of `rank`, which stores it
  // at the same offset. store() sends two stretches of bytes, and then a word of 4 or 8 bytes.
  // put() sends long data that does not change until the receiver has said so.
  struct Bytes {
    const void* at;
    uint64_t bytes;
  };
  struct StoredWord {
    const void* at;
    uint32_t bytes;
    uint64_t value;
  };
  virtual void store(uint32_t rank, Bytes first, Bytes second, StoredWord word) = 0;
  virtual void put(uint32_t rank, Bytes data, const std::atomic<uint64_t>& word,
                   uint64_t value) = 0;

  // Windows. Each host creates and numbers its own. nameWindow() sets the number that `host` has
  // for this host's new `window`. Each rank of this process calls it before any rank uses the
  // window.
  virtual void nameWindow(uint32_t window, uint32_t host, uint32_t theirs) = 0;
  // Key by which other hosts reach a window. Every process calls shareWindow() once and publishes
  // the key. reachWindow() then opens the window of every other host. Throws std::bad_alloc.
  struct WindowKey {
    static constexpr uint64_t kMostBytes = 512;

    uint64_t stride;
    uint32_t bytes;
    unsigned char key[kMostBytes];
  };
  virtual Code shareWindow(void* base, uint64_t stride, WindowKey* key, wl_error_t* error) = 0;
  // `keys`: for each rank, the key that its process published.
  virtual Code reachWindow(uint32_t window, const WindowKey* keys, wl_error_t* error) = 0;
  // Stops sharing a window. Call it before the window is unmapped.
  virtual void hideWindow(void* base) = 0;
};

}  // namespace windlass
