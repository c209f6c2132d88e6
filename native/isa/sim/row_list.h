// SPDX-License-Identifier: Apache-2.0
// Addresses of rows, with a small buffer of them: one call for each address would cost as much as a
// short fold.
#pragma once

#include "native/isa/lists.h"

namespace windlass {

class RowList {
 public:
  explicit RowList(const Rows& rows) : rows_(rows) { load(0); }

  unsigned char* operator[](uint32_t row) {
    if (row - first_ >= kAtHand) load(row / kAtHand * kAtHand);
    return static_cast<unsigned char*>(addresses_[row - first_]);
  }

 private:
  static constexpr uint32_t kAtHand = 64;

  void load(uint32_t first) {
    const uint32_t left = rows_.count - first;
    first_ = first;
    rows_.list(rows_.context, first, left < kAtHand ? left : kAtHand, addresses_);
  }

  const Rows& rows_;
  uint32_t first_ = 0;
  void* addresses_[kAtHand];
};

}  // namespace windlass
