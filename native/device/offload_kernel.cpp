// SPDX-License-Identifier: Apache-2.0
// Kernel of an operation on a rank's device: start, progress and end.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "native/base/clock.h"
#include "native/core/signal.h"
#include "native/device/kept_devices.h"
#include "native/device/offload.h"

namespace windlass {
namespace {

constexpr int64_t kDeviceLookNs = 20'000'000;
// Time for a kernel that moves nothing, on a device without other work of this process.
constexpr int64_t kMeetingLimitNs = 1'000'000'000;
constexpr const char* kMeeting = "the count of its cores";

}  // namespace

template <class GoesOn>
Code Offload::await(const char* kernel, const OffloadedOperation& given, wl_error_t* error,
                    GoesOn&& goesOn) {
  for (int64_t limitNs = kDeviceLookNs;;) {
    const Code code = device_->await(kernel, limitNs, error);
    if (code != WL_OK && code != WL_DEADLINE_EXCEEDED) stop(kernel, given);
    if (code != WL_DEADLINE_EXCEEDED || limitNs == 0) return code;
    if (!goesOn()) limitNs = 0;
  }
}

Code Offload::countCores(uint32_t most, OffloadPeers& peers, wl_error_t* error) {
  if (cores_ = device_->coresAtOnce(most, nullptr); cores_ > 0) return WL_OK;
  nextSequence();
  const uint32_t self = peers.rank();
  const auto base = reinterpret_cast<uint64_t>(device_->part(self));
  OffloadedOperation given = {};
  given.kernel = kMeetingKernel;
  given.launch.ranks = 1;
  given.line = {0, 0, most, sequence_, false, kDeviceLooks, nullptr, 0};
  given.windows[0] = base;
  given.windowBytes = device_->partBytes();
  // The kernel runs as for a single rank. Later readers of these lines find an earlier operation
  // there.
  given.lines[0] = base;
  given.stop = device_->stopWord(stated_.layout(self, most, base).word);
  given.stopValue = sequence_;
  lines_.resize(most * kCoreLineBytes);
  Code code = device_->start(kMeeting, nullptr, given, error);
  if (code != WL_OK) return code;
  const int64_t start = clockNs();
  code = await(kMeeting, given, error,
               [&] { return peers.goesOn() && clockNs() - start < kMeetingLimitNs; });
  if (code == WL_OK) {
    cores_ = most;
    return WL_OK;
  }
  if (code != WL_DEADLINE_EXCEEDED) return code;
  code = device_->fromDevice(lines_.data(), device_->part(self), lines_.size(), error);
  const bool ended = stop(kMeeting, given);
  if (code != WL_OK) return code;
  uint32_t begun = 0;
  for (uint32_t core = 0; core < most; ++core)
    begun += lineAt(lines_, lineIndex(core, 0, 1)) == given.line.word(0) ? 1 : 0;
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

// Writes the lines as the previous operation, which is over, would have. Cores in the current
// operation rewrite them.
Code Offload::writeLines(uint32_t self, uint32_t most, wl_error_t* error) {
  if (sequence_ - written_ < allLinesEvery) return WL_OK;
  InLine before = {};
  before.sequence = sequence_ - 1;
  const uint32_t word = before.word(0);
  const size_t count = size_t{stated_.ranks()} * most;
  lines_.assign(count * kCoreLineBytes, 0);
  for (size_t index = 0; index < count; ++index)
    std::memcpy(lines_.data() + index * kCoreLineBytes, &word, sizeof word);
  written_ = sequence_;
  return device_->toDevice(device_->part(self), lines_.data(), lines_.size(), error);
}

Code Offload::look(const OffloadedOperation& given, wl_error_t* error) {
  const auto* lines = reinterpret_cast<const void*>(given.lines[given.line.rank]);
  return readProgress(*device_, lines, given.line, &lines_, &progress_, error);
}

Code readProgress(RankDevice& device, const void* part, const InLine& line,
                  std::vector<unsigned char>* lines, OffloadProgress* progress,
                  wl_error_t* error) {
  const auto ranks = static_cast<uint32_t>(progress->ranks.size());
  lines->resize(size_t{ranks} * line.cores * kCoreLineBytes);
  const Code code = device.fromDevice(lines->data(), part, lines->size(), error);
  if (code != WL_OK) return code;
  const uint32_t none = line.word(0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    OffloadProgress::Rank& of = progress->ranks[rank];
    of = {progress->phases, 0, true};
    for (uint32_t core = 0; core < line.cores; ++core) {
      const uint32_t told = lineAt(*lines, lineIndex(core, rank, ranks));
      const bool hasBegun = reached(told, none);
      of.hasBegun = of.hasBegun && hasBegun;
      if (const uint32_t over = hasBegun ? told - none : 0; over < of.over)
        of = {over, core, of.hasBegun};
    }
  }
  return WL_OK;
}

Code Offload::checkWhole(const char* kernel, const OffloadedOperation& given, int64_t startNs,
                         wl_error_t* error) {
  if (static_cast<uint64_t>(clockNs() - startNs) < given.limitNs) return WL_OK;
  if (Code code = look(given, error); code != WL_OK) return code;
  if (progress_.fewest() == progress_.phases) return WL_OK;
  return fail(error, WL_DEADLINE_EXCEEDED,
              "device %u ended %s by itself, %lld ms after it had begun: the process of its rank "
              "was stopped, or had no core to run on",
              number_, kernel, static_cast<long long>((clockNs() - startNs) / 1'000'000));
}

bool Offload::stop(const char* kernel, const OffloadedOperation& given) {
  wl_error_t untold = blankError();
  device_->writeStop(given.stop, given.line.sequence, &untold);
  const int64_t endNs = clockNs() + kStopLimitNs;
  do {
    const Code code = device_->await(kernel, std::max<int64_t>(0, endNs - clockNs()), &untold);
    // A failed device runs nothing. Other errors don't say if the kernel still runs.
    if (code == WL_OK || (code == WL_DEVICE && !device_->mayRunOn())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (clockNs() < endNs);
  device_->giveUp();
  isStuck_ = true;
  KeptDevices::add(number_, kernel);
  return false;
}

Code Offload::runKernel(const DeviceOperation& operation, OffloadPeers& peers, uint32_t* faultyRank,
                        wl_error_t* error) {
  const uint32_t ranks = peers.ranks();
  const uint32_t self = peers.rank();
  OffloadedOperation given = stated_.describe(operation, *device_, self);
  const DeviceLayout own = stated_.layout(self, operation.cores, *device_);
  given.stop = device_->stopWord(own.word);
  given.line.sequence = given.stopValue = sequence_;
  if (operation.buffers.launch != nullptr) given.call = own.parts;
  if (const uint64_t note = noteOf(operation.buffers); note != 0) {
    given.noteTo = device_->notes().address;
    given.noteFrom = own.out + operation.buffers.transfer->countsAt();
    given.noteBytes = note;
  }
  given.limitNs = static_cast<uint64_t>(std::max<int64_t>(peers.leftNs(), 0)) + kDeviceOwnLimitNs;
  *faultyRank = self;
  // Allocates everything before the kernel runs.
  progress_.phases = operation.phases;
  progress_.ranks.resize(ranks);
  lines_.resize(size_t{ranks} * given.line.cores * kCoreLineBytes);
  const int64_t startNs = clockNs();
  const OffloadedLaunch* const launch = operation.buffers.launch;
  const void* const image = launch == nullptr ? nullptr : launch->image();
  Code code = device_->start(operation.name, image, given, error);
  if (code != WL_OK) return code;
  code = await(operation.name, given, error, [&] { return peers.goesOn(); });
  if (code == WL_OK) return checkWhole(operation.name, given, startNs, error);
  if (code != WL_DEADLINE_EXCEEDED) return code;
  code = look(given, error);
  const Code why = code == WL_OK ? peers.ended(progress_) : code;
  const bool hasEnded = stop(operation.name, given);
  if (code != WL_OK) return code;
  *faultyRank = kNobody;
  // The operation succeeds if the kernel meanwhile ended with all phases done.
  const bool isWhole =
      hasEnded && look(given, nullptr) == WL_OK && progress_.fewest() == progress_.phases;
  if (!isWhole && why == WL_OK)
    return fail(error, WL_INTERNAL, "%s was stopped, and nothing ended it", operation.name);
  return isWhole ? WL_OK : why;
}

}  // namespace windlass
