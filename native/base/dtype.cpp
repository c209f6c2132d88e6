// SPDX-License-Identifier: Apache-2.0
#include "native/base/dtype.h"

namespace windlass {

const char* dtypeName(int32_t dtype) {
  static const char* const names[] = {"bool", "u8",  "i8",  "f8e5m2", "f8e4m3", "f8e8m0",
                                      "i16",  "u16", "f16", "bf16",   "i32",    "u32",
                                      "f32",  "f64", "i64", "u64",    "c64",
                                      "f8e4m3fnuz",  "f8e5m2fnuz"};
  static_assert(sizeof names / sizeof *names == kDTypeCount);
  return dtype >= 0 && dtype < kDTypeCount ? names[dtype] : "?";
}

const char* reduceOpName(int32_t op) {
  static const char* const names[] = {"sum", "max", "min", "product",
                                      "avg", "and", "or",  "xor",
                                      "premultiplied-sum"};
  static_assert(sizeof names / sizeof *names == kReduceOpCount);
  return op >= 0 && op < kReduceOpCount ? names[op] : "?";
}

}  // namespace windlass
