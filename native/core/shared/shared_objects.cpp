// SPDX-License-Identifier: Apache-2.0
// Windows and split communicators of a communicator whose ranks live in several processes.

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "native/core/failure_text.h"
#include "native/core/shared/object_operations.h"
#include "native/core/shared/shared_group.h"
#include "native/memory/shared_mapping.h"
#include "native/memory/shared_memory.h"

namespace windlass {
namespace {

// A window as this process maps it. The first of its ranks that arrives maps it.
class SharedWindow {
 public:
  ~SharedWindow() {
    if (key_.bytes > 0 && group_->hosts() != nullptr)
      group_->hosts()->hideWindow(mapping_.memory());
  }

  SharedMapping& mapping() { return mapping_; }
  Window* window() { return &*window_; }
  // Publishes the mapped window under that number. The group and the ranks' handles keep it.
  void hold(Group& group, uint32_t number, const NewWindow& asked, uint64_t stride,
            const std::shared_ptr<SharedWindow>& self) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (window_.has_value()) return;
    if (asked.isSparse()) keepOutOfDumps(mapping_.memory(), mapping_.bytes());
    window_.emplace(mapping_.memory(), asked.bytes, stride);
    group_ = &group;
    group.windows().hold(number, self, mapping_.memory(), stride, asked.bytes);
  }
  // Lets other hosts reach the held window with *key.
  Code share(OtherHosts::WindowKey* key, wl_error_t* error) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (key_.bytes == 0) {
      const Code code =
          group_->hosts()->shareWindow(mapping_.memory(), window_->stride(), &key_, error);
      if (code != WL_OK) return code;
    }
    *key = key_;
    return WL_OK;
  }

 private:
  SharedMapping mapping_;
  std::mutex mutex_;
  std::optional<Window> window_;
  Group* group_ = nullptr;  // holds the window
  OtherHosts::WindowKey key_ = {};
};

// One rank's hold of a window. It begins when the rank's window number is taken.
class Held {
 public:
  Held(Group& group, uint32_t number, std::shared_ptr<SharedWindow> window)
      : group_(group), number_(number), window_(std::move(window)) {}
  ~Held() {
    window_.reset();
    group_.dropWindow(number_);
    group_.sweepWindows();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Window* window() { return window_->window(); }

 private:
  Group& group_;
  const uint32_t number_;
  std::shared_ptr<SharedWindow> window_;
};

// Statement of the lowest rank of a host about a window: its number there, or kNobody if none is
// left, and the file.
struct ToldWindow {
  uint64_t number;
  SharedFile file;
};

// Maps what rank `owner` shares. If its process has ended, the communicator fails.
Code mapOf(Group& group, uint32_t owner, const SharedFile& file, SharedMapping& mapping,
           wl_error_t* failure) {
  const Code code = mapping.map(group.processOf(owner), file, failure);
  if (code == WL_PEER_LOST) {
    group.publishFailure(endedOf(group, owner));
    *failure = *group.failure();
  }
  return code;
}

// One rank of each process that opened a wire states its name. All others state an empty name.
struct WireName {
  static constexpr uint64_t kMostBytes = kGatheredBytes - sizeof(uint64_t);

