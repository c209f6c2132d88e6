// SPDX-License-Identifier: Apache-2.0
#include "native/device/offload.h"

#include <unistd.h>

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
// Times that a caller and its device's thread yield for one another before they sleep. The caller's
// covers most operations. The thread's covers a caller that starts its next operation at once.
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
  std::thread thread;
  bool hasEnded = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!thread_.joinable()) return givenUp_ == nullptr;
    const auto left = std::chrono::nanoseconds(std::max<int64_t>(0, untilNs - clockNs()));
    hasEnded = changed_.wait_for(lock, left, [this] { return isClosed_; });
    thread = std::move(thread_);
  }
  if (hasEnded) {
    thread.join();
  } else {
    thread.detach();
  }
  return hasEnded;
}

void Offload::start() {
  const MakesThreads making;
  thread_ = std::thread([this] { serve(); });
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
    const std::function<void()>& body = *body_;
    lock.unlock();
    body();
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
  Code code = WL_OK;
  bool lacksMemory = false;
  const auto guarded = [&] {
    try {
      code = body();
    } catch (const std::bad_alloc&) {
      lacksMemory = true;
    }
  };
  // The body may write to `error` until its thread is abandoned.
  wl_error_t lost = blankError();
  if (awaitItsThread(guarded, wait, &lost) != WL_OK) return copyError(error, lost, nullptr);
  if (lacksMemory) throw std::bad_alloc();
  return code;
}

Code Offload::awaitItsThread(const std::function<void()>& body, DeviceWait& wait,
                             wl_error_t* error) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (givenUp_ != nullptr) return failGivenUp(error);
  if (ends_) return fail(error, WL_CLOSED, "device %u has given back what the rank had", number_);
  try {
    if (!thread_.joinable()) start();
  } catch (const std::system_error&) {
    return fail(error, WL_RESOURCE, "the system has no more threads for a device's calls");
  }
  body_ = &body;
  changed_.notify_all();
  const auto isDone = [this] { return body_ == nullptr; };
  lock.unlock();
  if (yieldUntil(isDone, kCallerYieldsNs)) return WL_OK;
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
  return WL_OK;
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

void Offload::endStreams() {
  Enqueuing* const enqueuing = enqueuing_.load();
  if (enqueuing == nullptr) return;
  while (!enqueuing->close()) {
    if (giveUp(clockNs() - callLimitNs, nullptr)) return;
    usleep(100);
  }
}

Code Offload::alone(const std::function<Code(RankDevice&)>& body, DeviceWait& wait,
                    wl_error_t* error) {
  const auto opened = [&] {
    const Code code = open(error);
    return code == WL_OK ? body(*device_) : code;
  };
  return onItsThread(opened, wait, error);
}

Code Offload::run(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* culprit,
                  wl_error_t* error) {
  // The culprit if the thread is abandoned or memory is short.
  *culprit = peers.rank();
  const auto body = [&] {
    uint32_t named = kNobody;
    const Code code = operation.on == nullptr ? runHere(operation, peers, &named, error)
                                              : enqueueHere(operation, peers, &named, error);
    *culprit = named;
    return code;
  };
  try {
    return onItsThread(body, peers.wait(), error);
  } catch (const std::bad_alloc&) {
    return fail(error, WL_RESOURCE, "out of memory for what an operation on a device takes");
  }
}

