// SPDX-License-Identifier: Apache-2.0
// C ABI: where the ranks of a communicator are, and what they did last.
#include <algorithm>
#include <cstring>

#include "native/abi/handles.h"
#include "native/comm/failure_text.h"

using namespace windlass;

static_assert(FlightRecorder::kRecords == WL_RECORDS, "one number of records");

namespace {

void fill(const Recorded& from, wl_record_t* to) {
  const Descriptor& descriptor = from.descriptor;
  to->sequence = from.sequence;
  to->operation = descriptor.operation();
  to->algorithm = descriptor.algorithm();
  to->dtype = descriptor.dtype();
  to->op = descriptor.reduceOp();
  to->root = descriptor.root();
  to->code = from.code;
  to->count = descriptor.count;
  to->bytes = from.bytes;
  to->entered_ns = from.enteredNs;
  to->left_ns = from.leftNs;
  to->waited_ns = from.waitedNs;
  describe(descriptor, to->text, sizeof to->text);
}

}  // namespace

extern "C" {

int32_t wl_comm_state(const wl_comm_t* comm, int32_t rank, wl_rank_state_t* state) {
  if (comm == nullptr || state == nullptr || state->struct_size < sizeof(wl_rank_state_t) ||
      rank < 0 || rank >= wl_comm_size(comm)) {
    return WL_INVALID_ARGUMENT;
  }
  const State& line = comm->comm.group().lines(static_cast<uint32_t>(rank)).state;
  state->busy = static_cast<int32_t>(line.busy.load(std::memory_order_relaxed));
  state->sequence = line.sequence.load(std::memory_order_relaxed);
  state->operation = line.operation.load(std::memory_order_relaxed);
  state->awaited = line.awaited.load(std::memory_order_relaxed);
  state->closed = static_cast<int32_t>(line.closing.load(std::memory_order_relaxed));
  state->contested = line.contested.load(std::memory_order_relaxed);
  const Item item = Item::of(line.item.load(std::memory_order_relaxed));
  const bool runs = line.running.load(std::memory_order_relaxed) > 0;
  state->item_owner = runs ? static_cast<int32_t>(item.owner) : -1;
  state->item_phase = runs ? static_cast<int32_t>(item.phase) : 0;
  state->item = runs ? static_cast<int32_t>(item.block) : 0;
  return WL_OK;
}

int32_t wl_comm_recorded(const wl_comm_t* comm, int32_t rank, wl_record_t* records,
                         int32_t capacity) {
  if (comm == nullptr || rank < 0 || rank >= wl_comm_size(comm) || capacity < 0) return -1;
  if (capacity == 0) return 0;
  if (records == nullptr || records->struct_size < sizeof(wl_record_t)) return -1;
  const size_t stride = records->struct_size;
  const Group& group = comm->comm.group();
  const FlightRecorder& recorder = group.recorder(static_cast<uint32_t>(rank));
  const TickScale scale = group.tickScale();
  const uint64_t newest = recorder.newest();
  const uint64_t oldest = newest < WL_RECORDS ? 1 : newest - WL_RECORDS + 1;
  int32_t count = 0;
  for (uint64_t number = newest; number >= oldest && count < capacity; --number) {
    Recorded recorded;
    if (!recorder.read(number, scale, &recorded)) continue;
    auto* record = reinterpret_cast<wl_record_t*>(reinterpret_cast<unsigned char*>(records) +
                                                  stride * static_cast<size_t>(count));
    record->struct_size = static_cast<uint32_t>(stride);
    fill(recorded, record);
    ++count;
  }
  return count;
}

int32_t wl_comm_peer_memory(const wl_comm_t* comm, wl_peer_memory_t* memory, wl_error_t* error) {
  if (Code code = checkNotNull(memory, "memory", error); code != WL_OK) return code;
  if (memory->struct_size < sizeof(wl_peer_memory_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "memory->struct_size is %u, not %zu",
                memory->struct_size, sizeof(wl_peer_memory_t));
  }
  if (comm != nullptr) {
    memory->form = comm->comm.peerMemory(memory->why, sizeof memory->why);
    return WL_OK;
  }
  PeerMemoryUse use = PeerMemoryUse::kAuto;
  if (Code code = askedPeerMemoryUse(&use, error); code != WL_OK) return code;
  const bool reads = ownPeerMemory(use, memory->why, sizeof memory->why);
  memory->form = reads ? WL_PEER_MEMORY_READV : WL_PEER_MEMORY_STAGE;
  return WL_OK;
}

int32_t wl_comm_last_to_enter(const wl_comm_t* comm, uint32_t sequence) {
  return comm == nullptr ? -1 : comm->comm.group().lastToEnter(sequence);
}

}  // extern "C"
