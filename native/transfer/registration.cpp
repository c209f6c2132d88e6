// SPDX-License-Identifier: Apache-2.0
// Creates a transfer on all ranks: collective exchanges of words, with local steps between them.
#include <algorithm>

#include "native/base/target.h"
#include "native/transfer/exchange.h"
#include "native/transfer/images.h"
#include "native/transfer/joining.h"
#include "native/transfer/transfer.h"

namespace windlass {

class Registration {
 public:
  Registration(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
               wl_error_t* error)
      : comm_(comm),
        config_(config),
        rank_(comm.rank()),
        exchange_(comm, config.fingerprint, deadlineNs, error) {}

  Code run(Transfer* out) {
    exchange_.step("for its bindings and chunks", [&](wl_error_t* error) {
      if (out == nullptr) {
        copyError(error, noMemory(rank_), nullptr);
      } else {
        begin(error);
      }
    });
    Code code = exchange_.gather(own_, [&](const Exchange::Round& round) { peers_->take(round); });
    sendAfter(&code, "while chunks were resolved", [&](wl_error_t* error) { resolve(error); });
    sendAfter(&code, "while chunks were joined", [&](wl_error_t*) { join(); });
    if (isOffloaded()) {
      sendAfter(&code, "while images were asked for", [&](wl_error_t*) { askForImages(); });
      sendAfter(&code, "while images were laid out", [&](wl_error_t* error) {
        layOutImages(comm_.group(), rank_, plan_->stages, workBytes_.size() - 1, &words_, &layouts_,
                     error);
      });
    }
    if (code != WL_OK) return code;
    exchange_.step("while chunks were cut", [&](wl_error_t* error) { makeTable(error); });
    if (readsFar()) {
      code = exchange_.exchange(&words_);
      if (code != WL_OK) return code;
      exchange_.step("for what others read", [&](wl_error_t*) { plan_->far->served.swap(words_); });
    }
    code = exchange_.sum(workBytes_.data(), workBytes_.size());
    if (code == WL_OK) conclude(out);
    return code;
  }

 private:
  // Runs a step that sets words_, and exchanges them. Does nothing after an exchange that failed.
  template <class Body>
  void sendAfter(Code* code, const char* doing, Body&& body) {
    if (*code != WL_OK) return;
    exchange_.step(doing, body);
    *code = exchange_.exchange(&words_);
  }

  // Reads and checks the input that needs no peer, and allocates the staging buffers.
  Code begin(wl_error_t* error) {
    if (Code code = readBindings(config_, true, &sources_, error)) return code;
    if (Code code = readBindings(config_, false, &targets_, error)) return code;
    plan_ = std::make_shared<BoundPlan>();
    plan_->progress = std::make_shared<Progress>();
    if (Code code = plan_->stages.read(config_, error)) return code;
    Group& group = comm_.group();
    own_ = Peers::wordsOf(group, rank_, sources_, plan_->stages);
    exchange_.reserve();
    joint_ = group.joint().make<Peers>(comm_.operation().nextSequence(), JointObjects::kTransfer,
                                       [&] { return std::make_shared<Peers>(group.ranks()); });
    peers_ = *joint_;
    peers_->setProgress(rank_, plan_->progress);
    return WL_OK;
  }

  // Sets words_ to the number of phases that this rank needs, followed by its questions to the
  // owners of its boxes' sources.
  Code resolve(wl_error_t* error) {
    const Bound bound = {comm_.group(), rank_, targets_, plan_->stages, *peers_};
    if (Code code = readBoxes(config_, bound, &boxes_, plan_->progress.get(), error)) return code;
    plan_->stages.dropBoxes();
    uint64_t phases = 1;
    forEachIn<ChunkItem>(boxes_, 0, [&](const ChunkItem& box) {
      phases = std::max(phases, uint64_t{box.phase()} + 1);
    });
    words_.assign(comm_.group().ranks(), {phases});
    askOwners(boxes_, &words_);
    return WL_OK;
  }

  void join() {
    for (const WordList& asked : words_) phases_ = std::max(phases_, asked.front());
    workBytes_.resize((phases_ + kMostPhases - 1) / kMostPhases + 1);
    peers_->dropStages();
    answer(rank_, comm_.group(), isOffloaded() ? kMostDeviceRanks : UINT32_MAX, 1, &words_);
  }

  // True if the ranks' devices run the transfer. Targets with GPU kernels do that.
  bool isOffloaded() const { return kTarget.hasGpus(); }
  bool readsFar() const { return comm_.group().config().spansProcesses && !isOffloaded(); }

  // Calls visit(joined) for each of this rank's boxes, joined with all its targets. A box for a
  // staging buffer is not joined.
  template <class Visit>
  void forEachJoined(const std::vector<WordList>& answers, Visit&& visit) {
    Answers read(answers);
    forEachIn<ChunkItem>(boxes_, 0, [&](const ChunkItem& box) {
      visit(isStaged(box) ? Answers::Joined{box, 0, 0} : read.next(box));
    });
  }

