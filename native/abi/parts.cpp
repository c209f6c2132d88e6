// SPDX-License-Identifier: Apache-2.0
// Errors begin with the caller's name for the operation.
#include "native/abi/parts.h"

#include <algorithm>

#include "native/abi/buffers.h"
#include "native/base/text.h"

namespace windlass {
namespace {

// A buffer and its parts, as the caller passes them, with the names in the caller's API.
struct Parts {
  const wl_call_t& call;
  Buffer whole;
  const void* buffer;
  const char* countsName;
  const int64_t* counts;
  const char* offsetsName;
  const int64_t* offsets;  // NULL: contiguous parts

  const char* operation() const { return callName(call.operation); }
};

[[gnu::cold]] Code badPart(const Parts& parts, uint32_t rank, int64_t count, int64_t offset,
                           wl_error_t* error) {
  const char* what = parts.operation();
  const auto elements = static_cast<int64_t>(parts.whole.elements);
  if (count < 0) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s[%u] is %lld; a count is 0 or more",
                what, parts.countsName, rank, text(count));
  }
  if (offset < 0 || offset > elements) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s[%u] is %lld; %s holds %lld elements",
                what, parts.offsetsName, rank, text(offset), parts.whole.name, text(elements));
  }
  return fail(error, WL_INVALID_ARGUMENT,
              "%s: %s[%u] is %lld; from element %lld on, %s holds %lld more", what,
              parts.countsName, rank, text(count), text(offset), parts.whole.name,
              text(elements - offset));
}

// Checks a buffer that holds parts of all ranks. Sets *bytes to its size.
Code checkWhole(const Comm& comm, const void* buffer, const Buffer& whole, int32_t dtype,
                uint64_t* bytes, wl_error_t* error) {
  const uint32_t ranks = comm.group().ranks();
  if (Code code = bytesOf(ranks, whole.elements, dtype, bytes, error)) return code;
  *bytes /= ranks;
  return checkBuffer(buffer, *bytes, dtype, whole.name, error);
}

// Checks that every part lies inside the buffer. Sets *bytes to the buffer's size.
Code checkParts(const Comm& comm, const Parts& parts, uint64_t* bytes, wl_error_t* error) {
  if (Code code = checkWhole(comm, parts.buffer, parts.whole, parts.call.dtype, bytes, error))
    return code;
  if (parts.counts == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s is NULL", parts.operation(),
                parts.countsName);
  }
  const auto elements = static_cast<int64_t>(parts.whole.elements);
  int64_t end = 0;
  for (uint32_t rank = 0; rank < comm.group().ranks(); ++rank) {
    const int64_t count = parts.counts[rank];
    const int64_t offset = parts.offsets == nullptr ? end : parts.offsets[rank];
    if (count < 0 || offset < 0 || offset > elements || count > elements - offset)
      return badPart(parts, rank, count, offset, error);
    end = offset + count;
  }
  return WL_OK;
}

// Checks that no two parts share an element.
Code checkApart(const Parts& parts, uint32_t ranks, wl_error_t* error) {
  if (parts.offsets == nullptr) return WL_OK;
  const auto end = [&](uint32_t rank) { return parts.offsets[rank] + parts.counts[rank]; };
  bool ascending = true;
  int64_t reached = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (parts.counts[rank] == 0) continue;
    ascending = ascending && parts.offsets[rank] >= reached;
    reached = end(rank);
  }
  if (ascending) return WL_OK;
  uint16_t order[WL_MAX_RANKS];  // not on the heap, where a failure would affect only this rank
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (parts.counts[rank] > 0) order[count++] = static_cast<uint16_t>(rank);
  }
  std::sort(order, order + count,
            [&](uint32_t a, uint32_t b) { return parts.offsets[a] < parts.offsets[b]; });
  for (uint32_t i = 1; i < count; ++i) {
    if (parts.offsets[order[i]] >= end(order[i - 1])) continue;
    const uint32_t rank = std::max(order[i], order[i - 1]);
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s[%u] is %lld: the part overlaps that of rank %u; parts of %s must be apart",
                parts.operation(), parts.offsetsName, rank, text(parts.offsets[rank]),
                std::min(order[i], order[i - 1]), parts.whole.name);
  }
  return WL_OK;
}

Code checkExchange(const wl_call_t& call, uint64_t inBytes, uint64_t outBytes, wl_error_t* error) {
  if (!overlap(call.in, inBytes, call.out, outBytes)) return WL_OK;
  return badOverlap(call, {"in", call.in_elements}, {"out", call.out_elements}, kMustBeApart,
                    error);
}

