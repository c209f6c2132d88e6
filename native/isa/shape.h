// SPDX-License-Identifier: Apache-2.0
// Tensors, their shapes and strides under the names of the tile ISA, for targets that run on the
// CPU. As in the toolkit, accessors are not const, so that temporaries and const tensors don't
// compile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "native/isa/element_types.h"
#include "native/isa/enums.h"
#include "windlass/kernel.h"

namespace windlass {

constexpr int kGlobalDims = 5;

}  // namespace windlass

namespace pto {

namespace detail {

// Five extents. `values` has one value for each DYNAMIC extent, or all five.
template <int64_t... N>
struct Extents {
  static_assert(sizeof...(N) == windlass::kGlobalDims, "five dimensions");
  static constexpr int kDims = windlass::kGlobalDims;
  static constexpr int kDynamic = ((N == DYNAMIC ? 1 : 0) + ...);
  static constexpr int64_t kGiven[] = {N...};
  template <typename... V>
  static constexpr bool takes =
      sizeof...(V) == kDims || (sizeof...(V) > 0 && sizeof...(V) == kDynamic);

  static constexpr void ones(int64_t* to) {
    for (int d = 0; d < kDims; ++d) to[d] = kGiven[d] == DYNAMIC ? 1 : kGiven[d];
  }
  template <typename... V>
  static constexpr void fill(int64_t* to, V... v) {
    const int64_t values[] = {static_cast<int64_t>(v)...};
    int next = 0;
    for (int d = 0; d < kDims; ++d) {
      const bool all = sizeof...(V) == kDims;
      to[d] = kGiven[d] != DYNAMIC ? kGiven[d] : values[all ? d : next++];
    }
  }
};

}  // namespace detail

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape {
  using Extents = detail::Extents<N1, N2, N3, N4, N5>;

  constexpr Shape() { Extents::ones(shape); }
  template <typename... V, std::enable_if_t<Extents::template takes<V...>, int> = 0>
  explicit constexpr Shape(V... values) {
    Extents::fill(shape, values...);
  }

  int64_t shape[Extents::kDims] = {};
};

// Strides in elements.
template <int64_t S1 = DYNAMIC, int64_t S2 = DYNAMIC, int64_t S3 = DYNAMIC, int64_t S4 = DYNAMIC,
          int64_t S5 = DYNAMIC>
struct Stride {
  using Extents = detail::Extents<S1, S2, S3, S4, S5>;

  constexpr Stride() { Extents::ones(stride); }
  template <typename... V, std::enable_if_t<Extents::template takes<V...>, int> = 0>
  explicit constexpr Stride(V... values) {
    Extents::fill(stride, values...);
  }

  int64_t stride[Extents::kDims] = {};
};

// A 5-D view of memory: dimension 3 counts rows, dimension 4 columns.
template <typename Element, typename ShapeT, typename StrideT, Layout kLayout = Layout::ND>
class GlobalTensor {
 public:
  using RawDType = std::remove_const_t<Element>;
  using DType = Element;
  static constexpr Layout layout = kLayout;
  // True if, by its type, the tensor is one row of contiguous elements.
  static constexpr bool kOneRow =
      ShapeT::Extents::kGiven[0] == 1 && ShapeT::Extents::kGiven[1] == 1 &&
      ShapeT::Extents::kGiven[2] == 1 && ShapeT::Extents::kGiven[3] == 1 &&
      StrideT::Extents::kGiven[4] == 1;

  explicit GlobalTensor(Element* data, const ShapeT& shape = ShapeT(),
                        const StrideT& stride = StrideT()) noexcept
      : data_(data), shape_(shape), stride_(stride) {}

  Element* data() noexcept { return data_; }
  int64_t GetShape(int d) noexcept { return shape_.shape[d]; }
  int64_t GetStride(int d) noexcept { return stride_.stride[d]; }
  // The result points to the shape and strides of this tensor.
  windlass::StridedView view() noexcept {
    return {const_cast<RawDType*>(data_), windlass::DTypeOf<RawDType>::value,
            windlass::kGlobalDims, shape_.shape, stride_.stride};
  }

 private:
  Element* data_;
  ShapeT shape_;
  StrideT stride_;
};

}  // namespace pto
