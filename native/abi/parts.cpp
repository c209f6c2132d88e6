// SPDX-License-Identifier: Apache-2.0
// Errors begin with the caller's name for the operation.
#include "native/abi/parts.h"

#include <algorithm>

#include "native/abi/buffers.h"
#include "native/base/text.h"

namespace windlass {
namespace {

// Argument names of a buffer and its parts in the caller's API.
struct Names {
  int32_t operation;
  const char* buffer;
  const char* counts;
  const char* offsets;
};
constexpr Names kSent = {WL_OP_ALL_TO_ALL_V, "in", "sendCounts", "sendOffsets"};
constexpr Names kReceived = {WL_OP_ALL_TO_ALL_V, "out", "receiveCounts", "receiveOffsets"};
constexpr Names kReduced = {WL_OP_REDUCE_SCATTER_V, "in", "counts", nullptr};

// A buffer and its parts, as the caller passes them.
struct Parts {
  const Names& names;
  const void* buffer;
  uint64_t elements;
  const int64_t* counts;
  const int64_t* offsets;  // NULL: contiguous parts

  const char* operation() const { return callName(names.operation); }
};

[[gnu::cold]] Code badPart(const Parts& parts, uint32_t rank, int64_t count, int64_t offset,
                           wl_error_t* error) {
  const char* what = parts.operation();
  const auto elements = static_cast<int64_t>(parts.elements);
  if (count < 0) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s[%u] is %lld; a count is 0 or more",
                what, parts.names.counts, rank, text(count));
  }
  if (offset < 0 || offset > elements) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s[%u] is %lld; %s holds %lld elements",
                what, parts.names.offsets, rank, text(offset), parts.names.buffer,
                text(elements));
  }
  return fail(error, WL_INVALID_ARGUMENT,
              "%s: %s[%u] is %lld; from element %lld on, %s holds %lld more", what,
              parts.names.counts, rank, text(count), text(offset), parts.names.buffer,
              text(elements - offset));
}

// Checks that every part lies inside the buffer. Sets *bytes to the buffer's size.
Code checkParts(const Comm& comm, const Parts& parts, int32_t dtype, uint64_t* bytes,
                wl_error_t* error) {
  const uint32_t ranks = comm.group().ranks();
  if (Code code = bytesOf(ranks, parts.elements, dtype, bytes, error); code != WL_OK) return code;
  *bytes /= ranks;
  if (Code code = checkBuffer(parts.buffer, *bytes, dtype, parts.names.buffer, error);
      code != WL_OK)
    return code;
  if (parts.counts == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s is NULL", parts.operation(),
                parts.names.counts);
  }
  const auto elements = static_cast<int64_t>(parts.elements);
  int64_t end = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
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
                parts.operation(), parts.names.offsets, rank, text(parts.offsets[rank]),
                std::min(order[i], order[i - 1]), parts.names.buffer);
  }
  return WL_OK;
}

Code checkExchange(const wl_call_t& call, uint64_t inBytes, uint64_t outBytes, wl_error_t* error) {
  if (!overlap(call.in, inBytes, call.out, outBytes)) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "allToAllv: in (%llu x %s) overlaps out (%llu x %s); they must be apart, it does not "
              "work in place",
              text(call.in_elements), dtypeName(call.dtype), text(call.out_elements),
              dtypeName(call.dtype));
}

// A buffer of one part.
struct OwnPart {
  const char* name;
  const void* buffer;
  uint64_t elements;
};

