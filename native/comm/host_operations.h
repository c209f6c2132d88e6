// SPDX-License-Identifier: Apache-2.0
// Collective operations that make host objects rather than move tensors: windows and split
// communicators.
#pragma once

#include <memory>

#include "native/comm/comm.h"

namespace windlass {

// `bytes` on every rank, zeroed. All ranks get the same segments, or the same error.
Code createSegments(Comm& comm, uint64_t bytes, int64_t deadlineNs,
                    std::shared_ptr<Segments>* segments, wl_error_t* error);

// Ranks of one color, ordered by (key, rank), meet in a group of their own. A negative color gets
// nullptr. Ranks agree on `digest`: 0, or that of a list which colors and keys were made from.
Code splitGroup(Comm& comm, int32_t color, int32_t key, uint64_t digest, int64_t deadlineNs,
                std::shared_ptr<Group>* group, uint32_t* rank, wl_error_t* error);

}  // namespace windlass
