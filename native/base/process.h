// SPDX-License-Identifier: Apache-2.0
// What tells one process of a host from another that has its number later.
#pragma once

#include "native/base/open_file.h"
#include "native/base/error.h"

namespace windlass {

Code processSelf(wl_process_t* process, wl_error_t* error);
// WL_PEER_LOST: no process has that pid.
Code processNamed(int32_t pid, wl_process_t* process, wl_error_t* error);

// This process in one word, which no other process of any container has at the same time.
uint64_t processWord();

// A file that can be polled for the end of the process; none: it has ended. WL_UNSUPPORTED where
// its number means nothing here, or the system is too old.
Code openProcess(const wl_process_t& process, OpenFile* file, wl_error_t* error);

// Whether it, or its first thread, is past what it can do: its memory and its files can't be
// reached by its number any more. Most often it ends within moments.
bool isEnding(int32_t pid);

// One look at it.
wl_process_state processState(const wl_process_t& process);

}  // namespace windlass
