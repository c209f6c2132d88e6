// SPDX-License-Identifier: Apache-2.0
// From the words of a plan to the items that run: every index, box and dtype is checked against the
// bindings at both ends, and large chunks are cut so that threads can share them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "native/isa/isa.h"
#include "native/transfer/transfer.h"

namespace windlass {
namespace {

// An item holds at most about this many bytes at its target; blocks gather smaller ones up to as
// much.
constexpr uint64_t kItemBytes = uint64_t{256} << 10;
constexpr uint64_t kBlockBytes = uint64_t{128} << 10;
constexpr uint64_t kNumbersAtOnce = 16384;

unsigned long long wide(int64_t value) {
  return static_cast<unsigned long long>(value);
}

uint64_t bytesOf(const StridedView& view) {
  uint64_t bytes = sizeOf(view.dtype);
  for (uint32_t d = 0; d < view.ndim; ++d) bytes *= static_cast<uint64_t>(view.shape[d]);
  return bytes;
}

}  // namespace

// One chunk: views of whole bindings' strides with the chunk's corner as data.
struct BoundPlan::Box {
  uint32_t phase;
  uint32_t ndim;
  uint32_t tensor;
  StridedView target;
  std::vector<StridedView> sources;
  ReduceOp op;
  DType wire;
  bool isStaged;  // its target
  const int64_t* length;
};

Code BoundPlan::read(const wl_transfer_config_t& config, wl_error_t* error) {
  Code code = readBindings(config.source_bindings, config.source_binding_words,
                           config.source_binding_count, "source", &sources_, error);
  if (code != WL_OK) return code;
  code = readBindings(config.target_bindings, config.target_binding_words,
                      config.target_binding_count, "target", &targets_, error);
  if (code != WL_OK) return code;
  code = stages_.read(config.stages, config.stage_words, config.stage_count, error);
  if (code != WL_OK) return code;
  if (config.chunks == nullptr && config.chunk_words != 0)
    return fail(error, WL_INVALID_ARGUMENT, "chunks is NULL");
  if (config.chunk_words > 0) chunkWords_.assign(config.chunks, config.chunks + config.chunk_words);
  chunkCount_ = config.chunk_count;
  return WL_OK;
}

Code BoundPlan::resolve(uint32_t rank, const std::vector<const BoundPlan*>& plans,
                        wl_error_t* error) {
  Words in(chunkWords_.data(), chunkWords_.size());
  Box box = {};
  for (uint64_t index = 0; index < chunkCount_; ++index) {
    if (Code code = readChunk(in, index, rank, plans, &box, error); code != WL_OK) return code;
    const int64_t start[kMaxDims] = {};
    addItems(box, start, box.length);
  }
  if (!in.ended()) {
    return fail(error, WL_INVALID_ARGUMENT, "chunks hold more words than %llu chunks need",
                static_cast<unsigned long long>(chunkCount_));
  }
  chunkWords_ = {};
  return makeBlocks(error);
}

// Sorts the items by phase and gathers those of each into blocks.
Code BoundPlan::makeBlocks(wl_error_t* error) {
  moved_.resize(targets_.size());
  for (const ChunkItem& item : items_) {
    phases_ = std::max(phases_, item.phase + 1);
    targetBytes_ += item.targetBytes;
  }
  if (phases_ > 1) {
    std::stable_sort(items_.begin(), items_.end(),
                     [](const ChunkItem& a, const ChunkItem& b) { return a.phase < b.phase; });
  }
  std::vector<std::vector<uint64_t>> ends(phases_);  // of the blocks of each phase
  std::vector<uint64_t> work(phases_);
  uint64_t gathered = 0;
  for (uint64_t i = 0; i < items_.size(); ++i) {
    const uint32_t phase = items_[i].phase;
    const bool last = i + 1 == items_.size() || items_[i + 1].phase != phase;
    const uint64_t bytes = bytesOf(items_[i].target);
    gathered += bytes;
    work[phase] += bytes;
    if (gathered >= kBlockBytes || last) {
      ends[phase].push_back(i + 1);
      gathered = 0;
    }
  }
  std::vector<size_t> starts;  // in first_, of each window
  uint64_t end = 0;
  for (uint32_t phase = 0; phase < phases_; ++phase) {
    if (phase % kMostPhases == 0) {
      size_t blocks = 0;
      const uint32_t after = std::min(phases_, phase + kMostPhases);
      for (uint32_t k = phase; k < after; ++k) blocks = std::max(blocks, ends[k].size());
      if (blocks > kMostBlocks) {
        return fail(error, WL_UNSUPPORTED,
                    "a transfer of %zu blocks on one rank; split the batch (limit %u)", blocks,
                    kMostBlocks);
      }
      starts.push_back(first_.size());
      first_.push_back(end);
      windows_.push_back(
          {items_.data(), nullptr, after - phase, static_cast<uint32_t>(blocks), moved_.data()});
      workBytes_.push_back(0);
    }
    workBytes_.back() += work[phase];
    for (uint64_t last : ends[phase]) first_.push_back(end = last);
    for (size_t b = ends[phase].size(); b < windows_.back().blocks; ++b) first_.push_back(end);
  }
  for (size_t w = 0; w < windows_.size(); ++w) windows_[w].first = first_.data() + starts[w];
  return WL_OK;
}

Code BoundPlan::readChunk(Words& in, uint64_t index, uint32_t rank,
                          const std::vector<const BoundPlan*>& plans, Box* box, wl_error_t* error) {
  const auto chunk = static_cast<unsigned long long>(index);
  if (!in.has(6)) return fail(error, WL_INVALID_ARGUMENT, "chunks end within chunk %llu", chunk);
  const int64_t phase = in.take();
  const int64_t targetBinding = in.take();
  const int64_t wire = in.take();
  const int64_t op = in.take();
  const int64_t ndim = in.take();
  const int64_t sources = in.take();
  box->isStaged = targetBinding < 0;
  const std::vector<Stages::Box>& stages = stages_.boxes();
  const auto targetIndex =
      static_cast<size_t>(box->isStaged ? -(targetBinding + 1) : targetBinding);
  if (targetIndex >= (box->isStaged ? stages.size() : targets_.size())) {
    return fail(error, WL_INVALID_ARGUMENT,
                "chunk %llu: target binding %lld of %zu, and %zu staged boxes", chunk,
                static_cast<long long>(targetBinding), targets_.size(), stages.size());
  }
  const Binding& target = box->isStaged ? stages[targetIndex].view : targets_[targetIndex];
  if (phase < 0 || phase >= kMostTransferPhases || wire < 0 || wire >= kDTypeCount || op < 0 ||
      op >= kReduceOpCount || ndim != target.ndim || sources < 1 || sources > WL_MAX_RANKS ||
      !in.has(static_cast<uint64_t>(2 * ndim + sources * (2 + ndim)))) {
    return fail(error, WL_INVALID_ARGUMENT,
                "chunk %llu: phase %lld, wire dtype %lld, op %lld, %lld dimensions (its target has "
                "%u), %lld sources, or its words end early",
                chunk, static_cast<long long>(phase), static_cast<long long>(wire),
                static_cast<long long>(op), static_cast<long long>(ndim), target.ndim,
                static_cast<long long>(sources));
  }
  box->phase = static_cast<uint32_t>(phase);
  box->ndim = target.ndim;
  box->tensor = box->isStaged ? 0 : static_cast<uint32_t>(targetIndex);
  box->op = static_cast<ReduceOp>(op);
  box->wire = static_cast<DType>(wire);
  box->length = in.take(target.ndim);
  const auto place = [&](const Binding& binding, const int64_t* start, const char* role,
                         StridedView* view) -> Code {
    int64_t offset = 0;
    bool empty = false;
    for (uint32_t d = 0; d < target.ndim; ++d) {
      const int64_t length = box->length[d];
      if (start[d] < 0 || length < 0 || start[d] > binding.shape[d] ||
          length > binding.shape[d] - start[d]) {
        return fail(error, WL_INVALID_ARGUMENT,
                    "chunk %llu: dimension %u of its %s, [%lld, +%lld), is outside 0 to %lld",
                    chunk, d, role, static_cast<long long>(start[d]),
                    static_cast<long long>(length), static_cast<long long>(binding.shape[d]));
      }
      empty = empty || length == 0;
      offset += start[d] * binding.strides[d];
    }
    if (empty) offset = 0;
    *view = {binding.data + offset * static_cast<int64_t>(sizeOf(binding.dtype)), binding.dtype,
             binding.ndim, box->length, binding.strides};
    return WL_OK;
  };
  if (Code code = place(target, in.take(target.ndim), "target", &box->target); code != WL_OK)
    return code;
  box->sources.assign(static_cast<size_t>(sources), {});
  bool readsStage = false;
  for (int64_t s = 0; s < sources; ++s) {
    const int64_t from = in.take();
    const int64_t binding = in.take();
    const int64_t* start = in.take(target.ndim);
    const BoundPlan* peer = from < 0 || from >= static_cast<int64_t>(plans.size())
                                ? nullptr
                                : plans[static_cast<size_t>(from)];
    const Binding* source = nullptr;
    if (peer != nullptr && binding < 0) {
      const Stages::Box* staged = peer->stages_.readBy(rank, static_cast<uint64_t>(-(binding + 1)));
      if (staged != nullptr) {
        if (staged->phase + 1 != box->phase && (readsStage || staged->phase + 1 < box->phase)) {
          return fail(error, WL_INVALID_ARGUMENT,
                      "chunk %llu: runs in phase %u and reads a box that is staged in phase %u",
                      chunk, box->phase, staged->phase);
        }
        source = &staged->view;
        box->phase = staged->phase + 1;
        readsStage = true;
      }
    } else if (peer != nullptr && binding < static_cast<int64_t>(peer->sources_.size())) {
      source = &peer->sources_[static_cast<size_t>(binding)];
    }
    if (source == nullptr) {
      return fail(error, WL_INVALID_ARGUMENT, "chunk %llu: no source binding %lld on rank %lld",
                  chunk, static_cast<long long>(binding), static_cast<long long>(from));
    }
    if (source->ndim != target.ndim ||
        source->dtype != (s == 0 ? source->dtype : box->sources[0].dtype)) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "chunk %llu: source %lld has %u dimensions and dtype %d; it does not fit", chunk,
                  static_cast<long long>(s), source->ndim, static_cast<int>(source->dtype));
    }
    if (Code code = place(*source, start, "source", &box->sources[static_cast<size_t>(s)]);
        code != WL_OK) {
      return code;
    }
  }
  if (box->isStaged && stages[targetIndex].phase != box->phase) {
    return fail(error, WL_INVALID_ARGUMENT,
                "chunk %llu: runs in phase %u and writes a box that is staged in phase %u", chunk,
                box->phase, stages[targetIndex].phase);
  }
  const DType dtype = box->sources[0].dtype;
  if (!canCast(dtype, box->wire) || !canCast(box->wire, box->target.dtype) ||
      (sources > 1 && !canReduce(dtype, box->op))) {
    return fail(error, WL_UNSUPPORTED,
                "chunk %llu: dtypes %d -> wire %d -> %d with op %llu of %lld sources", chunk,
                static_cast<int>(dtype), static_cast<int>(box->wire),
                static_cast<int>(box->target.dtype), wide(op), static_cast<long long>(sources));
  }
  return WL_OK;
}

