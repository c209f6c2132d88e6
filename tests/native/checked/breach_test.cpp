// SPDX-License-Identifier: Apache-2.0
// Each rule, by kernels that break it: the machine names that rule and no other, whatever the seed,
// and finds nothing in the same kernel without the mistake.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/native/checked/test_machine.h"

namespace windlass_test {
namespace breach_test {

using checked::kA2A3;
using checked::kA5;
using checked::Rule;

// One mistake. Where a field is empty, the sound kernel runs on the same architecture.
struct Mistake {
  Rule rule;
  const char* what;
  const char* named;  // what the report's text names beside the rule
  std::function<void(TestMachine&, bool broken)> kernel;
  const checked::Architecture* broken = &kA2A3;
  const checked::Architecture* sound = &kA2A3;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << nameOf(mistake.rule) << ": " << mistake.what;
}

template <typename T>
T* as(std::vector<float>& floats) {
  return reinterpret_cast<T*>(floats.data());
}

// Loads, computes and stores on core (0, 0), without the flag from one pipe to another.
void computeWithout(TestMachine& test, pipe_t from, pipe_t to) {
  test.on(0, 0, [&] {
    const auto unless = [&](pipe_t a, pipe_t b) {
      if (a != from || b != to) flag(a, b);
    };
    F32 a(16, 32), b(16, 32);
    pto::TASSIGN(a, 0);
    pto::TASSIGN(b, kF32Bytes);
    auto in = rowsOf(test.in[0].data(), 16, 32);
    auto out = rowsOf(test.out[0].data(), 16, 32);
    pto::TLOAD(a, in);
    unless(PIPE_MTE2, PIPE_V);
    pto::TADDS(b, a, 1.0f);
    unless(PIPE_V, PIPE_MTE3);
    pto::TSTORE(out, b);
    unless(PIPE_V, PIPE_MTE2);
    pto::TLOAD(a, in);
    flag(PIPE_MTE2, PIPE_V, EVENT_ID1);
    unless(PIPE_MTE3, PIPE_V);
    pto::TADDS(b, a, 1.0f);
  });
}

std::function<void(TestMachine&, bool)> withoutFlag(pipe_t from, pipe_t to) {
  return [=](TestMachine& test, bool broken) {
    computeWithout(test, broken ? from : PIPE_ALL, broken ? to : PIPE_ALL);
  };
}

// Puts 64 floats of rank 0 into rank 1's window, tells it, and has rank 1 load them.
struct Handover {
  bool barrier = true;
  bool drain = true;
  bool wait = true;
  bool acquire = true;
  bool load = true;
};
void handOver(TestMachine& test, const Handover& does) {
  test.on(0, 0, [&] {
    F32 tile(2, 32);
    pto::TASSIGN(tile, 0);
    auto from = rowsOf(test.in[0].data(), 2, 32);
    auto to = rowsOf(test.window[1].data(), 2, 32);
    pto::comm::TPUT(to, from, tile);
    if (does.barrier) pipe_barrier(PIPE_ALL);
    if (does.drain) dsb(DSB_DDR);
    auto signal = test.signal(1, 0);
    pto::comm::TNOTIFY(signal, 7, pto::comm::NotifyOp::Set);
  });
  if (!does.load) return;
  test.on(1, 0, [&] {
    auto signal = test.signal(1, 0);
    const bool seen = does.wait && pto::comm::TTEST(signal, 7, pto::comm::WaitCmp::GE);
    EXPECT_EQ(seen, does.wait);
    if (does.acquire) pipe_barrier(PIPE_ALL);
    F32 tile(2, 32);
    pto::TASSIGN(tile, 0);
    auto from = rowsOf(test.window[1].data(), 2, 32);
    pto::TLOAD(tile, from);
  });
}

template <typename Body>
std::function<void(TestMachine&, bool)> onOneCore(Body body) {
  return [body](TestMachine& test, bool broken) { test.on(0, 0, [&] { body(test, broken); }); };
}

std::vector<Mistake> tileMistakes() {
  const auto load = [](TestMachine& test, F32& tile, int64_t rows, int64_t columns) {
    auto in = rowsOf(test.in[0].data(), rows, columns);
    pto::TLOAD(tile, in);
  };
  return {
      {Rule::kTileUnplaced, "no TASSIGN", "instruction 1, TLOAD: tile f32 16x32",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 tile(4, 32);
         if (!broken) pto::TASSIGN(tile, 0);
         load(test, tile, 4, 32);
       })},
      {Rule::kTileMisaligned, "an odd offset", "tile f32 16x32 at byte 16",
       onOneCore([](TestMachine&, bool broken) {
         F32 tile(4, 32);
         pto::TASSIGN(tile, broken ? 16 : 32);
       })},
      {Rule::kTileRow, "rows of 48 bytes", "has rows of 48 bytes",
       onOneCore([](TestMachine&, bool broken) {
         Tile<float, 4, 12> narrow(4, 12);
         Tile<float, 4, 16> wide(4, 12);
         broken ? pto::TASSIGN(narrow, 0) : pto::TASSIGN(wide, 0);
       })},
      {Rule::kTileValidSize, "none given", "never got its valid rows and columns",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 unset;
         F32 set(4, 32);
         F32& tile = broken ? unset : set;
         pto::TASSIGN(tile, 0);
         load(test, tile, 4, 32);
       })},
      {Rule::kTileValidSize, "more than the tile has", "has 17 rows and 32 columns valid",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 tile(broken ? 17 : 16, 32);
         pto::TASSIGN(tile, 0);
         load(test, tile, broken ? 17 : 16, 32);
       })},
      {Rule::kBufferOverflow, "past the end", "ends at 197632 of 196608 bytes",
       onOneCore([](TestMachine&, bool broken) {
         F32 tile(16, 32);
         pto::TASSIGN(tile, (192u << 10) - (broken ? kF32Bytes / 2 : kF32Bytes));
       })},
      {Rule::kBufferOverflow, "a tile that A5 alone has room for", "of 196608 bytes",
       onOneCore([](TestMachine&, bool) {
         Tile<float, 64, 832> tile(1, 1);
         pto::TASSIGN(tile, 0);
       }),
       &kA2A3, &kA5},
      {Rule::kTileOverlap, "two tiles share half", "instruction 4, TLOAD on PIPE_MTE2, wrote",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 ping(16, 32), pong(16, 32);
         pto::TASSIGN(ping, 0);
         pto::TASSIGN(pong, broken ? kF32Bytes / 2 : kF32Bytes);
         load(test, ping, 16, 32);
         load(test, pong, 16, 32);
         flag(PIPE_MTE2, PIPE_MTE3);
         auto out = rowsOf(test.out[0].data(), 16, 32);
         pto::TSTORE(out, ping);
       })},
      {Rule::kTileOverlap, "two tiles in one place", "wrote another tile",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 ping(16, 32), pong(16, 32);
         pto::TASSIGN(ping, 0);
         pto::TASSIGN(pong, broken ? 0 : kF32Bytes);
         load(test, ping, 16, 32);
         load(test, pong, 16, 32);
         flag(PIPE_MTE2, PIPE_MTE3);
         auto out = rowsOf(test.out[0].data(), 16, 32);
         pto::TSTORE(out, ping);
       })},
      {Rule::kTileOverlap, "a result that lies in part on its operand", "of the same instruction",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 a(16, 32), sum(16, 32);
         pto::TASSIGN(a, 0);
         pto::TASSIGN(sum, broken ? kF32Bytes / 2 : 0);
         load(test, a, 16, 32);
         flag(PIPE_MTE2, PIPE_V);
         pto::TADD(sum, a, a);
       })},
      {Rule::kTileOverlap, "a tile in the scratch of casts", "TCVT on PIPE_V, wrote another tile",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 kept(16, 32), from(16, 32);
         Tile<int16_t, 16, 32> to(16, 32);
         pto::TASSIGN(kept, broken ? 184u << 10 : 0);
         pto::TASSIGN(from, kF32Bytes);
         pto::TASSIGN(to, 2 * kF32Bytes);
         load(test, kept, 16, 32);
         load(test, from, 16, 32);
         flag(PIPE_MTE2, PIPE_V);
         pto::TCVT(to, from, pto::RoundMode::CAST_RINT);
         pto::TADD(from, kept, kept);
       })},
      {Rule::kTileUnwritten, "a store of what nothing loaded", "read where nothing was written",
       onOneCore([=](TestMachine& test, bool broken) {
         F32 tile(16, 32);
         pto::TASSIGN(tile, 0);
         if (!broken) load(test, tile, 16, 32);
         flag(PIPE_MTE2, PIPE_MTE3);
         auto out = rowsOf(test.out[0].data(), 16, 32);
         pto::TSTORE(out, tile);
       })},
      {Rule::kTileRace, "computes before the load is over", "TLOAD on PIPE_MTE2, may still write",
       withoutFlag(PIPE_MTE2, PIPE_V)},
      {Rule::kTileRace, "stores before the sum is there", "TADDS on PIPE_V, may still write",
       withoutFlag(PIPE_V, PIPE_MTE3)},
      {Rule::kTileRace, "loads over what is still added", "TADDS on PIPE_V, may still read",
       withoutFlag(PIPE_V, PIPE_MTE2)},
      {Rule::kTileRace, "computes over what is still stored", "on PIPE_MTE3, may still read",
       withoutFlag(PIPE_MTE3, PIPE_V)},
  };
}

