// SPDX-License-Identifier: Apache-2.0
#include "native/device/offload.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "native/base/clock.h"
#include "native/base/makes_threads.h"
#include "native/base/target.h"
#include "native/base/yielding.h"
#include "native/device/enqueuing.h"
#include "native/device/grids.h"
#include "native/device/kept_devices.h"

namespace windlass {
namespace {

constexpr auto kWaitLook = std::chrono::milliseconds(20);
// Duration of a driver call after which the rank reports it to the others.
constexpr int64_t kLongCallNs = 100'000'000;
// Time that a caller, and its device's thread, yield for one another before they sleep. The
// caller's time covers most operations. The thread's time covers a caller that starts its next
// operation at once.
constexpr int64_t kCallerYieldsNs = 2'000'000;
constexpr int64_t kThreadYieldsNs = 100'000;

}  // namespace

Offload::Offload(uint32_t device) : number_(device), device_(makeRankDevice()) {}

Offload::~Offload() = default;

void Offload::beginToClose(bool keeps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ends_ = true;
  if (!thread_.joinable()) return;
  closingBytes_ = device_->partBytes();
  keeps_ = keeps;
  changed_.notify_all();
}

bool Offload::closed(int64_t untilNs) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!thread_.joinable()) return givenUp_ == nullptr;
  const auto left = std::chrono::nanoseconds(std::max<int64_t>(0, untilNs - clockNs()));
  const bool hasEnded = changed_.wait_for(lock, left, [this] { return isClosed_; });
  std::thread thread = std::move(thread_);
  lock.unlock();
  if (hasEnded) {
    thread.join();
  } else {
    thread.detach();
  }
  return hasEnded;
}

void Offload::serve() {
  calls_.watchThisThread();
  std::unique_lock<std::mutex> lock(mutex_);
  const auto isCalled = [this] { return body_ != nullptr || ends_; };
  for (;;) {
    // Watches operations on streams meanwhile.
    while (!isCalled() && owned_ != nullptr) {
      lock.unlock();
      const int64_t nextNs = owned_->look();
      keepWhatLasts();
      lock.lock();
      if (nextNs == Enqueuing::kNever) break;
      changed_.wait_for(lock, std::chrono::nanoseconds(nextNs), isCalled);
    }
    changed_.wait(lock, isCalled);
    if (body_ == nullptr) break;
    const std::function<Code()>& body = *body_;
    lock.unlock();
    outcome_.reset();
    try {
      outcome_ = body();
    } catch (const std::bad_alloc&) {
      // The caller throws it.
    }
    keepWhatLasts();
    lock.lock();
    body_ = nullptr;
    changed_.notify_all();
    lock.unlock();
    yieldUntil(isCalled, kThreadYieldsNs);
    lock.lock();
  }
  lock.unlock();
  if (!keeps_) {
    device_->closeWindow(nullptr);
    device_->close(nullptr);
  }
  lock.lock();
  isClosed_ = true;
  changed_.notify_all();
}

void Offload::keepWhatLasts() {
  const char* const lasting = device_->lasting();
  if (lasting == nullptr || isStuck_) return;
  isStuck_ = true;
  KeptDevices::add(number_, lasting);
}

Code Offload::onItsThread(const std::function<Code()>& body, DeviceWait& wait, wl_error_t* error) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (givenUp_ != nullptr) return failGivenUp(error);
  if (ends_) return fail(error, WL_CLOSED, "device %u has given back what the rank had", number_);
  try {
    if (!thread_.joinable()) {
      const MakesThreads making;
      thread_ = std::thread([this] { serve(); });
    }
  } catch (const std::system_error&) {
    return fail(error, WL_RESOURCE, "the system has no more threads for a device's calls");
  }
  body_ = &body;
  changed_.notify_all();
  const auto isDone = [this] { return body_ == nullptr; };
  lock.unlock();
  if (!yieldUntil(isDone, kCallerYieldsNs)) {
    lock.lock();
    int64_t endedNs = 0;  // when the caller's time was over
    const char* told = nullptr;
    while (!changed_.wait_for(lock, kWaitLook, isDone)) {
      const int64_t now = clockNs();
      const char* const call = calls_.since(now - kLongCallNs);
      if (call != told) wait.tell(call);
      told = call;
      if (endedNs == 0 && !wait.goesOn()) endedNs = now;
      // A rank in a driver call of its own gives up before the ranks that wait for it.
      const int64_t limitNs = callLimitNs * (calls_.isOfOthers() ? 5 : 4) / 4;
      if (endedNs != 0 && now - endedNs >= limitNs) giveUpLocked(now - limitNs);
      if (givenUp_ != nullptr) return failGivenUp(error);
    }
    if (told != nullptr) wait.tell(nullptr);
  }
  if (!outcome_.has_value()) throw std::bad_alloc();
  return *outcome_;
}

