// SPDX-License-Identifier: Apache-2.0
// C ABI: communicators, including those derived from others.
#include <algorithm>
#include <new>

#include "native/abi/handles.h"
#include "native/base/mixed.h"
#include "native/core/shared/object_operations.h"
#include "native/core/shrink/shrink.h"

using namespace windlass;

namespace {

// Sets *out to this rank's handle in the group that `make` forms from comm's ranks; nullptr if the
// rank is not in any such group.
template <class Make>
Code join(wl_comm_t* comm, wl_operation operation, int64_t deadlineNs, wl_comm_t** out,
          wl_error_t* error, Make&& make) {
  if (Code code = checkCreate(comm, out, "out", deadlineNs, error)) return code;
  std::shared_ptr<Group> group;
  uint32_t rank = 0;
  if (Code code = make(&group, &rank)) return code;
  if (group == nullptr) return WL_OK;
  *out = new (std::nothrow) wl_comm(group, rank);
  if (*out != nullptr) return WL_OK;
  wl_error_t why = noMemory(comm->comm.rank());
  why.operation = operation;
  leaveSplit(*group, rank, operation, why);
  return copyError(error, why, nullptr);
}

Code split(wl_comm_t* comm, const Split& split, int64_t deadlineNs, wl_comm_t** out,
           wl_error_t* error) {
  return join(comm, split.operation, deadlineNs, out, error,
              [&](std::shared_ptr<Group>* group, uint32_t* rank) {
                return splitGroup(comm->comm, split, deadlineNs, group, rank, error);
              });
}

}  // namespace

extern "C" {

int32_t wl_comm_rank(const wl_comm_t* comm) {
  return comm == nullptr ? -1 : static_cast<int32_t>(comm->comm.rank());
}

int32_t wl_comm_size(const wl_comm_t* comm) {
  return comm == nullptr ? 0 : static_cast<int32_t>(comm->comm.group().ranks());
}

int32_t wl_comm_split(wl_comm_t* comm, int32_t color, int32_t key, int64_t deadline_ns,
                      wl_comm_t** out, wl_error_t* error) {
  return split(comm, {WL_OP_SPLIT, color, key, 0, 0}, deadline_ns, out, error);
}

int32_t wl_comm_subgroup(wl_comm_t* comm, const int32_t* ranks, uint32_t count, int64_t deadline_ns,
                         wl_comm_t** out, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  const uint32_t size = comm->comm.group().ranks();
  if (Code code = checkRanks(ranks, count, size, "ranks", error)) return code;
  uint64_t digest = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (std::find(ranks, ranks + i, ranks[i]) != ranks + i)
      return fail(error, WL_INVALID_ARGUMENT, "ranks[%u] is %d, as one before it", i, ranks[i]);
    digest = mixed(digest, static_cast<uint32_t>(ranks[i]));
  }
  const int32_t* listed = std::find(ranks, ranks + count, wl_comm_rank(comm));
  const int32_t color = listed == ranks + count ? -1 : 0;
  const Split stated = {WL_OP_SUBGROUP, color, static_cast<int32_t>(listed - ranks), count, digest};
  return split(comm, stated, deadline_ns, out, error);
}

int32_t wl_comm_shrink(wl_comm_t* comm, int64_t deadline_ns, wl_comm_t** out, wl_error_t* error) {
  return join(comm, WL_OP_SHRINK, deadline_ns, out, error,
              [&](std::shared_ptr<Group>* group, uint32_t* rank) {
                return shrink(comm->comm, deadline_ns, group, rank, error);
              });
}

int32_t wl_comm_abort(wl_comm_t* comm, const char* reason, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  return comm->comm.gate().abort(reason == nullptr ? "no reason given" : reason, error);
}

int32_t wl_comm_status(wl_comm_t* comm, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  return comm->comm.gate().status(error);
}

int32_t wl_comm_quiescent(const wl_comm_t* comm) {
  return comm != nullptr && comm->comm.group().quiescent() ? 1 : 0;
}

int32_t wl_comm_close(wl_comm_t* comm, wl_error_t* error) {
  if (Code code = checkHandle(comm, "comm", error)) return code;
  return comm->comm.close(error);
}

void wl_comm_free(wl_comm_t* comm) {
  // A call that did not return still uses the handle's memory, so the handle is not freed.
  if (isOwn(comm) && comm->comm.close(nullptr) != WL_DEADLINE_EXCEEDED) delete comm;
}

}  // extern "C"