  uint64_t bytes;
  unsigned char name[kMostBytes];
};

static_assert(WireName::kMostBytes >= ShrinkNote::kMostNameBytes, "every process's name has room");

WireName tellName(const OtherHosts& hosts) {
  WireName told = {};
  told.bytes = hosts.name().size();
  std::copy(hosts.name().begin(), hosts.name().end(), told.name);
  return told;
}

std::vector<std::vector<unsigned char>> namesOf(const std::vector<uint32_t>& members,
                                                const std::vector<WireName>& told) {
  std::vector<std::vector<unsigned char>> names;
  for (const uint32_t member : members) {
    const WireName& each = told[member];
    if (each.bytes > 0) names.emplace_back(each.name, each.name + each.bytes);
  }
  return names;
}

// Records the number that each other host has given to the window. If a host had no number left,
// returns WL_RESOURCE on all ranks. `number` is the window's number on this host. `own` is the
// number that this rank took for its host, or kNobody.
Code takeNumbers(Group& group, const std::vector<ToldWindow>& all, uint32_t number, uint64_t own,
                 wl_error_t* error) {
  OtherHosts* const hosts = group.hosts();
  bool isRoom = true;
  for (uint32_t rank = 0; rank < group.ranks(); ++rank)
    isRoom &= group.firstBeside(rank) != rank || all[rank].number < kMostWindows;
  if (!isRoom) {
    if (own < kMostWindows) group.windows().giveBack(number);
    return fail(error, WL_RESOURCE,
                "a communicator whose ranks live in several processes has room for %u windows and "
                "memory pools; close one, and let go of byte buffers over closed ones, whose "
                "memory they keep",
                kMostWindows - 2);
  }
  for (uint32_t rank = 0; hosts != nullptr && rank < group.ranks(); ++rank) {
    if (!hosts->isBeside(rank) && group.firstBeside(rank) == rank)
      hosts->nameWindow(number, hosts->hostOf(rank), static_cast<uint32_t>(all[rank].number));
  }
  return WL_OK;
}

// Data that the ranks of a split exchange.
struct SplitRoom {
  Joint<SharedGroup> joint;
  std::shared_ptr<SharedGroup> made;
  std::vector<ToldSplit> all;
  std::vector<SharedFile> files;
  std::vector<WireName> names;
  std::vector<uint32_t> members;

  // Throws std::bad_alloc.
  void make(Comm& comm, int32_t color) {
    Group& whole = comm.group();
    all.resize(whole.ranks());
    files.resize(whole.ranks());
    if (whole.hosts() != nullptr) names.resize(whole.ranks());
    members.reserve(whole.ranks());
    if (color < 0) return;
    joint = whole.joint().make<SharedGroup>(comm.operation().nextSequence(), color,
                                            [] { return std::make_shared<SharedGroup>(); });
    made = *joint;
  }
};

// Ends the new group of a failed split on this rank. If the parent group has failed, ranks leave
// the new group, except the rank on which the split itself failed (`isOwn`).
void abandonSplit(Group& whole, Group& made, uint32_t rank, wl_operation operation, bool isOwn) {
  const wl_error_t* const record = whole.failure();
  if (record == nullptr) {
    // All ranks know that the group failed. No rank has it or waits for others in it.
    made.publishHere(errorOf(WL_ABORTED, "it was never made"));
  } else if (!isOwn) {
    // Other ranks may already have the group.
    leaveSplit(made, rank, operation, *record);
  }
}

}  // namespace

Code createSharedWindow(const HostOperation& of, const NewWindow& asked,
                        std::shared_ptr<Window>* window) {
  Comm& comm = of.comm;
  Group& group = comm.group();
  const uint32_t maker = group.firstBeside(comm.rank());
  OtherHosts* const hosts = group.hosts();
  wl_error_t failure = blankError();
  Joint<SharedWindow> joint;
  std::shared_ptr<SharedWindow> made;
  std::vector<ToldWindow> all;
  std::vector<OtherHosts::WindowKey> keys;
  OtherHosts::WindowKey key = {};
  uint64_t stride = 0;
  attempt(comm.rank(), &failure, [&] {
    if (window == nullptr) throw std::bad_alloc();
    all.resize(group.ranks());
    if (hosts != nullptr) keys.resize(group.ranks());
    joint = group.joint().make<SharedWindow>(comm.operation().nextSequence(), JointObjects::kWindow,
                                             [] { return std::make_shared<SharedWindow>(); });
    made = *joint;
    if (Window::strideOf(asked.name(), asked.bytes, group.ranks(), &stride, &failure) == WL_OK &&
        group.isHere(maker)) {
      const uint64_t whole = stride * group.ranks();
      const bool isPartly = asked.isSparse() || hosts != nullptr;
      made->mapping().make(whole, &failure, isPartly ? whole : 0);
    }
  });
  // A rank without room for the others' statements reports it here.
  if (Code code = shareOutcome(of, failure); code != WL_OK) return code;
  ToldWindow own = {kNobody, {}};
  if (comm.rank() == maker) own = {group.takeWindow(), made->mapping().named()};
  Code code = gatherWords(of, &own, sizeof own, all.data());
  if (code != WL_OK) return code;
  const ToldWindow& told = all[maker];
  const auto number = static_cast<uint32_t>(told.number);
  if (code = takeNumbers(group, all, number, own.number, of.error); code != WL_OK) return code;
  std::shared_ptr<Held> held;
  attempt(comm.rank(), &failure, [&] {
    held = std::make_shared<Held>(group, number, made);
    if (mapOf(group, maker, told.file, made->mapping(), &failure) == WL_OK)
      made->hold(group, number, asked, stride, made);
    // Parts of ranks on other hosts have no memory here.
    if (hosts != nullptr && !asked.isSparse() && failure.code == WL_OK)
      reserveShared(made->window()->address(comm.rank()), stride, &failure);
    if (hosts != nullptr && failure.code == WL_OK)
      made->share(&key, &failure);
  });
  if (held == nullptr) group.dropWindow(number);
  if (hosts != nullptr) {
    if (code = gatherWords(of, &key, sizeof key, keys.data()); code != WL_OK) return code;
    attempt(comm.rank(), &failure, [&] {
      if (failure.code == WL_OK) hosts->reachWindow(number, keys.data(), &failure);
    });
  }
  code = shareOutcome(of, failure);
  made->mapping().closeFile();
  if (code == WL_OK) *window = std::shared_ptr<Window>(held, held->window());
  return code;
}