// Checks a buffer of one part, and `parts`, which the parts of all ranks fill. They may overlap
// only if the one part is the rank's own part there.
Code checkOwnPart(const Comm& comm, const void* buffer, const Buffer& part, const Parts& parts,
                  wl_error_t* error) {
  uint64_t wholeBytes = 0;
  if (Code code = checkParts(comm, parts, &wholeBytes, error)) return code;
  const uint32_t rank = comm.rank();
  uint64_t sum = 0;
  uint64_t before = 0;
  for (uint32_t other = 0; other < comm.group().ranks(); ++other) {
    if (other == rank) before = sum;
    sum += static_cast<uint64_t>(parts.counts[other]);
  }
  const auto own = static_cast<uint64_t>(parts.counts[rank]);
  if (sum != parts.whole.elements) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s holds %llu elements, and counts add to %llu; they must agree",
                parts.operation(), parts.whole.name, text(parts.whole.elements), text(sum));
  }
  if (part.elements != own) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s holds %llu elements, and counts[%u] is %llu; they must agree",
                parts.operation(), part.name, text(part.elements), rank, text(own));
  }
  const int32_t dtype = parts.call.dtype;
  const uint64_t elementBytes = sizeOf(static_cast<DType>(dtype));
  if (Code code = checkBuffer(buffer, own * elementBytes, dtype, part.name, error)) return code;
  const void* inPlace = static_cast<const unsigned char*>(parts.buffer) + before * elementBytes;
  if (buffer == inPlace || !overlap(buffer, own * elementBytes, parts.buffer, wholeBytes))
    return WL_OK;
  return badPartOverlap(parts.call, part, rank, parts.whole, error);
}

// An exchange whose receivers do not know the counts.
Code exchangePacked(Comm& comm, const wl_call_t& call, uint64_t inBytes, wl_error_t* error) {
  uint64_t room = 0;
  const Buffer out = {"out", call.out_elements};
  if (Code code = checkWhole(comm, call.out, out, call.dtype, &room, error)) return code;
  if (Code code = checkExchange(call, inBytes, room, error)) return code;
  return allToAllVPacked(comm, call, error);
}

}  // namespace

Code exchangeParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on) {
  const Parts sent = {call, {"in", call.in_elements}, call.in, "sendCounts", call.in_counts,
                      "sendOffsets", call.in_offsets};
  const Parts received = {call, {"out", call.out_elements}, call.out, "receiveCounts",
                          call.out_counts, "receiveOffsets", call.out_offsets};
  uint64_t inBytes = 0;
  uint64_t outBytes = 0;
  if (Code code = checkParts(comm, sent, &inBytes, error)) return code;
  if (call.received_counts != nullptr) {
    return on == nullptr ? exchangePacked(comm, call, inBytes, error)
                         : fail(error, WL_UNSUPPORTED,
                                "allToAllv: a call with received_counts is not enqueued; state "
                                "out_counts");
  }
  if (Code code = checkParts(comm, received, &outBytes, error)) return code;
  if (Code code = checkExchange(call, inBytes, outBytes, error)) return code;
  if (Code code = checkApart(received, comm.group().ranks(), error)) return code;
  const uint32_t rank = comm.rank();
  if (sent.counts[rank] != received.counts[rank]) {
    return fail(error, WL_INVALID_ARGUMENT,
                "allToAllv: sendCounts[%u] is %lld and receiveCounts[%u] is %lld: what rank %u "
                "sends to itself; they must agree",
                rank, text(sent.counts[rank]), rank, text(received.counts[rank]), rank);
  }
  return allToAllV(comm, call, error, on);
}

Code gatherParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on) {
  const Parts parts = {call, {"out", call.out_elements}, call.out, "counts", call.out_counts,
                       nullptr, nullptr};
  const Buffer own = {"in", call.in_elements};
  if (Code code = checkOwnPart(comm, call.in, own, parts, error)) return code;
  return allGatherV(comm, call, error, on);
}

Code reduceParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on) {
  if (Code code = checkReduction(call, error)) return code;
  const Parts parts = {call, {"in", call.in_elements}, call.in, "counts", call.in_counts,
                       nullptr, nullptr};
  const Buffer own = {"out", call.out_elements};
  if (Code code = checkOwnPart(comm, call.out, own, parts, error)) return code;
  return reduceScatterV(comm, call, error, on);
}

}  // namespace windlass
