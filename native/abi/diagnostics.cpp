// SPDX-License-Identifier: Apache-2.0
// C ABI: the state of a communicator's ranks and their latest operations, for its own and for other
// processes.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "native/abi/handles.h"
#include "native/core/failure_text.h"
#include "native/peer/peer_access.h"

using namespace windlass;

static_assert(FlightRecorder::kRecords == WL_RECORDS, "one number of records");

namespace {

// Sets `why` to the reason of the wl_peer_memory_form that it returns.
int32_t formOf(const Comm& comm, char* why, size_t room) {
  if (!comm.group().config().spansProcesses) {
    std::snprintf(why, room, "all ranks live in one process");
    return WL_PEER_MEMORY_SHARED;
  }
  if (comm.peerReads() != nullptr) return comm.peerReads()->form(why, room);
  std::snprintf(why, room, "%s", noMemory(comm.rank()).message);
  return WL_PEER_MEMORY_OPEN;
}

// The other rank of a message; -1: any rank, or several.
int32_t peerOf(const Descriptor& message) {
  const uint32_t partner = message.partner();
  return partner == Descriptor::kAnyPartner ? -1 : static_cast<int32_t>(partner);
}

void fill(const Recorded& from, wl_record_t* to) {
  const Descriptor& descriptor = from.descriptor;
  to->sequence = from.sequence;
  to->operation = descriptor.operation();
  const bool isOfMessages = isMessage(to->operation);
  to->algorithm = isOfMessages ? WL_AUTO : descriptor.algorithm();
  to->dtype = descriptor.dtype();
  to->op = isOfMessages ? 0 : descriptor.reduceOp();
  to->root = isOfMessages ? peerOf(descriptor) : descriptor.number();
  to->code = from.code;
  to->count = descriptor.count;
  to->bytes = from.bytes;
  to->entered_ns = from.enteredNs;
  to->left_ns = from.leftNs;
  to->waited_ns = from.waitedNs;
  describe(descriptor, to->text, sizeof to->text);
}

void fill(const ControlBlock& block, const GroupConfig& config, uint32_t rank,
          wl_rank_state_t* state) {
  const State& line = block.lines(rank).state;
  state->busy = static_cast<int32_t>(line.busy.load(std::memory_order_relaxed));
  state->sequence = line.sequence.load(std::memory_order_relaxed);
  state->operation = line.operation.load(std::memory_order_relaxed);
  const int32_t awaited =
      (state->busy != 0 ? line.awaited : line.sendsTo).load(std::memory_order_relaxed);
  state->awaited = awaited < -2 || awaited >= static_cast<int32_t>(config.ranks) ? -1 : awaited;
  const bool left = line.left.load(std::memory_order_relaxed) != 0;
  state->closed = left || line.closing.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  state->contested = line.contested.load(std::memory_order_relaxed);
  const Item item = Item::of(line.item.load(std::memory_order_relaxed));
  const bool runs = line.running.load(std::memory_order_relaxed) > 0;
  state->item_owner = runs ? static_cast<int32_t>(item.owner) : -1;
  state->item_phase = runs ? static_cast<int32_t>(item.phase) : 0;
  state->item = runs ? static_cast<int32_t>(item.block) : 0;
  const Member& member = block.member(rank);
  state->joined = member.joined.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  state->lost = member.lost.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  const uint32_t former = member.former;
  state->former = former >= WL_MAX_RANKS ? -1 : static_cast<int32_t>(former);
  state->pid = member.pid.load(std::memory_order_acquire);
  state->started = member.started.load(std::memory_order_relaxed);
  state->pid_namespace = member.pidNamespace.load(std::memory_order_relaxed);
  state->host = member.host < config.hosts ? static_cast<int32_t>(member.host) : 0;
  state->elsewhere = member.isElsewhere() ? 1 : 0;
}

int32_t fill(const ControlBlock& block, uint32_t rank, wl_record_t* records, int32_t capacity) {
  const FlightRecorder& recorder = block.recorder(rank);
  const TickScale scale = TickScale::since(block);
  const uint64_t newest = recorder.newest();
  const uint64_t oldest = newest < WL_RECORDS ? 1 : newest - WL_RECORDS + 1;
  int32_t count = 0;
  for (uint64_t number = newest; number >= oldest && count < capacity; --number) {
    Recorded recorded;
    if (!recorder.read(number, scale, &recorded)) continue;
    fill(recorded, elementOf(records, static_cast<size_t>(count++)));
  }
  return count;
}

bool isRankOf(const GroupConfig& config, int32_t rank) {
  return rank >= 0 && static_cast<uint32_t>(rank) < config.ranks;
}

// Reads the state of a rank of a Group or an ObservedGroup.
template <class Ranks>
int32_t readState(const Ranks& group, int32_t rank, wl_rank_state_t* state) {
  if (checkStruct(state, "state", nullptr) != WL_OK || !isRankOf(group.config(), rank))
    return WL_INVALID_ARGUMENT;
  fill(group.block(), group.config(), static_cast<uint32_t>(rank), state);
  return WL_OK;
}

// Reads the operations of a rank of a Group or an ObservedGroup. Returns their number, or -1.
template <class Ranks>
int32_t readRecords(const Ranks& group, int32_t rank, wl_record_t* records, int32_t capacity) {
  if (!isRankOf(group.config(), rank) || capacity < 0) return -1;
  if (capacity == 0) return 0;
  if (checkStruct(records, "records", nullptr) != WL_OK) return -1;
  return fill(group.block(), static_cast<uint32_t>(rank), records, capacity);
}

}  // namespace

