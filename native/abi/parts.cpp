// SPDX-License-Identifier: Apache-2.0
// C ABI: collectives whose parts differ in size. Arguments are checked here, before anything is
// sent.
#include <algorithm>

#include "native/abi/buffers.h"
#include "native/comm/collectives.h"

using namespace windlass;

namespace {

// A buffer and the parts of it that a caller states.
struct Parts {
  const char* name;  // "in", "out"
  const void* buffer;
  uint64_t elements;
  const char* countsName;
  const int64_t* counts;
  const char* offsetsName;
  const int64_t* offsets;  // NULL: side by side
};

long long text(int64_t value) {
  return static_cast<long long>(value);
}

// bytes = those of the buffer; every part lies inside.
Code checkParts(const wl_comm_t* comm, const Parts& parts, int32_t dtype, uint64_t* bytes,
                wl_error_t* error) {
  const uint32_t ranks = comm->comm.group().ranks();
  if (Code code = bytesOf(ranks, parts.elements, dtype, bytes, error); code != WL_OK) return code;
  *bytes /= ranks;
  if (Code code = checkBuffer(parts.buffer, *bytes, dtype, parts.name, error); code != WL_OK)
    return code;
  if (Code code = checkNotNull(parts.counts, parts.countsName, error); code != WL_OK) return code;
  const auto elements = static_cast<int64_t>(parts.elements);
  int64_t end = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const int64_t count = parts.counts[rank];
    const int64_t offset = parts.offsets == nullptr ? end : parts.offsets[rank];
    if (count < 0) {
      return fail(error, WL_INVALID_ARGUMENT, "%s[%u] is %lld; a count is 0 or more",
                  parts.countsName, rank, text(count));
    }
    if (offset < 0 || offset > elements) {
      return fail(error, WL_INVALID_ARGUMENT, "%s[%u] is %lld; %s holds %lld elements",
                  parts.offsetsName, rank, text(offset), parts.name, text(elements));
    }
    if (count > elements - offset) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "%s[%u] is %lld; from element %lld on, %s holds %lld more", parts.countsName,
                  rank, text(count), text(offset), parts.name, text(elements - offset));
    }
    end = offset + count;
  }
  return WL_OK;
}

// No two parts share an element.
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
  uint16_t order[WL_MAX_RANKS];  // not of the heap, whose end would fail this rank alone
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
                "%s[%u] is %lld: the part overlaps that of rank %u; parts of %s must be apart",
                parts.offsetsName, rank, text(parts.offsets[rank]),
                std::min(order[i], order[i - 1]), parts.name);
  }
  return WL_OK;
}

Code checkNoOverlap(const void* in, uint64_t inBytes, const void* out, uint64_t outBytes,
                    wl_error_t* error) {
  if (!overlap(in, inBytes, out, outBytes)) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "in and out overlap; all-to-all-v is not in place");
}

// A buffer of one part and one, `whole`, of the parts of all ranks, which they fill. The two
// overlap only where the one is the rank's own part of the other.
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
    return fail(error, WL_INVALID_ARGUMENT, "%s holds %llu elements, and counts add to %llu",
                whole.name, static_cast<unsigned long long>(whole.elements),
                static_cast<unsigned long long>(sum));
  }
  if (elements != own) {
    return fail(error, WL_INVALID_ARGUMENT, "%s holds %llu elements, and counts[%u] is %llu", name,
                static_cast<unsigned long long>(elements), rank,
                static_cast<unsigned long long>(own));
  }
  const uint64_t elementBytes = sizeOf(static_cast<DType>(dtype));
  if (Code code = checkBuffer(part, own * elementBytes, dtype, name, error); code != WL_OK)
    return code;
  const void* inPlace = static_cast<const unsigned char*>(whole.buffer) + before * elementBytes;
  if (part != inPlace && overlap(part, own * elementBytes, whole.buffer, wholeBytes)) {
    return fail(error, WL_INVALID_ARGUMENT, "%s and %s overlap; in place, %s is part %u of %s",
                name, whole.name, name, rank, whole.name);
  }
  return WL_OK;
}

}  // namespace

