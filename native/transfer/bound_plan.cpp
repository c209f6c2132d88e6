// SPDX-License-Identifier: Apache-2.0
// From the words of a plan to the items that run: every index, box and dtype is checked against the
// bindings at both ends, chunks that take the same are joined, and large ones are cut so that
// threads can share them.
#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_set>
#include <utility>

#include "native/base/dtype.h"
#include "native/transfer/transfer.h"

namespace windlass {
namespace {

// An item holds at most about this many bytes at all its targets, but need not hold less than
// kLeastBytes at each; blocks gather smaller ones up to kBlockBytes.
constexpr uint64_t kItemBytes = uint64_t{256} << 10;
constexpr uint64_t kLeastBytes = uint64_t{16} << 10;
constexpr uint64_t kBlockBytes = uint64_t{128} << 10;
constexpr uint64_t kNumbersAtOnce = 16384;

unsigned long long wide(int64_t value) {
  return static_cast<unsigned long long>(value);
}

uint64_t bytesOf(DType dtype, const int64_t* length, uint32_t ndim) {
  uint64_t bytes = sizeOf(dtype);
  for (uint32_t d = 0; d < ndim; ++d) bytes *= static_cast<uint64_t>(length[d]);
  return bytes;
}

// Whether both are the same elements in the same order.
bool isSame(const StridedView& a, const StridedView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.ndim == b.ndim &&
         std::equal(a.strides, a.strides + a.ndim, b.strides);
}

}  // namespace

struct BoundPlan::SourcesHash {
  size_t operator()(const Box* box) const {
    size_t hash = std::hash<const void*>()(box->sources[0].data) * 31 + box->phase;
    for (uint32_t d = 0; d < box->ndim; ++d) hash = hash * 31 + static_cast<size_t>(box->length[d]);
    return hash;
  }
};

// And the same way from there on.
struct BoundPlan::SameSources {
  bool operator()(const Box* a, const Box* b) const {
    return a->phase == b->phase && a->ndim == b->ndim && a->op == b->op && a->wire == b->wire &&
           a->targets[0].dtype == b->targets[0].dtype &&
           std::equal(a->length, a->length + a->ndim, b->length) &&
           std::equal(a->sources.begin(), a->sources.end(), b->sources.begin(), b->sources.end(),
                      isSame);
  }
};

struct BoundPlan::Share {
  const Box& box;
  size_t part;  // of the target
  size_t turn;  // of the target whose rank runs the next item
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
  for (uint64_t index = 0; index < chunkCount_; ++index) {
    Box box;
    if (Code code = readChunk(in, index, rank, plans, &box, error); code != WL_OK) return code;
    if (box.bytes == 0) continue;
    if (!box.moved.empty()) {
      targetBytes_ += box.bytes;
      box.moved[0]->bytes = box.bytes;
    }
    boxes_.push_back(std::move(box));
  }
  if (!in.ended()) {
    return fail(error, WL_INVALID_ARGUMENT, "chunks hold more words than %llu chunks need",
                static_cast<unsigned long long>(chunkCount_));
  }
  return WL_OK;
}

// Each rank stages for itself: those boxes stay apart.
void BoundPlan::join(const std::vector<BoundPlan*>& plans) {
  std::unordered_set<Box*, SourcesHash, SameSources> boxes;
  for (BoundPlan* plan : plans) {
    for (Box& box : plan->boxes_) {
      if (box.moved.empty()) continue;
      box.turn = boxes.size();
      const auto [place, isNew] = boxes.insert(&box);
      if (isNew) continue;
      Box& first = **place;
      box.joined = &first;
      box.part = first.targets.size();
      first.targets.push_back(box.targets[0]);
      first.moved.push_back(box.moved[0]);
    }
  }
}

Code BoundPlan::makeItems(wl_error_t* error) {
  for (const Box& box : boxes_) {
    const Box& whole = box.joined == nullptr ? box : *box.joined;
    Share share = {whole, box.part, whole.turn};
    const int64_t start[kMaxDims] = {};
    const size_t first = items_.size();
    addItems(share, start, whole.length);
    if (items_.size() == first || whole.moved.empty()) continue;
    auto moved = std::make_unique<uint32_t*[]>(whole.moved.size());
    for (size_t t = 0; t < whole.moved.size(); ++t) {
      // Several ranks make items of the same chunk.
      __atomic_fetch_add(&whole.moved[t]->items, static_cast<uint32_t>(items_.size() - first),
                         __ATOMIC_RELAXED);
      moved[t] = &whole.moved[t]->done;
    }
    for (size_t i = first; i < items_.size(); ++i) items_[i].moved = moved.get();
    movedOf_.push_back(std::move(moved));
  }
  return makeBlocks(error);
}

void BoundPlan::dropBoxes() {
  boxes_ = {};
  chunkWords_ = {};
}

// Sorts the items by phase and gathers those of each into blocks.
Code BoundPlan::makeBlocks(wl_error_t* error) {
  for (const ChunkItem& item : items_) phases_ = std::max(phases_, item.phase + 1);
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
    const uint64_t bytes = items_[i].bytes * items_[i].targetCount;
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
      windows_.push_back({items_.data(), nullptr, after - phase, static_cast<uint32_t>(blocks)});
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
  const bool isStaged = targetBinding < 0;
  const std::vector<Stages::Box>& stages = stages_.boxes();
  const auto targetIndex = static_cast<size_t>(isStaged ? -(targetBinding + 1) : targetBinding);
  if (targetIndex >= (isStaged ? stages.size() : targets_.size())) {
    return fail(error, WL_INVALID_ARGUMENT,
                "chunk %llu: target binding %lld of %zu, and %zu staged boxes", chunk,
                static_cast<long long>(targetBinding), targets_.size(), stages.size());
  }
  const Binding& target = isStaged ? stages[targetIndex].view : targets_[targetIndex];
  if (phase < 0 || phase >= WL_MAX_PHASES || wire < 0 || wire >= kDTypeCount || op < 0 ||
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
  if (!isStaged) {
    Progress& progress = progress_.emplace_back();
    progress.binding = targetIndex;
    box->moved.push_back(&progress);
  }
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
  box->targets.resize(1);
  if (Code code = place(target, in.take(target.ndim), "target", &box->targets[0]); code != WL_OK)
    return code;
  box->bytes = bytesOf(target.dtype, box->length, target.ndim);
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
  if (isStaged && stages[targetIndex].phase != box->phase) {
    return fail(error, WL_INVALID_ARGUMENT,
                "chunk %llu: runs in phase %u and writes a box that is staged in phase %u", chunk,
                box->phase, stages[targetIndex].phase);
  }
  const DType dtype = box->sources[0].dtype;
  if (!canCast(dtype, box->wire) || !canCast(box->wire, target.dtype) ||
      (sources > 1 && !canReduce(dtype, box->op))) {
    return fail(error, WL_UNSUPPORTED,
                "chunk %llu: dtypes %d -> wire %d -> %d with op %llu of %lld sources", chunk,
                static_cast<int>(dtype), static_cast<int>(box->wire),
                static_cast<int>(target.dtype), wide(op), static_cast<long long>(sources));
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
    const auto [closer, further] =
        std::minmax(box.targets[0].strides[d], box.sources[0].strides[d]);
    if (cut != box.ndim && std::pair(closer, -further) <= best) continue;
    best = {closer, -further};
    cut = d;
  }
  return cut;
}

// Cuts the box [start, start + length) of the chunk into items of about kItemBytes, which fall to
// its targets in turn.
void BoundPlan::addItems(Share& share, const int64_t* start, const int64_t* length) {
  const Box& box = share.box;
  const uint64_t bytes = bytesOf(box.targets[0].dtype, length, box.ndim);
  const uint64_t most = std::max(kItemBytes / box.targets.size(), kLeastBytes);
  const uint32_t cut = cutDimension(box, length);
  if (bytes > most && cut < box.ndim) {
    const auto parts = static_cast<int64_t>(
        std::min<uint64_t>(static_cast<uint64_t>(length[cut]), (bytes + most - 1) / most));
    const int64_t step = (length[cut] + parts - 1) / parts;
    for (int64_t at = 0; at < length[cut]; at += step) {
      int64_t partStart[kMaxDims] = {};
      int64_t partLength[kMaxDims] = {};
      std::copy(start, start + box.ndim, partStart);
      std::copy(length, length + box.ndim, partLength);
      partStart[cut] += at;
      partLength[cut] = std::min(step, length[cut] - at);
      addItems(share, partStart, partLength);
    }
    return;
  }
  if (share.turn++ % box.targets.size() != share.part) return;
  const int64_t* shape = keep(length, box.ndim);
  const auto at = [&](const StridedView& view) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < box.ndim; ++d) offset += start[d] * view.strides[d];
    auto* data =
        static_cast<unsigned char*>(view.data) + offset * static_cast<int64_t>(sizeOf(view.dtype));
    return StridedView{data, view.dtype, view.ndim, shape, view.strides};
  };
  const size_t targets = box.targets.size();
  auto views = std::make_unique<StridedView[]>(targets + box.sources.size());
  std::transform(box.targets.begin(), box.targets.end(), views.get(), at);
  std::transform(box.sources.begin(), box.sources.end(), views.get() + targets, at);
  items_.push_back({views.get(), views.get() + targets, nullptr, static_cast<uint32_t>(targets),
                    static_cast<uint32_t>(box.sources.size()), box.op, box.wire, box.phase, bytes});
  views_.push_back(std::move(views));
}

void BoundPlan::addMoved(uint64_t* moved, uint64_t count) const {
  for (const Progress& of : progress_) {
    if (of.binding >= count || of.items == 0) continue;
    const uint64_t done = __atomic_load_n(&of.done, __ATOMIC_ACQUIRE);
    moved[of.binding] += of.bytes / of.items * done + of.bytes % of.items * done / of.items;
  }
}

void BoundPlan::resetMoved() {
  for (Progress& of : progress_) __atomic_store_n(&of.done, 0, __ATOMIC_RELAXED);
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