  // For each rank, sets words_ to questions about the views of its memory that this rank's boxes
  // use.
  void askForImages() {
    joined_.swap(words_);
    words_.assign(comm_.group().ranks(), {});
    forEachJoined(joined_,
                  [&](const Answers::Joined& joined) { askOwners(rank_, joined.box, &words_); });
  }

  Code makeTable(wl_error_t* error) {
    ItemMaker items;
    ImageAnswers images(words_);
    uint64_t chunk = 0;
    forEachJoined(isOffloaded() ? joined_ : words_, [&](const Answers::Joined& joined) {
      const bool staged = isStaged(joined.box);
      const ChunkItem box = isOffloaded() ? images.next(joined.box) : joined.box;
      const uint32_t count = items.add(box, joined.part, joined.turn);
      if (staged) return;
      plan_->progress->setItems(chunk++, count);
      targetBytes_ += box.bytes();
    });
    if (Code code = items.finish(&plan_->table, error)) return code;
    for (uint32_t n = 0; n + 1 < workBytes_.size(); ++n) workBytes_[n] = plan_->table.workBytes(n);
    if (isOffloaded()) return bringImages(error);
    return readsFar() ? findFar(&workBytes_.back(), error) : WL_OK;
  }

  Code bringImages(wl_error_t* error) {
    uint32_t most = 0;
    plan_->table.forEachItem(
        [&](const ChunkItem& item, uint32_t) { most = std::max(most, item.sources()); });
    if (most > kMostDeviceRanks) {
      return fail(error, WL_UNSUPPORTED,
                  "an item of the transfer has %u sources: a core of a device takes %u",
                  most, kMostDeviceRanks);
    }
    for (uint32_t n = 0; n < layouts_.size(); ++n)
      plan_->offloaded.emplace_back(std::move(layouts_[n]), plan_->table.ofOperation(n));
    return WL_OK;
  }

  // Sets words_ to the boxes that this rank reads from ordinary memory of other processes. Adds
  // their number to *far.
  Code findFar(uint64_t* far, wl_error_t* error) {
    words_.assign(comm_.group().ranks(), {});
    uint64_t largestItem = 0;
    uint64_t room = 0;
    plan_->table.forEachItem([&](const ChunkItem& item, uint32_t phase) {
      uint64_t itemRoom = 0;
      for (uint32_t s = 0; s < item.sources(); ++s) {
        const uint64_t* source = item.source(s);
        const uint32_t from = ChunkItem::rankOf(source);
        const Place place = ChunkItem::placeOf(source);
        if (!comm_.group().isFar(rank_, from, place)) continue;
        ++*far;
        WordList& words = words_[from];
        const uint64_t elementBytes = sizeOf(ChunkItem::dtypeOf(source));
        words.insert(words.end(),
                     {ServedBox::head(phase, elementBytes, item.ndim()), place.offset()});
        append(&words, item.extents(), item.ndim());
        append(&words, ChunkItem::sourceStrides(source), item.ndim());
        // Sized for every method that the ranks may agree on later.
        const FarBox box(place.offset(), static_cast<uint32_t>(elementBytes), item.ndim(),
                         item.extents(), ChunkItem::sourceStrides(source), FarBox::Gaps::kShort);
        itemRoom += wholeLines(box.bytes());
      }
      largestItem = std::max(largestItem, item.size());
      room = std::max(room, itemRoom);
    });
    plan_->far = std::make_unique<FarPlan>();
    plan_->far->item.resize(largestItem);
    if (room == 0) return WL_OK;
    void* scratch = nullptr;
    if (Code code = allocateMemory(room, 0, &scratch, error)) return code;
    plan_->scratch.reset(scratch);
    plan_->far->scratch = static_cast<unsigned char*>(scratch);
    return WL_OK;
  }

  void conclude(Transfer* out) {
    if (workBytes_.back() == 0) plan_->far.reset();
    workBytes_.pop_back();
    out->id_ = comm_.operation().sequence();
    out->plan_ = std::move(plan_);
    out->peers_ = std::move(peers_);
    out->phases_ = static_cast<uint32_t>(phases_);
    out->workBytes_ = std::move(workBytes_);
    out->targetBytes_ = targetBytes_;
  }

  Comm& comm_;
  const wl_transfer_config_t& config_;
  const uint32_t rank_;
  Exchange exchange_;
  std::vector<Binding> sources_;
  std::vector<Binding> targets_;
  std::shared_ptr<BoundPlan> plan_;
  Joint<Peers> joint_;
  std::shared_ptr<Peers> peers_;
  WordList own_;                 // words to gather in Peers
  WordList boxes_;               // of this rank's chunks
  std::vector<WordList> words_;  // sent to each rank, then received from each
  // Used only if devices run the transfer.
  std::vector<WordList> joined_;  // owners' answers for this rank's boxes
  std::vector<ImageLayout> layouts_;
  uint64_t phases_ = 1;  // maximum over ranks
  // One entry per kMostPhases phases; then the number of boxes that ranks read from other
  // processes.
  std::vector<uint64_t> workBytes_;
  uint64_t targetBytes_ = 0;
};

Code Transfer::create(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
                      Transfer* out, wl_error_t* error) {
  return Registration(comm, config, deadlineNs, error).run(out);
}

}  // namespace windlass