Code Offload::enqueueHere(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* culprit,
                          wl_error_t* error) {
  if (owned_ == nullptr) {
    owned_ = std::make_unique<Enqueuing>(*operation.group, peers.rank(), *device_, stated_);
    enqueuing_.store(owned_.get());
  }
  return owned_->run(operation, open(error), peers, culprit, error);
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

Code Offload::find(DeviceBuffers* buffers, const OffloadPeers& peers, uint32_t cores,
                   wl_error_t* error) {
  if (OffloadedLaunch* const launch = buffers->launch; launch != nullptr) {
    Code code = device_->load(launch->image(), error);
    if (code == WL_OK) code = launch->find(*device_, peers.rank(), peers.ranks(), error);
    if (code != WL_OK) return code;
    buffers->inBytes = launch->stagedBytes();
    buffers->outBytes = cores * kTarget.limits.tileBytes;
    buffers->parts = launch->call();
    buffers->partBytes = launch->callBytes();
  }
  return stated_.find(*device_, *buffers, error);
}

OffloadedTransfer::Images Offload::imagesOf(uint32_t rank, uint32_t cores) const {
  const auto base = reinterpret_cast<uint64_t>(device_->part(rank));
  const DeviceLayout at = stated_.layout(rank, cores);
  return {base + at.in, base + at.out};
}

Code Offload::runHere(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* culprit,
                      wl_error_t* error) {
  DeviceBuffers buffers = operation.buffers;
  OffloadedLaunch* const launch = buffers.launch;
  stated_.begin(peers, number_, false);
  *culprit = kNobody;
  // Operations on streams may occupy the device's processors. Then both operations would wait for
  // the cores of peers.
  if (owned_ != nullptr && !owned_->drain(peers)) return owned_->ended(peers);
  *culprit = peers.rank();
  Code found = open(error);
  if (found == WL_OK) found = find(&buffers, peers, operation.cores, error);
  if (Code code = stated_.agree(found, peers, culprit, error); code != WL_OK) {
    // If one rank's memory is invalid, all ranks refuse the operation, with nothing moved.
    if (code != WL_INVALID_ARGUMENT) return code;
    nameCulprit(error, *culprit);
    *culprit = kNobody;
    return code;
  }
  if (Code code = stated_.checkExtents(culprit, error); code != WL_OK) return code;
  // All ranks are past the previous operation, so no kernel accesses the window.
  if (stated_.bytes(operation.cores) > device_->partBytes()) {
    sequence_ = written_ = 0;
    held_ = 0;
    const Code code = stated_.makeRoom(*device_, operation.cores, peers, culprit, error);
    if (code != WL_OK) return code;
  }
  Code code = cores_ == 0 ? countCores(operation.cores, peers, error) : WL_OK;
  stated_.own.cores = cores_;
  if (code == WL_OK && launch != nullptr) code = countCoresOf(*launch, operation.cores, error);
  stated_.own.cores =
      Grids::coresOf(*device_, operation, peers, stated_.all(), stated_.own.cores);
  nextSequence();
  if (code == WL_OK) code = writeLines(peers.rank(), operation.cores, error);
  const DeviceLayout own = stated_.layout(peers.rank(), operation.cores);
  auto* const part = static_cast<unsigned char*>(device_->part(peers.rank()));
  OffloadedTransfer* const transfer = buffers.transfer;
  const OffloadedTransfer::Images ownImages = imagesOf(peers.rank(), operation.cores);
  const uint64_t callAt = reinterpret_cast<uint64_t>(part) + own.parts;
  if (launch != nullptr) {
    std::vector<uint64_t> staged;
    for (uint32_t rank = 0; rank < peers.ranks(); ++rank)
      staged.push_back(imagesOf(rank, operation.cores).read);
    launch->name(staged, callAt, ownImages.written);
    if (code == WL_OK) code = launch->send(*device_, ownImages.read, error);
  }
  bool isHeld = false;
  if (transfer != nullptr) {
    std::vector<OffloadedTransfer::Images> images;
    for (uint32_t rank = 0; rank < peers.ranks(); ++rank)
      images.push_back(imagesOf(rank, operation.cores));
    isHeld = transfer->name(images) && held_ == transfer->id();
    if (code == WL_OK) code = transfer->send(*device_, ownImages, isHeld, error);
  }
  held_ = 0;
  using Lies = RankDevice::Lies;
  const auto send = [&](uint64_t at, const void* from, uint64_t size, Lies lies) {
    if (code != WL_OK || size == 0) return;
    code = lies == Lies::kHost ? device_->toDevice(part + at, from, size, error)
                               : device_->onDevices(part + at, from, size, error);
  };
  const bool isPlain = transfer == nullptr && launch == nullptr;
  const Statement& said = stated_.own;
  if (isPlain) send(own.in, buffers.in, stated_.copied(said.in, said.inThere), stated_.in());
  // Copies the whole output, since a kernel may leave parts of it unchanged.
  if (isPlain) send(own.out, buffers.out, stated_.copied(said.out, said.outThere), stated_.out());
  if (!isHeld) send(own.parts, buffers.parts, buffers.partBytes, Lies::kHost);
  if (code = stated_.agree(code, peers, culprit, error); code != WL_OK) return code;
  code = runKernel(operation, launch == nullptr ? 0 : callAt, peers, culprit, error);
  if (code != WL_OK) return code;
  if (launch != nullptr) {
    *culprit = peers.rank();
    return launch->fetch(*device_, ownImages.read, callAt, error);
  }
  const void* const noted = noteOf(buffers) == 0 ? nullptr : device_->notes().memory;
  code = transfer != nullptr ? transfer->fetch(*device_, ownImages, noted, error)
                             : fetch(buffers, own, part, error);
  if (transfer != nullptr && code == WL_OK) held_ = transfer->id();
  *culprit = peers.rank();
  // Every host reads every rank's table, so all ranks agree that it is there.
  return buffers.partBytes == 0 ? code : stated_.agree(code, peers, culprit, error);
}

uint64_t Offload::noteOf(const DeviceBuffers& buffers) const {
  if (buffers.transfer == nullptr) return 0;
  const uint64_t bytes = buffers.transfer->countBytes();
  return bytes <= device_->notes().bytes ? bytes : 0;
}

Code Offload::fetch(const DeviceBuffers& buffers, const DeviceLayout& own,
                    const unsigned char* part, wl_error_t* error) {
  Code code = WL_OK;
  if (stated_.copied(stated_.own.out, stated_.own.outThere) > 0) {
    code = stated_.out() == RankDevice::Lies::kHost
               ? device_->fromDevice(buffers.out, part + own.out, buffers.outBytes, error)
               : device_->onDevices(buffers.out, part + own.out, buffers.outBytes, error);
  }
  if (code != WL_OK || buffers.partBytes == 0) return code;
  return device_->fromDevice(buffers.parts, part + own.parts, buffers.partBytes, error);
}

}  // namespace windlass
