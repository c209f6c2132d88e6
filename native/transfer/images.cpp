// SPDX-License-Identifier: Apache-2.0
// Words of a question:
//
//   operation | bytes of an element << 32 | ndim << 48 | written << 56 | own << 57
//   its Place, extents[ndim], strides[ndim]
//   only if written: the Place of the signal that counts its items, or none
//
// own: the view belongs to the asking rank, and only that rank uses it. The answer is a Place and
// strides[ndim]; for a written view, the signal's Place follows.
#include "native/transfer/images.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "native/base/extent.h"
#include "native/core/group.h"
#include "native/device/device_wait.h"
#include "native/device/offload_seats.h"

namespace windlass {
namespace {

using Copied = ImageLayout::Copied;
using Lies = RankDevice::Lies;

struct Question {
  static constexpr uint64_t kHeadWords = 2;

  const uint64_t* words;

  static uint64_t head(uint64_t operation, uint64_t elementBytes, uint64_t ndim, bool isWritten,
                       bool isOwn) {
    return operation | elementBytes << 32 | ndim << 48 | uint64_t{isWritten} << 56 |
           uint64_t{isOwn} << 57;
  }
  uint32_t operation() const { return static_cast<uint32_t>(words[0]); }
  uint32_t elementBytes() const { return static_cast<uint32_t>(words[0] >> 32 & 0xffff); }
  uint32_t ndim() const { return static_cast<uint32_t>(words[0] >> 48 & 0xff); }
  bool isWritten() const { return (words[0] >> 56 & 1) != 0; }
  bool isOwn() const { return (words[0] >> 57 & 1) != 0; }
  Place place() const { return {words[1]}; }
  const int64_t* extents() const { return reinterpret_cast<const int64_t*>(words + kHeadWords); }
  const int64_t* strides() const { return extents() + ndim(); }
  uint64_t elements() const {
    return elementsOf({nullptr, DType::kU8, ndim(), extents(), strides()});
  }
  Place signal() const { return {isWritten() ? words[kHeadWords + 2 * ndim()] : 0}; }
  uint64_t size() const { return kHeadWords + 2 * ndim() + (isWritten() ? 1 : 0); }
  // Key of the view, without its signal.
  std::string_view key() const {
    return {reinterpret_cast<const char*>(words), (kHeadWords + 2 * ndim()) * sizeof(uint64_t)};
  }
};

// A view of this rank's memory that ranks use in one operation.
struct View {
  Question asked;
  uint64_t address, bytes;
  uint64_t answer;  // a Place
  int64_t strides[kMaxDims];
  size_t located;  // index of its range, unless it is a staging buffer
};

// A range of this rank's memory that ranks use, and its location.
struct Located {
  uint64_t address, bytes;
  Lies lies;
  bool isReached;  // true if the kernels of all ranks can access it without a copy
};

bool comesBefore(const View* a, const View* b) {
  return a->address < b->address;
}

// Lays out the images of one rank.
class Owner {
 public:
  Owner(const Group& group, uint32_t rank, const Stages& stages, std::vector<ImageLayout>* layouts)
      : group_(group),
        rank_(rank),
        stages_(stages),
        layouts_(*layouts),
        counts_(layouts->size()) {}

  Code run(std::vector<WordList>* questions, wl_error_t* error) {
    for (const WordList& words : *questions)
      forEachIn<Question>(words, 0, [&](const Question& each) { note(each); });
    if (Code code = locate(error)) return code;
    for (uint32_t n = 0; n < layouts_.size(); ++n) layOut(n);
    answer(questions);
    return WL_OK;
  }

 private:
  void note(const Question& question) {
    const auto [place, isNew] = views_.try_emplace(question.key());
    View& view = place->second;
    if (isNew) {
      int64_t bytes = 0;
      extentOf(question.ndim(), question.extents(), question.strides(), question.elementBytes(),
               &bytes);
      view.asked = question;
      view.address = addressOf(question.place());
      view.bytes = static_cast<uint64_t>(bytes);
      view.answer = question.place().word;
      std::copy_n(question.strides(), question.ndim(), view.strides);
    }
    if (!question.signal().isNone()) countOf(question);
  }

  uint64_t addressOf(Place place) const {
    return reinterpret_cast<uint64_t>(group_.at(rank_, place));
  }

  // Offset of the signal in the image, from the start of the counts.
  uint64_t countOf(const Question& question) {
    ImageLayout& layout = layouts_[question.operation()];
    const uint64_t address = addressOf(question.signal());
    const auto [place, isNew] =
        counts_[question.operation()].try_emplace(address, layout.counts.size());
    if (isNew) layout.counts.push_back(reinterpret_cast<uint32_t*>(address));
    return place->second * sizeof(uint32_t);
  }

