// SPDX-License-Identifier: Apache-2.0
// What carries bytes between hosts, as one process has it: UCX, behind a library of its own, so
// that whoever stays on one host needs none. What arrives lies in this process's memory once
// progress() has seen it; over TCP nothing does before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/base/error.h"

namespace windlass {

// What a wire tells, in progress() and in calls that send, whose thread holds it.
class WireEnds {
 public:
  // A message of a peer in two runs, each of whole parts, which last until this returns.
  struct Run {
    const unsigned char* at;
    uint64_t bytes;
  };
  virtual void arrived(Run first, Run second) = 0;
  // That peer is gone: nothing reaches it any more.
  virtual void lost(uint32_t peer, const char* why) = 0;
  // There was none to answer a peer by.
  virtual void lackMemory() = 0;

 protected:
  ~WireEnds() = default;
};

struct WireSettings {
  const char* devices;    // UCX_NET_DEVICES: the network that ranks trust
  const char* ports;      // UCX_TCP_PORT_RANGE; nullptr: any
  const char* transports;  // UCX_TLS; nullptr: as that says, else all

  // What WINDLASS_UCX_NET_DEVICES, _PORT_RANGE and _TLS say; loopback where the first says nothing.
  static WireSettings ofEnvironment();
};

// Puts that still read their source, messages and words that this process still keeps, or gets
// whose bytes are not there yet.
using Unread = std::shared_ptr<std::atomic<uint32_t>>;

// When the process ends, UCX ends before its threads do. From then on calls that send drop what
// they are given, calls of UCX that return an error return WL_CLOSED, and progress() returns 0.
class Wire {
 public:
  struct Part {
    const void* from;
    uint64_t bytes;
  };
  // Memory of a peer, `at` bytes from where it begins.
  struct There {
    uint32_t peer;
    uint32_t region;  // as reach() numbers them
    uint64_t at;
  };

  virtual ~Wire() = default;

  // What others connect() by.
  virtual Code address(std::vector<unsigned char>* name, wl_error_t* error) = 0;
  // *peer: its number, from 0 on. Messages of it may arrive from now on.
  virtual Code connect(const unsigned char* name, uint64_t bytes, uint32_t* peer,
                       wl_error_t* error) = 0;
  // Whether nothing reaches it any more; it may be connected to once more, under another number.
  virtual bool isLost(uint32_t peer) = 0;
  // Has peers put into that memory, once they reach() it, until hide(). *key: what they do so by,
  // kMostKeyBytes at most.
  static constexpr uint64_t kMostKeyBytes = 512;
  virtual Code share(void* memory, uint64_t bytes, std::vector<unsigned char>* key,
                     wl_error_t* error) = 0;
  virtual void hide(void* memory) = 0;
  // *region: its number, of those of that peer, from 0 on.
  virtual Code reach(uint32_t peer, const unsigned char* key, uint64_t bytes, uint32_t* region,
                     wl_error_t* error) = 0;

  // To a peer, in the order of the calls. Any thread, and one that is told something.
  // What fails is lost(); false: this process has no memory for all of it. A few MiB are under way
  // to a peer at a time, and the rest waits.
  //
  // A message of those parts, which are not read any more once this returns; `unread` counts it,
  // nullptr: nothing does. A long last part may go without a copy.
  [[nodiscard]] virtual bool send(uint32_t peer, const Part* parts, uint32_t count,
                                  const Unread& unread) = 0;
  // As send(); where a caller of linger() so allows, a short one may wait for what this process
  // sends to that peer next, to go with it if that is a message or a word, or for progress().
  [[nodiscard]] virtual bool sendSoon(uint32_t peer, const Part* parts, uint32_t count,
                                      const Unread& unread) = 0;
  // Whether sendSoon() may have messages wait; false sends those that do. Who calls it with true
  // calls it with false soon.
  virtual void linger(bool may) = 0;
  // Past what waits, in the order of these calls alone.
  [[nodiscard]] virtual bool sendPast(uint32_t peer, const Part* parts, uint32_t count) = 0;
  // What lies at `from` stays until `unread`, which counts this one, counts none; nullptr: until
  // the peer has said that it came.
  // `behind`: a word of the same peer that is there once all of it is; nullptr: none.
  struct Word {
    uint32_t region;
    uint64_t at;
    uint64_t value;
  };
  [[nodiscard]] virtual bool put(const There& to, const void* from, uint64_t bytes,
                                 const Unread& unread, const Word* behind) = 0;
  // A word that only grows, behind all that was put to that peer before; `unread` as of send().
  [[nodiscard]] virtual bool putWord(const There& to, uint64_t word, const Unread& unread) = 0;
  // Takes what lies there to `into`; it is there once `unread` counts none.
  [[nodiscard]] virtual bool get(const There& from, void* into, uint64_t bytes,
                                 const Unread& unread) = 0;
  // Has peers put into that memory by land(), as long as `rank` of this process is in that turn;
  // nullptr: into none any more, from when this returns.
  virtual void receive(uint32_t rank, uint64_t turn, void* into, uint64_t bytes) = 0;
  // As put(), to what a rank of the peer receives in that turn, `at` bytes from where it begins.
  // What comes in another turn is dropped.
  struct Landing {
    uint32_t peer;
    uint32_t rank;
    uint64_t turn;
    uint64_t at;
  };
  [[nodiscard]] virtual bool land(const Landing& to, const void* from, uint64_t bytes,
                                  const Unread& unread, const Word& behind) = 0;
  // Ends what is under way to and from that peer by that `unread`: no memory of its caller's is
  // read or written for it any more once this returns, and what has not left does not come.
  virtual void forget(uint32_t peer, const Unread& unread) = 0;

  // Has what came so far arrive; how much that was. 0 as well while another thread is inside.
  virtual uint32_t progress() = 0;
  // Whether nothing is there, so that file() turns readable with what comes next.
  virtual bool arm() = 0;
  virtual int file() const = 0;
  // Until all that was sent has left, or so long.
  virtual bool flush(int64_t limitNs) = 0;
};

// The library that has wires, at `path`, or where that is nullptr beside this code's, else where
// the linker looks; once a process. WL_UNSUPPORTED: UCX is not installed, and what to install.
// Throws std::bad_alloc, as do those below.
Code findWires(const char* path, wl_error_t* error);

// WL_UNSUPPORTED also where UCX reaches nothing by these settings.
Code openWire(const WireSettings& settings, WireEnds& ends, std::unique_ptr<Wire>* wire,
              wl_error_t* error);

// UCX's version, and the network devices that this host has, as "1.13.1: eth0 lo"; what openWire()
// fails with.
Code describeWires(const WireSettings& settings, std::string* text, wl_error_t* error);

// What the library exports under these names.
using OpenWire = Code (*)(const WireSettings& settings, WireEnds& ends, Wire** wire,
                          wl_error_t* error);
constexpr const char* kOpenWire = "windlass_open_wire_6";
using DescribeWires = Code (*)(std::string* text, wl_error_t* error);
constexpr const char* kDescribeWires = "windlass_describe_wires_1";

}  // namespace windlass
