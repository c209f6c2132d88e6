// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/exchange.h"

#include <algorithm>

namespace windlass {
namespace {

// Maximum number of words in one round of a gather, over all ranks together.
constexpr uint64_t kGatheredWords = uint64_t{32} << 10;
static_assert(kGatheredWords / WL_MAX_RANKS > 1, "a round holds words of each rank");
// End of the message "out of memory ..." for a rank that receives words.
constexpr const char* kTaking = "for what its peers bring";
// Sent as the word count by a rank that has failed. A gather sends its low half.
constexpr uint64_t kFailed = ~uint64_t{0};
constexpr auto kFailedGather = static_cast<uint32_t>(kFailed);

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

}  // namespace

Exchange::Exchange(Comm& comm, uint64_t fingerprint, int64_t deadlineNs, wl_error_t* error)
    : comm_(comm),
      of_{comm, Descriptor::of(WL_OP_REGISTER, fingerprint, WL_U64),
          TimeLimit::fromNow(deadlineNs), error} {}

void Exchange::reserve() {
  totals_.resize(comm_.group().ranks());
  in_.resize(eagerWords());
  out_.resize(std::min(kGatheredWords, comm_.group().ranks() * eagerWords()));
}

uint64_t Exchange::eagerWords() const {
  return comm_.group().config().eagerRoomBytes() / sizeof(uint64_t);
}

Code Exchange::gatherSlots(uint64_t slot) {
  return gatherWords(of_, in_.data(), slot * sizeof(uint64_t), out_.data());
}

Code Exchange::tell() {
  wl_error_t told = blankError();
  if (failed()) {
    const auto code = static_cast<Code>(failure_.code);
    told = comm_.failures().recordOf(
        errorOf(code, "rank %u's part of the transfer: %s", comm_.rank(), failure_.message),
        comm_.rank());
  }
  return shareDeviceOutcome(of_, told);
}

Code Exchange::gather(const WordList& own, const std::function<void(const Round&)>& take) {
  const uint32_t ranks = comm_.group().ranks();
  if (!failed() && own.size() >= kFailedGather)
    fail(failure(), WL_RESOURCE, "its bindings take more than 2^32 - 2 words");
  uint32_t longest = failed() ? kFailedGather : static_cast<uint32_t>(own.size());
  if (Code code = reduceWord(of_, WL_MAX, &longest)) return code;
  if (longest == kFailedGather) return tell();
  const uint64_t most = std::min(eagerWords(), kGatheredWords / ranks);
  // Each slot of the first round begins with the length of its rank's list.
  uint64_t head = 1;
  uint64_t at = 0;
  do {
    const uint64_t count = std::min(longest - at, most - head);
    const uint64_t slot = head + count;
    in_[0] = own.size();
    std::copy_n(own.data() + std::min<uint64_t>(at, own.size()), leftOf(own.size(), at, count),
                in_.data() + head);
    if (Code code = gatherSlots(slot)) return code;
    for (uint32_t rank = 0; head > 0 && rank < ranks; ++rank) totals_[rank] = out_[rank * slot];
    step(kTaking, [&](wl_error_t*) {
      take({at, at + count, totals_.data(), out_.data() + head, slot});
    });
    at += count;
    head = 0;
  } while (at < longest);
  return WL_OK;
}

Code Exchange::exchange(std::vector<WordList>* words) {
  const uint32_t ranks = comm_.group().ranks();
  const uint32_t own = comm_.rank();
  const bool sends = !failed();
  const auto lengthFor = [&](uint32_t rank) {
    return sends && rank != own ? uint64_t{(*words)[rank].size()} : 0;
  };
  uint64_t longest = sends ? 0 : kFailed;
  for (uint32_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, lengthFor(rank));
  std::vector<WordList> received;
  const uint64_t most = eagerWords() / ranks;
  uint64_t slot = std::min(most, kFirstWords);
  uint64_t head = kExchangeHead;
  for (uint64_t at = 0; head > 0 || at < longest; slot = leftOf(longest, at, most)) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      uint64_t* to = in_.data() + rank * slot;
      if (head > 0) {
        to[0] = longest;
        to[1] = lengthFor(rank);
      }
      const uint64_t count = leftOf(lengthFor(rank), at, slot - head);
      if (count > 0) std::copy_n((*words)[rank].data() + at, count, to + head);
    }
    const Code code = exchangeWords(of_, in_.data(), slot * sizeof(uint64_t), out_.data());
    if (code != WL_OK) return code;
    if (head > 0) {
      for (uint32_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, out_[rank * slot]);
      if (longest == kFailed) return tell();
      step(kTaking, [&](wl_error_t*) {
        received.resize(ranks);
        for (uint32_t rank = 0; rank < ranks; ++rank) received[rank].resize(out_[rank * slot + 1]);
      });
    }
    for (uint32_t rank = 0; !failed() && rank < ranks; ++rank) {
      WordList& list = received[rank];
      const uint64_t count = leftOf(list.size(), at, slot - head);
      if (count > 0) std::copy_n(out_.data() + rank * slot + head, count, list.data() + at);
    }
    at += slot - head;
    head = 0;
  }
  if (failed()) return WL_OK;
  received[own].swap((*words)[own]);
  words->swap(received);
  return WL_OK;
}

Code Exchange::sum(uint64_t* values, uint64_t count) {
  const uint32_t ranks = comm_.group().ranks();
  // A slot holds whether its rank has failed, and then its values.
  const uint64_t most = std::min(eagerWords(), kGatheredWords / ranks) - 1;
  uint64_t at = 0;
  do {
    const uint64_t n = leftOf(count, at, most);
    in_[0] = failed() ? 1 : 0;
    std::copy_n(values + at, n, in_.data() + 1);
    if (Code code = gatherSlots(1 + n)) return code;
    std::fill_n(values + at, n, 0);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint64_t* slot = out_.data() + rank * (1 + n);
      if (slot[0] != 0) return tell();
      for (uint64_t i = 0; i < n; ++i) values[at + i] += slot[1 + i];
    }
    at += most;
  } while (at < count);
  return WL_OK;
}

}  // namespace windlass
