// SPDX-License-Identifier: Apache-2.0
// C ABI: library, groups, communicators, memory, windows.
#include <algorithm>
#include <new>

#include "native/abi/handles.h"
#include "native/base/cores.h"
#include "native/comm/adjustment.h"
#include "native/comm/host_operations.h"
#include "native/comm/kernels.h"
#include "native/comm/names.h"

using namespace windlass;

static_assert(static_cast<int32_t>(DType::kC64) == WL_C64 && kDTypeCount == WL_DTYPE_COUNT,
              "one numbering of dtypes");
static_assert(static_cast<int32_t>(DType::kBF16) == WL_BF16 &&
                  static_cast<int32_t>(DType::kF8E4M3) == WL_F8E4M3 &&
                  static_cast<int32_t>(DType::kF32) == WL_F32 &&
                  static_cast<int32_t>(DType::kU64) == WL_U64,
              "one numbering of dtypes");
static_assert(static_cast<int32_t>(ReduceOp::kAvg) == WL_AVG &&
                  kReduceOpCount == WL_REDUCE_OP_COUNT &&
                  static_cast<int32_t>(ReduceOp::kProduct) == WL_PRODUCT,
              "one numbering of ops");
static_assert(kMaxDims == WL_MAX_DIMS, "one limit of dimensions");

namespace {

Code make(wl_comm_t* comm, const Split& split, int64_t deadlineNs, wl_comm_t** out,
          wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkNotNull(out, "out", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadlineNs, error); code != WL_OK) return code;
  *out = nullptr;
  std::shared_ptr<Group> group;
  uint32_t rank = 0;
  if (Code code = splitGroup(comm->comm, split, deadlineNs, &group, &rank, error); code != WL_OK)
    return code;
  if (group == nullptr) return WL_OK;
  *out = new (std::nothrow) wl_comm(group, rank);
  if (*out != nullptr) return WL_OK;
  wl_error_t why = noMemory(comm->comm.rank());
  why.operation = split.operation;
  leaveSplit(*group, rank, split.operation, why);
  return copyError(error, why, nullptr);
}

Code checkRankList(const int32_t* ranks, uint32_t count, int32_t size, wl_error_t* error) {
  if (Code code = checkNotNull(ranks, "ranks", error); code != WL_OK) return code;
  if (count == 0) return fail(error, WL_INVALID_ARGUMENT, "ranks is empty");
  for (uint32_t i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= size) {
      return fail(error, WL_INVALID_ARGUMENT, "ranks[%u] is %d, not 0 to %d", i, ranks[i],
                  size - 1);
    }
    if (std::find(ranks, ranks + i, ranks[i]) != ranks + i)
      return fail(error, WL_INVALID_ARGUMENT, "ranks[%u] is %d, as one before it", i, ranks[i]);
  }
  return WL_OK;
}

// FNV-1a, a rank at a time.
uint64_t digestOf(const int32_t* ranks, uint32_t count) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (uint32_t i = 0; i < count; ++i)
    digest = (digest ^ static_cast<uint32_t>(ranks[i])) * 0x100000001b3u;
  return digest;
}

}  // namespace

