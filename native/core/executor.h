// SPDX-License-Identifier: Apache-2.0
// Code that the executors share: the begin and end of an operation, its launch, and its ENTER.
#pragma once

#include <type_traits>

#include "native/core/comm.h"
#include "native/core/launch/kernels.h"

namespace windlass {

// True if kernel K has K::agrees. Then the values that ranks bring with ENTER decide whether its
// items run, and its in and out name nothing else.
template <class K, class = void>
struct Asks : std::false_type {};
template <class K>
struct Asks<K, std::void_t<decltype(&K::agrees)>> : std::true_type {};

// True if kernel K may name memory that peers in other processes cannot reach but can pull.
template <class K, class = void>
struct Pulls : std::false_type {};
template <class K>
struct Pulls<K, std::void_t<decltype(K::kPull)>> : std::true_type {};

// True if K runs kernels of libraries. Their arguments belong to their rank, so no other rank runs
// its items. What ranks compare of the arguments travels with ENTER, to report differences. They
// are planned before the rank enters: OwnArgs::aux is the Launch that runs.
template <class K, class = void>
struct OfLibrary : std::false_type {};
template <class K>
struct OfLibrary<K, std::void_t<decltype(K::kOfLibrary)>> : std::true_type {};

// True if a rank's input travels with its ENTER.
template <class K>
constexpr bool kRides = K::kEager || Asks<K>::value || OfLibrary<K>::value;

inline Launch Comm::launchOf(const Call& call) const {
  Launch launch = {};
  launch.ranks = group_->ranks();
  launch.root = static_cast<uint32_t>(call.descriptor.root());
  launch.dtype = static_cast<DType>(call.descriptor.dtype());
  launch.op = static_cast<ReduceOp>(call.descriptor.reduceOp());
  launch.bytes = call.bytes;
  launch.phases = call.phases;
  launch.streams = call.workBytes >= group_->config().streamingBytes;
  launch.windows = group_->windows();
  return launch;
}

template <class K, class Body>
__attribute__((always_inline)) inline Code Comm::operate(const Call& call, Body&& body) {
  if (Code code = begin(call.descriptor, call.error); code != WL_OK) return code;
  takeSequence(call);
  Launch launch = [&] {
    if constexpr (OfLibrary<K>::value) {
      return *static_cast<const Launch*>(call.args.aux);
    } else {
      return launchOf(call);
    }
  }();
  if constexpr (!OfLibrary<K>::value) {
    launch.entries =
        reinterpret_cast<const unsigned char*>(&group_->lines(0).entry[sequence_ & 1].args);
    launch.entryStride = sizeof(RankLines);
    K::plan(launch);
  }
  Deadline deadline(call.deadlineNs == 0 ? group_->config().deadlineNs : call.deadlineNs,
                    call.startNs);
  const Code code = body(launch, deadline);
  return finish(code, call.workBytes >= kLongWorkBytes, call.error);
}

inline void Comm::publishEntry() {
  own_.entry[sequence_ & 1].sequence.store(sequence(), std::memory_order_release);
  recorder_.stampEntry();
}

template <class K, class Prepare>
__attribute__((always_inline)) inline Code Comm::enter(const Call& call, Deadline& deadline,
                                                       Prepare&& prepare) {
  if (Code code = awaitPrevious(deadline); code != WL_OK) return code;
  fillEntry(call, kRides<K>);
  if (Code code = prepare(); code != WL_OK) return code;
  publishEntry();
  return WL_OK;
}

template <class K>
Code Comm::preparePull(const Launch& launch) {
  if constexpr (Pulls<K>::value) {
    if (pulling_ != nullptr) {
      return orNoMemory([&] {
        pulling_->beforeEntry(K::kPull, launch);
        return WL_OK;
      });
    }
  }
  return WL_OK;
}

// Sets *runs to true if items run. Call after all ranks have entered and after a read-modify-write
// of this rank has followed its ENTER. After a failure items do not run, and the result is the
// failure's code. A rank may have returned with it before it saw all ranks enter, and then nobody
// may write its memory.
template <class K>
Code Comm::ask(const Launch& launch, bool* runs) const {
  *runs = true;
  if constexpr (Asks<K>::value) {
    const wl_error_t* failure = group_->failure();
    *runs = failure == nullptr && K::agrees(launch);
    if (failure != nullptr) return static_cast<Code>(failure->code);
  }
  return WL_OK;
}

}  // namespace windlass
