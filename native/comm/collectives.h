// SPDX-License-Identifier: Apache-2.0
// Which kernel an operation runs. Arguments have been checked: buffers hold `bytes` a part, do not
// overlap but where that is allowed, and are aligned to the dtype.
#pragma once

#include "native/comm/comm.h"

namespace windlass {

// `count` elements, `bytes` bytes, go to each peer. algorithm: WL_AUTO, WL_PUSH or WL_PULL.
Code allToAll(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
              int32_t algorithm, int64_t deadlineNs, wl_error_t* error);
// `in` is read on the root alone, where it may be `out`.
Code broadcast(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int32_t root, int64_t deadlineNs, wl_error_t* error);
// `in` holds `bytes`, `out` that of every rank. `as` is what ranks agree on and messages name: an
// operation that this is a step of, or all-gather itself.
Code allGather(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error, wl_operation as = WL_OP_ALL_GATHER);
// `out` holds `bytes`, `in` that for every rank.
Code reduceScatter(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes,
                   int32_t dtype, int32_t op, int64_t deadlineNs, wl_error_t* error);
// Up to so many bytes every rank stages its input and folds those of all.
constexpr uint64_t kStagedAllReduce = uint64_t{4} << 10;
// algorithm: not WL_AUTO. In place, one-phase takes what is staged: bytes <= kStagedAllReduce.
Code allReduce(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
               int32_t op, int32_t algorithm, int64_t deadlineNs, wl_error_t* error);
// Each rank's part holds `bytes`; the whole is read, or written, on the root alone.
Code scatter(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
             int32_t root, int64_t deadlineNs, wl_error_t* error);
Code gather(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
            int32_t root, int64_t deadlineNs, wl_error_t* error);
Code reduce(Comm& comm, const void* in, void* out, uint64_t count, uint64_t bytes, int32_t dtype,
            int32_t op, int32_t root, int64_t deadlineNs, wl_error_t* error);
// `parts` states inCounts and outCounts.
Code allToAllV(Comm& comm, const void* in, void* out, const PartLists& parts, int32_t dtype,
               int64_t deadlineNs, wl_error_t* error);
// `parts` states inCounts and room; `received` gets a count for each rank.
Code allToAllVPacked(Comm& comm, const void* in, void* out, const PartLists& parts,
                     int64_t* received, int32_t dtype, int64_t deadlineNs, wl_error_t* error);
// `counts` holds one for each rank.
Code allGatherV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                int64_t deadlineNs, wl_error_t* error, wl_operation as = WL_OP_ALL_GATHER_V);
Code reduceScatterV(Comm& comm, const void* in, void* out, const int64_t* counts, int32_t dtype,
                    int32_t op, int64_t deadlineNs, wl_error_t* error);
Code barrier(Comm& comm, int64_t deadlineNs, wl_error_t* error);

}  // namespace windlass
