// SPDX-License-Identifier: Apache-2.0
// Windows and split communicators of a communicator whose ranks live in several processes: one
// process makes their memory, and says in an operation under which number the others open it.
#pragma once

#include "native/core/shared/object_operations.h"

namespace windlass {

// createWindow and splitGroup there.
Code createSharedWindow(Comm& comm, const NewWindow& asked, int64_t deadlineNs,
                        std::shared_ptr<Window>* window, wl_error_t* error);
Code splitSharedGroup(Comm& comm, const Split& split, int64_t deadlineNs,
                      std::shared_ptr<Group>* group, uint32_t* rank, wl_error_t* error);

}  // namespace windlass