extern "C" {

uint32_t wl_abi_version(void) {
  return WL_ABI_VERSION;
}
const char* wl_version(void) {
  return WINDLASS_VERSION;
}
const char* wl_target(void) {
  return kKernels.limits.name;
}
const char* wl_code_name(int32_t code) {
  return codeName(code);
}
const char* wl_operation_name(int32_t operation) {
  return operationName(operation);
}
const char* wl_isa_path(void) {
  return kKernels.path();
}
int32_t wl_allowed_cores(void) {
  return allowedCores();
}
int32_t wl_thread_adopt(void) {
  return adoptThread() ? 1 : 0;
}
int64_t wl_clock_ns(void) {
  return clockNs();
}

int32_t wl_group_create(const wl_group_config_t* config, wl_group_t** group, wl_error_t* error) {
  if (Code code = checkNotNull(group, "group", error); code != WL_OK) return code;
  *group = nullptr;
  GroupConfig own;
  if (Code code = readGroupConfig(config, &own, error); code != WL_OK) return code;
  try {
    auto made = std::make_unique<wl_group>();
    made->group = Group::create(own);
    if (made->group != nullptr) {
      *group = made.release();
      return WL_OK;
    }
  } catch (const std::bad_alloc&) {
  }
  return fail(error, WL_RESOURCE, "out of memory for a communicator of %d ranks", config->ranks);
}

int32_t wl_group_join(wl_group_t* group, int32_t rank, wl_comm_t** comm, wl_error_t* error) {
  if (Code code = checkNotNull(group, "group", error); code != WL_OK) return code;
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  *comm = nullptr;
  const uint32_t ranks = group->group->ranks();
  if (rank < 0 || static_cast<uint32_t>(rank) >= ranks) {
    return fail(error, WL_INVALID_ARGUMENT, "rank %d is not in 0 to %u", rank, ranks - 1);
  }
  if (Code code = group->group->claim(static_cast<uint32_t>(rank), error); code != WL_OK)
    return code;
  *comm = new (std::nothrow) wl_comm(group->group, static_cast<uint32_t>(rank));
  if (*comm != nullptr) return WL_OK;
  group->group->unclaim(static_cast<uint32_t>(rank));
  return fail(error, WL_RESOURCE, "out of memory");
}

void wl_group_release(wl_group_t* group) {
  delete group;
}

int32_t wl_comm_rank(const wl_comm_t* comm) {
  return comm == nullptr ? -1 : static_cast<int32_t>(comm->comm.rank());
}

int32_t wl_comm_size(const wl_comm_t* comm) {
  return comm == nullptr ? 0 : static_cast<int32_t>(comm->comm.group().ranks());
}

int32_t wl_comm_split(wl_comm_t* comm, int32_t color, int32_t key, int64_t deadline_ns,
                      wl_comm_t** out, wl_error_t* error) {
  return make(comm, {WL_OP_SPLIT, color, key, 0, 0}, deadline_ns, out, error);
}

int32_t wl_comm_subset(wl_comm_t* comm, const int32_t* ranks, uint32_t count, int64_t deadline_ns,
                       wl_comm_t** out, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkRankList(ranks, count, wl_comm_size(comm), error); code != WL_OK)
    return code;
  const int32_t* listed = std::find(ranks, ranks + count, wl_comm_rank(comm));
  const int32_t color = listed == ranks + count ? -1 : 0;
  const Split split = {WL_OP_SUBSET, color, static_cast<int32_t>(listed - ranks), count,
                       digestOf(ranks, count)};
  return make(comm, split, deadline_ns, out, error);
}

int32_t wl_comm_abort(wl_comm_t* comm, const char* reason, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  return comm->comm.abort(reason == nullptr ? "no reason given" : reason, error);
}

int32_t wl_comm_status(wl_comm_t* comm, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  return comm->comm.status(error);
}

int32_t wl_comm_quiescent(const wl_comm_t* comm) {
  return comm != nullptr && comm->comm.group().quiescent() ? 1 : 0;
}

int32_t wl_comm_close(wl_comm_t* comm, wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  return comm->comm.close(error);
}

void wl_comm_free(wl_comm_t* comm) {
  // A call that did not leave keeps its handle: freeing it would pull the memory from under it.
  if (comm != nullptr && comm->comm.close(nullptr) != WL_TIMEOUT) delete comm;
}

int32_t wl_memory_alloc(uint64_t bytes, uint64_t alignment, void** memory, wl_error_t* error) {
  return allocateMemory(bytes, alignment, memory, error);
}

void wl_memory_free(void* memory) {
  freeMemory(memory);
}

int32_t wl_window_create(wl_comm_t* comm, uint64_t bytes, int64_t deadline_ns, wl_window_t** window,
                         wl_error_t* error) {
  if (Code code = checkNotNull(comm, "comm", error); code != WL_OK) return code;
  if (Code code = checkNotNull(window, "window", error); code != WL_OK) return code;
  if (Code code = checkDeadline(deadline_ns, error); code != WL_OK) return code;
  *window = nullptr;
  std::unique_ptr<wl_window> made(new (std::nothrow) wl_window{comm->comm.groupPointer(), nullptr});
  const Code code = createWindow(comm->comm, bytes, deadline_ns,
                                 made == nullptr ? nullptr : &made->window, error);
  if (code == WL_OK) *window = made.release();
  return code;
}

void* wl_window_address(const wl_window_t* window, int32_t rank) {
  if (window == nullptr || rank < 0 || static_cast<uint32_t>(rank) >= window->group->ranks())
    return nullptr;
  return window->window->address(static_cast<uint32_t>(rank));
}

uint64_t wl_window_bytes(const wl_window_t* window) {
  return window == nullptr ? 0 : window->window->bytes();
}

void wl_window_free(wl_window_t* window) {
  if (window == nullptr) return;
  window->group->retire(std::move(window->window));
  delete window;
}

}  // extern "C"
