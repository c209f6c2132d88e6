// SPDX-License-Identifier: Apache-2.0
// Tensors, their shapes and strides under the names of the tile ISA, for the CPU and for cores of
// GPUs. As in the toolkit, accessors are not const, so that temporaries and const tensors don't
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

// Five extents. `values` has one value for each DYNAMIC extent, or all five. Without values, each
// DYNAMIC extent is 1.
template <int64_t... N>
struct Extents {
  static_assert(sizeof...(N) == windlass::kGlobalDims, "five dimensions");
  static constexpr int kDynamic = ((N == DYNAMIC ? 1 : 0) + ...);

  template <typename... V>
  WL_CORE_INLINE static void fill(int64_t* to, V... values) {
    constexpr bool kAll = sizeof...(V) == windlass::kGlobalDims;
    static_assert(kAll || sizeof...(V) == 0 || sizeof...(V) == kDynamic,
                  "a value for each DYNAMIC");
    const int64_t given[] = {static_cast<int64_t>(values)..., 1};
    int d = 0;
    int next = 0;
    const auto take = [&] {
      if constexpr (sizeof...(V) == 0) return given[0];
      return given[kAll ? d : next++];
    };
    ((to[d] = N == DYNAMIC ? take() : N, ++d), ...);
  }
};

}  // namespace detail

template <int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC,
          int64_t N5 = DYNAMIC>
struct Shape {
  static constexpr bool kIsRow = N1 == 1 && N2 == 1 && N3 == 1 && N4 == 1;
  int64_t shape[windlass::kGlobalDims];

  template <typename... V>
  WL_CORE_INLINE explicit Shape(V... values) {
    detail::Extents<N1, N2, N3, N4, N5>::fill(shape, values...);
  }
};

// Strides in elements.
template <int64_t S1 = DYNAMIC, int64_t S2 = DYNAMIC, int64_t S3 = DYNAMIC, int64_t S4 = DYNAMIC,
          int64_t S5 = DYNAMIC>
struct Stride {
  static constexpr bool kIsDense = S5 == 1;
  int64_t stride[windlass::kGlobalDims];

  template <typename... V>
  WL_CORE_INLINE explicit Stride(V... values) {
    detail::Extents<S1, S2, S3, S4, S5>::fill(stride, values...);
  }
};

// A 5-D view of memory: dimension 3 counts rows, dimension 4 columns.
template <typename Element, typename ShapeT, typename StrideT, Layout kLayout = Layout::ND>
class GlobalTensor {
 public:
  using RawDType = std::remove_const_t<Element>;
  using DType = Element;
  static constexpr Layout layout = kLayout;
  // True if, by its type, the tensor is one row of contiguous elements.
  static constexpr bool kOneRow = ShapeT::kIsRow && StrideT::kIsDense;

  WL_CORE_INLINE explicit GlobalTensor(Element* data, const ShapeT& shape = ShapeT(),
                                       const StrideT& stride = StrideT()) noexcept
      : data_(data), shape_(shape), stride_(stride) {}

  WL_CORE_INLINE Element* data() noexcept { return data_; }
  WL_CORE_INLINE int64_t GetShape(int d) noexcept { return shape_.shape[d]; }
  WL_CORE_INLINE int64_t GetStride(int d) noexcept { return stride_.stride[d]; }
  // The result points to the shape and strides of this tensor.
  WL_CORE_INLINE windlass::StridedView view() noexcept {
    return {const_cast<RawDType*>(data_), windlass::DTypeOf<RawDType>::value,
            windlass::kGlobalDims, shape_.shape, stride_.stride};
  }

 private:
  Element* data_;
  ShapeT shape_;
  StrideT stride_;
};

namespace detail {

template <typename A, typename B>
WL_CORE_INLINE bool sameShape(A& a, B& b) noexcept {
  for (int d = 0; d < windlass::kGlobalDims; ++d) {
    if (a.GetShape(d) != b.GetShape(d)) return false;
  }
  return true;
}

}  // namespace detail
}  // namespace pto