// The dimension to cut a box of these extents along: of those with more than one element the one
// whose elements lie furthest apart on the side where they lie closer, so that rows stay whole on
// both sides; among equals the one that spans less on the other side, so that neighbours on either
// side stay in one item. box.ndim if there is none.
uint32_t BoundPlan::cutDimension(const Box& box, const int64_t* length) {
  uint32_t cut = box.ndim;
  std::pair<int64_t, int64_t> best;
  for (uint32_t d = 0; d < box.ndim; ++d) {
    if (length[d] < 2) continue;
    const auto [closer, further] = std::minmax(box.target.strides[d], box.sources[0].strides[d]);
    if (cut != box.ndim && std::pair(closer, -further) <= best) continue;
    best = {closer, -further};
    cut = d;
  }
  return cut;
}

// Emits the box [start, start + length) of the chunk, in pieces of about kItemBytes.
void BoundPlan::addItems(Box& box, const int64_t* start, const int64_t* length) {
  uint64_t bytes = sizeOf(box.target.dtype);
  for (uint32_t d = 0; d < box.ndim; ++d) {
    if (length[d] == 0) return;
    bytes *= static_cast<uint64_t>(length[d]);
  }
  const uint32_t cut = cutDimension(box, length);
  if (bytes > kItemBytes && cut < box.ndim) {
    const auto parts = static_cast<int64_t>(std::min<uint64_t>(
        static_cast<uint64_t>(length[cut]), (bytes + kItemBytes - 1) / kItemBytes));
    const int64_t step = (length[cut] + parts - 1) / parts;
    for (int64_t at = 0; at < length[cut]; at += step) {
      int64_t partStart[kMaxDims] = {};
      int64_t partLength[kMaxDims] = {};
      std::copy(start, start + box.ndim, partStart);
      std::copy(length, length + box.ndim, partLength);
      partStart[cut] += at;
      partLength[cut] = std::min(step, length[cut] - at);
      addItems(box, partStart, partLength);
    }
    return;
  }
  const int64_t* shape = keep(length, box.ndim);
  const auto at = [&](const StridedView& view) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < box.ndim; ++d) offset += start[d] * view.strides[d];
    auto* data =
        static_cast<unsigned char*>(view.data) + offset * static_cast<int64_t>(sizeOf(view.dtype));
    return StridedView{data, view.dtype, view.ndim, shape, view.strides};
  };
  auto views = std::make_unique<StridedView[]>(box.sources.size());
  for (size_t s = 0; s < box.sources.size(); ++s) views[s] = at(box.sources[s]);
  items_.push_back({at(box.target), views.get(), static_cast<uint32_t>(box.sources.size()), box.op,
                    box.wire, box.phase, box.tensor, box.isStaged ? 0 : bytes});
  views_.push_back(std::move(views));
}

void BoundPlan::addMoved(uint64_t* moved, uint64_t count) const {
  for (uint64_t i = 0; i < std::min<uint64_t>(count, moved_.size()); ++i)
    moved[i] += __atomic_load_n(&moved_[i], __ATOMIC_ACQUIRE);
}

void BoundPlan::resetMoved() {
  for (uint64_t& bytes : moved_) __atomic_store_n(&bytes, 0, __ATOMIC_RELAXED);
}

const int64_t* BoundPlan::keep(const int64_t* values, uint32_t count) {
  if (numbersLeft_ < count) {
    numbers_.push_back(std::make_unique<int64_t[]>(kNumbersAtOnce));
    nextNumber_ = numbers_.back().get();
    numbersLeft_ = kNumbersAtOnce;
  }
  int64_t* kept = nextNumber_;
  std::copy(values, values + count, kept);
  nextNumber_ += count;
  numbersLeft_ -= count;
  return kept;
}

}  // namespace windlass