  bool isStaged(const View& view) const {
    const auto first = reinterpret_cast<uint64_t>(stages_.memory());
    return view.address >= first && view.address < first + stages_.bytes();
  }

  // Finds the location of all views except staging buffers, once for each range of overlapping
  // views.
  Code locate(wl_error_t* error) {
    std::vector<View*> all;
    for (auto& [key, view] : views_)
      if (!isStaged(view)) all.push_back(&view);
    std::sort(all.begin(), all.end(), comesBefore);
    for (View* view : all) {
      const uint64_t end = view->address + view->bytes;
      if (!located_.empty() && view->address < located_.back().address + located_.back().bytes) {
        Located& last = located_.back();
        last.bytes = std::max(last.address + last.bytes, end) - last.address;
      } else {
        located_.push_back({view->address, view->bytes, Lies::kHost, false});
      }
      view->located = located_.size() - 1;
    }
    const OffloadSeats& seats = group_.offloadSeats();
    std::vector<uint32_t> devices;
    for (uint32_t rank = 0; rank < group_.ranks(); ++rank) {
      if (std::find(devices.begin(), devices.end(), seats[rank].device) == devices.end())
        devices.push_back(seats[rank].device);
    }
    const auto body = [&](RankDevice& device, wl_error_t* own) {
      for (Located& each : located_)
        if (Code code = locate(device, devices, &each, own)) return code;
      return WL_OK;
    };
    DeviceWait waits(group_, rank_);
    return seats.offload(rank_).alone(body, waits, error);
  }

  Code locate(RankDevice& device, const std::vector<uint32_t>& devices, Located* memory,
              wl_error_t* error) const {
    const auto* at = reinterpret_cast<const void*>(memory->address);
    Code code = device.find({"what is bound", at, memory->bytes}, &memory->lies, error);
    // Kernels of one process can't access another process's device memory.
    if (code != WL_OK || memory->lies == Lies::kHost || group_.config().spansProcesses) return code;
    memory->isReached = memory->lies == Lies::kHere && devices.size() == 1;
    if (!memory->isReached)
      code = device.isReached(at, memory->bytes, devices, &memory->isReached, error);
    return code;
  }

  bool stays(const View& view) const {
    const Located& there = located_[view.located];
    return there.isReached || (view.asked.isOwn() && there.lies == Lies::kHere);
  }

  void layOut(uint32_t n) {
    ImageLayout& layout = layouts_[n];
    std::vector<View*> read, written, staged;
    for (auto& [key, view] : views_) {
      if (view.asked.operation() != n) continue;
      if (isStaged(view)) {
        staged.push_back(&view);
      } else if (stays(view)) {
        view.answer = Place::of(kAddressSpace, view.address).word;
      } else {
        (view.asked.isWritten() ? written : read).push_back(&view);
      }
    }
    if (!staged.empty()) {
      layout.stages = stages_.memory();
      layout.stageBytes = stages_.bytes();
      layout.keepsStages = layouts_.size() > 1;
      const auto first = reinterpret_cast<uint64_t>(layout.stages);
      for (View* view : staged)
        view->answer = Place::of(OffloadedTransfer::kWritten, view->address - first).word;
    }
    layout.writtenBytes = wholeLines(layout.stageBytes);
    for (const bool isOnDevice : {false, true}) {
      copyStretches(pick(read, isOnDevice), isOnDevice, &layout);
      for (View* view : pick(written, isOnDevice))
        copyBox(view, OffloadedTransfer::kWritten, isOnDevice, &layout.written,
                &layout.writtenBytes);
    }
    layout.countsAt = wholeLines(layout.writtenBytes);
    if (!layout.counts.empty())
      layout.writtenBytes = layout.countsAt + layout.counts.size() * sizeof(uint32_t);
  }

  std::vector<View*> pick(const std::vector<View*>& views, bool isOnDevice) const {
    std::vector<View*> some;
    for (View* view : views)
      if ((located_[view->located].lies != Lies::kHost) == isOnDevice) some.push_back(view);
    std::sort(some.begin(), some.end(), comesBefore);
    return some;
  }