std::vector<Mistake> operandMistakes() {
  return {
      {Rule::kShape, "fewer columns than the tile's", "differ in rows or columns",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(4, 32);
         pto::TASSIGN(tile, 0);
         auto in = rowsOf(test.in[0].data(), 4, broken ? 31 : 32);
         pto::TLOAD(tile, in);
       })},
      {Rule::kShape, "a load of nothing", "each dimension must be positive",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(broken ? 0 : 1, 32);
         pto::TASSIGN(tile, 0);
         auto in = rowsOf(test.in[0].data(), broken ? 0 : 1, 32);
         pto::TLOAD(tile, in);
       })},
      {Rule::kShape, "elements of another size", "differ in the size of elements",
       onOneCore([](TestMachine& test, bool broken) {
         Tile<int16_t, 4, 32> narrow(4, 32);
         Tile<int32_t, 4, 32> wide(4, 32);
         auto in = rowsOf(test.in[0].data(), 4, 32);
         pto::TASSIGN(narrow, 0);
         pto::TASSIGN(wide, 0);
         broken ? pto::TLOAD(narrow, in) : pto::TLOAD(wide, in);
       })},
      {Rule::kShape, "a sum of unequal tiles", "tiles of 4 rows and 32 columns, 4 rows and 32",
       onOneCore([](TestMachine&, bool broken) {
         F32 a(4, 32), b(broken ? 3 : 4, 32), sum(4, 32);
         pto::TASSIGN(a, 0);
         pto::TASSIGN(b, kF32Bytes);
         pto::TASSIGN(sum, 2 * kF32Bytes);
         pto::TEXPANDS(a, 1.0f);
         pto::TEXPANDS(b, 1.0f);
         pto::TADD(sum, a, b);
       })},
      {Rule::kShape, "a sum with a scalar into fewer rows",
       "tiles of 3 rows and 32 columns, 4 rows",
       onOneCore([](TestMachine&, bool broken) {
         F32 a(4, 32), sum(broken ? 3 : 4, 32);
         pto::TASSIGN(a, 0);
         pto::TASSIGN(sum, kF32Bytes);
         pto::TEXPANDS(a, 1.0f);
         pto::TADDS(sum, a, 1.0f);
       })},
      {Rule::kShape, "a move into fewer rows", "TMOV: tile f32 16x32 at 2048 and",
       onOneCore([](TestMachine&, bool broken) {
         F32 a(4, 32), b(broken ? 3 : 4, 32);
         pto::TASSIGN(a, 0);
         pto::TASSIGN(b, kF32Bytes);
         pto::TEXPANDS(a, 1.0f);
         pto::TMOV(b, a);
       })},
      {Rule::kShape, "a cast into fewer rows", "TCVT: tiles of 3 rows and 32 columns, 4 rows",
       onOneCore([](TestMachine&, bool broken) {
         F32 from(4, 32);
         Tile<int32_t, 16, 32> to(broken ? 3 : 4, 32);
         pto::TASSIGN(from, 0);
         pto::TASSIGN(to, kF32Bytes);
         pto::TEXPANDS(from, 1.0f);
         pto::TCVT(to, from, pto::RoundMode::CAST_RINT);
       })},
      {Rule::kRowLimit, "4096 rows", "tensor f32 1x1x1x4096x1",
       onOneCore([](TestMachine& test, bool) {
         Tile<float, 4096, 8> tile(4096, 1);
         pto::TASSIGN(tile, 0);
         auto in = rowsOf(test.in[0].data(), 4096, 1);
         pto::TLOAD(tile, in);
       }),
       &kA2A3, &kA5},
      {Rule::kElementType, "a sum of bf16", "TADD: bf16 on a2a3",
       onOneCore([](TestMachine& test, bool) {
         Tile<bfloat16_t, 4, 32> a(4, 32), sum(4, 32);
         pto::TASSIGN(a, 0);
         pto::TASSIGN(sum, kF32Bytes);
         auto in = rowsOf(as<bfloat16_t>(test.in[0]), 4, 32);
         pto::TLOAD(a, in);
         flag(PIPE_MTE2, PIPE_V);
         pto::TADD(sum, a, a);
       }),
       &kA2A3, &kA5},
      {Rule::kElementType, "a load of f8", "TLOAD: f8e4m3 on a2a3",
       onOneCore([](TestMachine& test, bool) {
         Tile<windlass::float8_e4m3_t, 4, 32> tile(4, 32);
         pto::TASSIGN(tile, 0);
         auto in = rowsOf(as<windlass::float8_e4m3_t>(test.in[0]), 4, 32);
         pto::TLOAD(tile, in);
       }),
       &kA2A3, &kA5},
      {Rule::kElementType, "an atomic add of u8", "TSTORE: u8 on a5",
       onOneCore([](TestMachine& test, bool broken) {
         using U8 = Tile<uint8_t, 4, 32>;
         using I8 = Tile<int8_t, 4, 32>;
         U8 bytes(4, 32);
         I8 signedBytes(4, 32);
         auto in = rowsOf(as<uint8_t>(test.in[0]), 4, 32);
         auto signedIn = rowsOf(as<int8_t>(test.in[0]), 4, 32);
         auto out = rowsOf(as<uint8_t>(test.out[0]), 4, 32);
         auto signedOut = rowsOf(as<int8_t>(test.out[0]), 4, 32);
         pto::TASSIGN(bytes, 0);
         pto::TASSIGN(signedBytes, 0);
         broken ? pto::TLOAD(bytes, in) : pto::TLOAD(signedBytes, signedIn);
         flag(PIPE_MTE2, PIPE_MTE3);
         if (broken) {
           pto::TSTORE<U8, Global<uint8_t>, pto::AtomicType::AtomicAdd>(out, bytes);
         } else {
           pto::TSTORE<I8, Global<int8_t>, pto::AtomicType::AtomicAdd>(signedOut, signedBytes);
         }
       }),
       &kA5, &kA5},
      {Rule::kConversion, "f32 to i8 in one step", "TCVT: f32 to i8 on a5",
       onOneCore([](TestMachine&, bool broken) {
         F32 from(4, 32);
         Tile<half, 16, 32> middle(4, 32);
         Tile<int8_t, 16, 32> to(4, 32);
         pto::TASSIGN(from, 0);
         pto::TASSIGN(middle, kF32Bytes);
         pto::TASSIGN(to, 2 * kF32Bytes);
         pto::TEXPANDS(from, 2.5f);
         if (broken) {
           pto::TCVT(to, from, pto::RoundMode::CAST_RINT);
         } else {
           pto::TCVT(middle, from, pto::RoundMode::CAST_RINT);
           pto::TCVT(to, middle, pto::RoundMode::CAST_RINT);
         }
       }),
       &kA5, &kA5},
      {Rule::kConversion, "bf16 to f16", "TCVT: bf16 to f16 on a2a3",
       onOneCore([](TestMachine& test, bool) {
         Tile<bfloat16_t, 4, 32> from(4, 32);
         Tile<half, 4, 32> to(4, 32);
         pto::TASSIGN(from, 0);
         pto::TASSIGN(to, kF32Bytes);
         auto in = rowsOf(as<bfloat16_t>(test.in[0]), 4, 32);
         pto::TLOAD(from, in);
         flag(PIPE_MTE2, PIPE_V);
         pto::TCVT(to, from, pto::RoundMode::CAST_RINT);
       }),
       &kA2A3, &kA5},
      {Rule::kRoundMode, "to odd, but for f16", "TCVT: f32 to bf16",
       onOneCore([](TestMachine&, bool broken) {
         F32 from(4, 32);
         Tile<bfloat16_t, 4, 32> to(4, 32);
         pto::TASSIGN(from, 0);
         pto::TASSIGN(to, kF32Bytes);
         pto::TEXPANDS(from, 2.5f);
         pto::TCVT(to, from, broken ? pto::RoundMode::CAST_ODD : pto::RoundMode::CAST_RINT);
       })},
  };
}

