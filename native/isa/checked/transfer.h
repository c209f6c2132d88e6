// SPDX-License-Identifier: Apache-2.0
// The toolkit's TPUT and TGET through one tile or two. If the tile holds the whole tensor, they
// move it at once. Otherwise they loop over dimensions 0 to 2, chunks of rows and chunks of
// columns. They use EVENT_ID0 and EVENT_ID1 between MTE2 and MTE3, and leave neither set.
#pragma once

#include "native/isa/checked/core.h"

namespace windlass::checked {

struct TransferKind {
  const char* name;
  const char* load;
  const char* store;
  const char* setFlag;
  const char* waitFlag;
};
constexpr TransferKind kPut = {"TPUT", "TLOAD of TPUT", "TSTORE of TPUT", "set_flag of TPUT",
                               "wait_flag of TPUT"};
constexpr TransferKind kGet = {"TGET", "TLOAD of TGET", "TSTORE of TGET", "set_flag of TGET",
                               "wait_flag of TGET"};

// dst = src, or dst += src. `pong` may be nullptr. The dynamic valid sizes of the tiles become the
// sizes of the last chunks.
void transfer(Core& core, const TransferKind& kind, const GlobalRef& dst, const GlobalRef& src,
              TileRef* ping, TileRef* pong, bool adds);

}  // namespace windlass::checked
