// SPDX-License-Identifier: Apache-2.0
// C ABI: collectives with parts of different sizes. Checks the arguments before it sends anything.
// Errors begin with the caller's name for the operation.
#include <algorithm>

#include "native/abi/buffers.h"
#include "native/abi/streams.h"
#include "native/base/text.h"
#include "native/core/collectives.h"

using namespace windlass;

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
constexpr Names kGathered = {WL_OP_ALL_GATHER_V, "out", "counts", nullptr};
constexpr Names kReduced = {WL_OP_REDUCE_SCATTER_V, "in", "counts", nullptr};

// A buffer and its parts, as the caller passes them.
struct Parts {
  const Names& names;
  const void* buffer;
  uint64_t elements;
  const int64_t* counts;
  const int64_t* offsets;  // NULL: contiguous parts

  CallName operation() const { return CallName(operationName(names.operation)); }
};

[[gnu::cold]] Code badPart(const Parts& parts, uint32_t rank, int64_t count, int64_t offset,
                           wl_error_t* error) {
  const CallName what = parts.operation();
  const auto elements = static_cast<int64_t>(parts.elements);
  if (count < 0) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s[%u] is %lld; a count is 0 or more",
                what.text(), parts.names.counts, rank, text(count));
  }
  if (offset < 0 || offset > elements) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s[%u] is %lld; %s holds %lld elements",
                what.text(), parts.names.offsets, rank, text(offset), parts.names.buffer,
                text(elements));
  }
  return fail(error, WL_INVALID_ARGUMENT,
              "%s: %s[%u] is %lld; from element %lld on, %s holds %lld more", what.text(),
              parts.names.counts, rank, text(count), text(offset), parts.names.buffer,
              text(elements - offset));
}

// Checks that every part lies inside the buffer. Sets *bytes to the buffer's size.
Code checkParts(const wl_comm_t* comm, const Parts& parts, int32_t dtype, uint64_t* bytes,
                wl_error_t* error) {
  const uint32_t ranks = comm->comm.group().ranks();
  if (Code code = bytesOf(ranks, parts.elements, dtype, bytes, error); code != WL_OK) return code;
  *bytes /= ranks;
  if (Code code = checkBuffer(parts.buffer, *bytes, dtype, parts.names.buffer, error);
      code != WL_OK)
    return code;
  if (parts.counts == nullptr) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: %s is NULL", parts.operation().text(),
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
                parts.operation().text(), parts.names.offsets, rank, text(parts.offsets[rank]),
                std::min(order[i], order[i - 1]), parts.names.buffer);
  }
  return WL_OK;
}

[[gnu::cold]] Code badExchange(uint64_t inElements, uint64_t outElements, int32_t dtype,
                               wl_error_t* error) {
  return fail(error, WL_INVALID_ARGUMENT,
              "allToAllv: in (%llu x %s) overlaps out (%llu x %s); they must be apart, it does not "
              "work in place",
              text(inElements), dtypeName(dtype), text(outElements), dtypeName(dtype));
}

// Checks a buffer of one part, and `whole`, which the parts of all ranks fill. They may overlap
// only if the part is the rank's own part of `whole`.
Code checkOwnPart(const wl_comm_t* comm, const char* name, const void* part, uint64_t elements,
                  const Parts& whole, int32_t dtype, wl_error_t* error) {
  uint64_t wholeBytes = 0;
  if (Code code = checkParts(comm, whole, dtype, &wholeBytes, error); code != WL_OK) return code;
  const uint32_t rank = comm->comm.rank();
  uint64_t sum = 0;
  uint64_t before = 0;
  for (uint32_t other = 0; other < comm->comm.group().ranks(); ++other) {
    if (other == rank) before = sum;
    sum += static_cast<uint64_t>(whole.counts[other]);
  }
  const auto own = static_cast<uint64_t>(whole.counts[rank]);
  if (sum != whole.elements) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s holds %llu elements, and counts add to %llu; they must agree",
                whole.operation().text(), whole.names.buffer, text(whole.elements), text(sum));
  }
  if (elements != own) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s holds %llu elements, and counts[%u] is %llu; they must agree",
                whole.operation().text(), name, text(elements), rank, text(own));
  }
  const uint64_t elementBytes = sizeOf(static_cast<DType>(dtype));
  if (Code code = checkBuffer(part, own * elementBytes, dtype, name, error); code != WL_OK)
    return code;
  const void* inPlace = static_cast<const unsigned char*>(whole.buffer) + before * elementBytes;
  if (part != inPlace && overlap(part, own * elementBytes, whole.buffer, wholeBytes)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %s (%llu x %s) overlaps %s (%llu x %s); in place, %s is part %u of %s",
                whole.operation().text(), name, text(elements), dtypeName(dtype),
                whole.names.buffer, text(whole.elements), dtypeName(dtype), name, rank,
                whole.names.buffer);
  }
  return WL_OK;
}

