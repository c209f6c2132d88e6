// SPDX-License-Identifier: Apache-2.0
// A redistribution as a C programmer writes it with MPI: one MPI_Alltoallw a run, with a subarray
// type for each box that a rank sends to another, several of them joined by a struct type. Where
// the target is bf16 a rank casts its whole source first, so that half the bytes cross.
//
// The program's arguments are the seconds to spend on samples of a size, and a file for each size,
// which ExchangePlan.java writes: the boxes of Windlass's plan, so that replicas share the sending.
#include <array>
#include <fstream>

#include "mpi_block.h"

namespace {

using peers::Work;
using Pair = std::array<int, 2>;  // of rows, of columns

// One box of a rank's local matrix, and where it lies in the global one.
struct Piece {
  std::array<int64_t, 2> global;
  Pair length;
  Pair local;
};

struct Local {
  Pair shape{};
  std::vector<Piece> pieces;
  size_t count() const { return static_cast<size_t>(shape[0]) * static_cast<size_t>(shape[1]); }
};

struct Move {
  int source;
  int target;
  Pair length;
  Pair from;
  Pair to;
};

// One size: what each rank holds before and after, and every box that moves.
struct Plan {
  int ranks = 0;
  int64_t columns = 0;  // of the global matrix
  uint64_t bytes = 0;
  bool cast = false;
  Local source;  // of this rank
  Local target;
  std::vector<Move> moves;
};

template <class Number>
Number number(std::ifstream& file, int64_t least, int64_t most) {
  int64_t value = 0;
  if (!(file >> value) || value < least || value > most) {
    peers::stop("the plan holds no number in " + std::to_string(least) + " to " +
                std::to_string(most) + " where one belongs");
  }
  return static_cast<Number>(value);
}

Pair pair(std::ifstream& file) {
  return {number<int>(file, 0, INT32_MAX), number<int>(file, 0, INT32_MAX)};
}

Local localOf(std::ifstream& file) {
  Local local;
  local.shape = pair(file);
  local.pieces.resize(number<size_t>(file, 0, INT32_MAX));
  for (Piece& piece : local.pieces) {
    piece.global = {number<int64_t>(file, 0, INT64_MAX), number<int64_t>(file, 0, INT64_MAX)};
    piece.length = pair(file);
    piece.local = pair(file);
  }
  return local;
}

Plan read(const char* path, int rank) {
  std::ifstream file(path);
  Plan plan;
  plan.ranks = number<int>(file, 1, peers::kMostRanks);
  plan.columns = number<int64_t>(file, 1, INT64_MAX);
  plan.bytes = number<uint64_t>(file, 0, INT64_MAX);
  plan.cast = number<int>(file, 0, 1) == 1;
  for (int each = 0; each < plan.ranks; ++each) {
    const Local source = localOf(file);
    const Local target = localOf(file);
    if (each == rank) {
      plan.source = source;
      plan.target = target;
    }
  }
  plan.moves.resize(number<size_t>(file, 0, INT32_MAX));
  for (Move& move : plan.moves) {
    move.source = number<int>(file, 0, plan.ranks - 1);
    move.target = number<int>(file, 0, plan.ranks - 1);
    move.length = pair(file);
    move.from = pair(file);
    move.to = pair(file);
  }
  return plan;
}

// The boxes that one rank exchanges with another, as one type.
MPI_Datatype typeOf(const Pair& shape, const std::vector<std::pair<Pair, Pair>>& boxes,
                    MPI_Datatype element) {
  std::vector<MPI_Datatype> types;
  for (const auto& [start, length] : boxes) {
    MPI_Datatype type;
    MPI_Type_create_subarray(2, shape.data(), length.data(), start.data(), MPI_ORDER_C, element,
                             &type);
    types.push_back(type);
  }
  MPI_Datatype joined = types[0];
  if (types.size() > 1) {
    const std::vector<int> ones(types.size(), 1);
    const std::vector<MPI_Aint> zeros(types.size(), 0);
    MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), zeros.data(), types.data(),
                           &joined);
    for (MPI_Datatype& type : types) {
      MPI_Type_free(&type);
    }
  }
  MPI_Type_commit(&joined);
  return joined;
}

// One side of the exchange: a count and a type for each peer.
struct Side {
  std::vector<int> counts;
  std::vector<int> displacements;
  std::vector<MPI_Datatype> types;

  Side(int ranks, const Pair& shape, const std::vector<std::vector<std::pair<Pair, Pair>>>& boxes,
       MPI_Datatype element)
      : counts(static_cast<size_t>(ranks)),
        displacements(static_cast<size_t>(ranks)),
        types(static_cast<size_t>(ranks), element) {
    for (size_t peer = 0; peer < boxes.size(); ++peer) {
      if (!boxes[peer].empty()) {
        counts[peer] = 1;
        types[peer] = typeOf(shape, boxes[peer], element);
      }
    }
  }

