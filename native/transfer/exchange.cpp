// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/exchange.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include "native/base/target.h"
#include "native/core/launch/kernels.h"

namespace windlass {
namespace {

// Maximum number of words in one round of a gather, over all ranks together.
constexpr uint64_t kGatheredWords = uint64_t{32} << 10;
// Sent as the word count by a rank that has failed.
constexpr uint64_t kFailed = ~uint64_t{0};

// In the first round of a gather, each rank's words follow its total count.
constexpr uint64_t kGatherHead = 1;
static_assert(kGatheredWords / WL_MAX_RANKS > kGatherHead, "a round holds words of each rank");
// An exchange sends one slot of words to each rank. The first round's slots hold at most
// kFirstWords. They begin with the length of the sender's longest list, for any rank, and the
// length of its list for the receiver.
constexpr uint64_t kExchangeHead = 2;
constexpr uint64_t kFirstWords = 64;
static_assert(kEagerWords > kExchangeHead, "a round holds words for each rank");

// Number of the `all` words that remain from word `at` on, but at most `most`.
uint64_t leftOf(uint64_t all, uint64_t at, uint64_t most) {
  return all > at ? std::min(all - at, most) : 0;
}

const Kernel& eager(wl_operation operation) {
  return kKernels.collectives[operation].eager;
}

}  // namespace

Exchange::Exchange(Comm& comm, uint64_t fingerprint, int64_t deadlineNs, wl_error_t* error)
    : comm_(comm),
      fingerprint_(fingerprint),
      limit_(TimeLimit::fromNow(deadlineNs)),
      error_(error) {}

void Exchange::reserve() {
  const uint64_t ranks = comm_.group().ranks();
  totals_.resize(ranks);
  in_.resize(eagerWords());
  out_.resize(std::max({eagerWords(), ranks, std::min(kGatheredWords, ranks * eagerWords())}));
  if (!kTarget.limits.hasReduce(DType::kU64)) gathered_.resize(out_.size());
}

uint64_t Exchange::eagerWords() const {
  return comm_.group().config().eagerRoomBytes() / sizeof(uint64_t);
}

Call Exchange::call(wl_reduce_op op, const void* in, void* out, uint64_t bytes,
                    uint64_t inBytes) const {
  Call call = {};
  call.descriptor = Descriptor::of(WL_OP_REGISTER, fingerprint_, WL_U64, op);
  call.args = {in, out, nullptr};
  call.bytes = bytes;
  call.inBytes = inBytes;
  call.outBytes = bytes * comm_.group().ranks();
  call.deadlineNs = limit_.deadlineNs;
  call.startNs = limit_.startNs;
  call.error = error_;
  return call;
}

Code Exchange::reduce(wl_reduce_op op, const uint64_t* in, uint64_t* out, uint64_t count) {
  const uint64_t bytes = count * sizeof(uint64_t);
  if (kTarget.limits.hasReduce(DType::kU64))
    return comm_.run(eager(WL_OP_ALL_REDUCE), call(op, in, out, bytes, bytes));
  uint64_t* all = count == 1 ? oneEach_ : gathered_.data();
  const Code code = comm_.run(eager(WL_OP_ALL_GATHER), call(op, in, all, bytes, bytes));
  if (code != WL_OK) return code;
  for (uint64_t word = 0; word < count; ++word) {
    out[word] = all[word];
    for (uint32_t rank = 1; rank < comm_.group().ranks(); ++rank) {
      const uint64_t next = all[rank * count + word];
      out[word] = op == WL_MAX ? std::max(out[word], next) : out[word] + next;
    }
  }
  return WL_OK;
}

Code Exchange::tell() {
  wl_error_t told = failure_;
  char prefix[64];
  std::snprintf(prefix, sizeof prefix, "rank %u's part of the transfer: ", comm_.rank());
  if (failed()) {
    copyError(&told, failure_, prefix);
    told.operation = WL_OP_REGISTER;
    told.observer = static_cast<int32_t>(comm_.rank());
    told.sequence = comm_.operation().sequence();
    nameCulprit(&told, comm_.rank());
  }
  return shareDeviceOutcome(comm_, Descriptor::of(WL_OP_REGISTER, fingerprint_), told, limit_,
                            error_);
}

void Exchange::outOfMemory() {
  fail(&failure_, WL_RESOURCE, "out of memory for what its peers bring");
}

Code Exchange::gather(const WordList& own, const std::function<void(const Round&)>& take) {
  const uint32_t ranks = comm_.group().ranks();
  const uint64_t stated = failed() ? kFailed : own.size();
  uint64_t longest = 0;
  Code code = reduce(WL_MAX, &stated, &longest, 1);
  if (code != WL_OK) return code;
  if (longest == kFailed) return tell();
  const uint64_t most = std::min(eagerWords(), kGatheredWords / ranks);
  uint64_t head = kGatherHead;
  uint64_t slot = 0;
  for (uint64_t at = 0; at < longest || head > 0; at += slot - head, head = 0) {
    slot = std::min(longest - at + head, most);
    in_[0] = own.size();
    std::copy_n(own.data() + std::min<uint64_t>(at, own.size()),
                leftOf(own.size(), at, slot - head), in_.data() + head);
    const uint64_t bytes = slot * sizeof(uint64_t);
    code = comm_.run(eager(WL_OP_ALL_GATHER),
                     call(WL_SUM, in_.data(), out_.data(), bytes, bytes));
    if (code != WL_OK) return code;
    for (uint32_t rank = 0; head > 0 && rank < ranks; ++rank)
      totals_[rank] = out_[rank * slot];
    try {
      if (!failed()) take({at, at + slot - head, totals_.data(), out_.data() + head, slot});
    } catch (const std::bad_alloc&) {
      outOfMemory();
    }
  }
  return WL_OK;
}

Code Exchange::exchange(std::vector<WordList>* words) {
  const uint32_t ranks = comm_.group().ranks();
  const uint32_t own = comm_.rank();
  const bool sends = !failed();
  uint64_t longest = sends ? 0 : kFailed;
  for (uint32_t rank = 0; sends && rank < ranks; ++rank)
    if (rank != own) longest = std::max<uint64_t>(longest, (*words)[rank].size());
  std::vector<WordList> received;
  // Runs one all-to-all of `slot` words a slot: `head` header words, then words from `at` on.
  const auto round = [&](uint64_t at, uint64_t slot, uint64_t head) {
    for (uint32_t rank = 0; sends && rank < ranks; ++rank) {
      if (rank == own) continue;
      const WordList& list = (*words)[rank];
      const uint64_t count = leftOf(list.size(), at, slot - head);
      if (count > 0) std::copy_n(list.data() + at, count, in_.data() + rank * slot + head);
    }
    return comm_.run(eager(WL_OP_ALL_TO_ALL),
                     call(WL_SUM, in_.data(), out_.data(), slot * sizeof(uint64_t),
                          ranks * slot * sizeof(uint64_t)));
  };
  const auto take = [&](uint64_t at, uint64_t slot, uint64_t head) {
    for (uint32_t rank = 0; !failed() && rank < ranks; ++rank) {
      WordList& list = received[rank];
      const uint64_t count = leftOf(list.size(), at, slot - head);
      if (count > 0) std::copy_n(out_.data() + rank * slot + head, count, list.data() + at);
    }
  };

  const uint64_t most = eagerWords() / ranks;
  const uint64_t first = std::min(most, kFirstWords);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    in_[rank * first] = longest;
    in_[rank * first + 1] = sends && rank != own ? (*words)[rank].size() : 0;
  }
  Code code = round(0, first, kExchangeHead);
  if (code != WL_OK) return code;
  for (uint32_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, out_[rank * first]);
  if (longest == kFailed) return tell();
  try {
    received.resize(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) received[rank].resize(out_[rank * first + 1]);
  } catch (const std::bad_alloc&) {
    outOfMemory();
  }
  take(0, first, kExchangeHead);
  for (uint64_t at = first - kExchangeHead; at < longest; at += most) {
    const uint64_t slot = leftOf(longest, at, most);
    code = round(at, slot, 0);
    if (code != WL_OK) return code;
    take(at, slot, 0);
  }
  if (failed()) return WL_OK;
  received[own].swap((*words)[own]);
  words->swap(received);
  return WL_OK;
}

Code Exchange::sum(uint64_t* values, uint64_t count) {
  uint64_t most = std::min<uint64_t>(eagerWords(), kGatheredBytes / sizeof(uint64_t)) - 1;
  if (!gathered_.empty()) most = std::min(most, gathered_.size() / comm_.group().ranks() - 1);
  uint64_t at = 0;
  do {
    const uint64_t n = leftOf(count, at, most);
    in_[0] = failed() ? 1 : 0;
    std::copy_n(values + at, n, in_.data() + 1);
    const Code code = reduce(WL_SUM, in_.data(), out_.data(), 1 + n);
    if (code != WL_OK) return code;
    if (out_[0] != 0) return tell();
    std::copy_n(out_.data() + 1, n, values + at);
    at += most;
  } while (at < count);
  return WL_OK;
}

}  // namespace windlass
