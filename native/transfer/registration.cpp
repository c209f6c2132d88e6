// SPDX-License-Identifier: Apache-2.0
// How ranks make a transfer together: operations in which they tell one another words, with what
// each rank does by itself in between.
#include <algorithm>
#include <new>

#include "native/transfer/exchange.h"
#include "native/transfer/joining.h"
#include "native/transfer/transfer.h"

namespace windlass {

// Of Group::join: neither that of windows nor a color of a split.
constexpr int32_t kPeersPart = -2;

class Registration {
 public:
  Registration(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
               wl_error_t* error)
      : comm_(comm),
        config_(config),
        rank_(comm.rank()),
        exchange_(comm, config.fingerprint, deadlineNs, error) {}

  Code run(Transfer* out) {
    Code code = together("for its bindings and chunks", [&](wl_error_t* error) {
      return out == nullptr ? copyError(error, noMemory(rank_), nullptr) : begin(error);
    });
    if (code != WL_OK) return code;
    std::vector<WordList> words;
    code = exchange_.gather(own_, gathers_ ? &words : nullptr);
    if (code != WL_OK) return code;
    code = together("for the bindings of all ranks", [&](wl_error_t*) {
      if (gathers_) peers_->take(&words);
      return WL_OK;
    });
    if (code != WL_OK) return code;
    code = together("while chunks were resolved", [&](wl_error_t* error) {
      words.assign(comm_.group().ranks(), {});
      return resolve(&words, error);
    });
    if (code == WL_OK) code = exchange_.exchange(&words);
    if (code != WL_OK) return code;
    code = together("while chunks were joined", [&](wl_error_t*) {
      if (gathers_) peers_->dropStages();
      answer(rank_, *peers_, &words);
      return WL_OK;
    });
    if (code == WL_OK) code = exchange_.exchange(&words);
    if (code == WL_OK) code = exchange_.reduce(&phases_, 1, WL_MAX);
    if (code != WL_OK) return code;
    code = together("while chunks were cut",
                    [&](wl_error_t* error) { return makeTable(words, error); });
    return code == WL_OK ? conclude(out) : code;
  }

 private:
  // This rank's step, where no rank lacks words for its own, and then, as the next operation, how
  // all ranks' went.
  template <class Step>
  Code together(const char* doing, Step&& step) {
    wl_error_t failure = {};
    failure.struct_size = sizeof failure;
    try {
      if (exchange_.outOfMemory()) throw std::bad_alloc();
      if (exchange_.isWhole()) step(&failure);
    } catch (const std::bad_alloc&) {
      fail(&failure, WL_RESOURCE, "out of memory %s", doing);
    }
    return exchange_.outcome(failure);
  }

  // Reads and checks what needs no peer, and allocates the stages.
  Code begin(wl_error_t* error) {
    Code code = readBindings(config_.source_bindings, config_.source_binding_words,
                             config_.source_binding_count, "source", &sources_, error);
    if (code != WL_OK) return code;
    code = readBindings(config_.target_bindings, config_.target_binding_words,
                        config_.target_binding_count, "target", &targets_, error);
    if (code != WL_OK) return code;
    plan_ = std::make_shared<BoundPlan>();
    plan_->progress = std::make_shared<Progress>();
    code = plan_->stages.read(config_.stages, config_.stage_words, config_.stage_count, error);
    if (code != WL_OK) return code;
    Group& group = comm_.group();
    own_ = Peers::wordsOf(group, rank_, sources_, plan_->stages);
    exchange_.reserve();
    peers_ = group.join<Peers>(comm_.nextSequence(), kPeersPart, [&] {
      auto made = std::make_shared<Peers>(group.ranks());
      gathers_ = true;
      return made;
    });
    peers_->setProgress(rank_, plan_->progress);
    return WL_OK;
  }

  // `questions` are to the owners of what this rank's boxes read.
  Code resolve(std::vector<WordList>* questions, wl_error_t* error) {
    const Bound bound = {comm_.group(), rank_, targets_, plan_->stages, *peers_};
    const Code code = readBoxes(config_, bound, &boxes_, plan_->progress.get(), error);
    if (code != WL_OK) return code;
    plan_->stages.dropBoxes();
    askOwners(boxes_, questions);
    forEachChunkItem(boxes_, [&](const ChunkItem& box) {
      phases_ = std::max(phases_, uint64_t{box.phase()} + 1);
    });
    return WL_OK;
  }

  Code makeTable(const std::vector<WordList>& answers, wl_error_t* error) {
    Answers read(answers);
    ItemMaker items;
    uint64_t chunk = 0;
    forEachChunkItem(boxes_, [&](const ChunkItem& box) {
      if (isStaged(box)) {
        items.add(box, 0, 0);
        return;
      }
      const Answers::Joined joined = read.next(box);
      plan_->progress->setItems(chunk++, items.add(joined.box, joined.part, joined.turn));
      targetBytes_ += box.bytes();
    });
    const Code code = items.finish(&plan_->table, error);
    workBytes_.resize((phases_ + kMostPhases - 1) / kMostPhases);
    for (uint32_t w = 0; w < workBytes_.size(); ++w) workBytes_[w] = plan_->table.workBytes(w);
    return code;
  }

  // What runs need to know of all ranks.
  Code conclude(Transfer* out) {
    const Code code = exchange_.reduce(workBytes_.data(), workBytes_.size(), WL_SUM);
    if (code != WL_OK) return code;
    out->id_ = comm_.sequence();
    out->plan_ = std::move(plan_);
    out->peers_ = std::move(peers_);
    out->phases_ = static_cast<uint32_t>(phases_);
    out->workBytes_ = std::move(workBytes_);
    out->targetBytes_ = targetBytes_;
    return WL_OK;
  }

  Comm& comm_;
  const wl_transfer_config_t& config_;
  const uint32_t rank_;
  Exchange exchange_;
  std::vector<Binding> sources_;
  std::vector<Binding> targets_;
  std::shared_ptr<BoundPlan> plan_;
  std::shared_ptr<Peers> peers_;
  bool gathers_ = false;  // for all ranks of this process
  WordList own_;          // for Peers
  WordList boxes_;
  uint64_t phases_ = 1;
  std::vector<uint64_t> workBytes_;  // for each kMostPhases of them
  uint64_t targetBytes_ = 0;
};

Code Transfer::create(Comm& comm, const wl_transfer_config_t& config, int64_t deadlineNs,
                      Transfer* out, wl_error_t* error) {
  return Registration(comm, config, deadlineNs, error).run(out);
}

}  // namespace windlass
