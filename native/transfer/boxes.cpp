// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/boxes.h"

#include "native/base/dtype.h"
#include "native/base/target.h"

namespace windlass {
namespace {

// First words of a chunk, before its length and start indices.
struct Head {
  static constexpr uint64_t kWords = 6;

  int64_t phase;
  int64_t target;
  int64_t wire;
  int64_t op;
  int64_t ndim;
  int64_t sources;

  bool isStaged() const { return target < 0; }
  size_t targetIndex() const { return static_cast<size_t>(isStaged() ? -(target + 1) : target); }
};

// Decodes and checks one chunk.
class ChunkReader {
 public:
  ChunkReader(const Bound& bound, wl_error_t* error) : bound_(bound), error_(error) {}

  // Appends the chunk's box unless it has no bytes.
  Code read(Words& in, WordList* boxes, Progress* progress) {
    if (Code code = readHead(in)) return code;
    length_ = in.take(ndim());
    const Binding& target = targetBinding();
    const size_t start = boxes->size();
    boxes->insert(boxes->end(), ChunkItem::kHeadWords, 0);
    append(boxes, length_, ndim());
    uint64_t offset = 0;
    const int64_t* at = in.take(ndim());
    if (Code code = place(target.shape, target.strides, at, target.dtype, "target", &offset))
      return code;
    const Place targetPlace = bound_.group.placeOf(bound_.rank, target.data, target.bytes());
    addView(boxes, bound_.rank, target.dtype, {targetPlace.word + offset});
    const size_t signalAt = boxes->size();
    boxes->push_back(0);
    append(boxes, target.strides, ndim());
    for (int64_t s = 0; s < head_.sources; ++s) {
      if (Code code = readSource(in, s, boxes)) return code;
    }
    if (Code code = check(target.dtype)) return code;
    uint64_t bytes = sizeOf(target.dtype);
    for (uint32_t d = 0; d < ndim(); ++d) bytes *= static_cast<uint64_t>(length_[d]);
    if (bytes == 0) {
      boxes->resize(start);
      return WL_OK;
    }
    if (!head_.isStaged()) {
      const uint32_t* signal = progress->add(head_.targetIndex(), bytes);
      (*boxes)[signalAt] = bound_.group.placeOf(bound_.rank, signal, sizeof *signal).word;
    }
    (*boxes)[start] = static_cast<uint64_t>(head_.op) | static_cast<uint64_t>(head_.wire) << 8 |
                      static_cast<uint64_t>(head_.ndim) << 16 |
                      static_cast<uint64_t>(head_.phase) << 32;
    (*boxes)[start + 1] = 1 | static_cast<uint64_t>(head_.sources) << 32;
    (*boxes)[start + 2] = bytes;
    return WL_OK;
  }

 private:
  uint32_t ndim() const { return static_cast<uint32_t>(head_.ndim); }
  const Binding& targetBinding() const {
    return head_.isStaged() ? bound_.stages.boxes()[head_.targetIndex()].view
                            : bound_.targets[head_.targetIndex()];
  }

  Code readHead(Words& in) {
    head_ = {in.take(), in.take(), in.take(), in.take(), in.take(), in.take()};
    const size_t stages = bound_.stages.boxes().size();
    if (head_.targetIndex() >= (head_.isStaged() ? stages : bound_.targets.size())) {
      return fail(error_, WL_INVALID_ARGUMENT,
                  "target binding %lld of %zu, and %zu staged boxes", text(head_.target),
                  bound_.targets.size(), stages);
    }
    const uint32_t ndim = targetBinding().ndim;
    if (head_.phase < 0 || head_.phase >= WL_MAX_PHASES || head_.wire < 0 ||
        head_.wire >= kDTypeCount || head_.op < 0 || head_.op >= kReduceOpCount ||
        head_.ndim != ndim || head_.sources < 1 || head_.sources > WL_MAX_RANKS ||
        !in.has(static_cast<uint64_t>(2 * head_.ndim + head_.sources * (2 + head_.ndim)))) {
      return fail(error_, WL_INVALID_ARGUMENT,
                  "phase %lld, wire dtype %lld, op %lld, %lld dimensions (its target has %u), "
                  "%lld sources, or its words end early",
                  text(head_.phase), text(head_.wire), text(head_.op), text(head_.ndim), ndim,
                  text(head_.sources));
    }
    return WL_OK;
  }

  // Checks that the chunk lies inside the view. Sets *bytes to the offset of its first element, or
  // 0 if the chunk is empty.
  Code place(const int64_t* shape, const int64_t* strides, const int64_t* start, DType dtype,
             const char* role, uint64_t* bytes) {
    int64_t offset = 0;
    bool empty = false;
    for (uint32_t d = 0; d < ndim(); ++d) {
      const int64_t length = length_[d];
      if (start[d] < 0 || length < 0 || start[d] > shape[d] || length > shape[d] - start[d]) {
        return fail(error_, WL_INVALID_ARGUMENT,
                    "dimension %u of its %s, [%lld, +%lld), is outside 0 to %lld", d, role,
                    text(start[d]), text(length), text(shape[d]));
      }
      empty = empty || length == 0;
      offset += start[d] * strides[d];
    }
    *bytes = empty ? 0 : static_cast<uint64_t>(offset) * sizeOf(dtype);
    return WL_OK;
  }

