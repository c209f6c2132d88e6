// SPDX-License-Identifier: Apache-2.0
#include "native/device/statements.h"

#include <algorithm>

#include "native/base/text.h"
#include "native/core/group.h"

namespace windlass {

void Statements::begin(const AllRanks& ranks, uint32_t device, bool isOnStream) {
  all_.resize(ranks.ranks());
  own = {};
  own.device = device;
  in_ = out_ = RankDevice::Lies::kHost;
  isOnStream_ = isOnStream;
  isOneProcess_ = true;
  for (uint32_t rank = 0; rank < ranks.ranks(); ++rank)
    isOneProcess_ = isOneProcess_ && ranks.firstBeside(rank) == 0;
}

Code Statements::find(RankDevice& device, const DeviceBuffers& buffers, wl_error_t* error) {
  using Lies = RankDevice::Lies;
  own.in = buffers.inBytes;
  own.out = buffers.outBytes;
  own.parts = buffers.partBytes;
  own.factor = buffers.factor;
  if (!buffers.isPlain()) return WL_OK;
  const auto findOne = [&](const RankDevice::Named& memory, Lies* lies, uint64_t* there) {
    if (memory.bytes == 0) return WL_OK;
    if (Code code = device.find(memory, lies, error); code != WL_OK) return code;
    if (*lies == Lies::kHere) *there = reinterpret_cast<uint64_t>(memory.data);
    if (!isOnStream_ || *lies != Lies::kHost) return WL_OK;
    return fail(error, WL_UNSUPPORTED,
                "%s lies in the host's memory: what is put on a stream lies in a device's",
                memory.name);
  };
  const Code code = findOne({"in", buffers.in, buffers.inBytes}, &in_, &own.inThere);
  if (code != WL_OK) return code;
  return findOne({"out", buffers.out, buffers.outBytes}, &out_, &own.outThere);
}

Code Statements::agree(Code code, AllRanks& ranks, uint32_t* faultyRank, wl_error_t* error) {
  own.code = code;
  bool isWhole = false;
  wl_error_t ofOthers = blankError();
  const Code agreed = stateToAll(ranks, own, all_, faultyRank, &isWhole, &ofOthers);
  if (agreed != WL_OK && code == WL_OK && isWhole) {
    fail(error, agreed, "rank %u does not %s: its own error says why", *faultyRank,
         isOnStream_ ? "put it on its stream" : "take its memory");
  }
  isOneDevice_ = isOneProcess_ && std::all_of(all_.begin(), all_.end(), [&](const auto& each) {
                   return each.device == own.device;
                 });
  return agreed;
}

Code Statements::agreeOrRefuse(Code code, AllRanks& ranks, uint32_t* faultyRank,
                              wl_error_t* error) {
  code = agree(code, ranks, faultyRank, error);
  if (isOnStream_ ? !isRefusal(code) : code != WL_INVALID_ARGUMENT) return code;
  if (*faultyRank != kNobody) nameFaultyRank(error, *faultyRank);
  *faultyRank = kNobody;
  return code;
}

Code Statements::checkExtents(uint32_t* faultyRank, wl_error_t* error) const {
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    const Statement& each = all_[rank];
    for (const uint64_t bytes : {each.in, each.out, each.parts}) {
      if (bytes <= kMostWindowBytes) continue;
      *faultyRank = rank;
      return fail(error, WL_INVALID_ARGUMENT, "%llu bytes: a window holds %llu at most",
                  text(bytes), text(kMostWindowBytes));
    }
  }
  return WL_OK;
}

Code Statements::makeRoom(KernelWindow& window, uint32_t cores, AllRanks& ranks,
                          uint32_t* faultyRank, wl_error_t* error) {
  Code code = agree(window.closeWindow(error), ranks, faultyRank, error);
  if (code != WL_OK) return code;
  code = window.makeWindow(ranks, bytes(cores), error);
  *faultyRank = window.faultyRank();
  return code;
}

uint32_t Statements::cores(uint32_t most) const {
  for (const Statement& each : all_) most = std::min(most, each.cores);
  return most;
}

DeviceLayout Statements::layout(uint32_t rank, uint32_t cores, uint64_t base) const {
  const Statement& of = all_[rank];
  DeviceLayout at = {};
  at.word = base + uint64_t{ranks()} * cores * kCoreLineBytes;
  at.in = aligned(at.word + kCoreLineBytes);
  at.out = aligned(at.in + copied(of.in, of.inThere));
  at.parts = aligned(at.out + copied(of.out, of.outThere));
  at.end = aligned(at.parts + of.parts);
  return at;
}

uint64_t Statements::bytes(uint32_t cores) const {
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < ranks(); ++rank) most = std::max(most, layout(rank, cores, 0).end);
  return most;
}

OffloadedOperation Statements::describe(const DeviceOperation& operation,
                                        const KernelWindow& window, uint32_t self) const {
  OffloadedOperation given = {};
  given.kernel = operation.kernel;
  given.launch = *operation.launch;
  given.line = {self, 0, cores(operation.cores), 0, false, kDeviceLooks, nullptr, 0};
  given.windowBytes = window.partBytes();
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    const Statement& of = all_[rank];
    const DeviceLayout at = layout(rank, operation.cores, window);
    const auto place = [&](uint64_t address, uint64_t bytes, uint64_t there) {
      if (bytes == 0) return Place{0};
      return Place::of(kAddressSpace, copied(bytes, there) == 0 ? there : address);
    };
    given.entries[rank] = {place(at.in, of.in, of.inThere), place(at.out, of.out, of.outThere),
                           of.parts == 0 ? Place{of.factor} : place(at.parts, of.parts, 0)};
    given.lines[rank] = given.windows[rank] = reinterpret_cast<uint64_t>(window.part(rank));
  }
  return given;
}

}  // namespace windlass