  // Copies overlapping views either as one range of memory or one by one, whichever is smaller.
  static void copyStretches(const std::vector<View*>& views, bool isOnDevice, ImageLayout* layout) {
    for (size_t first = 0, next = 0; first < views.size(); first = next) {
      const uint64_t begin = views[first]->address;
      uint64_t end = begin;
      uint64_t copies = 0;
      do {
        end = std::max(end, views[next]->address + views[next]->bytes);
        copies += views[next]->asked.elements() * views[next]->asked.elementBytes();
        ++next;
      } while (next < views.size() && views[next]->address < end);
      if (copies < end - begin) {
        for (size_t i = first; i < next; ++i)
          copyBox(views[i], OffloadedTransfer::kRead, isOnDevice, &layout->read,
                  &layout->readBytes);
        continue;
      }
      const auto bytes = static_cast<int64_t>(end - begin);
      const int64_t one = 1;
      const uint64_t at = wholeLines(layout->readBytes) + begin % kLine;
      layout->read.push_back(
          {FarBox(begin, 1, 1, &bytes, &one, FarBox::Gaps::kNone), at, isOnDevice});
      layout->readBytes = at + (end - begin);
      for (size_t i = first; i < next; ++i) {
        views[i]->answer =
            Place::of(OffloadedTransfer::kRead, at + (views[i]->address - begin)).word;
      }
    }
  }

  static void copyBox(View* view, uint32_t image, bool isOnDevice, std::vector<Copied>* boxes,
                      uint64_t* bytes) {
    const Question& asked = view->asked;
    const FarBox box(view->address, asked.elementBytes(), asked.ndim(), asked.extents(),
                     asked.strides(), FarBox::Gaps::kNone);
    const uint64_t at = wholeLines(*bytes);
    box.copyStrides(view->strides);
    view->answer = Place::of(image, at).word;
    *bytes = at + box.bytes();
    boxes->push_back({box, at, isOnDevice});
  }

  void answer(std::vector<WordList>* questions) {
    std::vector<WordList> answers(questions->size());
    for (size_t from = 0; from < questions->size(); ++from) {
      WordList& answered = answers[from];
      forEachIn<Question>((*questions)[from], 0, [&](const Question& each) {
        const View& view = views_.at(each.key());
        answered.push_back(view.answer);
        append(&answered, view.strides, each.ndim());
        if (!each.isWritten()) return;
        const uint64_t countsAt = layouts_[each.operation()].countsAt;
        answered.push_back(
            each.signal().isNone()
                ? 0
                : Place::of(OffloadedTransfer::kWritten, countsAt + countOf(each)).word);
      });
    }
    views_.clear();
    questions->swap(answers);
  }

  const Group& group_;
  const uint32_t rank_;
  const Stages& stages_;
  std::vector<ImageLayout>& layouts_;
  std::unordered_map<std::string_view, View> views_;
  // Per operation: the number of each signal, by its address.
  std::vector<std::unordered_map<uint64_t, uint64_t>> counts_;
  std::vector<Located> located_;  // ascending, disjoint
};

// Calls visit(view, strides, isWritten) for each view of the box, targets first.
template <class Visit>
void forEachView(const ChunkItem& box, Visit&& visit) {
  for (uint32_t t = 0; t < box.targets(); ++t)
    visit(box.target(t), ChunkItem::targetStrides(box.target(t)), true);
  for (uint32_t s = 0; s < box.sources(); ++s)
    visit(box.source(s), ChunkItem::sourceStrides(box.source(s)), false);
}

}  // namespace

void askOwners(uint32_t rank, const ChunkItem& box, std::vector<WordList>* questions) {
  forEachView(box, [&](const uint64_t* view, const int64_t* strides, bool isWritten) {
    const uint32_t owner = ChunkItem::rankOf(view);
    WordList& words = (*questions)[owner];
    words.push_back(Question::head(box.phase() / kMostPhases, sizeOf(ChunkItem::dtypeOf(view)),
                                   box.ndim(), isWritten, owner == rank && box.targets() == 1));
    words.push_back(ChunkItem::placeOf(view).word);
    append(&words, box.extents(), box.ndim());
    append(&words, strides, box.ndim());
    if (isWritten) words.push_back(ChunkItem::signalOf(view).word);
  });
}

Code layOutImages(const Group& group, uint32_t rank, const Stages& stages, uint64_t operations,
                  std::vector<WordList>* questions, std::vector<ImageLayout>* layouts,
                  wl_error_t* error) {
  layouts->assign(operations, ImageLayout());
  return Owner(group, rank, stages, layouts).run(questions, error);
}

ChunkItem ImageAnswers::next(const ChunkItem& box) {
  renamed_.assign(box.words, box.words + box.size());
  forEachView({renamed_.data()}, [&](const uint64_t* view, const int64_t* strides, bool isWritten) {
    const uint32_t owner = ChunkItem::rankOf(view);
    const uint64_t* answer = answers_[owner].data() + at_[owner];
    auto* words = const_cast<uint64_t*>(view);  // of renamed_
    words[1] = answer[0];
    std::copy_n(answer + 1, box.ndim(), const_cast<int64_t*>(strides));
    if (isWritten) words[2] = answer[1 + box.ndim()];
    at_[owner] += 1 + box.ndim() + (isWritten ? 1 : 0);
  });
  return {renamed_.data()};
}

}  // namespace windlass
