// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/streams.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "native/base/text.h"
#include "native/device/cuda/polling.h"

namespace windlass::cuda {
namespace {

// Handles with which the driver denotes its two default streams.
constexpr uint64_t kLegacy = 1;
constexpr uint64_t kPerThread = 2;

CuStream streamOf(uint64_t handle) {
  return reinterpret_cast<CuStream>(handle);
}

}  // namespace

Code Streams::open(wl_error_t* error) {
  if (given_ != 0) return WL_OK;
  constexpr uint64_t kBytes = sizeof(Given);
  Code code = gpu_.makeMemory(&given_, kBytes * (kMostInFlight + kMostCaptured), error);
  if (code == WL_OK) code = gpu_.makePinned(&pinned_, kBytes * kMostInFlight, 0, error);
  forEachPlace([&](Place& place) {
    if (code == WL_OK) code = gpu_.makeEvent(&place.mark, error);
    if (code == WL_OK) code = gpu_.makeEvent(&place.over, error);
  });
  if (code != WL_OK) close(nullptr);
  return code;
}

Code Streams::close(wl_error_t* error) {
  GivesBack undo(gpu_, error);
  undo.by([&](wl_error_t* own) { return window_.close(own); });
  forEachPlace([&](Place& place) {
    undo.event(place.mark);
    undo.event(place.over);
    place = Place();
  });
  undo.pinned(pinned_);
  undo.memory(given_);
  last_ = nullptr;
  lastCapture_ = 0;
  leftCount_ = 0;
  isWithdrawn_ = false;
  pinned_ = nullptr;
  given_ = 0;
  return undo.code;
}

Code Streams::look(uint64_t stream, uint64_t* capture, wl_error_t* error) {
  const Cuda& cuda = gpu_.cuda();
  *capture = 0;
  if (stream == kPerThread) {
    return fail(error, WL_UNSUPPORTED,
                "stream 2 is the calling thread's own default stream, which other threads don't "
                "reach: make a stream");
  }
  if (stream > kPerThread) {
    CuContext context = nullptr;
    const Called found = cuda.cuStreamGetCtx(streamOf(stream), &context);
    if (found == kCuInvalidHandle) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "stream %#llx is no stream of this process: was it destroyed?",
                  text(stream));
    }
    const Code code = gpu_.check(found, error);
    if (code != WL_OK) return code;
    if (context != gpu_.context()) {
      return fail(error, WL_UNSUPPORTED,
                  "stream %#llx is not of the primary context of device %u, which this rank has: "
                  "make it with that device current",
                  text(stream), gpu_.number());
    }
  }
  int32_t state = 0;
  uint64_t id = 0;
  const Code code = gpu_.check(cuda.cuStreamGetCaptureInfo(streamOf(stream), &state, &id, nullptr,
                                                           nullptr, nullptr, nullptr),
                               error);
  if (code != WL_OK || state == kCaptureNone) return code;
  if (state != kCaptureActive) {
    return fail(error, WL_UNSUPPORTED,
                "stream %#llx captures a graph that an earlier call has made invalid: end that "
                "capture and begin it anew",
                text(stream));
  }
  *capture = id;
  return checkCapture(stream, id, error);
}

Code Streams::checkCapture(uint64_t stream, uint64_t capture, wl_error_t* error) const {
  if (std::find(left_, left_ + leftCount_, capture) == left_ + leftCount_) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "stream %#llx captures a graph that holds operations of this communicator, and so "
              "does one that was captured since: put all of one graph before the first of the next",
              text(stream));
}

Code Streams::copy(CuStream stream, const Copy& copy, wl_error_t* error) {
  if (copy.bytes == 0) return WL_OK;
  return gpu_.check(
      gpu_.cuda().cuMemcpyAsync(reinterpret_cast<CuAddress>(copy.to),
                                reinterpret_cast<CuAddress>(copy.from), copy.bytes, stream),
      error);
}

// For a graph, the parts stay on the device, and each launch copies them from there.
Code Streams::bringParts(CuStream stream, uint64_t capture, uint32_t place, const Copy& parts,
                         wl_error_t* error) {
  if (parts.bytes == 0) return WL_OK;
  if (capture == 0) {
    unsigned char* const own = pinned_[place].parts;
    std::memcpy(own, parts.from, parts.bytes);
    return gpu_.check(gpu_.cuda().cuMemcpyHtoDAsync(reinterpret_cast<CuAddress>(parts.to), own,
                                                    parts.bytes, stream),
                      error);
  }
  const CuAddress own = givenThere(capture, place) + offsetof(Given, parts);
  const Code code = copies_.toDevice(own, parts.from, parts.bytes, error);
  if (code != WL_OK) return code;
  return copy(stream, {parts.to, reinterpret_cast<const void*>(own), parts.bytes}, error);
}

