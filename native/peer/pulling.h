// SPDX-License-Identifier: Apache-2.0
// Runs a collective that names ordinary memory of ranks in other processes. A rank writes only its
// own output. It reads the data of other ranks directly or through staging buffers
// (native/peer/peer_access.h). The owner of a staging buffer fills one half while its readers read
// the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/base/clock.h"
#include "native/base/error.h"
#include "native/core/call.h"
#include "native/core/peer_reads.h"
#include "native/hosts/ucx/wire.h"
#include "native/peer/far_items.h"
#include "native/peer/peer_access.h"
#include "native/peer/peer_rank.h"
#include "native/peer/two_levels.h"
#include "windlass/kernel.h"

namespace windlass {

class Pulling final : public PeerReads, private PeerRank {
 public:
  // Throws std::bad_alloc.
  explicit Pulling(Comm& comm);
  ~Pulling() override;

  Code run(const PullForm& form, const Launch& launch, Deadline& deadline,
           wl_error_t* error) override;
  Code runItems(const Call& call, const Launch& launch, Deadline& deadline) override {
    return items_.run(*call.far, launch, call.firstPhase, deadline, call.error);
  }
  void beforeEntry(const PullForm& form, const Launch& launch) override;
  void endLanding() override;
  int32_t form(char* why, size_t room) const override { return access_.form(why, room); }

  // Progress of the current phase. count() is twice its rounds if ranks read through staging
  // buffers, or 0. over() is the number of halves that `rank` has filled or read. While ranks
  // agree, count() is 1, and over() is 1 if `rank` has published its word.
  uint32_t count() const override {
    return access_.isAgreeing() ? 1 : twoLevels_.steps() > 0 ? twoLevels_.steps() : steps_;
  }
  uint32_t over(uint32_t rank) const override;

 private:
  // One phase of the operation.
  struct Phase {
    const PullForm& form;
    const Launch& launch;
    uint32_t k;
    bool staged;  // data of other processes goes through staging buffers

    const PullPhase& of() const { return form.phase[k]; }
    // Number of ranks, from 0 on, whose data `rank` folds.
    uint32_t terms(uint32_t rank) const {
      return form.terms == nullptr ? launch.ranks : form.terms(launch, rank);
    }
    // True if ranks read columns of inputs, which are strided.
    bool readsColumns() const { return of().folds && of().byColumns; }
    // Columns of an input, from its first row on. `address` is that of the first byte.
    FarBox columns(uint64_t address, const Pulled& pulled) const {
      const auto row = static_cast<int64_t>(pulled.bytes / launch.rows());
      const int64_t extents[] = {static_cast<int64_t>(launch.rows()), row};
      const int64_t strides[] = {row * static_cast<int64_t>(launch.ranks), 1};
      return {address, 1, 2, extents, strides, FarBox::Gaps::kNone};
    }
    Pulled pulled(uint32_t from, uint32_t to) const { return form.pulled(launch, from, to, k); }
    Place place(uint32_t from) const {
      return of().ofOutputs ? launch.of(from).out : launch.of(from).in;
    }
  };

  // Way in which the data of one rank reaches another one.
  enum class Route {
    kDirect,  // `to` reads it where it lies
    kRead,    // `to` reads it by process_vm_readv
    kStaged,  // through staging buffers, over the hosts in between too
    kLanded,  // the process of `from` puts it straight into the receive buffer of `to`, on another
              // host (native/peer/landing.cpp)
  };
  // Returns the route of data from `from` to `to`. No other function chooses it. The call is cheap,
  // because it is made often for all pairs.
  Route routeOf(const Phase& phase, uint32_t from, uint32_t to) const;
  bool isStaged(const Phase& phase, uint32_t from, uint32_t to) const {
    return routeOf(phase, from, to) == Route::kStaged;
  }
  // True if the route is kLanded. It may be called before `from` enters. routeOf() may not.
  bool lands(const Phase& phase, uint32_t from, uint32_t to) const;
  bool isAnyFar(const PullForm& form, const Launch& launch) const;
  // True if the parts are so short that two copies cost less than the system calls that read them.
  // Every rank can compute this before others have entered.
  bool isShort(const PullForm& form, const Launch& launch) const;
  // True if ranks access only the staging buffers of one another, and no other memory.
  bool useOnlyStages(const Launch& launch) const;