std::vector<Mistake> flagMistakes() {
  return {
      {Rule::kFlagName, "id 8", "id 8", onOneCore([](TestMachine&, bool broken) {
         set_flag(PIPE_V, PIPE_MTE3, broken ? 8 : 7);
         if (!broken) wait_flag(PIPE_V, PIPE_MTE3, 7);
       })},
      {Rule::kFlagName, "from a pipe to itself", "from pipe 1 to pipe 1",
       onOneCore([](TestMachine&, bool broken) {
         set_flag(PIPE_V, broken ? PIPE_V : PIPE_S, 0);
         if (!broken) wait_flag(PIPE_V, PIPE_S, 0);
       })},
      {Rule::kFlagName, "a barrier of the cube's pipe", "pipe_barrier: pipe 2",
       onOneCore([](TestMachine&, bool broken) { pipe_barrier(broken ? PIPE_M : PIPE_V); })},
      {Rule::kWaitWithoutSet, "another id", "from PIPE_V to PIPE_MTE3, id 1, isn't set before",
       onOneCore([](TestMachine&, bool broken) {
         set_flag(PIPE_V, PIPE_MTE3, 0);
         wait_flag(PIPE_V, PIPE_MTE3, 0);
         if (broken) wait_flag(PIPE_V, PIPE_MTE3, 1);
       })},
      {Rule::kWaitWithoutSet, "a flag that another wait took", "isn't set before",
       onOneCore([](TestMachine&, bool broken) {
         flag(PIPE_V, PIPE_MTE3);
         if (broken) wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
       })},
      {Rule::kFlagSetTwice, "two sets before one wait", "may still be set by instruction 1",
       onOneCore([](TestMachine&, bool broken) {
         set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
         if (broken) set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
         wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
       })},
      {Rule::kFlagSetTwice, "a loop without a flag back", "may still be set by instruction 1",
       onOneCore([](TestMachine&, bool broken) {
         flag(PIPE_V, PIPE_MTE3);
         if (!broken) flag(PIPE_MTE3, PIPE_V);
         flag(PIPE_V, PIPE_MTE3);
       })},
      {Rule::kFlagLeftOver, "no wait", "from PIPE_V to PIPE_MTE3, id 3, which instruction 1",
       onOneCore([](TestMachine&, bool broken) {
         set_flag(PIPE_V, PIPE_MTE3, 3);
         if (!broken) wait_flag(PIPE_V, PIPE_MTE3, 3);
       })},
      {Rule::kFlagTaken, "a flag of TPUT's is set", "TPUT: a flag of EVENT_ID1 is set",
       onOneCore([](TestMachine& test, bool broken) {
         const int id = broken ? EVENT_ID1 : EVENT_ID2;
         set_flag(PIPE_MTE3, PIPE_MTE2, id);
         F32 tile(4, 32);
         pto::TASSIGN(tile, 0);
         auto from = rowsOf(test.in[0].data(), 4, 32);
         auto to = rowsOf(test.window[1].data(), 4, 32);
         pto::comm::TPUT(to, from, tile);
         wait_flag(PIPE_MTE3, PIPE_MTE2, id);
       })},
  };
}

