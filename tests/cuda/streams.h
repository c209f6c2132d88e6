// SPDX-License-Identifier: Apache-2.0
// Streams of the stand-in for NVIDIA's driver, their events and the graphs that they capture. What
// a stream is given happens while somebody looks at any stream or event; what depends on nothing
// happens in no order that a program could count on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "native/device/cuda/cuda.h"
#include "windlass/kernel_table.h"
#include "windlass/offload.h"

namespace stand_in {

enum class Progress { kMoved, kWaits, kOver };

class Work {
 public:
  virtual ~Work() = default;
  // As far as it comes.
  virtual Progress goOn() = 0;
};

// Submits what `make` makes to the stream, or to the graph that it captures. `make` runs each time
// the stream reaches it, with the stand-in's mutex held. Returns the call's result.
windlass::cuda::CuResult submit(windlass::cuda::CuStream stream,
                                std::function<std::unique_ptr<Work>()> make);
windlass::cuda::CuResult submitOnce(windlass::cuda::CuStream stream, std::function<void()> body);
// Makes a stream wait until it is released. The caller holds the mutex.
void hold(windlass::cuda::CuStream stream, bool holds);
// The device of a stream; -1: there is no such stream. The mutex is held.
int deviceOf(windlass::cuda::CuStream stream);
// Result of a call that another thread's capture forbids. 0: no capture forbids it.
windlass::cuda::CuResult checkUnsafe();
// Resets the streams to their first state. The caller holds the mutex.
void resetStreams();
// Those that were not given back.
size_t streamCount();
// Those that were, and have work left. Takes the mutex itself, as does what goes on meanwhile.
size_t leavingCount();
size_t eventCount();
size_t graphCount();

// A grid of `blocks` blocks of windlass_run on that device, which begins once all of them fit
// there. `library` holds its kernels; nullptr: Windlass's own kernels.
std::unique_ptr<Work> kernel(int device, const windlass::KernelTable* library,
                             const windlass::OffloadedRanks& ranks, uint32_t coresOfRank,
                             uint32_t blocks);
// Grids that still ran when their stream was given back.
std::atomic<size_t>& orphans();
// How many blocks a device runs at a time.
uint32_t blocksAtOnce();

// Behaviour of the rank's cores. kWait: they only look for the order to stop. kHang: they do
// nothing. kLate: the upper half begins some ms after the others.
enum class Cores { kRun, kWait, kHang, kLate };
Cores coresOf(uint32_t rank);

}  // namespace stand_in