  ~Side() {
    for (size_t peer = 0; peer < types.size(); ++peer) {
      if (counts[peer] != 0) {
        MPI_Type_free(&types[peer]);
      }
    }
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
};

// Values in [1, 2), one for each global element and iteration, exact in bf16.
uint32_t bitsOf(int64_t element, uint64_t iteration) {
  const uint64_t mixed = (static_cast<uint64_t>(element) + 131 * iteration) * 0x9e3779b97f4a7c15u;
  return 0x3f800000u | (static_cast<uint32_t>(mixed >> 57) << 16);
}

// visit(local index, global index, length) for each row of each piece.
template <class Visit>
void forEachRow(const Local& local, int64_t columns, const Visit& visit) {
  for (const Piece& piece : local.pieces) {
    for (int row = 0; row < piece.length[0]; ++row) {
      visit(static_cast<size_t>(piece.local[0] + row) * static_cast<size_t>(local.shape[1]) +
                static_cast<size_t>(piece.local[1]),
            (piece.global[0] + row) * columns + piece.global[1], piece.length[1]);
    }
  }
}

// Rounds to nearest even. The values are not NaN.
void castToBf16(uint16_t* to, const uint32_t* from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = static_cast<uint16_t>((from[i] + 0x7fff + (from[i] >> 16 & 1)) >> 16);
  }
}

template <class Element>
void verify(const Plan& plan, const Element* target, uint64_t iteration) {
  forEachRow(plan.target, plan.columns, [&](size_t at, int64_t global, int length) {
    for (int i = 0; i < length; ++i) {
      const uint32_t bits = bitsOf(global + i, iteration);
      if (target[at + static_cast<size_t>(i)] !=
          static_cast<Element>(sizeof(Element) == 4 ? bits : bits >> 16)) {
        peers::stop("global element " + std::to_string(global + i) + " differs");
      }
    }
  });
}

void measure(const Plan& plan, peers::Shared& shared, int rank, uint32_t cores, double seconds) {
  const size_t targetCount = plan.target.count();
  std::vector<uint32_t> source(plan.source.count());
  std::vector<uint16_t> sent(plan.cast ? source.size() : 0);
  std::vector<uint32_t> target(plan.cast ? 0 : targetCount);
  std::vector<uint16_t> narrow(plan.cast ? targetCount : 0);
  std::vector<std::vector<std::pair<Pair, Pair>>> out(static_cast<size_t>(plan.ranks));
  std::vector<std::vector<std::pair<Pair, Pair>>> in(static_cast<size_t>(plan.ranks));
  for (const Move& move : plan.moves) {
    if (move.source == rank)
      out[static_cast<size_t>(move.target)].emplace_back(move.from, move.length);
    if (move.target == rank)
      in[static_cast<size_t>(move.source)].emplace_back(move.to, move.length);
  }
  const MPI_Datatype element = plan.cast ? MPI_UINT16_T : MPI_FLOAT;
  const Side sends(plan.ranks, plan.source.shape, out, element);
  const Side receives(plan.ranks, plan.target.shape, in, element);
  const void* from = plan.cast ? static_cast<void*>(sent.data()) : source.data();
  void* to = plan.cast ? static_cast<void*>(narrow.data()) : target.data();
  const Work work{
      plan.bytes,
      [&](uint64_t iteration) {
        forEachRow(plan.source, plan.columns, [&](size_t at, int64_t global, int length) {
          for (int i = 0; i < length; ++i) {
            source[at + static_cast<size_t>(i)] = bitsOf(global + i, iteration);
          }
        });
      },
      [&](int) {
        if (plan.cast) {
          castToBf16(sent.data(), source.data(), source.size());
        }
        MPI_Alltoallw(from, sends.counts.data(), sends.displacements.data(), sends.types.data(), to,
                      receives.counts.data(), receives.displacements.data(), receives.types.data(),
                      MPI_COMM_WORLD);
      },
      [&](uint64_t iteration) {
        if (plan.cast) {
          verify(plan, narrow.data(), iteration);
        } else {
          verify(plan, target.data(), iteration);
        }
      }};
  peers::Sampler(shared, work, static_cast<uint32_t>(rank), static_cast<uint32_t>(plan.ranks),
                 cores, seconds)
      .run();
}

}  // namespace

int main(int argc, char** argv) {
  // Before the library binds this process to a core.
  const uint32_t cores = peers::allowedCores();
  if (argc < 3) {
    peers::stop("usage: peer_alltoallw SECONDS PLAN...");
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  peers::Shared& shared = *peers::share(rank);
  std::memset(&shared.stamps[rank], 0, sizeof shared.stamps[rank]);
  for (int i = 2; i < argc; ++i) {
    const Plan plan = read(argv[i], rank);
    if (plan.ranks != ranks) {
      peers::stop("the launcher started " + std::to_string(ranks) + " ranks");
    }
    measure(plan, shared, rank, cores, std::atof(argv[1]));
  }
  MPI_Finalize();
  return 0;
}
