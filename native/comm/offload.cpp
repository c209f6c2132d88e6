// SPDX-License-Identifier: Apache-2.0
#include "native/comm/offload.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>
#include <system_error>

#include "native/base/clock.h"
#include "native/base/target.h"

namespace windlass {
namespace {

constexpr int64_t kLookNs = 20'000'000;
// Of a kernel that was told to stop: it looks at every signal that it waits for.
constexpr int64_t kStopLimitNs = 2'000'000'000;
constexpr uint64_t kAlignment = 512;
// Looks at a signal before a core looks whether it shall stop.
constexpr uint32_t kLooks = 1024;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Offload::~Offload() {
  if (!thread_.joinable()) return;
  onItsThread([this] {
    window_.close(nullptr);
    device_.close(nullptr);
  });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Offload::start() {
  // Signals of the host program, a JVM's among them, go to its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Offload::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return body_ != nullptr || ends_; });
    if (ends_) return;
    const std::function<void()>& body = *body_;
    lock.unlock();
    body();
    lock.lock();
    body_ = nullptr;
    changed_.notify_all();
  }
}

void Offload::onItsThread(const std::function<void()>& body) {
  std::unique_lock<std::mutex> lock(mutex_);
  body_ = &body;
  changed_.notify_all();
  changed_.wait(lock, [this] { return body_ == nullptr; });
}

Code Offload::run(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
                  wl_error_t* error) {
  *culprit = peers.rank();
  Code code = WL_OK;
  const auto noRoom = [&] {
    *culprit = peers.rank();
    code = fail(error, WL_RESOURCE, "out of memory for what an operation on a device takes");
  };
  try {
    if (!thread_.joinable()) start();
    onItsThread([&] {
      try {
        code = runHere(operation, peers, culprit, error);
      } catch (const std::bad_alloc&) {
        noRoom();
      }
    });
  } catch (const std::system_error&) {
    return fail(error, WL_RESOURCE, "the system has no more threads for a device's calls");
  } catch (const std::bad_alloc&) {
    noRoom();
  }
  return code;
}

Code Offload::open(wl_error_t* error) {
  if (isOpen_) return WL_OK;
  if (Code code = acl::Acl::open(std::getenv("ASCEND_HOME_PATH"), &acl_, error); code != WL_OK)
    return code;
  const Code code = device_.open(acl_, static_cast<int32_t>(number_),
                                 std::getenv("ASCEND_RT_VISIBLE_DEVICES"), error);
  isOpen_ = code == WL_OK;
  return code;
}

Code Offload::agree(Code code, const Buffers& buffers, OffloadPeers& peers, uint32_t* culprit,
                    wl_error_t* error) {
  const Stated own = {code, buffers.inBytes, buffers.outBytes, buffers.partBytes};
  wl_error_t ofOthers = blankError();
  const Code told = peers.all(&own, stated_.data(), sizeof own, &ofOthers);
  *culprit = peers.rank();
  if (code != WL_OK) return code;
  *culprit = kNobody;
  if (told != WL_OK) return told;
  for (uint32_t rank = 0; rank < stated_.size(); ++rank) {
    if (stated_[rank].code == WL_OK) continue;
    *culprit = rank;
    return fail(error, static_cast<Code>(stated_[rank].code), "rank %u's device failed", rank);
  }
  return WL_OK;
}

Offload::Places Offload::placesOf(const Stated& stated, uint32_t ranks, uint32_t cores) {
  Places places = {};
  places.stop = uint64_t{ranks} * cores * kDeviceLineBytes;
  places.in = aligned(places.stop + kDeviceLineBytes);
  places.out = aligned(places.in + stated.in);
  places.parts = aligned(places.out + stated.out);
  places.end = aligned(places.parts + stated.parts);
  return places;
}

Code Offload::runHere(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
                      wl_error_t* error) {
  const Buffers& buffers = operation.buffers;
  stated_.resize(peers.ranks());
  if (Code code = agree(open(error), buffers, peers, culprit, error); code != WL_OK) return code;
  uint64_t bytes = 0;
  for (const Stated& each : stated_)
    bytes = std::max(bytes, placesOf(each, peers.ranks(), operation.cores).end);
  // All ranks are past the operation before, so nobody's kernels reach the window.
  if (bytes > window_.bytes()) {
    Code code = agree(window_.close(error), buffers, peers, culprit, error);
    if (code != WL_OK) return code;
    sequence_ = 0;
    code = window_.make(device_, peers, bytes, error);
    *culprit = window_.culprit();
    if (code != WL_OK) return code;
  }
  // Never 0, which is what the word that stops cores is until then.
  if (++sequence_ == 0) ++sequence_;
  const Places own = placesOf(stated_[peers.rank()], peers.ranks(), operation.cores);
  auto* const part = static_cast<unsigned char*>(window_.part(peers.rank()));
  Code code = WL_OK;
  const auto send = [&](uint64_t at, const void* from, uint64_t size) {
    if (code == WL_OK && size > 0) code = device_.toDevice(part + at, from, size, error);
  };
  send(own.in, buffers.in, buffers.inBytes);
  // Whole, since a kernel may leave parts of it as they are.
  send(own.out, buffers.out, buffers.outBytes);
  send(own.parts, buffers.parts, buffers.partBytes);
  if (code = agree(code, buffers, peers, culprit, error); code != WL_OK) return code;
  code = runKernel(operation, peers, culprit, error);
  if (code != WL_OK) return code;
  code = fetch(buffers, own, part, error);
  *culprit = peers.rank();
  // Every rank's table is read by every host.
  return buffers.partBytes == 0 ? code : agree(code, buffers, peers, culprit, error);
}

Code Offload::fetch(const Buffers& buffers, const Places& own, const unsigned char* part,
                    wl_error_t* error) {
  Code code = WL_OK;
  if (buffers.outBytes > 0)
    code = device_.fromDevice(buffers.out, part + own.out, buffers.outBytes, error);
  if (code == WL_OK && buffers.partBytes > 0)
    code = device_.fromDevice(buffers.parts, part + own.parts, buffers.partBytes, error);
  return code;
}

Code Offload::runKernel(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
                        wl_error_t* error) {
  const uint32_t ranks = peers.ranks();
  const uint32_t self = peers.rank();
  OffloadedOperation given = {};
  given.kernel = operation.kernel;
  given.launch = *operation.launch;
  given.line = {self, 0, operation.cores, sequence_, false, kLooks, nullptr, 0};
  given.windowBytes = window_.bytes();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto base = reinterpret_cast<uint64_t>(window_.part(rank));
    const Places places = placesOf(stated_[rank], ranks, operation.cores);
    const auto place = [&](uint64_t at, uint64_t bytes) {
      return bytes == 0 ? Place{0} : Place::of(kAddressSpace, base + at);
    };
    given.entries[rank] = {place(places.in, stated_[rank].in),
                           place(places.out, stated_[rank].out),
                           place(places.parts, stated_[rank].parts)};
    given.lines[rank] = given.windows[rank] = base;
    if (rank == self) given.stop = base + places.stop;
  }
  *culprit = self;
  Code code = device_.start(operation.name, kTarget.offload, operation.cores, window_.context(),
                            &given, sizeof given, error);
  if (code != WL_OK) return code;
  for (;;) {
    code = device_.await(operation.name, kLookNs, error);
    if (code != WL_TIMEOUT) return code;
    if (const Code ended = peers.ended(); ended != WL_OK) {
      code = device_.toDevice(reinterpret_cast<void*>(given.stop), &sequence_, sizeof sequence_,
                              error);
      if (code == WL_OK) code = device_.await(operation.name, kStopLimitNs, error);
      if (code != WL_OK) device_.giveUp();
      *culprit = kNobody;
      return ended;
    }
  }
}

}  // namespace windlass
