// SPDX-License-Identifier: Apache-2.0
// Error values of the native library: a code, and a wl_error_t that says what happened, where, and
// what to do.
#pragma once

#include "windlass/windlass.h"

namespace windlass {

using Code = wl_code;

// Formats into `error` (may be null) and returns `code`. Writes no further than error->struct_size.
Code fail(wl_error_t* error, Code code, const char* format, ...)
    __attribute__((cold, format(printf, 3, 4)));

// Returns a new error with a formatted message.
wl_error_t errorOf(Code code, const char* format, ...) __attribute__((format(printf, 2, 3)));
// Returns an error without a message. WL_OK means that nothing has failed.
wl_error_t blankError(Code code = WL_OK);
// WL_RESOURCE error: the call of `rank` ran out of memory.
wl_error_t noMemory(uint32_t rank);

// Copies `from` into `to` (may be null) within to->struct_size; `prefix` (may be null) goes before
// the message.
Code copyError(wl_error_t* to, const wl_error_t& from, const char* prefix);

// Counts the rank among the faulty ranks, and names it if there is room.
void addFaultyRank(wl_error_t* error, uint32_t rank);
// Sets `rank` as the only faulty rank of `error` (may be null). Does nothing if
// error->struct_size is less than sizeof(wl_error_t).
void nameFaultyRank(wl_error_t* error, uint32_t rank);

const char* codeName(int32_t code);

}  // namespace windlass
