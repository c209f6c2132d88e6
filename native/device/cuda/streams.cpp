// SPDX-License-Identifier: Apache-2.0
#include "native/device/cuda/streams.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "native/base/text.h"
#include "native/device/cuda/polling.h"

namespace windlass::cuda {
namespace {

// Handle with which the driver denotes the second of its two default streams.
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
  for (Place& place : places_) {
    if (code == WL_OK) code = gpu_.makeEvent(&place.mark, error);
    if (code == WL_OK) code = gpu_.makeEvent(&place.over, error);
  }
  if (code != WL_OK) close(nullptr);
  return code;
}

Code Streams::close(wl_error_t* error) {
  GivesBack undo(gpu_, error);
  undo.by([&](wl_error_t* own) { return window_.close(own); });
  for (Place& place : places_) {
    undo.event(place.mark);
    undo.event(place.over);
    place = Place();
  }
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
  // Refuses a capture after which another one began: only the order in the last capture is known.
  if (std::find(left_, left_ + leftCount_, id) == left_ + leftCount_) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "stream %#llx captures a graph that holds operations of this communicator, and so "
              "does one that was captured since: put all of one graph before the first of the next",
              text(stream));
}

Code Streams::copy(uint64_t stream, const Copy& copy, wl_error_t* error) {
  if (copy.bytes == 0) return WL_OK;
  const auto to = reinterpret_cast<CuAddress>(copy.to);
  const auto from = reinterpret_cast<CuAddress>(copy.from);
  return gpu_.check(gpu_.cuda().cuMemcpyAsync(to, from, copy.bytes, streamOf(stream)), error);
}

// For a graph, the parts stay on the device, and each launch copies them from there.
Code Streams::bringParts(const Placed& at, const Copy& parts, wl_error_t* error) {
  if (parts.bytes == 0) return WL_OK;
  if (at.capture == 0) {
    const auto to = reinterpret_cast<CuAddress>(parts.to);
    unsigned char* const own = pinned_[at.place].parts;
    std::memcpy(own, parts.from, parts.bytes);
    return gpu_.check(
        gpu_.cuda().cuMemcpyHtoDAsync(to, own, parts.bytes, streamOf(at.stream)), error);
  }
  const CuAddress own = givenThere(at) + offsetof(Given, parts);
  const Code code = copies_.toDevice(own, parts.from, parts.bytes, error);
  if (code != WL_OK) return code;
  return copy(at.stream, {parts.to, reinterpret_cast<const void*>(own), parts.bytes}, error);
}

Code Streams::mark(const Placed& at, const Brought& brought, uint64_t* mark, wl_error_t* error) {
  const CuStream on = streamOf(at.stream);
  Code code = WL_OK;
  // The previous operation owns the memory that these copies and its kernels write until it is
  // over. The stream waits for that even if its handle is the same, because the handle may denote a
  // new stream. An operation in a capture follows the last one of that capture. Others follow the
  // last one outside captures.
  const bool isFirst = at.capture != 0 && at.capture != lastCapture_;
  const CuEvent before = isFirst ? nullptr : at.capture == 0 ? last_ : eventsOf(at).over;
  if (before != nullptr) code = gpu_.check(gpu_.cuda().cuStreamWaitEvent(on, before, 0), error);
  if (code == WL_OK) code = bringParts(at, brought.parts, error);
  if (code == WL_OK) code = copy(at.stream, brought.in, error);
  if (code == WL_OK) code = copy(at.stream, brought.out, error);
  const CuEvent event = eventsOf(at).mark;
  *mark = reinterpret_cast<uint64_t>(event);
  return code == WL_OK ? gpu_.check(gpu_.cuda().cuEventRecord(event, on), error) : code;
}

Code Streams::join(const Placed& at, const OffloadedOperation& given,
                   const std::vector<uint64_t>& marks, wl_error_t* error) {
  Grid& grid = window_.grid();
  const CuAddress there = givenThere(at) + offsetof(Given, operation);
  Code code = WL_OK;
  if (at.capture == 0) {
    OffloadedOperation& own = pinned_[at.place].operation;
    std::memcpy(static_cast<void*>(&own), &given, sizeof given);
    code = grid.send(there, &own, sizeof given, error);
  } else {
    code = copies_.toDevice(there, &given, sizeof given, error);
  }
  if (code != WL_OK) return code;
  return grid.enqueue(window_.slot(), given.line.cores, there,
                      {streamOf(at.stream), at.capture, marks}, error);
}

Code Streams::leave(const Placed& at, const Copy& of, wl_error_t* error) {
  const CuEvent event = eventsOf(at).over;
  Code code = copy(at.stream, of, error);
  if (code == WL_OK)
    code = gpu_.check(gpu_.cuda().cuEventRecord(event, streamOf(at.stream)), error);
  if (code != WL_OK) return code;
  if (at.capture == 0) {
    last_ = event;
  } else if (at.capture != lastCapture_) {
    if (lastCapture_ != 0) left_[leftCount_++] = lastCapture_;
    lastCapture_ = at.capture;
  }
  return WL_OK;
}

// Stops all operations, because the launch may have succeeded although a later call failed. Events
// don't show this.
void Streams::withdraw(const Placed& at) {
  stop();
  if (window_.hasGrid()) window_.grid().withdraw(window_.slot());
  isWithdrawn_ = true;
  if (at.capture != 0) return;
  Place& place = places_[at.place];
  const CuResult result = gpu_.cuda().cuEventRecord(place.over, streamOf(at.stream));
  place.isUnknown = result != kCuOk && !isFailedDevice(result);
}

Code Streams::hasBegun(uint64_t mark, bool* has, wl_error_t* error) {
  return gpu_.checkEnd(gpu_.cuda().cuEventQuery(reinterpret_cast<CuEvent>(mark)), has, error);
}

Code Streams::isOver(uint32_t place, bool* is, wl_error_t* error) {
  const Called asked = gpu_.cuda().cuEventQuery(places_[place].over);
  if (places_[place].isUnknown) {
    *is = isFailedDevice(asked);
    return WL_OK;
  }
  const Code code = gpu_.checkEnd(asked, is, error);
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