std::vector<Mistake> transferMistakes() {
  return {
      {Rule::kTransferShape, "a longer source", "tensor f32 1x1x1x4x32 to tensor f32 1x1x1x3x32",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(4, 32);
         pto::TASSIGN(tile, 0);
         auto from = rowsOf(test.in[0].data(), 4, 32);
         auto to = rowsOf(test.window[1].data(), broken ? 3 : 4, 32);
         pto::comm::TPUT(to, from, tile);
       })},
      {Rule::kTransferStride, "a stride of 2^31", "TGET: tensor f32",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(1, 32);
         pto::TASSIGN(tile, 0);
         auto from =
             rowsOf(test.window[1].data(), 1, 32, broken ? int64_t{1} << 31 : int64_t{1} << 20);
         auto to = rowsOf(test.out[0].data(), 1, 32);
         pto::comm::TGET(to, from, tile);
       })},
      {Rule::kTransferTile, "a valid size that isn't the tensor's", "of 16x32 valid holds all of",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(broken ? 16 : 4, 32);
         pto::TASSIGN(tile, 0);
         auto from = rowsOf(test.in[0].data(), 4, 32);
         auto to = rowsOf(test.window[1].data(), 4, 32);
         pto::comm::TPUT(to, from, tile);
       })},
      {Rule::kTileOverlap, "two tiles in turn of which one lies in part on the other",
       "tile f32 4x32 at 0 and tile f32 4x32 at ",
       onOneCore([](TestMachine& test, bool broken) {
         pto::Tile<pto::TileType::Vec, float, 4, 32> ping;
         pto::Tile<pto::TileType::Vec, float, 4, 32> pong;
         pto::TASSIGN(ping, 0);
         pto::TASSIGN(pong, broken ? 480 : 512);
         auto from = rowsOf(test.in[0].data(), 8, 32);
         auto to = rowsOf(test.window[1].data(), 8, 32);
         pto::comm::TPUT(to, from, ping, pong);
       })},
      {Rule::kTransferTile, "a static tile with a rest", "in chunks of which go",
       onOneCore([](TestMachine& test, bool broken) {
         pto::Tile<pto::TileType::Vec, float, 4, 32> tile;
         pto::TASSIGN(tile, 0);
         auto from = rowsOf(test.in[0].data(), broken ? 9 : 8, 32);
         auto to = rowsOf(test.window[1].data(), broken ? 9 : 8, 32);
         pto::comm::TPUT(to, from, tile);
       })},
  };
}

