// SPDX-License-Identifier: Apache-2.0
// C ABI: groups whose ranks live in several processes of one host.
#include <algorithm>
#include <bitset>
#include <vector>

#include "native/abi/handles.h"
#include "native/base/process.h"
#include "native/base/target.h"
#include "native/core/watch.h"
#include "native/device/grids.h"
#include "native/memory/shared_files.h"
#include "native/memory/shared_mapping.h"
#include "native/memory/shared_memory.h"
#include "native/peer/peer_memory.h"

using namespace windlass;

namespace {

// Checks the hosts of all ranks and counts them.
Code readHosts(const wl_group_config_t& config, GroupConfig* out, wl_error_t* error) {
  if (config.hosts == nullptr) return WL_OK;
  std::bitset<WL_MAX_RANKS> has;
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < out->ranks; ++rank) {
    const int32_t host = config.hosts[rank];
    if (host < 0 || static_cast<uint32_t>(host) >= out->ranks) {
      return fail(error, WL_INVALID_ARGUMENT, "hosts[%u] is %d, not 0 to %u", rank, host,
                  out->ranks - 1);
    }
    has[static_cast<uint32_t>(host)] = true;
    count = std::max(count, static_cast<uint32_t>(host) + 1);
  }
  for (uint32_t host = 0; host < count; ++host) {
    if (!has[host])
      return fail(error, WL_INVALID_ARGUMENT, "no rank is on host %u of %u", host, count);
  }
  if (count == 1) return WL_OK;
  if (kTarget.limits.isolatesRanks || kTarget.limits.offloadCores > 0) {
    return fail(error, WL_UNSUPPORTED,
                "a communicator that spans hosts runs on sim: %s runs on one host alone",
                kTarget.limits.name);
  }
  if (out->inLineCores > 0) {
    return fail(error, WL_UNSUPPORTED,
                "device_cores is %u: kernels run in line on one host only", out->inLineCores);
  }
  out->spread(count);
  return WL_OK;
}

Code readFailure(int32_t code, const int32_t* faultyRanks, uint32_t count, const char* message,
                 uint32_t size, wl_error_t* record, wl_error_t* error) {
  if (Code wrong = checkNotNull(message, "message", error)) return wrong;
  if (code <= WL_OK || code > WL_INTERNAL)
    return fail(error, WL_INVALID_ARGUMENT, "code %d is no failure", code);
  if (count > 0) {
    if (Code wrong = checkRanks(faultyRanks, count, size, "faultyRanks", error)) return wrong;
  }
  *record = errorOf(static_cast<Code>(code), "%s", message);
  record->faulty_rank_count = static_cast<int32_t>(count);
  std::copy_n(faultyRanks, std::min<uint32_t>(count, WL_ERROR_FAULTY_RANKS), record->faulty_ranks);
  return WL_OK;
}

Code requireProcesses(const wl_group_t* group, wl_error_t* error) {
  if (Code code = checkHandle(group, "group", error)) return code;
  if (group->group->config().spansProcesses) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "the ranks of this group all live in one process: wl_group_create made it");
}

}  // namespace

namespace windlass {

Code checkProcess(const wl_process_t* process, const char* name, wl_error_t* error) {
  if (Code code = checkStruct(process, name, error)) return code;
  if (process->pid > 0) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "%s->pid is %d; the process that has the ranks fills it by wl_process_self", name,
              process->pid);
}

Code checkSilence(int64_t silenceNs, const char* who, wl_error_t* error) {
  if (silenceNs == 0 || silenceNs >= kLeastSilenceNs) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT,
              "silence_ns is %lld, not at least %lld; 0 lets %s be silent", text(silenceNs),
              text(kLeastSilenceNs), who);
}

Code checkRanks(const int32_t* ranks, uint32_t count, uint32_t size, const char* name,
                wl_error_t* error) {
  if (Code code = checkNotNull(ranks, name, error)) return code;
  if (count == 0) return fail(error, WL_INVALID_ARGUMENT, "%s is empty", name);
  for (uint32_t i = 0; i < count; ++i) {
    if (ranks[i] >= 0 && static_cast<uint32_t>(ranks[i]) < size) continue;
    return fail(error, WL_INVALID_ARGUMENT, "%s[%u] is %d, not 0 to %u", name, i, ranks[i],
                size - 1);
  }
  return WL_OK;
}

}  // namespace windlass

