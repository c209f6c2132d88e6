// SPDX-License-Identifier: Apache-2.0
// Names of operations and algorithms in messages.
#pragma once

#include <cstdint>
#include <string_view>

namespace windlass {

const char* operationName(int32_t operation);
const char* algorithmName(int32_t algorithm);
// The operation with this name in messages; WL_OP_NONE: none.
int32_t operationNamed(std::string_view name);

// The name of the method that calls the operation: "allGatherv" for the operation that messages of
// several ranks name "all-gather-v".
const char* callName(int32_t operation);

}  // namespace windlass
