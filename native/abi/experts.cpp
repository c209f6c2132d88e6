// SPDX-License-Identifier: Apache-2.0
// C ABI: expert parallelism. Checks a rank's input and records it in the rank's table before
// anything is sent.
#include "native/core/experts.h"

#include <cstring>

#include "native/abi/buffers.h"
#include "native/base/text.h"

using namespace windlass;

namespace {

static_assert(kMostTopK == WL_MAX_TOP_K, "kernels have room for as many");
static_assert((1u << 22) / ExpertTable::kTokensAtOnce <= kMostBlocks, "items can be claimed");

Code bad(wl_error_t* error, const char* name, uint64_t value, const char* what) {
  return fail(error, WL_INVALID_ARGUMENT, "experts: %s is %llu; %s", name, text(value), what);
}

Code readShape(const wl_experts_t* experts, ExpertShape* shape, wl_error_t* error) {
  if (Code code = checkStruct(experts, "experts", error)) return code;
  if (Code code = checkDType(experts->dtype, error)) return code;
  const auto dtype = static_cast<DType>(experts->dtype);
  if (!isFloat(dtype)) {
    return fail(error, WL_UNSUPPORTED, "experts: dtype is %s; tokens are floats",
                dtypeName(experts->dtype));
  }
  if (experts->ranks < 1 || experts->ranks > WL_MAX_RANKS)
    return bad(error, "ranks", experts->ranks, "it must lie in [1, WL_MAX_RANKS]");
  if (experts->experts < 1 || experts->experts > 1u << 20 ||
      experts->experts % experts->ranks != 0) {
    return fail(error, WL_INVALID_ARGUMENT,
                "experts: there are %u for %u ranks; it must be a multiple of the ranks, 2^20 at "
                "most",
                experts->experts, experts->ranks);
  }
  if (experts->top_k < 1 || experts->top_k > WL_MAX_TOP_K || experts->top_k > experts->experts) {
    return fail(error, WL_INVALID_ARGUMENT,
                "experts: topK is %u of %u experts; it must lie in [1, %u], and be no more than "
                "there are",
                experts->top_k, experts->experts, WL_MAX_TOP_K);
  }
  if (experts->alignment < 1 || experts->alignment > 1u << 20)
    return bad(error, "alignment", experts->alignment, "it must lie in [1, 2^20]");
  if (experts->hidden < 1 || experts->hidden > 1u << 24)
    return bad(error, "hidden", experts->hidden, "it must lie in [1, 2^24]");
  if (experts->tokens < 1 || experts->tokens > 1u << 22)
    return bad(error, "tokens", experts->tokens, "it must lie in [1, 2^22]");
  if (experts->rows < 1 || experts->rows > INT32_MAX)
    return bad(error, "rows", experts->rows, "it must lie in [1, 2^31)");
  if (experts->quantised > 1) return bad(error, "quantised", experts->quantised, "it is 0 or 1");
  if (experts->quantised != 0) {
    if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
      return fail(error, WL_UNSUPPORTED,
                  "experts: %s tokens are not quantised; f32, f16 and bf16 are",
                  dtypeName(experts->dtype));
    }
    if (!kTarget.limits.quantises) {
      return fail(error, WL_UNSUPPORTED,
                  "experts: %s has no instruction that finds the largest element of a block, which "
                  "quantising takes; send tokens as they are, or quantise them before",
                  kTarget.limits.name);
    }
  } else if (!kTarget.limits.hasReduce(dtype)) {
    return fail(error, WL_UNSUPPORTED,
                "experts: %s has no arithmetic in which rows of %s are weighed and added up, which "
                "a combine takes; send tokens of another dtype",
                kTarget.limits.name, dtypeName(experts->dtype));
  }
  *shape = {experts->ranks, experts->experts, experts->top_k, experts->alignment, experts->hidden,
            experts->tokens, experts->rows,    dtype,          experts->quantised};
  return WL_OK;
}

// Checks memory that peers access. If ranks live in several processes, it must lie in a window. If
// ranks have devices, any memory is allowed, since each rank passes its own to its device.
Code checkPlaced(const Comm& comm, const void* memory, uint64_t bytes, const char* name,
                 wl_error_t* error) {
  if (Code code = checkBuffer(memory, bytes, WL_I64, name, error)) return code;
  const GroupConfig& config = comm.group().config();
  if (config.hosts > 1) {
    return fail(error, WL_UNSUPPORTED,
                "experts: the communicator spans %u hosts, and expert parallelism runs on one",
                config.hosts);
  }
  if (!config.spansProcesses || config.offloadCores > 0) return WL_OK;
  if (!comm.group().placeOf(comm.rank(), memory, bytes).isOrdinary()) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "experts: %s lies in no window of the communicator",
              name);
}

