// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/breach.h"

namespace windlass::checked {
namespace {

struct Words {
  const char* name;
  const char* hint;
};

constexpr Words kWords[] = {
    {"tile-unplaced", "place the tile with TASSIGN before its first use"},
    {"tile-misaligned", "TASSIGN takes multiples of 32 bytes"},
    {"tile-row", "make the tile's columns a multiple of 32 bytes, and set fewer of them valid"},
    {"tile-valid-size", "give valid rows and columns when the tile is made, within its own"},
    {"buffer-overflow", "place the tile lower, or make it smaller"},
    {"tile-overlap", "place tiles whose contents are still needed apart from one another"},
    {"tile-unwritten", "load, fill or compute what an instruction reads before it"},
    {"tile-race", "put set_flag and wait_flag from the first pipe to the second between them"},
    {"shape", "give the instruction tensors and tiles of sizes that belong together"},
    {"row-limit", "cut the transfer into fewer than 4096 rows"},
    {"element-type", "convert to an element type that the architecture has for it"},
    {"conversion", "convert by way of a type that the architecture takes from and to, as f32"},
    {"round-mode", "choose a mode that the pair of types has, as CAST_RINT"},
    {"flag-name", "name two different pipes of S, V, MTE2 and MTE3, and EVENT_ID0 to EVENT_ID7"},
    {"wait-without-set", "issue the set_flag before the wait_flag of the same pipes and id"},
    {"flag-set-twice", "have the pipe that sets wait, by a flag back, until the flag was taken"},
    {"flag-left-over", "wait for each flag that is set before the kernel ends"},
    {"flag-taken",
     "leave EVENT_ID0 and EVENT_ID1 between MTE2 and MTE3 unset before TPUT and TGET"},
    {"transfer-shape", "give both tensors the same shape: sizes come from the source alone"},
    {"transfer-stride", "keep strides below 2^31 elements"},
    {"transfer-tile",
     "set the valid size of a tile that holds all to the tensor's exactly, and let a tile of a "
     "static size divide it"},
    {"ranks", "use at most 64 ranks: the device's table of windows has no more"},
    {"outside-memory",
     "stay inside the rank's own memory and the windows of its peers, and in a launch inside its "
     "arguments"},
    {"not-written",
     "mark the argument `written()` where the kernel names it, or store elsewhere"},
    {"memory-race",
     "order the two: in a kernel, have the `needs` of the second name the rank of the first, a "
     "phase before; else pipe_barrier(PIPE_ALL), dsb(DSB_DDR), TNOTIFY after the first, TTEST, "
     "pipe_barrier(PIPE_ALL) before the second; on one core, flags between their pipes"},
    {"notify-unreleased", "put pipe_barrier(PIPE_ALL) and dsb(DSB_DDR) before TNOTIFY"},
    {"load-unacquired", "put pipe_barrier(PIPE_ALL) between the wait and the load"},
    {"signal-alignment", "keep a signal at a multiple of 4 bytes"},
    {"signal-writers", "give each writer a signal in a line of 64 bytes of its own"},
    {"peer-wait", "have the peer notify a signal in this rank's own memory, and wait for that"},
    {"phase-waits",
     "look at a signal once, or have `needs` name the rank whose phase before it follows: a phase "
     "never waits"},
};
static_assert(sizeof kWords / sizeof *kWords == kRules);

}  // namespace

const char* nameOf(Rule rule) {
  return kWords[static_cast<int>(rule)].name;
}
const char* hintOf(Rule rule) {
  return kWords[static_cast<int>(rule)].hint;
}

std::string describe(const Origin& origin) {
  if (origin.number == 0) return origin.instruction;
  return "instruction " + std::to_string(origin.number - origin.before) +
         (origin.inItem ? " of phase " + std::to_string(origin.phase) : "") + ", " +
         origin.instruction;
}

std::string placeOf(const Origin& origin) {
  return "rank " + std::to_string(origin.rank) + ", block " +
         std::to_string(origin.inItem ? origin.block : origin.core);
}

std::string Breach::text() const {
  return std::string(nameOf(rule)) + ": kernel " + kernel + ", " + placeOf(origin) + ", " +
         describe(origin) + ": " + what + "; " + hintOf(rule);
}

}  // namespace windlass::checked
