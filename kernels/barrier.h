// SPDX-License-Identifier: Apache-2.0
// Barrier: no rank returns before every rank has entered.
//
// args     none
// phases   none moves data: the wait that ends the operation is the barrier
// signals  ENTER of every rank
// order    a rank's writes before its ENTER are visible to every rank that returned
#pragma once

#include "kernels/items.h"

namespace windlass {

struct Barrier : Items {
  WL_CORE static constexpr uint32_t phases(const Launch&) { return 0; }
  static constexpr bool kMovesNothing = true;
  WL_CORE static uint32_t blocks(const Launch&, uint32_t) { return 0; }
  WL_CORE static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kNobody; }
  WL_CORE static void phase(const Launch&, uint32_t, uint32_t, uint32_t) {}
};

}  // namespace windlass