// Checks a buffer of one part, and `whole`, which the parts of all ranks fill. They may overlap
// only if the part is the rank's own part of `whole`.
Code checkOwnPart(const Comm& comm, const OwnPart& part, const Parts& whole, int32_t dtype,
                  wl_error_t* error) {
  const auto& [name, buffer, elements] = part;
  uint64_t wholeBytes = 0;
  if (Code code = checkParts(comm, whole, dtype, &wholeBytes, error); code != WL_OK) return code;
  const uint32_t rank = comm.rank();
  uint64_t sum = 0;
  uint64_t before = 0;
  for (uint32_t other = 0; other < comm.group().ranks(); ++other) {
    if (other == rank) before = sum;
    sum += static_cast<uint64_t>(whole.counts[other]);
  }
  const auto own = static_cast<uint64_t>(whole.counts[rank]);
  if (sum != whole.elements) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s holds %llu elements, and counts add to %llu; they must agree",
                whole.operation(), whole.names.buffer, text(whole.elements), text(sum));
  }
  if (elements != own) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s holds %llu elements, and counts[%u] is %llu; they must agree",
                whole.operation(), name, text(elements), rank, text(own));
  }
  const uint64_t elementBytes = sizeOf(static_cast<DType>(dtype));
  if (Code code = checkBuffer(buffer, own * elementBytes, dtype, name, error); code != WL_OK)
    return code;
  const void* inPlace = static_cast<const unsigned char*>(whole.buffer) + before * elementBytes;
  if (buffer != inPlace && overlap(buffer, own * elementBytes, whole.buffer, wholeBytes)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s (%llu x %s) overlaps %s (%llu x %s); in place, %s is part %u of %s",
                whole.operation(), name, text(elements), dtypeName(dtype),
                whole.names.buffer, text(whole.elements), dtypeName(dtype), name, rank,
                whole.names.buffer);
  }
  return WL_OK;
}

// An exchange whose receivers do not know the counts.
Code exchangePacked(Comm& comm, const wl_call_t& call, uint64_t inBytes, wl_error_t* error) {
  const uint64_t ranks = comm.group().ranks();
  uint64_t room = 0;
  if (Code code = bytesOf(ranks, call.out_elements, call.dtype, &room, error); code != WL_OK)
    return code;
  room /= ranks;
  if (Code code = checkBuffer(call.out, room, call.dtype, "out", error); code != WL_OK) return code;
  if (Code code = checkExchange(call, inBytes, room, error); code != WL_OK) return code;
  return allToAllVPacked(comm, call, error);
}

}  // namespace

Code exchangeParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on) {
  const Parts sent = {kSent, call.in, call.in_elements, call.in_counts, call.in_offsets};
  const Parts received = {kReceived, call.out, call.out_elements, call.out_counts,
                          call.out_offsets};
  uint64_t inBytes = 0;
  uint64_t outBytes = 0;
  if (Code code = checkParts(comm, sent, call.dtype, &inBytes, error); code != WL_OK) return code;
  if (call.received_counts != nullptr) {
    return on == nullptr ? exchangePacked(comm, call, inBytes, error)
                         : fail(error, WL_UNSUPPORTED,
                                "allToAllv: a call with received_counts is not enqueued; state "
                                "out_counts");
  }
  if (Code code = checkParts(comm, received, call.dtype, &outBytes, error); code != WL_OK)
    return code;
  if (Code code = checkExchange(call, inBytes, outBytes, error); code != WL_OK) return code;
  if (Code code = checkApart(received, comm.group().ranks(), error); code != WL_OK) return code;
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
  const Names names = {call.operation, "out", "counts", nullptr};
  const Parts whole = {names, call.out, call.out_elements, call.out_counts, nullptr};
  const OwnPart own = {"in", call.in, call.in_elements};
  if (Code code = checkOwnPart(comm, own, whole, call.dtype, error); code != WL_OK) return code;
  return allGatherV(comm, call, error, on);
}

Code reduceParts(Comm& comm, const wl_call_t& call, wl_error_t* error, OnStream* on) {
  if (Code code = checkReduction(call, error); code != WL_OK)
    return code;
  const Parts whole = {kReduced, call.in, call.in_elements, call.in_counts, nullptr};
  const OwnPart own = {"out", call.out, call.out_elements};
  if (Code code = checkOwnPart(comm, own, whole, call.dtype, error); code != WL_OK) return code;
  return reduceScatterV(comm, call, error, on);
}

}  // namespace windlass
