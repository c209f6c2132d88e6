// SPDX-License-Identifier: Apache-2.0
// The toolkit's communication instructions, likewise.
#pragma once

#include <pto/pto-inst.hpp>

namespace pto::comm {

enum class NotifyOp : uint8_t { AtomicAdd = 0, Set = 1 };
enum class WaitCmp : uint8_t { EQ = 0, NE, GT, GE, LT, LE };
using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;

inline void TNOTIFY(Signal&, int32_t, NotifyOp) {}
inline bool TTEST(Signal&, int32_t, WaitCmp) {
  return true;
}
template <AtomicType = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
RecordEvent TPUT(Dst&, Src&, TileT&, TileT&) {
  static_assert(sizeof(typename Dst::RawDType) == sizeof(typename TileT::DType), "of one type");
  return {};
}
template <typename Dst, typename Src, typename TileT>
RecordEvent TGET(Dst&, Src&, TileT&, TileT&) {
  static_assert(sizeof(typename Dst::RawDType) == sizeof(typename TileT::DType), "of one type");
  return {};
}

}  // namespace pto::comm