bool Offload::giveUpLocked(int64_t sinceNs) {
  if (givenUp_ != nullptr) return true;
  if (!thread_.joinable()) return false;
  const char* const call = calls_.giveUp(sinceNs);
  if (call == nullptr) return false;
  givenUp_ = call;
  closingBytes_ = device_->partBytes();
  isStuck_ = true;
  KeptDevices::addCall(number_, call);
  thread_.detach();
  return true;
}

Code Offload::failGivenUp(wl_error_t* error) const {
  return fail(error, WL_DEVICE,
              "device %u's driver does not return from %s; what that may touch is kept, and the "
              "device takes nothing else until this process ends: look for Xid lines in dmesg, and "
              "at nvidia-smi -q for its health",
              number_, givenUp_);
}

bool Offload::giveUp(int64_t sinceNs, wl_error_t* error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!giveUpLocked(sinceNs)) return false;
  failGivenUp(error);
  changed_.notify_all();
  return true;
}

void Offload::endStreams(DeviceWait& wait) {
  if (enqueuing() == nullptr) return;
  const auto ends = [this] {
    owned_->close();
    return WL_OK;
  };
  // A thread that was abandoned never runs again. Only this thread then accesses what close() ends.
  if (giveUp(clockNs() - callLimitNs, nullptr) || onItsThread(ends, wait, nullptr) == WL_DEVICE)
    owned_->close();
}

Code Offload::alone(const Body& body, DeviceWait& wait, wl_error_t* error) {
  const auto opened = [&] {
    const Code code = open(error);
    return code == WL_OK ? body(*device_, error) : code;
  };
  return onItsThread(opened, wait, error);
}

Code Offload::run(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
                  wl_error_t* error) {
  // This rank is the faulty rank if the thread is abandoned or memory is short.
  *faultyRank = peers.rank();
  const auto body = [&] {
    uint32_t named = kNobody;
    const Code code = runHere(operation, peers, &named, error);
    *faultyRank = named;
    return code;
  };
  try {
    return onItsThread(body, peers.wait(), error);
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for what an operation on a device takes");
  }
}

bool Offload::isStuck() const {
  return isStuck_ || (enqueuing() != nullptr && enqueuing()->isInFlight());
}

Code Offload::open(wl_error_t* error) {
  if (Code code = KeptDevices::check(number_, error); code != WL_OK || isOpen_) return code;
  const Code code = device_->open(number_, error);
  isOpen_ = code == WL_OK;
  return code;
}

Code Offload::find(DeviceOperation* operation, const OffloadPeers& peers, wl_error_t* error) {
  DeviceBuffers& buffers = operation->buffers;
  if (OffloadedLaunch* const launch = buffers.launch; launch != nullptr) {
    Code code = device_->load(launch->image(), error);
    if (code == WL_OK) code = launch->find(*device_, peers.rank(), peers.ranks(), error);
    if (code != WL_OK) return code;
    buffers.inBytes = launch->stagedBytes();
    buffers.outBytes = operation->cores * kTarget.limits.tileBytes;
    buffers.parts = launch->call();
    buffers.partBytes = launch->callBytes();
  }
  return stated_.find(*device_, buffers, error);
}

Code Offload::runHere(const DeviceOperation& asked, OffloadPeers& peers, uint32_t* faultyRank,
                      wl_error_t* error) {
  const uint32_t self = peers.rank();
  DeviceOperation operation = asked;
  if (operation.on != nullptr && owned_ == nullptr) {
    owned_ = std::make_unique<Enqueuing>(*operation.group, self, *device_, stated_);
    enqueuing_.store(owned_.get());
  }
  Enqueuing* const streams = operation.on == nullptr ? nullptr : owned_.get();
  stated_.begin(peers, number_, streams != nullptr);
  Code code = WL_OK;
  // Operations on streams may occupy the device's processors. This operation, for which a caller
  // waits, and those operations could then each wait for cores of peers. Therefore they end first.
  if (streams == nullptr && owned_ != nullptr) code = owned_->drain(peers);
  if (code != WL_OK) return code;
  code = open(error);
  if (code == WL_OK && streams != nullptr) code = streams->findStream(*operation.on, error);
  if (code == WL_OK) code = find(&operation, peers, error);
  if (code == WL_OK && streams != nullptr) code = streams->takePlace(peers, error);
  // If one rank's memory is invalid, all ranks refuse the operation, with nothing moved.
  if (code = stated_.agreeOrRefuse(code, peers, faultyRank, error); code != WL_OK) return code;
  if (code = stated_.checkExtents(faultyRank, error); code != WL_OK) return code;
  if (streams != nullptr) return streams->run(operation, peers, faultyRank, error);
  // All ranks are past the previous operation, so no kernel accesses the window.
  if (stated_.bytes(operation.cores) > device_->partBytes()) {
    sequence_ = written_ = 0;
    held_ = 0;
    code = stated_.makeRoom(*device_, operation.cores, peers, faultyRank, error);
    if (code != WL_OK) return code;
  }
  code = chooseCores(operation, peers, error);
  nextSequence();
  if (code == WL_OK) code = writeLines(self, operation.cores, error);
  if (code == WL_OK) code = send(operation, self, error);
  if (code = stated_.agree(code, peers, faultyRank, error); code != WL_OK) return code;
  if (code = runKernel(operation, peers, faultyRank, error); code != WL_OK) return code;
  *faultyRank = self;
  code = fetch(operation, self, error);
  // Every host reads every rank's table, so all ranks agree that it is there.
  const bool isRead = operation.buffers.launch == nullptr && operation.buffers.partBytes > 0;
  return isRead ? stated_.agree(code, peers, faultyRank, error) : code;
}