// The choice of one rank's router, as the caller passes it.
struct Choice {
  const void* ids;
  int32_t dtype;
  const float* weights;

  int64_t at(uint64_t slot) const {
    return dtype == WL_I64 ? static_cast<const int64_t*>(ids)[slot]
                           : static_cast<const int32_t*>(ids)[slot];
  }
};

// Fills the counts, experts and records of the table from the choice.
Code note(const Comm& comm, const Choice& choice, ExpertTable* table, wl_error_t* error) {
  const ExpertShape& shape = table->shape;
  int32_t* counts = table->counts();
  int32_t* experts = table->expertOf();
  ExpertRecord* records = table->recordOf();
  std::memset(counts, 0, shape.experts * sizeof *counts);
  uint64_t at = 0;
  for (uint64_t token = 0; token < table->tokens; ++token) {
    const int32_t* first = experts + at;
    for (uint32_t slot = 0; slot < shape.topK; ++slot, ++at) {
      const int64_t id = choice.at(at);
      if (id < ExpertTable::kNone || id >= static_cast<int64_t>(shape.experts)) {
        return fail(error, WL_INVALID_ARGUMENT,
                    "dispatch: rank %u: token %llu names expert %lld in slot %u; experts are "
                    "0 to %u, and -1 is none",
                    comm.rank(), text(token), text(id), slot, shape.experts - 1);
      }
      const auto expert = static_cast<int32_t>(id);
      experts[at] = expert;
      records[at] = {static_cast<int32_t>(comm.rank()), static_cast<int32_t>(token),
                     static_cast<int32_t>(slot),
                     choice.weights == nullptr ? 1.0f : choice.weights[at]};
      if (expert == ExpertTable::kNone) continue;
      for (uint32_t other = 0; other < slot; ++other) {
        if (first[other] != expert) continue;
        return fail(error, WL_INVALID_ARGUMENT,
                    "dispatch: rank %u: token %llu names expert %lld twice, again in slot "
                    "%u; a token goes to an expert once",
                    comm.rank(), text(token), text(id), slot);
      }
      ++counts[expert];
    }
  }
  return WL_OK;
}

// Makes the first checks of dispatch and of combine, and sets *table.
Code openTable(const wl_comm_t* comm, void* memory, int64_t deadlineNs, ExpertTable** table,
               wl_error_t* error) {
  if (Code code = checkCall(comm, deadlineNs, error)) return code;
  *table = static_cast<ExpertTable*>(memory);
  return checkPlaced(comm->comm, memory, sizeof(ExpertTable), "table", error);
}

}  // namespace