Code Streams::mark(uint64_t stream, uint64_t capture, uint32_t place, const Brought& brought,
                   uint64_t* mark, wl_error_t* error) {
  const CuStream on = streamOf(stream);
  Code code = WL_OK;
  // The previous operation owns the memory that these copies and its kernels write until it is
  // over. The stream waits for that even if its handle is the same, because the handle may denote a
  // new stream. An operation in a capture follows the last one of that capture. Others follow the
  // last one outside captures.
  const CuEvent before = capture == 0              ? last_
                         : capture == lastCapture_ ? captured_.over
                                                   : nullptr;
  if (before != nullptr) code = gpu_.check(gpu_.cuda().cuStreamWaitEvent(on, before, 0), error);
  if (code == WL_OK) code = bringParts(on, capture, place, brought.parts, error);
  if (code == WL_OK) code = copy(on, brought.in, error);
  if (code == WL_OK) code = copy(on, brought.out, error);
  const CuEvent event = (capture != 0 ? captured_ : places_[place]).mark;
  *mark = reinterpret_cast<uint64_t>(event);
  if (code != WL_OK) return code;
  return gpu_.check(gpu_.cuda().cuEventRecord(event, on), error);
}

Code Streams::join(uint64_t stream, uint64_t capture, uint32_t place,
                   const OffloadedOperation& given, const uint64_t* marks, uint32_t count,
                   wl_error_t* error) {
  Grid& grid = window_.grid();
  const CuAddress there = givenThere(capture, place) + offsetof(Given, operation);
  Code code = WL_OK;
  if (capture == 0) {
    OffloadedOperation& own = pinned_[place].operation;
    std::memcpy(static_cast<void*>(&own), &given, sizeof given);
    code = grid.send(there, &own, sizeof given, error);
  } else {
    code = copies_.toDevice(there, &given, sizeof given, error);
  }
  if (code != WL_OK) return code;
  return grid.enqueue(window_.slot(), given.line.cores, there,
                      {streamOf(stream), capture, reinterpret_cast<const CuEvent*>(marks), count},
                      error);
}

Code Streams::leave(uint64_t stream, uint64_t capture, uint32_t place, const Copy& of,
                    wl_error_t* error) {
  Code code = copy(streamOf(stream), of, error);
  if (code != WL_OK) return code;
  const CuEvent event = (capture != 0 ? captured_ : places_[place]).over;
  code = gpu_.check(gpu_.cuda().cuEventRecord(event, streamOf(stream)), error);
  if (code != WL_OK) return code;
  if (capture == 0) {
    last_ = event;
  } else if (capture != lastCapture_) {
    if (lastCapture_ != 0) left_[leftCount_++] = lastCapture_;
    lastCapture_ = capture;
  }
  return WL_OK;
}

// Stops all operations, because the launch may have succeeded although a later call failed. Events
// don't show this.
void Streams::withdraw(uint64_t stream, uint64_t capture, uint32_t place) {
  stop();
  if (window_.hasGrid()) window_.grid().withdraw(window_.slot());
  isWithdrawn_ = true;
  if (capture != 0) return;
  const CuResult result = gpu_.cuda().cuEventRecord(places_[place].over, streamOf(stream));
  places_[place].isUnknown = result != kCuOk && !isFailedDevice(result);
}

Code Streams::hasBegun(uint64_t mark, bool* has, wl_error_t* error) {
  return gpu_.checkEnd(gpu_.cuda().cuEventQuery(reinterpret_cast<CuEvent>(mark)), has, error);
}

Code Streams::isOver(uint32_t place, bool* is, wl_error_t* error) {
  if (places_[place].isUnknown) {
    *is = isFailedDevice(gpu_.cuda().cuEventQuery(places_[place].over));
    return WL_OK;
  }
  const Code code = gpu_.checkEnd(gpu_.cuda().cuEventQuery(places_[place].over), is, error);
  if (code != WL_OK || !*is || !isWithdrawn_ || !window_.hasGrid()) return code;
  return window_.grid().look(is, error);
}

void Streams::stop() {
  __atomic_store_n(reinterpret_cast<uint32_t*>(words_), 1, __ATOMIC_SEQ_CST);
}

uint32_t Streams::reported() const {
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(words_ + kCoreLineBytes),
                         __ATOMIC_ACQUIRE);
}

}  // namespace windlass::cuda
