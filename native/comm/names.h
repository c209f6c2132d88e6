// SPDX-License-Identifier: Apache-2.0
// What messages call operations and algorithms.
#pragma once

#include <cstdint>

namespace windlass {

const char* operationName(int32_t operation);
const char* algorithmName(int32_t algorithm);

}  // namespace windlass
