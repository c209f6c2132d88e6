// SPDX-License-Identifier: Apache-2.0
// A core's unified buffer: its bytes, and the last accesses to each block of 32 bytes. An
// instruction is checked against these accesses.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/isa/checked/architecture.h"
#include "native/isa/checked/breach.h"
#include "native/isa/checked/clock.h"
#include "native/isa/checked/operands.h"

namespace windlass::checked {

// An instruction at issue: its pipe, the clock of that pipe, and its origin.
struct Issue {
  Pipe pipe;
  const Clock& clock;
  size_t firstPipe;  // number of the core's first pipe in clocks
  Origin origin;

  uint64_t tick(Pipe of) const { return clock[firstPipe + static_cast<size_t>(of)]; }
};

struct Clash {
  Rule rule;
  std::string what;
};

class UnifiedBuffer {
 public:
  // Fills the buffer with random bytes from `seed`. Throws std::bad_alloc.
  UnifiedBuffer(const Architecture& architecture, uint64_t seed);

  unsigned char* data() { return bytes_.data(); }

  // Records that the instruction reads or writes the tile's valid part, which must be inside the
  // buffer. Returns a clash if that breaks a rule.
  std::optional<Clash> read(const TileRef& tile, const Issue& issue);
  std::optional<Clash> write(const TileRef& tile, const Issue& issue);

 private:
  struct Touch {
    uint64_t tick;  // 0: no access
    Origin origin;
  };
  // All bytes are zero until an instruction touches the block.
  struct Block {
    Touch written;
    Pipe writer;
    uint32_t tile;
    Touch read[kPipes];
  };

  template <typename Look>
  std::optional<Clash> each(const TileRef& tile, Look&& look);

  struct Unmap {
    size_t bytes;
    void operator()(Block* blocks) const;
  };
  static std::unique_ptr<Block[], Unmap> untouched(size_t count);

  std::vector<unsigned char> bytes_;
  std::unique_ptr<Block[], Unmap> blocks_;
};

}  // namespace windlass::checked