extern "C" {

int32_t wl_all_to_all_v(wl_comm_t* comm, const void* in, uint64_t in_elements,
                        const int64_t* send_counts, const int64_t* send_offsets, void* out,
                        uint64_t out_elements, const int64_t* receive_counts,
                        const int64_t* receive_offsets, int32_t dtype, int64_t deadline_ns,
                        wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  const Parts sent = {"in",           in,          in_elements, "send counts", send_counts,
                      "send offsets", send_offsets};
  const Parts received = {
      "out",          out, out_elements, "receive counts", receive_counts, "receive offsets",
      receive_offsets};
  uint64_t inBytes = 0;
  uint64_t outBytes = 0;
  if (Code code = checkParts(comm, sent, dtype, &inBytes, error); code != WL_OK) return code;
  if (Code code = checkParts(comm, received, dtype, &outBytes, error); code != WL_OK) return code;
  if (Code code = checkNoOverlap(in, inBytes, out, outBytes, error); code != WL_OK) return code;
  if (Code code = checkApart(received, comm->comm.group().ranks(), error); code != WL_OK)
    return code;
  const uint32_t rank = comm->comm.rank();
  if (send_counts[rank] != receive_counts[rank]) {
    return fail(
        error, WL_INVALID_ARGUMENT,
        "send counts[%u] is %lld and receive counts[%u] is %lld: what rank %u sends to itself",
        rank, text(send_counts[rank]), rank, text(receive_counts[rank]), rank);
  }
  const PartLists lists = {send_counts, send_offsets, receive_counts, receive_offsets, 0};
  return allToAllV(comm->comm, in, out, lists, dtype, deadline_ns, error);
}

int32_t wl_all_to_all_v_packed(wl_comm_t* comm, const void* in, uint64_t in_elements,
                               const int64_t* send_counts, const int64_t* send_offsets, void* out,
                               uint64_t out_elements, int64_t* received_counts, int32_t dtype,
                               int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  const Parts sent = {"in",           in,          in_elements, "send counts", send_counts,
                      "send offsets", send_offsets};
  uint64_t inBytes = 0;
  if (Code code = checkParts(comm, sent, dtype, &inBytes, error); code != WL_OK) return code;
  const uint64_t ranks = comm->comm.group().ranks();
  uint64_t room = 0;
  if (Code code = bytesOf(ranks, out_elements, dtype, &room, error); code != WL_OK) return code;
  room /= ranks;
  if (Code code = checkBuffer(out, room, dtype, "out", error); code != WL_OK) return code;
  if (Code code = checkNoOverlap(in, inBytes, out, room, error); code != WL_OK) return code;
  if (Code code = checkNotNull(received_counts, "received_counts", error); code != WL_OK)
    return code;
  const PartLists lists = {send_counts, send_offsets, nullptr, nullptr, room};
  return allToAllVPacked(comm->comm, in, out, lists, received_counts, dtype, deadline_ns, error);
}

int32_t wl_all_gather_v(wl_comm_t* comm, const void* in, uint64_t in_elements, void* out,
                        uint64_t out_elements, const int64_t* counts, int32_t dtype,
                        int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  const Parts whole = {"out", out, out_elements, "counts", counts, "offsets", nullptr};
  if (Code code = checkOwnPart(comm, "in", in, in_elements, whole, dtype, error); code != WL_OK)
    return code;
  return allGatherV(comm->comm, in, out, counts, dtype, deadline_ns, error);
}

int32_t wl_exchange_v(wl_comm_t* comm, int32_t operation, const void* own, uint64_t own_bytes,
                      void* all, uint64_t all_bytes, const int64_t* counts, int64_t deadline_ns,
                      wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  if (Code code = checkStep(operation, error); code != WL_OK) return code;
  const Parts whole = {"all", all, all_bytes, "counts", counts, "offsets", nullptr};
  if (Code code = checkOwnPart(comm, "own", own, own_bytes, whole, WL_U8, error); code != WL_OK)
    return code;
  return allGatherV(comm->comm, own, all, counts, WL_U8, deadline_ns, error,
                    static_cast<wl_operation>(operation));
}

int32_t wl_reduce_scatter_v(wl_comm_t* comm, const void* in, uint64_t in_elements, void* out,
                            uint64_t out_elements, const int64_t* counts, int32_t dtype, int32_t op,
                            int64_t deadline_ns, wl_error_t* error) {
  if (Code code = checkCall(comm, deadline_ns, error); code != WL_OK) return code;
  if (Code code = checkReduction("reduce-scatter-v", dtype, op, error); code != WL_OK) return code;
  const Parts whole = {"in", in, in_elements, "counts", counts, "offsets", nullptr};
  if (Code code = checkOwnPart(comm, "out", out, out_elements, whole, dtype, error); code != WL_OK)
    return code;
  return reduceScatterV(comm->comm, in, out, counts, dtype, op, deadline_ns, error);
}

}  // extern "C"
