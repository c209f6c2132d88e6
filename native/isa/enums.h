// SPDX-License-Identifier: Apache-2.0
// Enums of the tile ISA under its own names, as kernels for the architecture spell them. Targets
// that define the ISA's names themselves use this header. Numbers are ABI: append only.
#pragma once

#include <cstdint>

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t {
  EVENT_ID0,
  EVENT_ID1,
  EVENT_ID2,
  EVENT_ID3,
  EVENT_ID4,
  EVENT_ID5,
  EVENT_ID6,
  EVENT_ID7
};
enum mem_dsb_t { DSB_DDR };
enum class cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class dcci_dst_t { CACHELINE_OUT };

namespace pto {

constexpr int DYNAMIC = -1;

enum class Layout : uint8_t { ND = 0 };
enum class TileType : uint8_t { Vec };
enum class BLayout : uint8_t { RowMajor = 0, ColMajor = 1 };
enum class SLayout : uint8_t { NoneBox = 0, RowMajor = 1, ColMajor = 2 };
enum class PadValue : uint8_t { Null = 0, Zero = 1, Max = 2, Min = 3 };
enum class AtomicType : uint8_t { AtomicNone = 0, AtomicAdd = 1 };
enum class SaturationMode : uint8_t { ON = 0, OFF = 1 };
enum class RoundMode : uint8_t {
  CAST_NONE = 0,
  CAST_RINT = 1,
  CAST_ROUND = 2,
  CAST_FLOOR = 3,
  CAST_CEIL = 4,
  CAST_TRUNC = 5,
  CAST_ODD = 6
};

namespace comm {

enum class NotifyOp : uint8_t { AtomicAdd = 0, Set = 1 };
enum class WaitCmp : uint8_t { EQ = 0, NE, GT, GE, LT, LE };

}  // namespace comm
}  // namespace pto
