// SPDX-License-Identifier: Apache-2.0
// What a wait changes of the thread that it runs on, where it may: by GroupConfig::adjustsThreads,
// or since the thread was adopted.
#pragma once

#include <sched.h>

#include <cstdint>

namespace windlass {

// Says that the calling thread was made for operations; whether somebody had said so before.
bool adoptThread();
bool isAdopted();

// Moves the calling thread to `core`, and gives it back the mask `allowed`, which it had. One that
// another thread gives it meanwhile stands, but for the moments between a look and a change.
void moveToCore(uint32_t core, const cpu_set_t& allowed);

// Moves the calling thread to the core that is number `place`, modulo how many there are, of those
// that it may use. `stays`: that is the only one that it may use from then on; else it gets its
// mask back.
void placeThread(uint32_t place, bool stays);

// Asks for short time slices until then, since a thread that yields forgoes the rest of its slice
// to those that compute: some 3 ms of the default length. Threads that it makes have the usual
// ones. A kernel before 6.12 grants none, and nothing else changes.
void takeShortSlices(int64_t untilNs);

// Takes the slices from before once that time has come: beside ranks that move much, short ones
// cost more than they bring.
void returnShortSlices(int64_t nowNs);

}  // namespace windlass
