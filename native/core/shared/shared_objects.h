// SPDX-License-Identifier: Apache-2.0
// Windows and split communicators of a communicator whose ranks live in several processes. On each
// host one process makes the memory. In an operation, it sends the others the file number to open.
#pragma once

#include "native/core/shared/object_operations.h"

namespace windlass {

// Implement createWindow and splitGroup for several processes.
Code createSharedWindow(Comm& comm, const NewWindow& asked, int64_t deadlineNs,
                        std::shared_ptr<Window>* window, wl_error_t* error);
Code splitSharedGroup(Comm& comm, const Split& split, int64_t deadlineNs,
                      std::shared_ptr<Group>* group, uint32_t* rank, wl_error_t* error);

}  // namespace windlass