extern "C" {

int32_t wl_experts_lay_out(const wl_experts_t* experts, wl_experts_layout_t* layout,
                          wl_error_t* error) {
  ExpertShape shape = {};
  if (Code code = readShape(experts, &shape, error)) return code;
  if (Code code = checkStruct(layout, "layout", error)) return code;
  const ExpertBuffer buffer(shape);
  const uint64_t arrays = sizeof(ExpertTable) + 2 * uint64_t{shape.experts} * sizeof(int32_t);
  layout->table_bytes = ExpertTable::bytes(shape);
  layout->starts_at = arrays;
  layout->gets_at = arrays + shape.expertsOf() * sizeof(int32_t);
  layout->buffer_bytes = buffer.bytes;
  layout->scales_at = buffer.scales;
  layout->records_at = buffer.records;
  return WL_OK;
}

int32_t wl_experts_route(const wl_comm_t* comm, const wl_experts_t* experts, void* memory,
                         uint32_t number, uint64_t count, const void* ids, int32_t ids_dtype,
                         const float* weights, wl_error_t* error) {
  ExpertShape shape = {};
  if (Code code = checkCall(comm, 0, error)) return code;
  if (Code code = readShape(experts, &shape, error)) return code;
  const uint32_t ranks = comm->comm.group().ranks();
  if (shape.ranks != ranks) {
    return fail(error, WL_INVALID_ARGUMENT, "experts: ranks is %u; the communicator has %u",
                shape.ranks, ranks);
  }
  const uint64_t tableBytes = ExpertTable::bytes(shape);
  if (Code code = checkPlaced(comm->comm, memory, tableBytes, "table", error)) return code;
  if (count > shape.tokens) {
    return fail(error, WL_INVALID_ARGUMENT,
                "dispatch: rank %u brings %llu tokens; it has room for %llu",
                comm->comm.rank(), text(count), text(shape.tokens));
  }
  if (ids_dtype != WL_I32 && ids_dtype != WL_I64) {
    return fail(error, WL_INVALID_ARGUMENT, "dispatch: ids are of i32 or i64, not of %s",
                dtypeName(ids_dtype));
  }
  const uint64_t slots = count * shape.topK;
  const uint64_t idBytes = slots * sizeOf(static_cast<DType>(ids_dtype));
  if (Code code = checkBuffer(ids, idBytes, ids_dtype, "ids", error)) return code;
  if (weights != nullptr) {
    if (Code code = checkBuffer(weights, slots * sizeof *weights, WL_F32, "weights", error))
      return code;
  }
  auto* table = static_cast<ExpertTable*>(memory);
  table->state = ExpertTable::kEmpty;
  table->shape = shape;
  table->number = number;
  table->tokens = count;
  if (Code code = note(comm->comm, {ids, ids_dtype, weights}, table, error))
    return code;
  table->state = ExpertTable::kNoted;
  return WL_OK;
}

int32_t wl_experts_dispatch(wl_comm_t* comm, void* memory, void* buffer, const void* tokens,
                            uint64_t count, int64_t deadline_ns, wl_error_t* error) {
  ExpertTable* table = nullptr;
  if (Code code = openTable(comm, memory, deadline_ns, &table, error)) return code;
  Comm& own = comm->comm;
  if (table->state == ExpertTable::kEmpty) {
    return fail(error, WL_INVALID_ARGUMENT,
                "dispatch: nothing says where the tokens of rank %u go; state their experts",
                own.rank());
  }
  const ExpertShape& shape = table->shape;
  const uint64_t bufferBytes = ExpertBuffer(shape).bytes;
  if (Code code = checkPlaced(own, buffer, bufferBytes, "buffer", error)) return code;
  if (table->tokens != count) {
    return fail(error, WL_INVALID_ARGUMENT,
                "dispatch: rank %u brings %llu tokens, and experts of %llu have been stated",
                own.rank(), text(count), text(table->tokens));
  }
  const uint64_t bytes = count * shape.tokenBytes();
  if (Code code = checkBuffer(tokens, bytes, static_cast<int32_t>(shape.dtype), "tokens", error))
    return code;
  if (overlap(tokens, bytes, buffer, bufferBytes)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "dispatch: tokens of rank %u lie among the rows that it receives; copy them "
                "to memory of their own first",
                own.rank());
  }
  return expertDispatch(own, *table, tokens, buffer, deadline_ns, error);
}

int32_t wl_experts_combine(wl_comm_t* comm, void* memory, const void* outputs, int32_t dtype,
                           void* out, uint64_t count, int64_t deadline_ns, wl_error_t* error) {
  ExpertTable* table = nullptr;
  if (Code code = openTable(comm, memory, deadline_ns, &table, error)) return code;
  if (Code code = checkDType(dtype, error)) return code;
  const auto of = static_cast<DType>(dtype);
  if (!isFloat(of) || !kTarget.limits.hasReduce(of)) {
    return fail(error, WL_UNSUPPORTED, "combine: rows of %s are not weighed on %s",
                dtypeName(dtype), kTarget.limits.name);
  }
  const ExpertShape& shape = table->shape;
  if (table->state != ExpertTable::kRouted) {
    return fail(error, WL_INVALID_ARGUMENT,
                "combine: no dispatch has given the tokens of rank %u their rows",
                comm->comm.rank());
  }
  if (count != table->tokens) {
    return fail(error, WL_INVALID_ARGUMENT,
                "combine: out of rank %u has %llu tokens, and the dispatch brought %llu",
                comm->comm.rank(), text(count), text(table->tokens));
  }
  const uint64_t rowBytes = shape.hidden * sizeOf(of);
  const uint64_t outputBytes = shape.rows * rowBytes;
  if (Code code = checkPlaced(comm->comm, outputs, outputBytes, "outputs", error)) return code;
  if (Code code = checkBuffer(out, count * rowBytes, dtype, "out", error)) return code;
  if (overlap(outputs, outputBytes, out, count * rowBytes))
    return fail(error, WL_INVALID_ARGUMENT, "combine: out overlaps outputs");
  return expertCombine(comm->comm, *table, outputs, dtype, out, deadline_ns, error);
}

}  // extern "C"
