// SPDX-License-Identifier: Apache-2.0
#include "native/device/offloaded_launch.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "native/device/offload.h"
#include "windlass/offload.h"

namespace windlass {

Code OffloadedLaunch::find(RankDevice& device, uint32_t rank, uint32_t ranks, wl_error_t* error) {
  rank_ = rank;
  ranks_ = ranks;
  staged_.clear();
  uint32_t tables = 0;
  for (uint32_t i = 0; i < kernel_.entry->argumentCount; ++i) {
    const Argument& argument = arguments_[i];
    const uint64_t bytes = argument.elements * sizeOf(argument.dtype);
    if (argument.isScalar || bytes == 0) continue;
    const uint64_t from = argument.word + rank * argument.stride;
    RankDevice::Lies lies = RankDevice::Lies::kHost;
    const std::string name = std::string(entry(i).name) + " of kernel " + kernel_.entry->name;
    const RankDevice::Named named = {name.c_str(), reinterpret_cast<const void*>(from), bytes};
    const Code code = device.find(named, &lies, error);
    if (code != WL_OK) return code;
    if (lies == RankDevice::Lies::kHere) continue;
    staged_.push_back({i, from, bytes, 0, false, lies});
    tables += isDistributed(i) ? 1 : 0;
  }
  if (Code code = place(error); code != WL_OK) return code;
  call_.resize(sizeof(OffloadedCall) + (kernel_.entry->argumentCount + 1) * sizeof(Argument) +
               size_t{tables} * ranks * sizeof(uint64_t));
  return WL_OK;
}

Code OffloadedLaunch::place(wl_error_t* error) {
  // In each kind, sorts larger tensors first, so that a tensor inside another one is found as its
  // part.
  std::stable_sort(staged_.begin(), staged_.end(), [&](const Staged& a, const Staged& b) {
    const bool first = isDistributed(a.argument);
    return first != isDistributed(b.argument) ? first : a.bytes > b.bytes;
  });
  stagedBytes_ = 0;
  for (auto each = staged_.begin(); each != staged_.end(); ++each) {
    for (auto other = staged_.begin(); other != each && !each->isPart; ++other) {
      if (other->isPart || each->from >= other->from + other->bytes ||
          other->from >= each->from + each->bytes)
        continue;
      each->isPart = each->from >= other->from &&
                     each->from + each->bytes <= other->from + other->bytes;
      if (!each->isPart) {
        return fail(error, WL_UNSUPPORTED,
                    "launch of %s on rank %u: argument %u, %s, and argument %u, %s, overlap in "
                    "part, and lie where the device's kernels don't reach them: copy one of them "
                    "to memory of its own first",
                    kernel_.entry->name, rank_, other->argument, entry(other->argument).name,
                    each->argument, entry(each->argument).name);
      }
      each->at = other->at + (each->from - other->from);
    }
    if (each->isPart) continue;
    each->at = stagedBytes_;
    stagedBytes_ = aligned(stagedBytes_ + each->bytes);
  }
  return WL_OK;
}

void OffloadedLaunch::name(const std::vector<DeviceLayout>& layouts) {
  const uint64_t call = layouts[rank_].parts;
  const uint32_t count = kernel_.entry->argumentCount;
  const uint64_t argumentsAt = sizeof(OffloadedCall);
  uint64_t tableAt = argumentsAt + (count + 1) * sizeof(Argument);
  const uint64_t misusesAt = call + offsetof(OffloadedCall, misuses);
  OffloadedCall own = {};
  own.call = {nullptr, reinterpret_cast<const Argument*>(call + argumentsAt), count,
              reinterpret_cast<const Misuses*>(misusesAt)};
  own.tiles = layouts[rank_].out;
  std::memcpy(call_.data(), &own, sizeof own);
  std::vector<Argument> arguments(arguments_, arguments_ + count + 1);
  for (Argument& each : arguments)
    each.misuses = each.misuses == nullptr ? nullptr : own.call.misuses;
  for (const Staged& each : staged_) {
    Argument& argument = arguments[each.argument];
    argument.word = layouts[rank_].in + each.at;
    argument.stride = 0;
    if (!isDistributed(each.argument)) continue;
    argument.apart = reinterpret_cast<const uint64_t*>(call + tableAt);
    for (uint32_t rank = 0; rank < ranks_; ++rank, tableAt += sizeof(uint64_t)) {
      const uint64_t part = layouts[rank].in + each.at;
      std::memcpy(call_.data() + tableAt, &part, sizeof part);
    }
  }
  std::memcpy(call_.data() + argumentsAt, arguments.data(), arguments.size() * sizeof(Argument));
}

// Copies whole tensors, since a kernel may leave parts of its outputs unchanged.
Code OffloadedLaunch::send(RankDevice& device, const DeviceLayout& own, wl_error_t* error) const {
  for (const Staged& each : staged_) {
    if (each.isPart) continue;
    const auto* const from = reinterpret_cast<const void*>(each.from);
    const Code code = device.send(own.in + each.at, from, each.bytes, each.lies, error);
    if (code != WL_OK) return code;
  }
  return WL_OK;
}

Code OffloadedLaunch::fetch(RankDevice& device, const DeviceLayout& own, wl_error_t* error) const {
  for (const Staged& each : staged_) {
    if (entry(each.argument).isWritten == 0) continue;
    auto* const to = reinterpret_cast<void*>(each.from);
    const Code code = device.fetch(to, own.in + each.at, each.bytes, each.lies, error);
    if (code != WL_OK) return code;
  }
  OffloadedCall after = {};
  const Code code =
      device.fromDevice(&after, reinterpret_cast<const void*>(own.parts), sizeof after, error);
  if (code == WL_OK && after.misuses.told != 0) tell(after.misuses.first);
  return code;
}

// A faulty kernel may have overwritten the device's record with anything, so this checks it.
void OffloadedLaunch::tell(const Misuse& misuse) const {
  Misuse told = misuse;
  if (told.what > Misuse::kTile || told.tile.what > TileMisuse::kShapes ||
      (told.what != Misuse::kNoSuchArgument && told.what != Misuse::kTile &&
       told.argument >= kernel_.entry->argumentCount))
    told = {Misuse::kNoSuchArgument, kNobody, 0, {}};
  misuses_.tell(&misuses_, told);
}

}  // namespace windlass
