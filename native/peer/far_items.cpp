// SPDX-License-Identifier: Apache-2.0
#include "native/peer/far_items.h"

#include <algorithm>
#include <utility>

#include "native/base/far.h"
#include "native/core/launch/rank_moves.h"
#include "windlass/chunk.h"

namespace windlass {

FarItems::FarItems(Comm& comm, PeerAccess& access)
    : PeerRank(comm),
      access_(access),
      partBytes_(comm.group().config().stagePartBytes()),
      served_(ranks_),
      read_(ranks_) {}

Code FarItems::run(FarPlan& far, const Launch& launch, uint32_t firstPhase, Deadline& deadline,
                   wl_error_t* error) {
  access_.look();
  if (Code code = access_.settle(deadline, error)) return code;
  if (firstPhase == 0) std::fill(served_.begin(), served_.end(), Served{0, 0});
  std::fill(read_.begin(), read_.end(), 0);
  for (uint32_t k = 0; k < launch.phases; ++k) {
    phase_ = firstPhase + k;
    if (Code code = runOwnItems(far, launch, k, deadline)) return code;
    if (!access_.reads()) {
      const auto isOver = [](bool isServed) { return isServed; };
      if (Code code = awaitServing(far, kEveryRank, deadline, isOver)) return code;
    }
    comm_.operation().finishPhase(rank_, k);
    if (hosts_ != nullptr) hosts_->tell(comm_.group().lines(rank_).done.word);
    comm_.waits().waiter().ring();
    if (Code code = comm_.waits().awaitNeed(kEveryRank, k + 1, deadline)) return code;
  }
  return WL_OK;
}

template <class Holds>
Code FarItems::awaitServing(const FarPlan& far, uint32_t of, Deadline& deadline, Holds&& holds) {
  const auto look = [&] {
    bool isServed = true;
    for (uint32_t reader = 0; reader < ranks_; ++reader) isServed &= serve(far, reader);
    return holds(isServed) || !broken_.empty();
  };
  if (Code code = comm_.waits().wait(look, of, deadline)) return code;
  if (broken_.empty()) return WL_OK;
  return comm_.failures().publishBreach(rank_, std::exchange(broken_, {}).c_str());
}

Code FarItems::runOwnItems(FarPlan& far, const Launch& launch, uint32_t k, Deadline& deadline) {
  const ChunkTable table = {launch.at<const uint64_t>(rank_, launch.of(rank_).aux)};
  if (k >= table.phases()) return WL_OK;
  const ChunkItem own = {far.item.data()};
  const uint64_t first = uint64_t{k} * table.blocks();
  const uint64_t* end = table.start(first + table.blocks());
  ChunkItem item = {table.start(first)};
  for (; item.words != end; item.words += item.size()) {
    std::copy_n(item.words, item.size(), far.item.data());
    if (Code code = localize(far, far.item.data(), deadline)) return code;
    // Data that an item writes counts as moved, so its input is confirmed first.
    if (Code code = access_.confirm()) return code;
    const char* broken = nullptr;
    comm_.waits().waiter().move([&] { broken = kRankMoves.moveItem(launch, own); });
    if (broken != nullptr) return comm_.failures().publishBreach(rank_, broken);
    if (Code code = comm_.waits().ended(deadline, clockNs())) return code;
  }
  return WL_OK;
}

Code FarItems::localize(FarPlan& far, uint64_t* words, Deadline& deadline) {
  const ChunkItem item = {words};
  unsigned char* to = far.scratch;
  for (uint32_t s = 0; s < item.sources(); ++s) {
    uint64_t* source = words + (item.source(s) - words);
    const uint32_t from = ChunkItem::rankOf(source);
    const Place place = ChunkItem::placeOf(source);
    if (!comm_.group().isFar(rank_, from, place)) continue;
    const DType dtype = ChunkItem::dtypeOf(source);
    auto* strides = reinterpret_cast<int64_t*>(source + ChunkItem::kSourceWords);
    const FarBox box(place.offset(), static_cast<uint32_t>(sizeOf(dtype)), item.ndim(),
                     item.extents(), strides,
                     access_.reads() ? FarBox::Gaps::kShort : FarBox::Gaps::kNone);
    Code code = WL_OK;
    if (access_.reads()) {
      comm_.waits().waiter().move(
          [&] { code = access_.read(from, to, box, 0, box.bytes(), deadline); });
    } else {
      code = takeBox(far, from, box.bytes(), to, deadline);
    }
    if (code != WL_OK) return code;
    source[0] = rank_ | static_cast<uint64_t>(dtype) << 32;
    source[1] = Place::of(kAddressSpace, reinterpret_cast<uint64_t>(to)).word;
    box.copyStrides(strides);
    to += wholeLines(box.bytes());
  }
  return WL_OK;
}

Code FarItems::takeBox(const FarPlan& far, uint32_t from, uint64_t bytes, unsigned char* to,
                       Deadline& deadline) {
  StagePair& pair = block().stagePair(from, rank_);
  while (bytes > 0) {
    const uint64_t turn = pair.taken.load(std::memory_order_relaxed);
    const auto isFilled = [&](bool) {
      return pair.filled.load(std::memory_order_acquire) != turn;
    };
    if (Code code = awaitServing(far, from, deadline, isFilled)) return code;
    uint64_t& read = read_[from];
    // The size may come from another host, so it is limited to the part.
    const uint64_t filled = std::min(pair.bytes[turn & 1], partBytes_);
    const uint64_t count = std::min(filled - std::min<uint64_t>(read, filled), bytes);
    if (count == 0)
      return comm_.failures().publishResource("what came of a transfer is not what was planned");
    const unsigned char* half = block().stage(from, turn) + rank_ * partBytes_;
    if (const char* broken = kRankMoves.copy(to, half + read, count, false))
      return comm_.failures().publishBreach(rank_, broken);
    to += count;
    bytes -= count;
    read += count;
    if (read < filled) continue;
    read = 0;
    pair.taken.store(turn + 1, std::memory_order_release);
    if (!comm_.group().isBeside(from)) hosts_->tell(pair.taken, hosts_->hostOf(from));
    comm_.waits().waiter().ring();
  }
  return WL_OK;
}

bool FarItems::serve(const FarPlan& far, uint32_t reader) {
  const std::vector<uint64_t>& words = far.served[reader];
  Served& next = served_[reader];
  StagePair& pair = block().stagePair(rank_, reader);
  const auto isOver = [&] {
    return next.at == words.size() || ServedBox{words.data() + next.at}.phase() != phase_;
  };
  if (words.empty()) return true;
  for (;;) {
    const uint64_t turn = pair.filled.load(std::memory_order_relaxed);
    const uint64_t ahead = turn - pair.taken.load(std::memory_order_acquire);
    if (isOver()) return ahead == 0;
    if (ahead == 2) return false;
    unsigned char* const half = block().stage(rank_, turn) + reader * partBytes_;
    unsigned char* to = half;
    uint64_t left = partBytes_;
    while (left > 0 && !isOver()) {
      const ServedBox served = {words.data() + next.at};
      const FarBox box = served.box();
      const uint64_t count = std::min(left, box.bytes() - next.from);
      if (const char* broken = kRankMoves.copyBox(to, box, next.from, count)) broken_ = broken;
      to += count;
      left -= count;
      next.from += count;
      if (next.from == box.bytes()) next = {next.at + served.size(), 0};
    }
    pair.bytes[turn & 1] = partBytes_ - left;
    pair.filled.store(turn + 1, std::memory_order_release);
    if (!comm_.group().isBeside(reader)) {
      const uint32_t host = hosts_->hostOf(reader);
      hosts_->put(host, &pair.bytes[turn & 1], sizeof pair.bytes[0]);
      hosts_->put(host, half, partBytes_ - left, &pair.filled, turn + 1);
    }
    comm_.waits().waiter().ring();
  }
}

}  // namespace windlass
