// SPDX-License-Identifier: Apache-2.0
// C ABI: groups whose ranks live in several processes of one host.
#include <algorithm>
#include <cstdio>
#include <new>
#include <system_error>
#include <vector>

#include "native/abi/handles.h"
#include "native/base/process.h"
#include "native/comm/watch.h"
#include "native/window/shared_memory.h"

using namespace windlass;

namespace {

Code readConfig(const wl_group_config_t* config, GroupConfig* own, wl_error_t* error) {
  if (Code code = readGroupConfig(config, own, error); code != WL_OK) return code;
  own->spansProcesses = true;
  Group::decide(own);
  return WL_OK;
}

Code checkRanks(const int32_t* ranks, uint32_t count, uint32_t size, const char* name,
                wl_error_t* error) {
  if (Code code = checkNotNull(ranks, name, error); code != WL_OK) return code;
  for (uint32_t i = 0; i < count; ++i) {
    if (ranks[i] >= 0 && static_cast<uint32_t>(ranks[i]) < size) continue;
    return fail(error, WL_INVALID_ARGUMENT, "%s[%u] is %d, not 0 to %u", name, i, ranks[i],
                size - 1);
  }
  return WL_OK;
}

Code requireProcesses(const wl_group_t* group, wl_error_t* error) {
  if (Code code = checkNotNull(group, "group", error); code != WL_OK) return code;
  return group->group->config().spansProcesses
             ? WL_OK
             : fail(error, WL_INVALID_ARGUMENT,
                    "the ranks of this group all live in one process: wl_group_create made it");
}

}  // namespace

extern "C" {

int32_t wl_memory_share(uint64_t bytes, int32_t* file, wl_error_t* error) {
  return shareMemory(bytes, file, error);
}

int32_t wl_memory_map(int32_t file, void** memory, uint64_t* bytes, wl_error_t* error) {
  return mapShared(file, memory, bytes, error);
}

void wl_memory_unmap(void* memory, uint64_t bytes) {
  if (memory != nullptr) unmapMemory(memory, bytes);
}

int32_t wl_group_block_bytes(const wl_group_config_t* config, uint64_t* bytes, wl_error_t* error) {
  if (Code code = checkNotNull(bytes, "bytes", error); code != WL_OK) return code;
  GroupConfig own;
  if (Code code = readConfig(config, &own, error); code != WL_OK) return code;
  *bytes = ControlBlock::bytes(own);
  return WL_OK;
}

int32_t wl_group_lay_out(const wl_group_config_t* config, void* memory, uint64_t bytes,
                         wl_error_t* error) {
  if (Code code = checkNotNull(memory, "memory", error); code != WL_OK) return code;
  GroupConfig own;
  if (Code code = readConfig(config, &own, error); code != WL_OK) return code;
  if (reinterpret_cast<uint64_t>(memory) % kPage != 0)
    return fail(error, WL_INVALID_ARGUMENT, "memory is not aligned to %llu",
                static_cast<unsigned long long>(kPage));
  if (const uint64_t needed = ControlBlock::bytes(own); bytes < needed) {
    return fail(error, WL_INVALID_ARGUMENT,
                "a control block of %u ranks takes %llu bytes, not %llu", own.ranks,
                static_cast<unsigned long long>(needed), static_cast<unsigned long long>(bytes));
  }
  if (ControlBlock::isLaidOut(memory)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "the memory holds a control block already; one process lays it out, once");
  }
  ControlBlock::make(memory, own);
  return WL_OK;
}

int32_t wl_group_attach(void* memory, uint64_t bytes, wl_group_t** group, wl_error_t* error) {
  if (Code code = checkNotNull(memory, "memory", error); code != WL_OK) return code;
  if (Code code = checkNotNull(group, "group", error); code != WL_OK) return code;
  *group = nullptr;
  if (Code code = ControlBlock::check(memory, bytes, error); code != WL_OK) return code;
  try {
    auto made = std::make_unique<wl_group>();
    made->group = Group::attach(memory);
    if (made->group != nullptr) {
      *group = made.release();
      return WL_OK;
    }
  } catch (const std::bad_alloc&) {
  }
  return fail(error, WL_RESOURCE, "out of memory");
}

int32_t wl_group_add_window(wl_group_t* group, void* base, uint64_t stride, uint64_t bytes,
                            wl_error_t* error) {
  if (Code code = requireProcesses(group, error); code != WL_OK) return code;
  if (Code code = checkNotNull(base, "base", error); code != WL_OK) return code;
  const uint64_t start = reinterpret_cast<uint64_t>(base);
  if (bytes == 0 || bytes > stride || stride > kLargest / group->group->ranks() ||
      start > UINT64_MAX - stride * group->group->ranks()) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%u segments of %llu bytes, %llu apart, are no window",
                group->group->ranks(), static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(stride));
  }
  return group->group->addWindow(base, stride, bytes, error);
}

int32_t wl_process_self(wl_process_t* process, wl_error_t* error) {
  return processSelf(process, error);
}

int32_t wl_group_watch(wl_group_t* group, const wl_process_t* process, const int32_t* ranks,
                       uint32_t count, int64_t silence_ns, wl_error_t* error) {
  if (Code code = requireProcesses(group, error); code != WL_OK) return code;
  if (Code code = checkNotNull(process, "process", error); code != WL_OK) return code;
  if (process->struct_size < sizeof(wl_process_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "process->struct_size is %u, not %zu",
                process->struct_size, sizeof(wl_process_t));
  }
  if (process->pid <= 0) {
    return fail(error, WL_INVALID_ARGUMENT,
                "process->pid is %d; the process that has the ranks fills it by wl_process_self",
                process->pid);
  }
  if (count == 0) return fail(error, WL_INVALID_ARGUMENT, "ranks is empty");
  if (Code code = checkRanks(ranks, count, group->group->ranks(), "ranks", error); code != WL_OK)
    return code;
  if (silence_ns < 0 || (silence_ns > 0 && silence_ns < kLeastSilenceNs)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "silence_ns is %lld, not at least %lld; 0 lets the process be silent",
                static_cast<long long>(silence_ns), static_cast<long long>(kLeastSilenceNs));
  }
  try {
    return group->group->watch(*process, std::vector<uint32_t>(ranks, ranks + count), silence_ns,
                               error);
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  return fail(error, WL_RESOURCE, "no memory, or no thread, to watch process %d", process->pid);
}

int32_t wl_group_fail(wl_group_t* group, int32_t code, const int32_t* culprits, uint32_t count,
                      const char* message, wl_error_t* error) {
  if (Code wrong = checkNotNull(group, "group", error); wrong != WL_OK) return wrong;
  if (Code wrong = checkNotNull(message, "message", error); wrong != WL_OK) return wrong;
  if (code <= WL_OK || code > WL_INTERNAL)
    return fail(error, WL_INVALID_ARGUMENT, "code %d is no failure", code);
  if (count > 0) {
    const Code wrong = checkRanks(culprits, count, group->group->ranks(), "culprits", error);
    if (wrong != WL_OK) return wrong;
  }
  wl_error_t record = errorOf(static_cast<Code>(code), "%s", message);
  record.culprit_count = static_cast<int32_t>(count);
  std::copy_n(culprits, std::min<uint32_t>(count, WL_ERROR_CULPRITS), record.culprits);
  group->group->publishFailure(record);
  return WL_OK;
}

}  // extern "C"
