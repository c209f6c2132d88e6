// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/exchange.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include "native/comm/host_operations.h"
#include "native/comm/kernels.h"

namespace windlass {
namespace {

// Of all ranks in a round of a gather, where that is not less than one word a rank.
constexpr uint64_t kGatheredWords = uint64_t{32} << 10;
constexpr uint64_t kNoMemory = ~uint64_t{0};

// Of `all`, from `at` on, at most `most`.
uint64_t leftOf(uint64_t all, uint64_t at, uint64_t most) {
  return all > at ? std::min(all - at, most) : 0;
}

}  // namespace

void Exchange::reserve() {
  const uint64_t ranks = comm_.group().ranks();
  counts_.resize(2 * ranks);
  in_.resize(stagedWords());
  out_.resize(std::max({stagedWords(), ranks, std::min(kGatheredWords, ranks * stagedWords())}));
}

uint64_t Exchange::stagedWords() const {
  return comm_.group().config().stageBytes() / sizeof(uint64_t);
}

Call Exchange::call(wl_reduce_op op, const void* in, void* out, uint64_t bytes,
                    uint64_t inBytes) const {
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_REGISTER, fingerprint_, WL_U64, op);
  call.args = {in, out, nullptr};
  call.bytes = bytes;
  call.inBytes = inBytes;
  call.deadlineNs = deadlineNs_;
  call.error = error_;
  return call;
}

Code Exchange::outcome(const wl_error_t& own) {
  wl_error_t told = own;
  char prefix[64];
  std::snprintf(prefix, sizeof prefix, "rank %u's part of the transfer: ", comm_.rank());
  if (own.code != WL_OK) copyError(&told, own, prefix);
  return shareOutcome(comm_, Descriptor::of(WL_OP_REGISTER, fingerprint_), told, deadlineNs_,
                      error_);
}

Code Exchange::gather(const WordList& own, std::vector<WordList>* all) {
  const uint32_t ranks = comm_.group().ranks();
  const uint64_t most = std::min(stagedWords(), std::max<uint64_t>(kGatheredWords / ranks, 1));
  int64_t* totals = counts_.data() + ranks;
  const auto count = static_cast<int64_t>(own.size());
  Code code = comm_.run(Kernel::kAllGatherStaged,
                        call(WL_SUM, &count, totals, sizeof count, sizeof count));
  if (code != WL_OK) return code;
  const auto largest = static_cast<uint64_t>(*std::max_element(totals, totals + ranks));
  const bool keeps = all != nullptr && makeRoom(totals, all);
  for (uint64_t at = 0; at < largest; at += most) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto total = static_cast<uint64_t>(totals[rank]);
      counts_[rank] = static_cast<int64_t>(leftOf(total, at, most));
    }
    const uint64_t bytes = leftOf(own.size(), at, most) * sizeof(uint64_t);
    const uint64_t start = std::min<uint64_t>(at, own.size());
    const PartLists parts = {nullptr, nullptr, counts_.data(), nullptr, 0};
    Call round = call(WL_SUM, own.data() + start, out_.data(), 0, bytes);
    round.parts = &parts;
    code = comm_.run(Kernel::kAllGatherVStaged, round);
    if (code != WL_OK) return code;
    const uint64_t* words = out_.data();
    for (uint32_t rank = 0; keeps && rank < ranks; words += counts_[rank++])
      (*all)[rank].insert((*all)[rank].end(), words, words + counts_[rank]);
  }
  return WL_OK;
}

bool Exchange::makeRoom(const int64_t* totals, std::vector<WordList>* all) {
  try {
    all->resize(comm_.group().ranks());
    for (WordList& list : *all) list.reserve(static_cast<uint64_t>(*totals++));
  } catch (const std::bad_alloc&) {
    outOfMemory_ = true;
  }
  return !outOfMemory_;
}

Code Exchange::exchange(std::vector<WordList>* words) {
  const uint32_t ranks = comm_.group().ranks();
  const uint32_t own = comm_.rank();
  for (uint32_t rank = 0; rank < ranks; ++rank) in_[rank] = (*words)[rank].size();
  Code code =
      comm_.run(Kernel::kAllToAllStaged, call(WL_SUM, in_.data(), out_.data(), sizeof(uint64_t),
                                              ranks * sizeof(uint64_t)));
  if (code != WL_OK) return code;
  std::vector<WordList> received;
  uint64_t largest = 0;
  try {
    received.resize(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (rank == own) continue;
      received[rank].resize(out_[rank]);
      largest = std::max(largest, out_[rank]);
    }
  } catch (const std::bad_alloc&) {
    outOfMemory_ = true;
    largest = kNoMemory;
  }
  code = reduce(&largest, 1, WL_MAX);
  isWhole_ = isWhole_ && largest != kNoMemory;
  if (code != WL_OK || !isWhole_) return code;
  const uint64_t most = std::max<uint64_t>(stagedWords() / ranks, 1);
  for (uint64_t at = 0; at < largest; at += most) {
    const uint64_t slot = leftOf(largest, at, most);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const WordList& list = (*words)[rank];
      if (rank == own || list.size() <= at) continue;
      std::copy_n(list.data() + at, leftOf(list.size(), at, slot), in_.data() + rank * slot);
    }
    code = comm_.run(Kernel::kAllToAllStaged,
                     call(WL_SUM, in_.data(), out_.data(), slot * sizeof(uint64_t),
                          ranks * slot * sizeof(uint64_t)));
    if (code != WL_OK) return code;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      WordList& list = received[rank];
      if (list.size() <= at) continue;
      std::copy_n(out_.data() + rank * slot, leftOf(list.size(), at, slot), list.data() + at);
    }
  }
  received[own].swap((*words)[own]);
  words->swap(received);
  return WL_OK;
}

Code Exchange::reduce(uint64_t* values, uint64_t count, wl_reduce_op op) {
  const uint64_t most = std::min<uint64_t>(stagedWords(), kGatheredBytes / sizeof(uint64_t));
  for (uint64_t at = 0; at < count; at += most) {
    const uint64_t bytes = leftOf(count, at, most) * sizeof(uint64_t);
    uint64_t* from = values + at;
    const Code code =
        comm_.run(Kernel::kAllReduceStaged, call(op, from, out_.data(), bytes, bytes));
    if (code != WL_OK) return code;
    std::copy_n(out_.data(), bytes / sizeof(uint64_t), from);
  }
  return WL_OK;
}

}  // namespace windlass