std::vector<Mistake> rankMistakes() {
  const auto notify = [](TestMachine& test, uint32_t rank, uint32_t block, int32_t* word,
                         pto::comm::NotifyOp op) {
    test.on(rank, block, [&] {
      pto::comm::Signal signal(word);
      pto::comm::TNOTIFY(signal, 1, op);
    });
  };
  return {
      {Rule::kOutsideMemory, "a peer's memory outside windows", "rank 0, block 0",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(4, 32);
         pto::TASSIGN(tile, 0);
         auto in = rowsOf(test.in[broken ? 1 : 0].data(), 4, 32);
         pto::TLOAD(tile, in);
       })},
      {Rule::kOutsideMemory, "past the end of a window", "TLOAD of TGET: tensor f32 1x1x1x4x32",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(4, 32);
         pto::TASSIGN(tile, 0);
         auto from = rowsOf(&test.window[1][TestMachine::kFloats - (broken ? 127 : 128)], 4, 32);
         auto to = rowsOf(test.out[0].data(), 4, 32);
         pto::comm::TGET(to, from, tile);
       })},
      {Rule::kOutsideMemory, "a signal in no window", "TNOTIFY: the signal lies in no memory",
       [=](TestMachine& test, bool broken) {
         alignas(64) int32_t own = 0;
         notify(test, 0, 0, broken ? &own : test.signal(1, 0).data(), pto::comm::NotifyOp::Set);
       }},
      {Rule::kOutsideMemory, "a cache line of no memory", "dcci: a line of no memory",
       onOneCore([](TestMachine& test, bool broken) {
         const int32_t own = 0;
         dcci(broken ? &own : static_cast<const void*>(test.in[0].data()),
              cache_line_t::SINGLE_CACHE_LINE);
       })},
      {Rule::kMemoryRace, "a load without a wait", "rank 1, block 0, instruction 3, TLOAD: tensor",
       [](TestMachine& test, bool broken) { handOver(test, {true, true, !broken, true}); }},
      {Rule::kMemoryRace, "two ranks write one place", "may still write it",
       [](TestMachine& test, bool broken) {
         for (uint32_t rank : {0u, 1u}) {
           test.on(rank, 0, [&] {
             F32 tile(1, 3);
             pto::TASSIGN(tile, 0);
             auto from = rowsOf(test.in[rank].data(), 1, 3);
             auto to = rowsOf(&test.window[1][rank * (broken ? 2 : 3)], 1, 3);
             pto::comm::TPUT(to, from, tile);
           });
         }
       }},
      {Rule::kMemoryRace, "reads back what it still stores", "may still write it",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(4, 32), back(4, 32);
         pto::TASSIGN(tile, 0);
         pto::TASSIGN(back, kF32Bytes);
         pto::TEXPANDS(tile, 1.0f);
         flag(PIPE_V, PIPE_MTE3);
         auto out = rowsOf(test.out[0].data(), 4, 32);
         pto::TSTORE(out, tile);
         if (!broken) flag(PIPE_MTE3, PIPE_MTE2);
         pto::TLOAD(back, out);
       })},
      {Rule::kNotifyUnreleased, "no pipe_barrier",
       "TNOTIFY: the signal at byte 0 of a window of rank 1 is written while what",
       [](TestMachine& test, bool broken) {
         handOver(test, {!broken, true, true, true, !broken});
       }},
      {Rule::kNotifyUnreleased, "no dsb",
       "TNOTIFY: the signal at byte 0 of a window of rank 1 is written while what",
       [](TestMachine& test, bool broken) {
         handOver(test, {true, !broken, true, true, !broken});
       }},
      {Rule::kLoadUnacquired, "no pipe_barrier after the wait", "TLOAD: tensor f32 1x1x1x2x32",
       [](TestMachine& test, bool broken) { handOver(test, {true, true, true, !broken}); }},
      {Rule::kSignalAlignment, "an odd address",
       "TNOTIFY: the signal at byte 2 of a window of rank 1",
       [=](TestMachine& test, bool broken) {
         char* word = reinterpret_cast<char*>(test.signal(1, 0).data()) + (broken ? 2 : 4);
         notify(test, 0, 0, reinterpret_cast<int32_t*>(word), pto::comm::NotifyOp::Set);
       }},
      {Rule::kSignalWriters, "two blocks set words of one line",
       "byte 4 of a window of rank 1: its line was written by rank 0, block 0",
       [=](TestMachine& test, bool broken) {
         int32_t* line = test.signal(1, 0).data();
         notify(test, 0, 0, line, pto::comm::NotifyOp::Set);
         notify(test, 0, 1, line + (broken ? 1 : 16), pto::comm::NotifyOp::Set);
       }},
      {Rule::kSignalWriters, "one sets what others add to", "written by rank 1, block 0",
       [=](TestMachine& test, bool broken) {
         int32_t* line = test.signal(1, 0).data();
         const auto op = broken ? pto::comm::NotifyOp::Set : pto::comm::NotifyOp::AtomicAdd;
         notify(test, 1, 0, line, pto::comm::NotifyOp::AtomicAdd);
         notify(test, 0, 0, line, op);
       }},
      {Rule::kNotWritten, "a store to what the kernel reads",
       "tensor f32 1x1x1x2x32 lies in argument constant, which isn't `written()`",
       onOneCore([](TestMachine& test, bool broken) {
         F32 tile(2, 32);
         pto::TASSIGN(tile, 0);
         auto from = rowsOf(test.constant[0].data(), 2, 32);
         auto to = rowsOf(broken ? test.constant[1].data() : test.window[1].data(), 2, 32);
         pto::comm::TPUT(to, from, tile);
         EXPECT_EQ(test.constant[1][0], -3.0f);
       })},
      {Rule::kNotWritten, "a signal in what the kernel reads", "the signal at byte 0 of a window",
       onOneCore([](TestMachine& test, bool broken) {
         pto::comm::Signal signal(broken ? as<int32_t>(test.constant[1]) : test.signals[1].words);
         pto::comm::TNOTIFY(signal, 1, pto::comm::NotifyOp::Set);
         EXPECT_EQ(test.constant[1][0], -3.0f);
       })},
      {Rule::kPhaseWaits, "a phase that waits for a signal",
       "instruction 2 of phase 3, TTEST: the signal at byte 0 of a window of rank 0",
       [](TestMachine& test, bool broken) {
         test.patience = {[](const void* looks) {
                            const auto left = --*static_cast<int*>(const_cast<void*>(looks));
                            return left > 0 ? windlass::Ending::kNone : windlass::Ending::kDeadline;
                          },
                          &test.looks};
         test.on(0, 0, [&] {
           checked::Core& core = checked::Core::current();
           core.beginItem(1, 3);
           F32 tile(2, 32);
           pto::TASSIGN(tile, 0);
           auto signal = test.signal(0, 0);
           const auto wait = [&] {
             while (!pto::comm::TTEST(signal, broken ? 1 : 0, pto::comm::WaitCmp::EQ)) continue;
           };
           if (broken) {
             EXPECT_THROW(wait(), checked::Core::Ended);
           } else {
             wait();
           }
           EXPECT_EQ(core.hasEnded(), broken);
           core.endItem();
         });
       }},
      {Rule::kPeerWait, "a look at a peer's memory", "the signal at byte 0 of a window of rank 1",
       onOneCore([](TestMachine& test, bool broken) {
         auto signal = test.signal(broken ? 1 : 0, 0);
         EXPECT_TRUE(pto::comm::TTEST(signal, 0, pto::comm::WaitCmp::EQ));
       })},
  };
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& some :
       {tileMistakes(), operandMistakes(), flagMistakes(), transferMistakes(), rankMistakes()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, IsNamedAndTheSoundKernelIsClean) {
  const Mistake& mistake = GetParam();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TestMachine sound(*mistake.sound, seed);
    mistake.kernel(sound, false);
    sound.finish();
    EXPECT_EQ(sound.machine.report(), "");

    TestMachine broken(*mistake.broken, seed);
    mistake.kernel(broken, true);
    broken.finish();
    ASSERT_FALSE(broken.machine.breaches().empty()) << "nothing is reported";
    for (const checked::Breach& breach : broken.machine.breaches()) {
      EXPECT_STREQ(nameOf(breach.rule), nameOf(mistake.rule)) << breach.text();
    }
    const std::string report = broken.machine.report();
    EXPECT_NE(report.find(mistake.named), std::string::npos) << report;
    EXPECT_NE(report.find(hintOf(mistake.rule)), std::string::npos) << report;
    EXPECT_NE(report.find("seed of the pipes' order " + std::to_string(seed)), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Checked, Mistakes, testing::ValuesIn(mistakes()));

TEST(Breaches, MoreThan64RanksAreNamed) {
  const checked::Machine most({kA5, "a kernel", 64});
  EXPECT_EQ(most.report(), "");
  const checked::Machine more({kA5, "a kernel", 65});
  EXPECT_EQ(more.report(),
            "ranks: kernel a kernel, rank 0, block 0, launch: 65 ranks; use at "
            "most 64 ranks: the device's table of windows has no more\n"
            "on a5, seed of the pipes' order 0");
}

TEST(Breaches, EveryRuleHasAMistake) {
  std::set<Rule> seen = {Rule::kRanks};
  for (const Mistake& mistake : mistakes()) seen.insert(mistake.rule);
  for (int rule = 0; rule < checked::kRules; ++rule) {
    EXPECT_EQ(seen.count(static_cast<Rule>(rule)), 1u) << nameOf(static_cast<Rule>(rule));
  }
}

// The first are kept, the rest counted.
TEST(Breaches, AreBoundedInNumber) {
  TestMachine test(kA2A3);
  test.on(0, 0, [] {
    for (int i = 0; i < 1000; ++i) wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  });
  EXPECT_EQ(test.machine.breachCount(), 1000u);
  EXPECT_EQ(test.machine.breaches().size(), 32u);
  EXPECT_NE(test.machine.report().find("and 999 more of wait-without-set\n"), std::string::npos);
}

// A line for each rule, whichever came how often, and the seed, within what messages have room for.
TEST(Breaches, AreToldOnceOfEachRule) {
  TestMachine test(kA2A3, 77);
  test.on(0, 0, [] {
    for (int i = 0; i < 1000; ++i) wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    F32 tile(2, 32);
    for (int i = 0; i < 3; ++i) pto::TASSIGN(tile, 3);
    set_flag(PIPE_V, PIPE_V, EVENT_ID0);
  });
  const std::string report = test.machine.report();
  for (const char* line : {"wait-without-set: ", "\nand 999 more of wait-without-set\n",
                           "\ntile-misaligned: ", "\nand 2 more of tile-misaligned\n",
                           "\nflag-name: ", "\non a2a3, seed of the pipes' order 77"}) {
    EXPECT_NE(report.find(line), std::string::npos) << line << " in\n" << report;
  }
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 5) << report;
}

