// SPDX-License-Identifier: Apache-2.0
// A library of kernels for the tests of launches, in C++ and in Java.
#include "kernels/bytes.h"
#include "windlass/kernel_library.h"

namespace windlass {
namespace {

// `in` of each rank becomes `out` of the one that is `steps` to the right.
struct Shift : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in", DType::kF32), distributed("out", DType::kF32).written().sizedLike(0),
      scalar("steps", DType::kI32)};

  static const char* refuses(const Launch& launch) {
    return steps(launch) < 0 ? "steps is negative" : nullptr;
  }
  WL_CORE static int32_t steps(const Launch& launch) {
    return launch.argument(2).scalar<int32_t>();
  }
  WL_CORE static uint32_t right(const Launch& launch, uint32_t rank) {
    return (rank + static_cast<uint32_t>(steps(launch))) % launch.ranks;
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    return right(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const Argument& in = launch.argument(0);
    put({launch.argument(1).at<uint8_t>(right(launch, rank)), in.at<const uint8_t>(rank),
         in.elements * sizeof(float)});
  }
};

// Parts of all ranks in order, each of them from the left neighbour, a phase later than that one.
struct RingGather : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in"), distributed("out").written().sizedLikeAllOf(0)};

  WL_CORE static void plan(Launch& launch) {
    const Argument& in = launch.argument(0);
    launch.bytes = in.elements * sizeOf(in.dtype);
    launch.cut(256, 5);
  }
  WL_CORE static uint32_t phases(const Launch& launch) { return launch.ranks; }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) { return launch.pieces; }
  WL_CORE static uint32_t left(const Launch& launch, uint32_t rank) {
    return (rank + launch.ranks - 1) % launch.ranks;
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t rank, uint32_t, uint32_t k) {
    return k == 0 ? kNobody : left(launch, rank);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    const uint32_t of = (rank + launch.ranks - k) % launch.ranks;
    const uint64_t at = of * launch.bytes + launch.pieceStart(block);
    const Argument& out = launch.argument(1);
    const uint8_t* from =
        k == 0 ? launch.argument(0).at<const uint8_t>(rank) + launch.pieceStart(block)
               : out.at<const uint8_t>(left(launch, rank)) + at;
    put({out.at<uint8_t>(rank) + at, from, launch.pieceLength(block)});
  }
};

// Copies as many elements as the scalars add to.
struct Scalars : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in").dimensions(2), tensor("out").written().sizedLike(0).dimensions(2),
      scalar("a", DType::kI32),   scalar("b", DType::kI64),
      scalar("c", DType::kF32),   scalar("d", DType::kF64)};

  static const char* refuses(const Launch& launch) {
    const double most = static_cast<double>(launch.argument(0).elements);
    return sum(launch) >= 0 && sum(launch) <= most ? nullptr : "it has not as many elements";
  }
  WL_CORE static double sum(const Launch& launch) {
    return launch.argument(2).scalar<int32_t>() +
           static_cast<double>(launch.argument(3).scalar<int64_t>()) +
           static_cast<double>(launch.argument(4).scalar<float>()) +
           launch.argument(5).scalar<double>();
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const Argument& in = launch.argument(0);
    put({launch.argument(1).at<uint8_t>(rank), in.at<const uint8_t>(rank),
         static_cast<uint64_t>(sum(launch)) * sizeOf(in.dtype)});
  }
};

// Every rank waits for the phase of rank `holder`, which adds 1 to its `gate`, and lasts until that
// is 2 or more.
struct Gate : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {distributed("gate", DType::kI32).written(),
                                                 scalar("holder", DType::kI32)};

  WL_CORE static uint32_t phases(const Launch&) { return 2; }
  WL_CORE static uint32_t holder(const Launch& launch) {
    return static_cast<uint32_t>(launch.argument(1).scalar<int32_t>());
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t, uint32_t, uint32_t) {
    return holder(launch);
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t k) {
    if (k != 0 || rank != holder(launch)) return;
    comm::Signal gate(launch.argument(0).at<int32_t>(rank));
    comm::TNOTIFY(gate, 1, comm::NotifyOp::AtomicAdd);
    while (!comm::TTEST(gate, 2, comm::WaitCmp::GE)) relax(true);
  }
};

// Says of itself what no executor can do.
struct Lost : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {tensor("in"), scalar("what", DType::kI32)};

  WL_CORE static int32_t what(const Launch& launch) { return launch.argument(1).scalar<int32_t>(); }
  WL_CORE static void plan(Launch& launch) {
    if (what(launch) == 7) ++launch.ranks;
  }
  WL_CORE static uint32_t phases(const Launch& launch) {
    if (what(launch) == 3) return static_cast<uint32_t>(launch.bytes);
    return what(launch) == 0 ? 1000 : what(launch) == 6 ? 2 : 1;
  }
  WL_CORE static uint32_t blocks(const Launch& launch, uint32_t) {
    return what(launch) == 5 ? 0xffffffffu : what(launch) == 6 ? (1u << 19) + 1 : 1;
  }
  WL_CORE static uint32_t needs(const Launch& launch, uint32_t, uint32_t, uint32_t) {
    if (what(launch) == 4) return launch.bytes == 0 ? kNobody : launch.ranks;
    return what(launch) == 1 ? launch.ranks : kNobody;
  }
  WL_CORE static uint32_t leavesAfter(const Launch& launch, uint32_t) {
    return what(launch) == 2 ? launch.ranks : kNobody;
  }
  WL_CORE static void phase(const Launch&, uint32_t, uint32_t, uint32_t) {}
};

