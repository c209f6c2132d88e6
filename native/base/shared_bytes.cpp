// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "native/base/extent.h"

namespace windlass {
namespace {

constexpr int64_t kMostReach = int64_t{1} << 61;
constexpr int kMostSteps = 1'000'000;
constexpr uint32_t kMostTerms = 2 * (kMaxDims + 1);

// A summand of x * stride bytes, for an x in [least, most].
struct Term {
  int64_t stride;
  int64_t least;
  int64_t most;
};

int64_t floorDiv(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

int64_t ceilDiv(int64_t a, int64_t b) {
  return a / b + (a % b > 0 ? 1 : 0);
}

// Searches for a sum of terms, from the widest stride down, and prunes where the remaining terms
// can't reach. For views of one tensor, the search takes a few steps.
class Search {
 public:
  // A sum is the offset of a byte of one of a's elements, minus the offset of a byte of one of b's.
  // The two bytes coincide if the sum equals the distance from `a` to `b`.
  Search(const StridedView& a, const StridedView& b) {
    add(a, false);
    add(b, true);
    std::sort(terms_, terms_ + count_, [](const Term& x, const Term& y) {
      return x.stride > y.stride;
    });
    merge();
    for (uint32_t i = count_; i-- > 0;) {
      restLeast_[i] = restLeast_[i + 1] + terms_[i].stride * terms_[i].least;
      restMost_[i] = restMost_[i + 1] + terms_[i].stride * terms_[i].most;
    }
  }

  // True if the terms from `i` on can add up to `distance`.
  bool reaches(uint32_t i, int64_t distance) {
    if (distance < restLeast_[i] || distance > restMost_[i]) return false;
    if (i == count_ || ++steps_ > kMostSteps) return true;
    const Term& term = terms_[i];
    const int64_t from = std::max(term.least, ceilDiv(distance - restMost_[i + 1], term.stride));
    const int64_t to = std::min(term.most, floorDiv(distance - restLeast_[i + 1], term.stride));
    for (int64_t x = from; x <= to; ++x) {
      if (reaches(i + 1, distance - x * term.stride)) return true;
    }
    return false;
  }

 private:
  // Adds a term for each dimension, and one for the bytes of an element.
  void add(const StridedView& view, bool negative) {
    const auto width = static_cast<int64_t>(sizeOf(view.dtype));
    for (uint32_t d = 0; d < view.ndim; ++d)
      add(view.strides[d], width, view.shape[d] - 1, negative);
    add(1, 1, width - 1, negative);
  }
  void add(int64_t stride, int64_t width, int64_t last, bool negative) {
    if (stride == 0 || last == 0) return;
    terms_[count_++] = {stride * width, negative ? -last : 0, negative ? 0 : last};
  }
  void merge() {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (kept > 0 && terms_[kept - 1].stride == terms_[i].stride) {
        terms_[kept - 1].least += terms_[i].least;
        terms_[kept - 1].most += terms_[i].most;
      } else {
        terms_[kept++] = terms_[i];
      }
    }
    count_ = kept;
  }

  Term terms_[kMostTerms];
  uint32_t count_ = 0;
  int steps_ = 0;
  // Minimum and maximum sum of the terms from an index on.
  int64_t restLeast_[kMostTerms + 1] = {};
  int64_t restMost_[kMostTerms + 1] = {};
};

// Returns false if the view is too large to search.
bool extentOfView(const StridedView& view, int64_t* reach) {
  return extentOf(view.ndim, view.shape, view.strides, sizeOf(view.dtype), reach) &&
         *reach < kMostReach;
}

}  // namespace

bool shareBytes(const StridedView& a, const StridedView& b) {
  const auto first = reinterpret_cast<uintptr_t>(a.data);
  const auto second = reinterpret_cast<uintptr_t>(b.data);
  if (second < first) return shareBytes(b, a);
  int64_t aReach = 0;
  int64_t bReach = 0;
  if (!extentOfView(a, &aReach)) return true;
  if (second - first >= static_cast<uint64_t>(aReach)) return false;
  if (!extentOfView(b, &bReach)) return true;
  return bReach > 0 && Search(a, b).reaches(0, static_cast<int64_t>(second - first));
}

}  // namespace windlass
