// SPDX-License-Identifier: Apache-2.0
#include "native/core/launch/stated_arguments.h"

#include <algorithm>
#include <cstring>

#include "native/base/dtype.h"
#include "native/base/mixed.h"

namespace windlass {
namespace {

void addScalar(Text& out, int32_t dtype, uint64_t bits) {
  switch (static_cast<DType>(dtype)) {
    case DType::kI32:
      return out.add("%d", static_cast<int32_t>(bits));
    case DType::kF32: {
      float number = 0;
      std::memcpy(&number, &bits, sizeof number);
      return out.add("%.9g", static_cast<double>(number));
    }
    case DType::kF64: {
      double number = 0;
      std::memcpy(&number, &bits, sizeof number);
      return out.add("%.17g", number);
    }
    default:
      return out.add("%lld", text(bits));
  }
}

// The words of one tensor, as one rank states them.
struct StatedTensor {
  uint64_t count;
  const uint64_t* words;

  uint64_t typed() const { return 2 + words[1]; }  // words of dtype and shape
  uint64_t offset() const { return words[count - 1]; }
  bool isLike(const StatedTensor& other) const {
    return words[1] == other.words[1] && std::equal(words, words + typed(), other.words);
  }
  bool sharesWindow(const StatedTensor& other) const {
    return count == other.count && std::equal(words, words + count - 1, other.words);
  }
};

// Example: "f32[4, 8]".
void addTyped(Text& out, const StatedTensor& tensor) {
  out.add("%s[", dtypeName(static_cast<int32_t>(tensor.words[0])));
  for (uint64_t d = 2; d < tensor.typed(); ++d) {
    out.add("%s%llu", d == 2 ? "" : ", ", text(tensor.words[d]));
  }
  out.add("]");
}

void addTensors(Text& out, uint32_t a, const StatedTensor& ofA, uint32_t b,
                const StatedTensor& ofB) {
  if (ofA.count == 0 || ofB.count == 0)
    return out.add(" has another dtype, shape or place on rank %u than on rank %u", a, b);
  if (!ofA.isLike(ofB)) {
    out.add(" is ");
    addTyped(out, ofA);
    out.add(" on rank %u and ", a);
    addTyped(out, ofB);
    return out.add(" on rank %u", b);
  }
  if (!ofA.sharesWindow(ofB))
    return out.add(" lies in another window on rank %u than on rank %u", a, b);
  out.add(" lies at byte %llu of its window on rank %u and at byte %llu on rank %u",
          text(ofA.offset()), a, text(ofB.offset()), b);
}

}  // namespace

void StatedArguments::beginTensor(uint32_t number) {
  number_ = number;
  words_[number] = 0;
  // Without room for the words of a whole tensor, only a count of 0 is stored.
  head_ = size_ + kMostOfTensor <= kMostWords - kMostArguments ? size_ : 0;
  words_[size_++] = 0;
}

void StatedArguments::add(uint64_t word) {
  words_[number_] = mixed(words_[number_], word);
  if (head_ == 0) return;
  words_[size_++] = word;
  ++words_[head_];
}

uint64_t StatedArguments::fingerprint() const {
  uint64_t all = 0;
  for (uint32_t i = 0; i < count_; ++i) all = mixed(all, words_[i]);
  return all;
}

void addDifference(Text& out, const LoadedKernel& kernel, uint32_t a, const uint64_t* ofA,
                   uint32_t b, const uint64_t* ofB) {
  const KernelEntry& entry = *kernel.entry;
  const uint64_t* atA = ofA + entry.argumentCount;
  const uint64_t* atB = ofB + entry.argumentCount;
  for (uint32_t i = 0; i < entry.argumentCount; ++i) {
    const ArgumentEntry& argument = entry.arguments[i];
    const bool isScalar = argument.kind == ArgumentEntry::kScalar;
    if (ofA[i] != ofB[i]) {
      out.add("; argument %u, %s,", i, argument.name);
      if (!isScalar) return addTensors(out, a, {*atA, atA + 1}, b, {*atB, atB + 1});
      out.add(" is ");
      addScalar(out, argument.dtype, ofA[i]);
      out.add(" on rank %u and ", a);
      addScalar(out, argument.dtype, ofB[i]);
      return out.add(" on rank %u", b);
    }
    if (isScalar) continue;
    atA += 1 + *atA;
    atB += 1 + *atB;
  }
}

}  // namespace windlass