extern "C" {

int32_t wl_comm_state(const wl_comm_t* comm, int32_t rank, wl_rank_state_t* state) {
  return comm == nullptr ? WL_INVALID_ARGUMENT : readState(comm->comm.group(), rank, state);
}

int32_t wl_comm_recorded(const wl_comm_t* comm, int32_t rank, wl_record_t* records,
                         int32_t capacity) {
  return comm == nullptr ? -1 : readRecords(comm->comm.group(), rank, records, capacity);
}

int32_t wl_comm_totals(const wl_comm_t* comm, int32_t operation, wl_totals_t* totals) {
  if (comm == nullptr || operation <= WL_OP_NONE || operation >= WL_OP_COUNT ||
      checkStruct(totals, "totals", nullptr) != WL_OK)
    return WL_INVALID_ARGUMENT;
  const Totals::Sums& sums = comm->comm.totals().of(operation);
  totals->calls = sums.calls.load(std::memory_order_relaxed);
  totals->failures = sums.failures.load(std::memory_order_relaxed);
  totals->bytes = sums.bytes.load(std::memory_order_relaxed);
  totals->waited_ns = sums.waitedNs.load(std::memory_order_relaxed);
  return WL_OK;
}

int32_t wl_comm_peer_memory(const wl_comm_t* comm, wl_peer_memory_t* memory, wl_error_t* error) {
  if (Code code = checkStruct(memory, "memory", error)) return code;
  if (comm != nullptr) {
    memory->form = formOf(comm->comm, memory->why, sizeof memory->why);
    return WL_OK;
  }
  PeerMemoryUse use = PeerMemoryUse::kAuto;
  if (Code code = askedPeerMemoryUse(&use, error)) return code;
  const bool reads = ownPeerMemory(use, memory->why, sizeof memory->why);
  memory->form = reads ? WL_PEER_MEMORY_READV : WL_PEER_MEMORY_STAGE;
  return WL_OK;
}

int32_t wl_comm_last_to_enter(const wl_comm_t* comm, uint32_t sequence) {
  return comm == nullptr ? -1 : comm->comm.group().lastToEnter(sequence);
}

int32_t wl_report_find(const wl_process_t* process, int32_t* numbers, uint32_t capacity,
                       uint64_t* count, wl_error_t* error) {
  if (Code code = checkOut(count, "count", error)) return code;
  if (Code code = checkNotNull(numbers, "numbers", error)) return code;
  if (Code code = checkProcess(process, "process", error)) return code;
  const auto find = [&] {
    std::vector<int32_t> found;
    if (Code code = listShared(*process, capacity, &found, error)) return code;
    std::copy(found.begin(), found.end(), numbers);
    *count = found.size();
    return WL_OK;
  };
  return withMemory(error, find, "out of memory");
}

int32_t wl_report_open(const wl_process_t* owner, int32_t number, wl_report_t** report,
                       wl_error_t* error) {
  if (Code code = checkOut(report, "report", error)) return code;
  if (Code code = checkProcess(owner, "owner", error)) return code;
  if (number < 0) return fail(error, WL_INVALID_ARGUMENT, "number %d is no file", number);
  const auto open = [&] {
    auto made = std::make_unique<wl_report>();
    const Code code = ObservedGroup::open(*owner, number, &made->group, error);
    if (code == WL_OK) *report = made.release();
    return code;
  };
  return withMemory(error, open, "out of memory");
}

int32_t wl_report_about(const wl_report_t* report, wl_report_group_t* group) {
  if (report == nullptr || checkStruct(group, "group", nullptr) != WL_OK)
    return WL_INVALID_ARGUMENT;
  const SharedLines& shared = report->group->block().shared();
  group->ranks = static_cast<int32_t>(report->group->config().ranks);
  group->id = shared.id;
  group->parent = shared.parent;
  group->made_ns = shared.madeNs;
  return WL_OK;
}

int32_t wl_report_state(const wl_report_t* report, int32_t rank, wl_rank_state_t* state) {
  return report == nullptr ? WL_INVALID_ARGUMENT : readState(*report->group, rank, state);
}

int32_t wl_report_recorded(const wl_report_t* report, int32_t rank, wl_record_t* records,
                           int32_t capacity) {
  return report == nullptr ? -1 : readRecords(*report->group, rank, records, capacity);
}

int32_t wl_report_peer_memory(const wl_report_t* report, wl_peer_memory_t* memory,
                              wl_error_t* error) {
  if (Code code = checkNotNull(report, "report", error)) return code;
  if (Code code = checkStruct(memory, "memory", error)) return code;
  memory->form = formAsTold(report->group->block(), report->group->config().ranks, kNobody, "",
                            memory->why, sizeof memory->why);
  return WL_OK;
}

int32_t wl_report_failure(const wl_report_t* report, wl_error_t* error) {
  if (Code code = checkNotNull(report, "report", error)) return code;
  return report->group->failure(error);
}

void wl_report_close(wl_report_t* report) {
  delete report;
}

}  // extern "C"