Code splitSharedGroup(const HostOperation& of, const Split& split, std::shared_ptr<Group>* group,
                      uint32_t* rank) {
  Comm& comm = of.comm;
  Group& whole = comm.group();
  wl_error_t failure = blankError();
  SplitRoom room;
  const std::shared_ptr<SharedGroup>& made = room.made;
  const std::vector<uint32_t>& members = room.members;
  WireName told = {};
  bool connects = false;  // this rank connects its process
  attempt(comm.rank(), &failure, [&] { room.make(comm, split.color); });
  Code code = shareOutcome(of, failure);
  if (code != WL_OK) return code;
  const ToldSplit own = {split.color, split.key};
  if (code = gatherWords(of, &own, sizeof own, room.all.data()); code != WL_OK) return code;

  const auto goOn = [&](auto&& step) {
    if (made != nullptr && failure.code == WL_OK) attempt(comm.rank(), &failure, step);
  };
  // The first of the members on this host.
  uint32_t maker = kNobody;
  goOn([&] {
    findMembers(room.all, split.color, &room.members);
    maker = *std::find_if(members.begin(), members.end(), [&](uint32_t member) {
      return whole.member(member).host == whole.member(comm.rank()).host;
    });
    if (whole.isHere(maker)) made->make(whole, members, &failure);
  });
  const SharedFile file = made == nullptr ? SharedFile{} : made->mapping().named();
  if (code = gatherWords(of, &file, sizeof file, room.files.data()); code != WL_OK) return code;
  goOn([&] {
    if (room.files[maker].number < 0) return;  // the outcome says why
    if (mapOf(whole, maker, room.files[maker], made->mapping(), &failure) != WL_OK ||
        made->attach(whole, &failure) != WL_OK) {
      return;
    }
    *rank = static_cast<uint32_t>(
        std::find(members.begin(), members.end(), comm.rank()) - members.begin());
    const OtherHosts* const hosts = made->group()->hosts();
    connects = hosts != nullptr && hosts->first() == *rank;
    if (made->group()->claim(*rank, &failure) == WL_OK && connects) told = tellName(*hosts);
  });
  if (whole.hosts() != nullptr) {
    code = shareOutcome(of, failure);
    if (code == WL_OK) code = gatherWords(of, &told, sizeof told, room.names.data());
    if (code != WL_OK) return code;
    goOn([&] {
      if (connects) made->connect(whole, namesOf(members, room.names), &failure);
    });
  }
  code = shareOutcome(of, failure);
  if (made == nullptr) return code;
  if (code == WL_OK) *group = std::shared_ptr<Group>(made, made->group());
  if (code != WL_OK && made->group() != nullptr)
    abandonSplit(whole, *made->group(), *rank, split.operation, failure.code != WL_OK);
  return code;
}

}  // namespace windlass