  Code runPhase(const Phase& phase, Deadline& deadline);
  Code readAll(const Phase& phase, Deadline& deadline);
  Code foldAll(const Phase& phase, Deadline& deadline);
  // native/peer/landing.cpp
  //
  // Sets the buffer for data whose route is kLanded. Call it before other ranks see this rank
  // enter.
  void receive(const PullForm& form, const Launch& launch);
  // land() sends such data to other ranks. The bytes must not change until awaitLanded(), which
  // waits until all such data for this rank has arrived, and all of this rank's is sent.
  Code land(const Phase& phase, Deadline& deadline);
  Code awaitLanded(const Phase& phase, Deadline& deadline);

  // Writes bytes read of another rank, from offset `at` on, to this rank's output.
  void put(const Phase& phase, const Pulled& pulled, uint64_t at, const uint8_t* bytes,
           uint64_t count) const;
  // Calls kRankMoves.copy().
  void copy(void* to, const void* from, uint64_t bytes) const;
  // Copies bytes [at, at + count) of the data that is read of an input. `from` is its first byte.
  void copyPart(const Phase& phase, const Pulled& pulled, void* to, const uint8_t* from,
                uint64_t at, uint64_t count) const;
  // Sets the source of a fold to bytes of a rank that is read directly. Columns are first copied to
  // *room, which is advanced.
  void findSource(const Phase& phase, const Pulled& pulled, uint32_t from, uint64_t at,
                  uint64_t count, unsigned char** room);
  // Folds the inputs of the ranks whose data this rank folds, at the addresses in sources_.
  void fold(const Phase& phase, const Pulled& pulled, uint64_t at, uint64_t count);

  // native/peer/pull_rounds.cpp
  //
  // Largest number of bytes that a round moves from one rank to another.
  uint64_t segmentOf(const PullPhase& phase) const;
  Code runRounds(const Phase& phase, uint64_t segment, uint64_t rounds, Deadline& deadline);
  Code fill(const Phase& phase, uint64_t segment, uint64_t round, Deadline& deadline);
  // True if a rank reads this one's memory, from offset `at` on, through its staging buffer.
  bool isReadFrom(const Phase& phase, uint64_t at) const;
  // Runs an operation in two levels.
  Code runTwoLevels(const Launch& launch, Deadline& deadline);
  // True if that rank, in another process, has read the previous content of this rank's half.
  bool hasTaken(uint32_t reader, uint64_t round) const;
  void copyHalf(const Phase& phase, uint64_t segment, uint64_t round);
  Code take(const Phase& phase, uint64_t segment, uint64_t round, Deadline& deadline);
  // Address of the data for `to` in the staging buffer of `from`.
  const uint8_t* staged(const Phase& phase, uint32_t from, uint32_t to, uint64_t segment,
                        uint64_t round) const;

  // Publishes that this rank's half is filled. Other hosts first receive the data for their ranks.
  void tellFilled(const Phase& phase, uint64_t segment, uint64_t round);
  void tellRefused(const Launch& launch) const;
  void tellTaken(const Phase& phase) const;

  PeerAccess access_;
  FarItems items_;
  bool receives_ = false;          // other hosts have this rank's receive buffer
  std::vector<uint32_t> landsAt_;  // ranks that data is in flight to
  Unread unread_;                  // number of puts to them whose bytes are still read
  TwoLevels twoLevels_;
  std::vector<const void*> sources_;
  std::vector<double> factors_;  // of the sources, in a premultiplied sum
  unsigned char* const scratch_;
  uint64_t rounds_ = 0;    // rounds of all operations
  bool isFilled_ = false;  // true if this rank's half for the next round is filled
  mutable std::string broken_;  // access of this rank that the target forbids
  uint32_t steps_ = 0;
};

}  // namespace windlass
