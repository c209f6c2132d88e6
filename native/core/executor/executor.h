// SPDX-License-Identifier: Apache-2.0
// Code that the executors share: the begin and end of an operation, its launch, and its ENTER.
#pragma once

#include <type_traits>

#include "native/core/comm.h"
#include "native/core/launch/kernels.h"

namespace windlass {

// True if kernel K has K::agrees. In that case, the values that ranks bring with ENTER decide
// whether the kernel's items run. The kernel's in and out name no other memory.
template <class K, class = void>
struct Asks : std::false_type {};
template <class K>
struct Asks<K, std::void_t<decltype(&K::agrees)>> : std::true_type {};

// True if kernel K may name memory that peers in other processes cannot reach but can pull.
template <class K, class = void>
struct Pulls : std::false_type {};
template <class K>
struct Pulls<K, std::void_t<decltype(K::kPull)>> : std::true_type {};

// True if K runs kernels of libraries. The arguments belong to their rank, so no other rank runs
// its items. Values that ranks compare travel with ENTER, so that errors can name differences. The
// launch is planned before the rank enters: OwnArgs::aux is the Launch that runs.
template <class K, class = void>
struct OfLibrary : std::false_type {};
template <class K>
struct OfLibrary<K, std::void_t<decltype(K::kOfLibrary)>> : std::true_type {};

// True if K has K::kKeepsRoot: the root's output usually is its input, so that K does not write it.
template <class K, class = void>
struct KeepsRoot : std::false_type {};
template <class K>
struct KeepsRoot<K, std::void_t<decltype(K::kKeepsRoot)>> : std::true_type {};

// True if a rank's input travels with its ENTER.
template <class K>
constexpr bool kRides = K::kEager || Asks<K>::value || OfLibrary<K>::value;

// The operation as every rank sees it, without the arguments stated with ENTER and the kernel's
// plan. Thread-safe.
inline Launch launchOf(const Group& group, const Call& call) {
  Launch launch = {};
  launch.ranks = group.ranks();
  launch.root = static_cast<uint32_t>(call.descriptor.number());
  launch.dtype = static_cast<DType>(call.descriptor.dtype());
  launch.op = static_cast<ReduceOp>(call.descriptor.reduceOp());
  launch.bytes = call.bytes;
  launch.phases = call.phases;
  launch.streams = call.workBytes >= group.config().streamingBytes;
  launch.windows = group.windows().table();
  return launch;
}

// Runs body(launch, deadline) as the rank's next operation, as kernel K plans it.
template <class K, class Body>
__attribute__((always_inline)) inline Code operate(Comm& comm, const Call& call, Body&& body) {
  if (Code code = comm.begin(call); code != WL_OK) return code;
  const Group& group = comm.group();
  Launch launch = OfLibrary<K>::value ? *static_cast<const Launch*>(call.args.aux)
                                      : launchOf(group, call);
  if constexpr (!OfLibrary<K>::value) {
    launch.entries = reinterpret_cast<const unsigned char*>(
        &group.lines(0).entry[comm.operation().wholeSequence() & 1].args);
    launch.entryStride = sizeof(RankLines);
    if constexpr (KeepsRoot<K>::value)
      launch.streams = call.workBytes - call.bytes >= group.config().streamingBytes;
    K::plan(launch);
  }
  Deadline deadline(call.deadlineNs == 0 ? group.config().deadlineNs : call.deadlineNs,
                    call.startNs);
  const Code code = body(launch, deadline);
  return comm.finish(code, call.workBytes >= kLongWorkBytes, call.error);
}

// Waits until every rank has entered the previous operation, then states and enters this one.
// prepare() runs before peers see the entry.
template <class K, class Prepare>
__attribute__((always_inline)) inline Code enter(Comm& comm, const Call& call, Deadline& deadline,
                                                 Prepare&& prepare) {
  if (Code code = comm.waits().awaitPrevious(deadline); code != WL_OK) return code;
  comm.operation().seePrevious();
  comm.operation().fillEntry(call, kRides<K>, K::kEager);
  if (Code code = prepare(); code != WL_OK) return code;
  comm.publishEntry();
  return WL_OK;
}

// Sets *runs to true if the kernel's items run. If the communicator has failed, returns the
// failure's code, and no items run. Call it after all ranks have entered, and after a
// read-modify-write of this rank that follows its ENTER. A rank that saw the failure may have
// returned before all ranks entered. Therefore nobody may write that rank's memory any more.
template <class K>
Code ask(const Group& group, const Launch& launch, bool* runs) {
  *runs = true;
  if constexpr (Asks<K>::value) {
    const wl_error_t* failure = group.failure();
    *runs = failure == nullptr && K::agrees(launch);
    if (failure != nullptr) return static_cast<Code>(failure->code);
  }
  return WL_OK;
}

// If K pulls, prepares the data that peers may then pull from this rank or send to it.
template <class K>
Code preparePull(Comm& comm, const Launch& launch) {
  if constexpr (Pulls<K>::value) {
    if (comm.peerReads() != nullptr) {
      return comm.orNoMemory([&] {
        comm.peerReads()->beforeEntry(K::kPull, launch);
        return WL_OK;
      });
    }
  }
  return WL_OK;
}

// Runs a collective in which some rank reads memory that it can only pull.
Code pull(Comm& comm, const PullForm& form, const Call& call, const Launch& launch,
          Deadline& deadline);
// Runs the items of a transfer in which some rank reads memory that it can only pull.
Code pullItems(Comm& comm, const Call& call, const Launch& launch, Deadline& deadline);

// True if ranks pull what K's items would move. All ranks must have entered.
template <class K>
bool pulls(const Comm& comm, const Launch& launch) {
  return Pulls<K>::value && comm.group().config().spansProcesses && comm.operation().pulls(launch);
}

// Decides if the rank's items run, once all ranks have entered. They don't if ranks do not agree on
// it, or if some rank reads memory that it can only pull. In that case, this rank pulls here.
template <class K>
Code admitEntered(Comm& comm, const Call& call, const Launch& launch, Deadline& deadline,
                  bool* runs) {
  if (Code code = ask<K>(comm.group(), launch, runs); code != WL_OK || !*runs) return code;
  if constexpr (Asks<K>::value) {
    *runs = call.far == nullptr;
    if (!*runs) return pullItems(comm, call, launch, deadline);
  }
  if constexpr (Pulls<K>::value) {
    *runs = !pulls<K>(comm, launch);
    if (!*runs) return pull(comm, K::kPull, call, launch, deadline);
  }
  return WL_OK;
}

// The same for a rank that has just entered. If other ranks decide what it does, waits for them.
template <class K>
Code admit(Comm& comm, const Call& call, const Launch& launch, Deadline& deadline, bool* runs) {
  *runs = true;
  const bool mayPull = Pulls<K>::value && comm.group().config().spansProcesses;
  if (!Asks<K>::value && !mayPull) return WL_OK;
  const Code code = comm.waits().awaitNeed(kEveryRank, 0, deadline);
  return code == WL_OK ? admitEntered<K>(comm, call, launch, deadline, runs) : code;
}

// Runs the rank's items of a phase, each once the ranks that it needs are far enough.
template <class K>
__attribute__((always_inline)) inline Code runItems(Comm& comm, const Launch& launch,
                                                    uint32_t blocks, uint32_t phase,
                                                    Deadline& deadline) {
  const uint32_t rank = comm.rank();
  // Eager input is short, so peers need not see that this rank moves it.
  const bool shows = !K::kEager && comm.group().oversubscribed();
  for (uint32_t block = 0; block < blocks; ++block) {
    const Code code =
        comm.waits().awaitNeed(K::needs(launch, rank, block, phase), phase, deadline);
    if (code != WL_OK) return code;
    const auto move = [&] { K::phase(launch, rank, block, phase); };
    shows ? comm.waits().waiter().move(move) : move();
  }
  return WL_OK;
}

}  // namespace windlass
