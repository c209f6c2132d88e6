// SPDX-License-Identifier: Apache-2.0
#include "native/comm/offload.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>

#include "native/base/clock.h"
#include "native/comm/kept_devices.h"
#include "native/comm/signal.h"

namespace windlass {
namespace {

constexpr int64_t kLookNs = 20'000'000;
// Of a kernel that was told to stop: it looks at every signal that it waits for.
constexpr int64_t kStopLimitNs = 2'000'000'000;
// A device ends by itself what its host has not told to stop for so long after the deadline.
constexpr int64_t kOwnLimitNs = 2 * kStopLimitNs;
constexpr uint64_t kAlignment = 512;
// Of a kernel that moves nothing, on a device that is busy with nothing of this process's.
constexpr int64_t kMeetingLimitNs = 1'000'000'000;
constexpr const char* kMeeting = "the count of its cores";
// Looks at a signal before a core looks whether it shall stop.
constexpr uint32_t kLooks = 1024;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The word of line `index`.
uint32_t lineAt(const std::vector<unsigned char>& lines, uint32_t index) {
  uint32_t word = 0;
  std::memcpy(&word, lines.data() + size_t{index} * kDeviceLineBytes, sizeof word);
  return word;
}

}  // namespace

uint32_t OffloadProgress::fewest() const {
  uint32_t fewest = phases;
  for (const Rank& rank : ranks) fewest = std::min(fewest, rank.over);
  return fewest;
}

void Offload::beginToClose(bool keeps) {
  if (!thread_.joinable()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  closingBytes_ = device_->partBytes();
  keeps_ = keeps;
  ends_ = true;
  changed_.notify_all();
}

bool Offload::closed(int64_t untilNs) {
  if (!thread_.joinable()) return true;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto left = std::chrono::nanoseconds(std::max<int64_t>(0, untilNs - clockNs()));
    if (!changed_.wait_for(lock, left, [this] { return isClosed_; })) {
      thread_.detach();
      return false;
    }
  }
  thread_.join();
  return true;
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
    if (body_ == nullptr) break;
    const std::function<void()>& body = *body_;
    lock.unlock();
    body();
    lock.lock();
    body_ = nullptr;
    changed_.notify_all();
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

Code Offload::alone(const std::function<Code(RankDevice&)>& body, wl_error_t* error) {
  Code code = WL_OK;
  bool lacksMemory = false;
  try {
    if (!thread_.joinable()) start();
    onItsThread([&] {
      try {
        code = open(error);
        if (code == WL_OK) code = body(*device_);
      } catch (const std::bad_alloc&) {
        lacksMemory = true;
      }
    });
  } catch (const std::system_error&) {
    return fail(error, WL_RESOURCE, "the system has no more threads for a device's calls");
  }
  if (lacksMemory) throw std::bad_alloc();
  return code;
}

Code Offload::open(wl_error_t* error) {
  if (Code code = KeptDevices::check(number_, error); code != WL_OK || isOpen_) return code;
  const Code code = device_->open(number_, error);
  isOpen_ = code == WL_OK;
  return code;
}

Code Offload::find(const Buffers& buffers, wl_error_t* error) {
  using Lies = RankDevice::Lies;
  found_ = {Lies::kHost, Lies::kHost};
  inThere_ = outThere_ = 0;
  Code code = WL_OK;
  if (buffers.transfer != nullptr) return code;
  if (buffers.inBytes > 0) code = device_->find(buffers.in, &found_.in, error);
  if (code == WL_OK && buffers.outBytes > 0) code = device_->find(buffers.out, &found_.out, error);
  if (found_.in == Lies::kHere) inThere_ = reinterpret_cast<uint64_t>(buffers.in);
  if (found_.out == Lies::kHere) outThere_ = reinterpret_cast<uint64_t>(buffers.out);
  return code;
}

OffloadedTransfer::Images Offload::imagesOf(uint32_t rank, uint32_t cores) const {
  const auto base = reinterpret_cast<uint64_t>(device_->part(rank));
  const Places places = placesOf(stated_[rank], cores);
  return {base + places.in, base + places.out};
}

Code Offload::agree(Code code, const Buffers& buffers, OffloadPeers& peers, uint32_t* culprit,
                    wl_error_t* error) {
  const Stated own = {code,
                      cores_,
                      number_,
                      buffers.inBytes,
                      buffers.outBytes,
                      buffers.partBytes,
                      inThere_,
                      outThere_};
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

Code Offload::checkExtents(uint32_t* culprit, wl_error_t* error) const {
  for (uint32_t rank = 0; rank < stated_.size(); ++rank) {
    const Stated& each = stated_[rank];
    for (const uint64_t bytes : {each.in, each.out, each.parts}) {
      if (bytes <= kMostWindowBytes) continue;
      *culprit = rank;
      return fail(error, WL_INVALID_ARGUMENT, "%llu bytes: a window holds %llu at most",
                  static_cast<unsigned long long>(bytes),
                  static_cast<unsigned long long>(kMostWindowBytes));
    }
  }
  return WL_OK;
}

Offload::Places Offload::placesOf(const Stated& stated, uint32_t cores) const {
  Places places = {};
  places.stop = stated_.size() * cores * kDeviceLineBytes;
  places.in = aligned(places.stop + kDeviceLineBytes);
  places.out = aligned(places.in + (isOneDevice_ && stated.inThere != 0 ? 0 : stated.in));
  places.parts = aligned(places.out + (isOneDevice_ && stated.outThere != 0 ? 0 : stated.out));
  places.end = aligned(places.parts + stated.parts);
  return places;
}

Code Offload::runHere(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
                      wl_error_t* error) {
  const Buffers& buffers = operation.buffers;
  stated_.resize(peers.ranks());
  Code found = open(error);
  if (found == WL_OK) found = find(buffers, error);
  if (Code code = agree(found, buffers, peers, culprit, error); code != WL_OK) return code;
  if (Code code = checkExtents(culprit, error); code != WL_OK) return code;
  isOneDevice_ = true;
  for (uint32_t rank = 0; rank < peers.ranks(); ++rank)
    isOneDevice_ = isOneDevice_ && stated_[rank].device == number_ && peers.firstBeside(rank) == 0;
  uint64_t bytes = 0;
  for (const Stated& each : stated_) bytes = std::max(bytes, placesOf(each, operation.cores).end);
  // All ranks are past the operation before, so nobody's kernels reach the window.
  if (bytes > device_->partBytes()) {
    Code code = agree(device_->closeWindow(error), buffers, peers, culprit, error);
    if (code != WL_OK) return code;
    sequence_ = 0;
    code = device_->makeWindow(peers, bytes, error);
    *culprit = device_->culprit();
    if (code != WL_OK) return code;
  }
  Code code = cores_ == 0 ? countCores(operation.cores, peers, error) : WL_OK;
  nextSequence();
  const Places own = placesOf(stated_[peers.rank()], operation.cores);
  auto* const part = static_cast<unsigned char*>(device_->part(peers.rank()));
  OffloadedTransfer* const transfer = buffers.transfer;
  const OffloadedTransfer::Images ownImages = imagesOf(peers.rank(), operation.cores);
  if (transfer != nullptr) {
    std::vector<OffloadedTransfer::Images> images;
    for (uint32_t rank = 0; rank < peers.ranks(); ++rank)
      images.push_back(imagesOf(rank, operation.cores));
    transfer->name(images);
    if (code == WL_OK) code = transfer->send(*device_, ownImages, error);
  }
  using Lies = RankDevice::Lies;
  const auto send = [&](uint64_t at, const void* from, uint64_t size, Lies lies) {
    if (code != WL_OK || size == 0 || (isOneDevice_ && lies == Lies::kHere)) return;
    code = lies == Lies::kHost ? device_->toDevice(part + at, from, size, error)
                               : device_->onDevices(part + at, from, size, error);
  };
  if (transfer == nullptr) send(own.in, buffers.in, buffers.inBytes, found_.in);
  // Whole, since a kernel may leave parts of it as they are.
  if (transfer == nullptr) send(own.out, buffers.out, buffers.outBytes, found_.out);
  send(own.parts, buffers.parts, buffers.partBytes, Lies::kHost);
  if (code = agree(code, buffers, peers, culprit, error); code != WL_OK) return code;
  code = runKernel(operation, peers, culprit, error);
  if (code != WL_OK) return code;
  code = transfer != nullptr ? transfer->fetch(*device_, ownImages, error)
                             : fetch(buffers, own, part, error);
  *culprit = peers.rank();
  // Every rank's table is read by every host.
  return buffers.partBytes == 0 ? code : agree(code, buffers, peers, culprit, error);
}

Code Offload::fetch(const Buffers& buffers, const Places& own, const unsigned char* part,
                    wl_error_t* error) {
  Code code = WL_OK;
  const bool isThere = isOneDevice_ && outThere_ != 0;
  if (buffers.outBytes > 0 && !isThere) {
    code = found_.out == RankDevice::Lies::kHost
               ? device_->fromDevice(buffers.out, part + own.out, buffers.outBytes, error)
               : device_->onDevices(buffers.out, part + own.out, buffers.outBytes, error);
  }
  if (code != WL_OK || buffers.partBytes == 0) return code;
  return device_->fromDevice(buffers.parts, part + own.parts, buffers.partBytes, error);
}

Code Offload::countCores(uint32_t most, OffloadPeers& peers, wl_error_t* error) {
  if (cores_ = device_->coresAtOnce(most); cores_ > 0) return WL_OK;
  nextSequence();
  const uint32_t self = peers.rank();
  const auto base = reinterpret_cast<uint64_t>(device_->part(self));
  OffloadedOperation given = {};
  given.kernel = kMeetingKernel;
  given.launch.ranks = 1;
  given.line = {0, 0, most, sequence_, false, kLooks, nullptr, 0};
  given.windows[0] = base;
  given.windowBytes = device_->partBytes();
  // Those that the rank writes in its own window.
  given.lines[0] = base + uint64_t{self} * most * kDeviceLineBytes;
  given.stop = device_->stopWord(base + placesOf(stated_[self], most).stop);
  lines_.resize(most * kDeviceLineBytes);
  Code code = device_->start(kMeeting, given, error);
  if (code != WL_OK) return code;
  const int64_t start = clockNs();
  do {
    code = device_->await(kMeeting, kLookNs, error);
  } while (code == WL_TIMEOUT && peers.goesOn() && clockNs() - start < kMeetingLimitNs);
  if (code == WL_OK) {
    cores_ = most;
    return WL_OK;
  }
  if (code == WL_TIMEOUT) code = readLines(given, error);
  const bool ended = stop(kMeeting, given);
  if (code != WL_OK) return code;
  uint32_t begun = 0;
  for (uint32_t core = 0; core < most; ++core)
    begun += lineAt(lines_, core) == given.line.word(0) ? 1 : 0;
  if (!ended || begun == 0) {
    return fail(error, WL_DEVICE,
                "device %u began %u of %u cores within %lld ms%s: another program uses it, or it "
                "is at fault",
                number_, begun, most, static_cast<long long>((clockNs() - start) / 1'000'000),
                ended ? "" : ", and did not end when it was told to");
  }
  cores_ = begun;
  return WL_OK;
}

Code Offload::look(const OffloadedOperation& given, wl_error_t* error) {
  const uint32_t cores = given.line.cores;
  const uint32_t none = given.line.word(0);
  if (Code code = readLines(given, error); code != WL_OK) return code;
  for (uint32_t rank = 0; rank < given.launch.ranks; ++rank) {
    OffloadProgress::Rank& of = progress_.ranks[rank];
    of = {progress_.phases, 0};
    for (uint32_t core = 0; core < cores; ++core) {
      const uint32_t told = lineAt(lines_, rank * cores + core);
      const uint32_t over = reached(told, none) ? told - none : 0;
      if (over < of.over) of = {over, core};
    }
  }
  return WL_OK;
}

Code Offload::checkWhole(const char* kernel, const OffloadedOperation& given, int64_t startNs,
                         wl_error_t* error) {
  if (clockNs() - startNs < static_cast<int64_t>(given.limitNs)) return WL_OK;
  if (Code code = look(given, error); code != WL_OK) return code;
  if (progress_.fewest() == progress_.phases) return WL_OK;
  return fail(error, WL_TIMEOUT,
              "device %u ended %s by itself, %lld ms after it had begun: the process of its rank "
              "was stopped, or had no core to run on",
              number_, kernel, static_cast<long long>((clockNs() - startNs) / 1'000'000));
}

Code Offload::readLines(const OffloadedOperation& given, wl_error_t* error) {
  const auto* lines = reinterpret_cast<const void*>(given.lines[given.line.rank]);
  return device_->fromDevice(lines_.data(), lines, lines_.size(), error);
}

bool Offload::stop(const char* kernel, const OffloadedOperation& given) {
  wl_error_t untold = blankError();
  device_->writeStop(given.stop, given.line.sequence, &untold);
  // Any other answer than that time is up is about a kernel that has ended.
  if (device_->await(kernel, kStopLimitNs, &untold) != WL_TIMEOUT) return true;
  device_->giveUp();
  isStuck_ = true;
  KeptDevices::add(number_, kernel);
  return false;
}

Code Offload::runKernel(const Operation& operation, OffloadPeers& peers, uint32_t* culprit,
                        wl_error_t* error) {
  const uint32_t ranks = peers.ranks();
  const uint32_t self = peers.rank();
  uint32_t cores = operation.cores;
  for (const Stated& each : stated_) cores = std::min(cores, each.cores);
  OffloadedOperation given = {};
  given.kernel = operation.kernel;
  given.launch = *operation.launch;
  given.line = {self, 0, cores, sequence_, false, kLooks, nullptr, 0};
  given.windowBytes = device_->partBytes();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto base = reinterpret_cast<uint64_t>(device_->part(rank));
    const Places places = placesOf(stated_[rank], operation.cores);
    const auto place = [&](uint64_t at, uint64_t bytes, uint64_t there) {
      if (bytes == 0) return Place{0};
      return Place::of(kAddressSpace, isOneDevice_ && there != 0 ? there : base + at);
    };
    const Stated& of = stated_[rank];
    given.entries[rank] = {place(places.in, of.in, of.inThere),
                           place(places.out, of.out, of.outThere),
                           place(places.parts, of.parts, 0)};
    given.lines[rank] = given.windows[rank] = base;
    if (rank == self) given.stop = device_->stopWord(base + places.stop);
  }
  given.limitNs = static_cast<uint64_t>(std::max<int64_t>(peers.leftNs(), 0) + kOwnLimitNs);
  *culprit = self;
  // No memory is taken while a kernel runs.
  progress_.phases = operation.phases;
  progress_.ranks.resize(ranks);
  lines_.resize(size_t{ranks} * cores * kDeviceLineBytes);
  const int64_t startNs = clockNs();
  Code code = device_->start(operation.name, given, error);
  if (code != WL_OK) return code;
  bool goesOn = true;
  for (;;) {
    code = device_->await(operation.name, goesOn ? kLookNs : 0, error);
    if (code == WL_OK) return checkWhole(operation.name, given, startNs, error);
    if (code != WL_TIMEOUT) {
      stop(operation.name, given);
      return code;
    }
    if (!goesOn) break;
    // It is looked at once more after that.
    goesOn = peers.goesOn();
  }
  code = look(given, error);
  const Code why = code == WL_OK ? peers.ended(progress_) : code;
  const bool hasEnded = stop(operation.name, given);
  if (code != WL_OK) return code;
  *culprit = kNobody;
  // What has ended by itself meanwhile is as good as what had ended before.
  const bool isWhole =
      hasEnded && look(given, nullptr) == WL_OK && progress_.fewest() == progress_.phases;
  return isWhole ? WL_OK : why;
}

}  // namespace windlass