// The next three functions each implement one operation. They enqueue it on a stream, or block if
// `on` is nullptr.
Code exchangeParts(wl_comm_t* comm, const Parts& sent, const Parts& received, int32_t dtype,
                   int64_t deadlineNs, wl_error_t* error, OnStream* on) {
  if (Code code = checkCall(comm, deadlineNs, error); code != WL_OK) return code;
  uint64_t inBytes = 0;
  uint64_t outBytes = 0;
  if (Code code = checkParts(comm, sent, dtype, &inBytes, error); code != WL_OK) return code;
  if (Code code = checkParts(comm, received, dtype, &outBytes, error); code != WL_OK) return code;
  if (overlap(sent.buffer, inBytes, received.buffer, outBytes))
    return badExchange(sent.elements, received.elements, dtype, error);
  if (Code code = checkApart(received, comm->comm.group().ranks(), error); code != WL_OK)
    return code;
  const uint32_t rank = comm->comm.rank();
  if (sent.counts[rank] != received.counts[rank]) {
    return fail(error, WL_INVALID_ARGUMENT,
                "allToAllv: sendCounts[%u] is %lld and receiveCounts[%u] is %lld: what rank %u "
                "sends to itself; they must agree",
                rank, text(sent.counts[rank]), rank, text(received.counts[rank]), rank);
  }
  const PartLists lists = {sent.counts, sent.offsets, received.counts, received.offsets, 0};
  return allToAllV(comm->comm, sent.buffer, const_cast<void*>(received.buffer), lists, dtype,
                   deadlineNs, error, on);
}

Code gatherParts(wl_comm_t* comm, const void* in, uint64_t inElements, void* out,
                 uint64_t outElements, const int64_t* counts, int32_t dtype, int64_t deadlineNs,
                 wl_error_t* error, OnStream* on) {
  if (Code code = checkCall(comm, deadlineNs, error); code != WL_OK) return code;
  const Parts whole = {kGathered, out, outElements, counts, nullptr};
  if (Code code = checkOwnPart(comm, "in", in, inElements, whole, dtype, error); code != WL_OK)
    return code;
  return allGatherV(comm->comm, in, out, counts, dtype, deadlineNs, error, WL_OP_ALL_GATHER_V, on);
}

Code reduceParts(wl_comm_t* comm, const void* in, uint64_t inElements, void* out,
                 uint64_t outElements, const int64_t* counts, int32_t dtype, int32_t op,
                 int64_t deadlineNs, wl_error_t* error, OnStream* on) {
  if (Code code = checkCall(comm, deadlineNs, error); code != WL_OK) return code;
  if (Code code = checkReduction("reduce-scatter-v", dtype, op, error); code != WL_OK) return code;
  const Parts whole = {kReduced, in, inElements, counts, nullptr};
  if (Code code = checkOwnPart(comm, "out", out, outElements, whole, dtype, error); code != WL_OK)
    return code;
  return reduceScatterV(comm->comm, in, out, counts, dtype, op, deadlineNs, error, on);
}

}  // namespace

