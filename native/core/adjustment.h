// SPDX-License-Identifier: Apache-2.0
// Changes that a wait makes to the thread that it runs on. A wait changes a thread only if
// GroupConfig::adjustsThreads is set or the thread was adopted.
#pragma once

#include <sched.h>

#include <cstdint>

namespace windlass {

// Marks the calling thread as made for operations. Returns true if it was marked before.
bool adoptThread();
bool isAdopted();

// Moves the calling thread to `core`, then restores its previous mask `allowed`. If another thread
// sets a mask in between, that mask stays. A mask that is set between the check and the restore is
// lost.
void moveToCore(uint32_t core, const cpu_set_t& allowed);

// Moves the calling thread to core number `place` among the cores that it may use, modulo their
// number. If `stays`, the thread may use only this core from then on. Otherwise it gets its mask
// back.
void placeThread(uint32_t place, bool stays);

// Requests short time slices until `untilNs`. A thread that yields gives the rest of its slice to
// threads that compute, some 3 ms at the default length. Threads that it creates have the usual
// slices. Kernels before 6.12 ignore the request, and nothing changes.
void takeShortSlices(int64_t untilNs);

// Restores the previous slices if the time given to takeShortSlices() has passed at `nowNs`. When
// ranks move much data, short slices cost more than they gain.
void returnShortSlices(int64_t nowNs);

}  // namespace windlass
