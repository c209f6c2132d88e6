// SPDX-License-Identifier: Apache-2.0
// Identifies a process of a host, and distinguishes it from a later process with the same pid.
#pragma once

#include "native/base/open_file.h"
#include "native/base/error.h"

namespace windlass {

Code processSelf(wl_process_t* process, wl_error_t* error);
// Returns WL_PEER_LOST if no process has that pid.
Code processNamed(int32_t pid, wl_process_t* process, wl_error_t* error);

// Identifies this process in one word. No other process in any container has it at the same time.
uint64_t processWord();

// Opens a pidfd, which polls readable when the process ends. Leaves `file` empty if the process has
// ended. Returns WL_UNSUPPORTED if the pid belongs to another namespace or the system is too old.
Code openProcess(const wl_process_t& process, OpenFile* file, wl_error_t* error);

// True if the process or its first thread is exiting. Its memory and files are then no longer
// reachable by pid. It usually ends within moments.
bool isEnding(int32_t pid);

// Current state of the process; WL_PROCESS_UNKNOWN if openProcess() fails.
wl_process_state processState(const wl_process_t& process);

}  // namespace windlass
