// SPDX-License-Identifier: Apache-2.0
// A rank's device, which runs the rank's collectives by itself: what the host does around them.
// What the rank brings goes into a window of the device that all devices of the group reach, and
// what comes of it is fetched from there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "native/window/acl/device_window.h"
#include "windlass/offload.h"

namespace windlass {

// The other ranks, as one that hands an operation to its device sees them.
class OffloadPeers : public acl::Exchange {
 public:
  // Ok, or what ends every wait.
  virtual Code ended() = 0;

 protected:
  ~OffloadPeers() = default;
};

class Offload {
 public:
  // What an operation takes of its rank.
  struct Buffers {
    const void* in;
    uint64_t inBytes;
    void* out;
    uint64_t outBytes;
    void* parts;  // a PartTable
    uint64_t partBytes;
  };
  struct Operation {
    const char* name;
    uint32_t kernel;
    const Launch* launch;
    uint32_t cores;
    Buffers buffers;
  };

  // Nothing is opened yet.
  explicit Offload(uint32_t device) : number_(device) {}
  // Gives all back. No device's kernels reach this one's window any more.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  // Collective: every rank has entered the operation. Where it fails on one rank it fails on all:
  // *culprit is that rank, whose own error says why; kNobody where `peers` ended it.
  Code run(const Operation& operation, OffloadPeers& peers, uint32_t* culprit, wl_error_t* error);

 private:
  // How far it has come, or what it needs, as ranks tell one another.
  struct Stated {
    int32_t code;
    uint64_t in, out, parts;
  };
  // Where what a rank brings lies in its window.
  struct Places {
    uint64_t stop, in, out, parts, end;
  };

  // The thread that the device's calls are made on. Throws std::system_error.
  void start();
  void serve();
  // Runs body() on the thread that the device's calls are made on.
  void onItsThread(const std::function<void()>& body);
  Code runHere(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
               wl_error_t* error);
  Code open(wl_error_t* error);
  // States `code` of this rank; Ok once all have stated Ok.
  Code agree(Code code, const Buffers& buffers, OffloadPeers& peers, uint32_t* culprit,
             wl_error_t* error);
  static Places placesOf(const Stated& stated, uint32_t ranks, uint32_t cores);
  Code fetch(const Buffers& buffers, const Places& own, const unsigned char* part,
             wl_error_t* error);
  Code runKernel(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
                 wl_error_t* error);

  const uint32_t number_;
  acl::Acl acl_;
  acl::Device device_;
  acl::DeviceWindow window_;
  std::vector<Stated> stated_;
  uint32_t sequence_ = 0;  // of operations in this window
  bool isOpen_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* body_ = nullptr;
  bool ends_ = false;
  std::thread thread_;
};

// A rank of a group whose ranks have devices: which one, and what it tells the others on the host
// while they hand over an operation.
struct OffloadSeat {
  static constexpr uint64_t kMostBytes = 64;

  alignas(64) std::atomic<uint64_t> turn{0};
  alignas(64) unsigned char said[2][kMostBytes] = {};
  uint32_t device = 0;               // as the process counts them
  std::unique_ptr<Offload> offload;  // the rank's own, from its first operation on
};

}  // namespace windlass