TEST(Breaches, OfTooManyRulesAreNamed) {
  TestMachine test(kA5, 78);
  for (int rule = 0; rule < checked::kRules; ++rule)
    test.machine.report(static_cast<Rule>(rule), {"TPUT", 1, 0, 0}, std::string(100, 'x'));
  const std::string report = test.machine.report();
  EXPECT_LT(report.size(), 1700u + 31 * 20);
  EXPECT_NE(report.find("\nand of "), std::string::npos);
  for (int rule = 0; rule < checked::kRules; ++rule)
    EXPECT_NE(report.find(nameOf(static_cast<Rule>(rule))), std::string::npos) << report;
  EXPECT_NE(report.find("\non a5, seed of the pipes' order 78"), std::string::npos);
}

// Numbers are those of the phase, whatever ran before, and looks in vain don't count.
TEST(Breaches, SayWhichInstructionOfThePhase) {
  TestMachine test(kA5);
  test.on(0, 1, [&] {
    checked::Core& core = checked::Core::current();
    auto signal = test.signal(0, 0);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(pto::comm::TTEST(signal, 1, pto::comm::WaitCmp::EQ));
    pipe_barrier(PIPE_ALL);
    core.beginItem(7, 2);
    pipe_barrier(PIPE_ALL);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    core.endItem();
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  });
  ASSERT_EQ(test.machine.breaches().size(), 2u);
  EXPECT_NE(test.machine.breaches()[0].text().find(
                "rank 0, block 7, instruction 2 of phase 2, wait_flag: "),
            std::string::npos);
  EXPECT_NE(test.machine.breaches()[1].text().find("rank 0, block 1, instruction 4, wait_flag: "),
            std::string::npos);
}

}  // namespace breach_test
}  // namespace windlass_test