extern "C" {

int32_t wl_all_to_all_v(wl_comm_t* comm, const void* in, uint64_t in_elements,
                        const int64_t* send_counts, const int64_t* send_offsets, void* out,
                        uint64_t out_elements, const int64_t* receive_counts,
                        const int64_t* receive_offsets, int32_t dtype, int64_t deadline_ns,
                        wl_error_t* error) {
  return exchangeParts(comm, {kSent, in, in_elements, send_counts, send_offsets},
                       {kReceived, out, out_elements, receive_counts, receive_offsets}, dtype,
                       deadline_ns, error, nullptr);
}

int32_t wl_enqueue_all_to_all_v(wl_comm_t* comm, uint64_t stream, const void* in,
                                uint64_t in_elements, const int64_t* send_counts,
                                const int64_t* send_offsets, void* out, uint64_t out_elements,
                                const int64_t* receive_counts, const int64_t* receive_offsets,
                                int32_t dtype, int64_t deadline_ns, uint64_t* ticket,
                                wl_error_t* error) {
  return enqueue(comm, stream, deadline_ns, ticket, error, [&](OnStream* on) {
    return exchangeParts(comm, {kSent, in, in_elements, send_counts, send_offsets},
                         {kReceived, out, out_elements, receive_counts, receive_offsets}, dtype,
                         deadline_ns, error, on);
  });
}

int32_t wl_all_to_all_v_packed(wl_comm_t* comm, const void* in, uint64_t in_elements,
                               const int64_t* send_counts, const int64_t* send_offsets, void* out,
                               uint64_t out_elements, int64_t* received_counts, int32_t dtype,
                               int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  const Parts sent = {kSent, in, in_elements, send_counts, send_offsets};
  uint64_t inBytes = 0;
  if (Code code = checkParts(comm, sent, dtype, &inBytes, error); code != WL_OK) return code;
  const uint64_t ranks = comm->comm.group().ranks();
  uint64_t room = 0;
  if (Code code = bytesOf(ranks, out_elements, dtype, &room, error); code != WL_OK) return code;
  room /= ranks;
  if (Code code = checkBuffer(out, room, dtype, "out", error); code != WL_OK) return code;
  if (overlap(in, inBytes, out, room)) return badExchange(in_elements, out_elements, dtype, error);
  if (Code code = checkNotNull(received_counts, "received_counts", error); code != WL_OK)
    return code;
  const PartLists lists = {send_counts, send_offsets, nullptr, nullptr, room};
  return allToAllVPacked(comm->comm, in, out, lists, received_counts, dtype, deadline_ns, error);
}

int32_t wl_all_gather_v(wl_comm_t* comm, const void* in, uint64_t in_elements, void* out,
                        uint64_t out_elements, const int64_t* counts, int32_t dtype,
                        int64_t deadline_ns, wl_error_t* error) {
  return gatherParts(comm, in, in_elements, out, out_elements, counts, dtype, deadline_ns, error,
                     nullptr);
}

int32_t wl_enqueue_all_gather_v(wl_comm_t* comm, uint64_t stream, const void* in,
                                uint64_t in_elements, void* out, uint64_t out_elements,
                                const int64_t* counts, int32_t dtype, int64_t deadline_ns,
                                uint64_t* ticket, wl_error_t* error) {
  return enqueue(comm, stream, deadline_ns, ticket, error, [&](OnStream* on) {
    return gatherParts(comm, in, in_elements, out, out_elements, counts, dtype, deadline_ns, error,
                       on);
  });
}

int32_t wl_exchange_v(wl_comm_t* comm, int32_t operation, const void* own, uint64_t own_bytes,
                      void* all, uint64_t all_bytes, const int64_t* counts, int64_t deadline_ns,
                      wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  if (Code code = checkStep(operation, error); code != WL_OK) return code;
  const Names names = {operation, "all", "counts", nullptr};
  const Parts whole = {names, all, all_bytes, counts, nullptr};
  if (Code code = checkOwnPart(comm, "own", own, own_bytes, whole, WL_U8, error); code != WL_OK)
    return code;
  return allGatherV(comm->comm, own, all, counts, WL_U8, deadline_ns, error,
                    static_cast<wl_operation>(operation));
}

int32_t wl_reduce_scatter_v(wl_comm_t* comm, const void* in, uint64_t in_elements, void* out,
                            uint64_t out_elements, const int64_t* counts, int32_t dtype, int32_t op,
                            int64_t deadline_ns, wl_error_t* error) {
  return reduceParts(comm, in, in_elements, out, out_elements, counts, dtype, op, deadline_ns,
                     error, nullptr);
}

int32_t wl_enqueue_reduce_scatter_v(wl_comm_t* comm, uint64_t stream, const void* in,
                                    uint64_t in_elements, void* out, uint64_t out_elements,
                                    const int64_t* counts, int32_t dtype, int32_t op,
                                    int64_t deadline_ns, uint64_t* ticket, wl_error_t* error) {
  return enqueue(comm, stream, deadline_ns, ticket, error, [&](OnStream* on) {
    return reduceParts(comm, in, in_elements, out, out_elements, counts, dtype, op, deadline_ns,
                       error, on);
  });
}

}  // extern "C"