Code Offload::chooseCores(const DeviceOperation& operation, OffloadPeers& peers,
                          wl_error_t* error) {
  const Code code = cores_ == 0 ? countCores(operation.cores, peers, error) : WL_OK;
  if (code != WL_OK) return code;
  uint32_t cores = cores_;
  if (const OffloadedLaunch* const launch = operation.buffers.launch; launch != nullptr) {
    cores = std::min(cores, device_->coresAtOnce(operation.cores, launch->image()));
    if (cores == 0) {
      return fail(error, WL_UNSUPPORTED,
                  "device %u runs fewer blocks of %s's library at a time than there are ranks of "
                  "this process on it: have fewer ranks, or more devices",
                  number_, launch->name());
    }
  }
  stated_.own.cores = Grids::coresOf(*device_, operation, peers, stated_.all(), cores);
  return WL_OK;
}

Code Offload::send(const DeviceOperation& operation, uint32_t self, wl_error_t* error) {
  const DeviceBuffers& buffers = operation.buffers;
  const DeviceLayout own = stated_.layout(self, operation.cores, *device_);
  std::vector<DeviceLayout> layouts;
  for (uint32_t rank = 0; rank < stated_.ranks() && !buffers.isPlain(); ++rank)
    layouts.push_back(stated_.layout(rank, operation.cores, *device_));
  Code code = WL_OK;
  const auto copy = [&](uint64_t to, const void* from, uint64_t bytes, RankDevice::Lies lies) {
    if (code == WL_OK && bytes > 0) code = device_->send(to, from, bytes, lies, error);
  };
  bool isHeld = false;
  if (buffers.launch != nullptr) {
    buffers.launch->name(layouts);
    code = buffers.launch->send(*device_, own, error);
  } else if (buffers.transfer != nullptr) {
    isHeld = buffers.transfer->name(layouts) && held_ == buffers.transfer->id();
    code = buffers.transfer->send(*device_, own, isHeld, error);
  } else {
    copy(own.in, buffers.in, stated_.inBytes(), stated_.in());
    // Copies the whole output, since a kernel may leave parts of it unchanged.
    copy(own.out, buffers.out, stated_.outBytes(), stated_.out());
  }
  held_ = 0;
  if (!isHeld) copy(own.parts, buffers.parts, buffers.partBytes, RankDevice::Lies::kHost);
  return code;
}

uint64_t Offload::noteOf(const DeviceBuffers& buffers) const {
  if (buffers.transfer == nullptr) return 0;
  const uint64_t bytes = buffers.transfer->countBytes();
  return bytes <= device_->notes().bytes ? bytes : 0;
}

Code Offload::fetch(const DeviceOperation& operation, uint32_t self, wl_error_t* error) {
  const DeviceBuffers& buffers = operation.buffers;
  const DeviceLayout own = stated_.layout(self, operation.cores, *device_);
  if (buffers.launch != nullptr) return buffers.launch->fetch(*device_, own, error);
  if (OffloadedTransfer* const transfer = buffers.transfer; transfer != nullptr) {
    const void* const noted = noteOf(buffers) == 0 ? nullptr : device_->notes().memory;
    const Code code = transfer->fetch(*device_, own, noted, error);
    if (code == WL_OK) held_ = transfer->id();
    return code;
  }
  Code code = WL_OK;
  const auto copy = [&](void* to, uint64_t from, uint64_t bytes, RankDevice::Lies lies) {
    if (code == WL_OK && bytes > 0) code = device_->fetch(to, from, bytes, lies, error);
  };
  copy(buffers.out, own.out, stated_.outBytes(), stated_.out());
  copy(buffers.parts, own.parts, buffers.partBytes, RankDevice::Lies::kHost);
  return code;
}

}  // namespace windlass
