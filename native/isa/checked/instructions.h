// SPDX-License-Identifier: Apache-2.0
// Raw instructions of the tile ISA, and the toolkit's TPUT, TGET, TNOTIFY and TTEST. Names and
// argument orders are those of the toolkit. The calling thread is the scalar pipe of a core and
// issues to that core. As in the toolkit, the compiler refuses errors that depend only on types.
// Other errors are reported to the machine.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/isa/arithmetic.h"
#include "native/isa/checked/transfer.h"
#include "native/isa/checked/types.h"

// ---- built-ins

namespace pto {
inline namespace checked {

inline int64_t get_block_idx() {
  return windlass::checked::Core::current().block();
}
inline int64_t get_block_num() {
  return windlass::checked::Core::current().blocks();
}
inline void set_flag(pipe_t from, pipe_t to, int id) {
  windlass::checked::Core::current().setFlag(from, to, id);
}
inline void wait_flag(pipe_t from, pipe_t to, int id) {
  windlass::checked::Core::current().waitFlag(from, to, id);
}
inline void pipe_barrier(pipe_t pipe) {
  windlass::checked::Core::current().barrier(pipe);
}
inline void dsb(mem_dsb_t) {
  windlass::checked::Core::current().drainStores();
}
inline void dcci(const void* address, cache_line_t, dcci_dst_t = dcci_dst_t::CACHELINE_OUT) {
  windlass::checked::Core::current().maintainCache(address);
}

}  // namespace checked
}  // namespace pto

using pto::dcci;
using pto::dsb;
using pto::get_block_idx;
using pto::get_block_num;
using pto::pipe_barrier;
using pto::set_flag;
using pto::wait_flag;

namespace pto {
inline namespace checked {

template <typename TileT, std::enable_if_t<!std::is_pointer_v<TileT>, int> = 0>
void TASSIGN(TileT& tile, uint64_t offset) {
  tile.place(offset);
}
template <uint64_t kOffset, typename TileT>
void TASSIGN(TileT& tile) {
  tile.place(kOffset);
}

// ---- movement

template <typename TileT, typename Global>
void TLOAD(TileT& tile, Global& tensor) {
  windlass::checked::Core::current().load(tile.ref(), windlass::checked::refOf(tensor.view()));
}

template <typename TileT, typename Global, AtomicType kAtomic>
void TSTORE(Global& tensor, TileT& tile) {
  windlass::checked::Core::current().store(windlass::checked::refOf(tensor.view()), tile.ref(),
                                           kAtomic == AtomicType::AtomicAdd);
}
template <typename Global, typename TileT>
void TSTORE(Global& tensor, TileT& tile) {
  TSTORE<TileT, Global, AtomicType::AtomicNone>(tensor, tile);
}

// ---- arithmetic: native/isa/arithmetic.h

template <typename Dst, typename A, typename B>
void combineTiles(const char* name, windlass::checked::Op op, Dst& dst, A& a, B& b) {
  windlass::checked::Core::current().combine(name, op, dst.ref(), a.ref(), b.ref());
}
template <typename Dst, typename Src>
void combineTileScalar(const char* name, windlass::checked::Op op, Dst& dst, Src& src,
                       uint64_t scalar) {
  windlass::checked::Core::current().combineScalar(name, op, dst.ref(), src.ref(), scalar);
}
template <typename Dst>
void fillTile(Dst& dst, uint64_t scalar) {
  windlass::checked::Core::current().fill(dst.ref(), scalar);
}
template <typename Dst, typename Src>
void moveTile(Dst& dst, Src& src) {
  windlass::checked::Core::current().move(dst.ref(), src.ref());
}
template <typename Dst, typename Src, typename Scratch>
void convertTile(Dst& dst, Src& src, Scratch* scratch, RoundMode mode,
                 const SaturationMode* saturation) {
  const windlass::checked::TileRef room = scratch == nullptr ? src.ref() : scratch->ref();
  windlass::checked::Core::current().convert(dst.ref(), src.ref(),
                                             scratch == nullptr ? nullptr : &room, mode,
                                             saturation);
}

// ---- between ranks

}  // namespace checked

namespace comm {
inline namespace checked {
namespace detail {

template <typename Dst, typename Src, typename TileT>
void transfer(const windlass::checked::TransferKind& kind, Dst& dst, Src& src, TileT& ping,
              TileT* pong, bool adds) {
  static_assert(std::is_same_v<typename Dst::RawDType, typename Src::RawDType> &&
                    std::is_same_v<typename Dst::RawDType, typename TileT::DType>,
                "one dtype");
  static_assert(Dst::layout == Src::layout, "one layout");
  windlass::checked::TileRef first = ping.ref();
  windlass::checked::TileRef second = pong == nullptr ? first : pong->ref();
  windlass::checked::transfer(windlass::checked::Core::current(), kind,
                              windlass::checked::refOf(dst.view()),
                              windlass::checked::refOf(src.view()), &first,
                              pong == nullptr ? nullptr : &second, adds);
  ping.take(first);
  if (pong != nullptr) pong->take(second);
}

}  // namespace detail

template <AtomicType kAtomic = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
void TPUT(Dst& dst, Src& src, TileT& tile) {
  detail::transfer<Dst, Src, TileT>(windlass::checked::kPut, dst, src, tile, nullptr,
                                    kAtomic == AtomicType::AtomicAdd);
}
template <AtomicType kAtomic = AtomicType::AtomicNone, typename Dst, typename Src, typename TileT>
void TPUT(Dst& dst, Src& src, TileT& ping, TileT& pong) {
  detail::transfer(windlass::checked::kPut, dst, src, ping, &pong,
                   kAtomic == AtomicType::AtomicAdd);
}
template <typename Dst, typename Src, typename TileT>
void TPUT(Dst& dst, Src& src, TileT& tile, AtomicType atomic) {
  detail::transfer<Dst, Src, TileT>(windlass::checked::kPut, dst, src, tile, nullptr,
                                    atomic == AtomicType::AtomicAdd);
}
template <typename Dst, typename Src, typename TileT>
void TGET(Dst& dst, Src& src, TileT& tile) {
  detail::transfer<Dst, Src, TileT>(windlass::checked::kGet, dst, src, tile, nullptr, false);
}
template <typename Dst, typename Src, typename TileT>
void TGET(Dst& dst, Src& src, TileT& ping, TileT& pong) {
  detail::transfer(windlass::checked::kGet, dst, src, ping, &pong, false);
}

inline void TNOTIFY(Signal& signal, int32_t value, NotifyOp op) {
  windlass::checked::Core::current().notify(signal.data(), value, op);
}
inline bool TTEST(Signal& signal, int32_t value, WaitCmp cmp) {
  return windlass::checked::Core::current().look(signal.data(), value, cmp);
}

}  // namespace checked
}  // namespace comm
}  // namespace pto
