// SPDX-License-Identifier: Apache-2.0
// What messages call the values of the C ABI's enums.
#pragma once

#include <cstdint>

namespace windlass {

const char* operationName(int32_t operation);
const char* dtypeName(int32_t dtype);
const char* reduceOpName(int32_t op);
const char* algorithmName(int32_t algorithm);

}  // namespace windlass