  void addView(WordList* boxes, uint32_t rank, DType dtype, Place place) {
    boxes->push_back(rank | static_cast<uint64_t>(dtype) << 32);
    boxes->push_back(place.word);
  }

  Code readSource(Words& in, int64_t s, WordList* boxes) {
    const int64_t from = in.take();
    const int64_t binding = in.take();
    const int64_t* start = in.take(ndim());
    PeerView source;
    bool found = false;
    if (binding >= 0) {
      found = bound_.peers.source(from, binding, &source);
    } else if (bound_.peers.staged(from, bound_.rank, -(binding + 1), &source)) {
      found = true;
      const int64_t next = int64_t{source.phase} + 1;
      if (next != head_.phase && (readsStage_ || next < head_.phase)) {
        return fail(error_, WL_INVALID_ARGUMENT,
                    "runs in phase %lld and reads a box that is staged in phase %u",
                    text(head_.phase), source.phase);
      }
      head_.phase = next;
      readsStage_ = true;
    }
    if (!found) {
      return fail(error_, WL_INVALID_ARGUMENT, "no source binding %lld on rank %lld",
                  text(binding), text(from));
    }
    if (s == 0) dtype_ = source.dtype;
    if (source.ndim != ndim() || source.dtype != dtype_) {
      return fail(error_, WL_INVALID_ARGUMENT,
                  "source %lld has %u dimensions and dtype %s; the chunk has %u, and its first "
                  "source %s",
                  text(s), source.ndim, nameOf(source.dtype), ndim(), nameOf(dtype_));
    }
    const auto rank = static_cast<uint32_t>(from);
    uint64_t offset = 0;
    if (Code code = place(source.shape, source.strides, start, source.dtype, "source", &offset))
      return code;
    addView(boxes, rank, source.dtype, {source.place.word + offset});
    append(boxes, source.strides, ndim());
    return WL_OK;
  }

  Code check(DType target) {
    const uint32_t staged =
        head_.isStaged() ? bound_.stages.boxes()[head_.targetIndex()].phase : 0;
    if (head_.isStaged() && staged != head_.phase) {
      return fail(error_, WL_INVALID_ARGUMENT,
                  "runs in phase %lld and writes a box that is staged in phase %u",
                  text(head_.phase), staged);
    }
    const auto wire = static_cast<DType>(head_.wire);
    if (!canCast(dtype_, wire) || !canCast(wire, target) ||
        (head_.sources > 1 && !canReduce(dtype_, static_cast<ReduceOp>(head_.op)))) {
      return fail(error_, WL_UNSUPPORTED,
                  "dtypes %s -> wire %s -> %s with %s of %lld sources", nameOf(dtype_),
                  nameOf(wire), nameOf(target), reduceOpName(static_cast<int32_t>(head_.op)),
                  text(head_.sources));
    }
    const Limits& limits = kTarget.limits;
    const auto op = static_cast<ReduceOp>(head_.op);
    if (head_.sources > 1 && isBitwise(op) && !limits.combinesBits) {
      return fail(error_, WL_UNSUPPORTED,
                  "%s has no bitwise instructions, so dtype %s doesn't reduce with %s", limits.name,
                  nameOf(dtype_), reduceOpName(static_cast<int32_t>(head_.op)));
    }
    if (!limits.hasCast(dtype_, wire) || !limits.hasCast(wire, target) ||
        (head_.sources > 1 && !limits.hasReduce(dtype_))) {
      return fail(error_, WL_UNSUPPORTED,
                  "%s doesn't convert or reduce dtypes %s -> wire %s -> %s", limits.name,
                  nameOf(dtype_), nameOf(wire), nameOf(target));
    }
    return WL_OK;
  }

  const Bound& bound_;
  wl_error_t* const error_;
  Head head_ = {};
  const int64_t* length_ = nullptr;
  DType dtype_ = DType::kBool;  // of all sources
  bool readsStage_ = false;
};

}  // namespace

Code readBoxes(const wl_transfer_config_t& config, const Bound& bound, WordList* boxes,
               Progress* progress, wl_error_t* error) {
  return readWords({"chunks", "chunk", "chunks", "chunk"}, config.chunks, config.chunk_words,
                   config.chunk_count, Head::kWords, error, [&](Words& in, wl_error_t* why) {
                     return ChunkReader(bound, why).read(in, boxes, progress);
                   });
}

}  // namespace windlass
