// SPDX-License-Identifier: Apache-2.0
#include "native/base/error.h"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace windlass {
namespace {

// Bytes for the message in the caller's struct, including the terminator.
size_t messageRoom(const wl_error_t& error) {
  const size_t at = offsetof(wl_error_t, message);
  return error.struct_size <= at ? 0 : std::min<size_t>(error.struct_size - at, WL_ERROR_MESSAGE);
}

bool hasHeader(const wl_error_t* error) {
  return error != nullptr && error->struct_size >= offsetof(wl_error_t, faulty_ranks);
}

void write(wl_error_t* error, Code code, const char* format, va_list arguments) {
  error->code = code;
  error->operation = WL_OP_NONE;
  error->observer = -1;
  error->sequence = 0;
  error->faulty_rank_count = 0;
  const size_t room = messageRoom(*error);
  if (room > 0) std::vsnprintf(error->message, room, format, arguments);
}

}  // namespace

Code fail(wl_error_t* error, Code code, const char* format, ...) {
  if (!hasHeader(error)) return code;
  va_list arguments;
  va_start(arguments, format);
  write(error, code, format, arguments);
  va_end(arguments);
  return code;
}

wl_error_t errorOf(Code code, const char* format, ...) {
  wl_error_t error = {};
  error.struct_size = sizeof error;
  va_list arguments;
  va_start(arguments, format);
  write(&error, code, format, arguments);
  va_end(arguments);
  return error;
}

wl_error_t blankError(Code code) {
  return errorOf(code, "%s", "");
}

wl_error_t noMemory(uint32_t rank) {
  return errorOf(WL_RESOURCE, "rank %u is out of memory", rank);
}

Code copyError(wl_error_t* to, const wl_error_t& from, const char* prefix) {
  const Code code = static_cast<Code>(from.code);
  if (!hasHeader(to)) return code;
  to->code = from.code;
  to->operation = from.operation;
  to->observer = from.observer;
  to->sequence = from.sequence;
  to->faulty_rank_count = 0;
  const size_t at = offsetof(wl_error_t, faulty_ranks);
  if (to->struct_size >= at + sizeof from.faulty_ranks) {
    to->faulty_rank_count = from.faulty_rank_count;
    std::memcpy(to->faulty_ranks, from.faulty_ranks, sizeof from.faulty_ranks);
  }
  const size_t room = messageRoom(*to);
  if (room > 0)
    std::snprintf(to->message, room, "%s%s", prefix == nullptr ? "" : prefix, from.message);
  return code;
}

void addFaultyRank(wl_error_t* error, uint32_t rank) {
  const int32_t number = error->faulty_rank_count++;
  if (number < WL_ERROR_FAULTY_RANKS) error->faulty_ranks[number] = static_cast<int32_t>(rank);
}

void nameFaultyRank(wl_error_t* error, uint32_t rank) {
  if (error == nullptr || error->struct_size < sizeof(wl_error_t)) return;
  error->faulty_rank_count = 1;
  error->faulty_ranks[0] = static_cast<int32_t>(rank);
}

const char* codeName(int32_t code) {
  static const char* const names[] = {
      "Ok",      "InvalidArgument",    "Mismatch",    "DeadlineExceeded", "PeerLost",
      "Aborted", "VerificationFailed", "Unsupported", "Resource",         "Closed",
      "Device",  "Internal"};
  static_assert(sizeof names / sizeof *names == WL_INTERNAL + 1);
  return code >= 0 && code <= WL_INTERNAL ? names[code] : "unknown";
}

}  // namespace windlass