extern "C" {

int32_t wl_group_share(const wl_group_config_t* config, int32_t* file, wl_error_t* error) {
  if (Code code = checkOut(file, "file", error, -1)) return code;
  GroupConfig own;
  if (Code code = readGroupConfig(config, &own, error)) return code;
  own.spansProcesses = true;
  if (Code code = readHosts(*config, &own, error)) return code;
  Group::decide(&own);
  if (Code code = checkDevicesAndGrids(error)) return code;
  int32_t made = -1;
  const uint64_t later = ControlBlock::laterBytes(own);
  if (Code code = shareMemory(ControlBlock::bytes(own), &made, error, later)) return code;
  OpenFile shared(made);
  SharedMapping mapping;
  if (Code code = mapping.map(made, error)) return code;
  ControlBlock::make(mapping.memory(), own, nullptr, 0,
                     reinterpret_cast<const uint32_t*>(config->hosts));
  *file = shared.release();
  return WL_OK;
}

int32_t wl_file_open(const wl_process_t* owner, int32_t number, int32_t* file, wl_error_t* error) {
  if (Code code = checkOut(file, "file", error, -1)) return code;
  if (Code code = checkProcess(owner, "owner", error)) return code;
  if (number < 0) return fail(error, WL_INVALID_ARGUMENT, "number %d is no file", number);
  OpenFile opened;
  if (Code code = openShared(*owner, number, &opened, error)) return code;
  *file = opened.release();
  return WL_OK;
}

uint64_t wl_file_inode(int32_t file) {
  return inodeOf(file);
}

void wl_file_close(int32_t file) {
  OpenFile{file};
}

int32_t wl_group_attach(int32_t file, wl_group_t** group, wl_error_t* error) {
  if (Code code = checkOut(group, "group", error)) return code;
  if (Code code = checkDevicesAndGrids(error)) return code;
  const auto attach = [&] {
    auto mapping = std::make_shared<SharedMapping>();
    if (Code code = mapping->map(file, error)) return code;
    GroupConfig config;
    ControlBlock block;
    if (Code code =
            ControlBlock::open(mapping->memory(), mapping->bytes(), &config, &block, error))
      return code;
    PeerMemoryUse use = PeerMemoryUse::kAuto;
    if (Code code = askedPeerMemoryUse(&use, error)) return code;
    auto made = std::make_unique<wl_group>();
    made->group = Group::attach(mapping->memory(), mapping, use);
    *group = made.release();
    return WL_OK;
  };
  return withMemory(error, attach, "out of memory");
}

int32_t wl_process_self(wl_process_t* process, wl_error_t* error) {
  if (Code code = checkStruct(process, "process", error)) return code;
  return processSelf(process, error);
}

int32_t wl_process_named(int32_t pid, wl_process_t* process, wl_error_t* error) {
  if (Code code = checkStruct(process, "process", error)) return code;
  return processNamed(pid, process, error);
}

int32_t wl_process_look(const wl_process_t* process) {
  return checkProcess(process, "process", nullptr) == WL_OK ? processState(*process)
                                                            : WL_PROCESS_UNKNOWN;
}

int32_t wl_group_watch(wl_group_t* group, const wl_process_t* process, const int32_t* ranks,
                       uint32_t count, int64_t silence_ns, wl_error_t* error) {
  if (Code code = requireProcesses(group, error)) return code;
  if (Code code = checkProcess(process, "process", error)) return code;
  if (Code code = checkRanks(ranks, count, group->group->ranks(), "ranks", error)) return code;
  if (Code code = checkSilence(silence_ns, "the process", error)) return code;
  const auto watch = [&] {
    return group->group->watch(*process, std::vector<uint32_t>(ranks, ranks + count), silence_ns,
                               error);
  };
  return withMemory(error, watch, "no memory, or no thread, to watch process %d", process->pid);
}

int32_t wl_group_fail(wl_group_t* group, int32_t code, const int32_t* faultyRanks, uint32_t count,
                      const char* message, wl_error_t* error) {
  if (Code wrong = checkHandle(group, "group", error)) return wrong;
  wl_error_t record;
  const Code wrong = readFailure(code, faultyRanks, count, message, group->group->ranks(), &record,
                                 error);
  if (wrong != WL_OK) return wrong;
  group->group->publishFailure(record);
  return WL_OK;
}

int32_t wl_comm_fail(wl_comm_t* comm, int32_t code, const int32_t* faultyRanks, uint32_t count,
                     const char* message, wl_error_t* error) {
  if (Code wrong = checkHandle(comm, "comm", error)) return wrong;
  wl_error_t record;
  const Code wrong = readFailure(code, faultyRanks, count, message, comm->comm.group().ranks(),
                                 &record, error);
  return wrong != WL_OK ? wrong : comm->comm.gate().blame(record, error);
}

}  // extern "C"