// Does with its arguments, or with a tile, what can't be done: `what` says what.
struct Misused : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in", DType::kF32), tensor("out", DType::kF32).written(), scalar("what", DType::kI32)};
  using Staging = Tile<TileType::Vec, float, 1, 1024, BLayout::RowMajor, 1, DYNAMIC>;

  WL_CORE static int32_t what(const Launch& launch) { return launch.argument(2).scalar<int32_t>(); }
  WL_CORE static uint32_t phases(const Launch& launch) {
    return what(launch) == 0 ? 1 + static_cast<uint32_t>(launch.argument(3).elements) : 1;
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    double sum = 0;
    switch (what(launch)) {
      case 1:
        sum += static_cast<double>(launch.argument(0xffffffffu).elements);
        break;
      case 2:
        sum += launch.argument(2).scalar<double>();
        break;
      case 3:
        sum += *launch.argument(0).at<const int32_t>(rank);
        break;
      case 4:
        sum += launch.argument(0).scalar<float>();
        break;
      case 5:
        if (launch.argument(2).at<float>(rank) != nullptr) sum += 1;
        break;
      case 6:
        place(launch, rank, 1 << 30);
        break;
      case 7:
        place(launch, rank, 0);
        break;
      default:
        break;
    }
    if (sum == 0.5) place(launch, rank, 0);
  }
  // The input's first element, through a tile there.
  WL_CORE static void place(const Launch& launch, uint32_t rank, uint32_t offset) {
    Row<float> from = row(launch.argument(0).at<float>(rank), 1);
    Row<float> to = row(launch.argument(1).at<float>(rank), 1);
    Staging tile(what(launch) == 7 ? 2000 : 1);
    TASSIGN(tile, offset);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, tile);
  }
};

// out = floor(((in + 1) * 2 - in) / 4 + 3), by the instructions that the kernels of this tree don't
// use, through f16 and back.
struct Vocabulary : LibraryKernel {
  static constexpr ArgumentEntry kArguments[] = {
      tensor("in", DType::kF32), tensor("out", DType::kF32).written().sizedLike(0)};
  template <class T>
  using Of = Tile<TileType::Vec, T, 1, 1024, BLayout::RowMajor, 1, DYNAMIC>;

  static const char* refuses(const Launch& launch) {
    return launch.argument(0).elements - 1 < 1024 ? nullptr : "it takes 1 to 1,024 elements";
  }
  WL_CORE static void phase(const Launch& launch, uint32_t rank, uint32_t, uint32_t) {
    const auto n = static_cast<int64_t>(launch.argument(0).elements);
    Row<float> from = row(launch.argument(0).at<float>(rank), launch.argument(0).elements);
    Row<float> to = row(launch.argument(1).at<float>(rank), launch.argument(0).elements);
    Of<float> in(n);
    Of<float> sum(n);
    Of<float> three(n);
    Of<int32_t> whole(n);
    Of<half> narrow(n);
    TASSIGN(in, 0);
    TASSIGN(sum, 4096);
    TASSIGN(three, 8192);
    TASSIGN(whole, 12288);
    TASSIGN(narrow, 16384);
    TLOAD(in, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(sum, in, 1.0f);
    TMULS(sum, sum, 2.0f);
    TSUB(sum, sum, in);
    TDIVS(sum, sum, 4.0f);
    TEXPANDS(three, 3.0f);
    TADD(three, three, sum);
    TMOV(sum, three);
    TCVT(whole, sum, RoundMode::CAST_FLOOR);
    TCVT(sum, whole, RoundMode::CAST_RINT);
    TCVT(narrow, sum, RoundMode::CAST_RINT, SaturationMode::ON);
    TCVT(sum, narrow, RoundMode::CAST_NONE);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, sum);
  }
};

}  // namespace
}  // namespace windlass

WINDLASS_KERNEL_LIBRARY(windlass::libraryKernel<windlass::Shift>("shift"),
                        windlass::libraryKernel<windlass::RingGather>("ring_gather"),
                        windlass::libraryKernel<windlass::Scalars>("scalars"),
                        windlass::libraryKernel<windlass::Lost>("lost"),
                        windlass::libraryKernel<windlass::Gate>("gate"),
                        windlass::libraryKernel<windlass::Misused>("misused"),
                        windlass::libraryKernel<windlass::Vocabulary>("vocabulary"))
