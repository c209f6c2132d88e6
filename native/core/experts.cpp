// SPDX-License-Identifier: Apache-2.0
#include "native/core/experts.h"

#include <algorithm>

#include "native/base/mixed.h"
#include "native/base/text.h"
#include "native/core/launch/kernels.h"

namespace windlass {
namespace {

// Fingerprint that ranks compare.
uint64_t fingerprintOf(const ExpertTable& table) {
  const ExpertShape& shape = table.shape;
  uint64_t all = table.number;
  for (const uint64_t each :
       {uint64_t{shape.experts}, uint64_t{shape.topK}, uint64_t{shape.alignment}, shape.hidden,
        shape.tokens, shape.rows, static_cast<uint64_t>(shape.dtype), uint64_t{shape.quantised}})
    all = mixed(all, each);
  return all;
}

// Ranks do not know one another's tokens, so they cannot decide together that there are few.
// Therefore ranks always claim items one by one.
Call callOf(const ExpertTable& table, const Descriptor& descriptor, const OwnArgs& args,
            uint64_t rowBytes, int64_t deadlineNs, wl_error_t* error) {
  Call call = Call::of(descriptor, deadlineNs, error);
  call.args = args;
  call.bytes = table.tokens * rowBytes;
  call.workBytes =
      std::max(kSharedWorkBytes, call.bytes * table.shape.topK * table.shape.ranks);
  return call;
}

}  // namespace

Code expertDispatch(Comm& comm, ExpertTable& table, const void* tokens, void* buffer,
                    int64_t deadlineNs, wl_error_t* error) {
  const ExpertShape& shape = table.shape;
  const auto descriptor =
      Descriptor::of(WL_OP_EXPERT_DISPATCH, fingerprintOf(table), static_cast<int32_t>(shape.dtype),
                     0, 0, table.state == ExpertTable::kNoted ? 1 : 0);
  Call call = callOf(table, descriptor, {tokens, buffer, &table}, shape.rowBytes(), deadlineNs,
                     error);
  call.inBytes = table.tokens * shape.tokenBytes();
  call.outBytes = ExpertBuffer(shape).bytes;
  if (Code code = comm.run(kKernels.expertDispatch, call); code != WL_OK) return code;
  if (table.fullRank != ExpertTable::kNone) {
    return fail(error, WL_INVALID_ARGUMENT,
                "dispatch: the experts of rank %d get %llu rows, with what alignment to %u "
                "adds, and it has room for %llu; nothing has moved: give it more rows, or its "
                "experts fewer tokens",
                table.fullRank, text(table.needed), shape.alignment, text(shape.rows));
  }
  table.state = ExpertTable::kRouted;
  return WL_OK;
}

Code expertCombine(Comm& comm, const ExpertTable& table, const void* outputs, int32_t dtype,
                   void* out, int64_t deadlineNs, wl_error_t* error) {
  const ExpertShape& shape = table.shape;
  const uint64_t rowBytes = shape.hidden * sizeOf(static_cast<DType>(dtype));
  Call call = callOf(table, Descriptor::of(WL_OP_EXPERT_COMBINE, fingerprintOf(table), dtype),
                     {outputs, out, &table}, rowBytes, deadlineNs, error);
  call.inBytes = shape.rows * rowBytes;
  call.outBytes = table.tokens * rowBytes;
  return comm.run(kKernels.expertCombine, call);
}

}  // namespace windlass
