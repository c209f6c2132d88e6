// SPDX-License-Identifier: Apache-2.0
// The collectives and messages of the peers on f32, sampled. The program's arguments are the
// operation, the number of ranks, the seconds to spend on samples of a size, and sizes in bytes.
#pragma once

#include "sampling.h"

namespace peers {

struct Arguments {
  std::string operation;
  int ranks;
  double seconds;
  std::vector<uint64_t> sizes;

  Arguments(int argc, char** argv) {
    if (argc < 5) {
      stop("usage: peer OP RANKS SECONDS BYTES...");
    }
    operation = argv[1];
    ranks = std::atoi(argv[2]);
    seconds = std::atof(argv[3]);
    for (int i = 4; i < argc; ++i) {
      sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    }
    if (ranks < 1 || static_cast<uint32_t>(ranks) > kMostRanks) {
      stop("no such number of ranks: " + std::string(argv[2]));
    }
  }
};

// Memory for f32, zeroed, on its own pages.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(uint64_t count) {
    const uint64_t bytes = (count * sizeof(float) + kPage - 1) / kPage * kPage;
    data_.reset(static_cast<float*>(std::aligned_alloc(kPage, std::max<uint64_t>(bytes, kPage))));
    if (data_ == nullptr) {
      stop("no memory for " + std::to_string(bytes) + " bytes");
    }
    std::memset(data_.get(), 0, bytes);
  }

  float* data() const { return data_.get(); }

 private:
  static constexpr uint64_t kPage = 4096;
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
};

// One rank's buffers and call. What works in place has its output in `in`.
struct Call {
  Buffer in;
  Buffer out;
  float* result = nullptr;
  std::function<void(int root)> run;
};

// kSendReceive: messages between pairs of neighbours, there and back. kRing: each rank sends to the
// next.
enum class Operation {
  kBarrier,
  kAllToAll,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kSendReceive,
  kRing
};

inline Operation operationNamed(const std::string& name) {
  static const char* const names[] = {"barrier",        "all-to-all", "broadcast",    "all-gather",
                                      "reduce-scatter", "all-reduce", "send-receive", "ring"};
  int number = 0;
  for (const char* each : names) {
    if (name == each) {
      return static_cast<Operation>(number);
    }
    ++number;
  }
  stop("no operation " + name);
}

// An operation on rows of f32: how large buffers are and what they hold.
struct Shape {
  Operation operation;
  uint64_t ranks;
  uint64_t row;  // elements

  uint64_t inputCount() const {
    const bool rows = operation == Operation::kAllToAll || operation == Operation::kReduceScatter;
    return rows ? ranks * row : row;
  }

  uint64_t outputCount() const {
    const bool rows = operation == Operation::kAllToAll || operation == Operation::kAllGather;
    return rows ? ranks * row : row;
  }

  bool sums() const {
    return operation == Operation::kReduceScatter || operation == Operation::kAllReduce;
  }

  // Whole numbers, exact as f32 also once summed: below 8 for a term of a sum, else below 2^24.
  float element(uint64_t rank, uint64_t index, uint64_t iteration) const {
    const uint64_t mixed = index * 0x9e3779b1u + rank * 0x85ebca6bu + iteration * 0xc2b2ae35u;
    return static_cast<float>(static_cast<uint32_t>(mixed) >> (sums() ? 29 : 8));
  }

  void rewrite(float* in, uint64_t rank, uint64_t iteration) const {
    const uint64_t count = inputCount();
    for (uint64_t i = 0; i < count; ++i) {
      in[i] = element(rank, i, iteration);
    }
  }

  float expected(uint64_t rank, uint64_t index, uint64_t iteration) const {
    switch (operation) {
      case Operation::kAllToAll:
        return element(index / row, rank * row + index % row, iteration);
      case Operation::kBroadcast:
        return element(kRoot, index, iteration);
      case Operation::kAllGather:
        return element(index / row, index % row, iteration);
      case Operation::kSendReceive:
        return element(rank / 2 * 2, index, iteration);
      case Operation::kRing:
        return element((rank + ranks - 1) % ranks, index, iteration);
      default: {
        const uint64_t first = operation == Operation::kReduceScatter ? rank * row : 0;
        float sum = 0;
        for (uint64_t peer = 0; peer < ranks; ++peer) {
          sum += element(peer, first + index, iteration);
        }
        return sum;
      }
    }
  }

  void verify(const float* out, uint64_t rank, uint64_t iteration) const {
    const uint64_t count = outputCount();
    for (uint64_t i = 0; i < count; ++i) {
      const float want = expected(rank, i, iteration);
      if (std::memcmp(&out[i], &want, sizeof want) != 0) {
        stop("rank " + std::to_string(rank) + "'s output differs at element " + std::to_string(i));
      }
    }
  }
};

// Ranks post how often they have entered a barrier, and read the others' posts as they leave.
inline void verifyBarrier(Shared& shared, const Call& call, uint32_t rank, uint64_t ranks) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t entered = shared.posts[rank].entered.load(std::memory_order_relaxed) + 1;
    shared.posts[rank].entered.store(entered, std::memory_order_relaxed);
    call.run(kRoot);
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      if (shared.posts[peer].entered.load(std::memory_order_relaxed) < entered) {
        stop("rank " + std::to_string(rank) + " left a barrier before rank " +
             std::to_string(peer) + " had entered it");
      }
    }
  }
}

// Measures every size as `rank`; `open` makes that rank's buffers and call for a shape.
template <class Open>
void measure(const Arguments& arguments, Shared& shared, uint32_t rank, uint32_t cores,
             const Open& open) {
  std::memset(&shared.stamps[rank], 0, sizeof shared.stamps[rank]);
  for (const uint64_t bytes : arguments.sizes) {
    const Shape shape{operationNamed(arguments.operation), static_cast<uint64_t>(arguments.ranks),
                      bytes / sizeof(float)};
    const Call call = open(shape);
    const bool barrier = shape.operation == Operation::kBarrier;
    const bool hasInput = !barrier && (shape.operation != Operation::kBroadcast || rank == kRoot);
    const Work work{shape.row * sizeof(float),
                    [&](uint64_t iteration) {
                      if (hasInput) shape.rewrite(call.in.data(), rank, iteration);
                    },
                    call.run,
                    [&](uint64_t iteration) {
                      if (barrier) {
                        verifyBarrier(shared, call, rank, shape.ranks);
                      } else {
                        shape.verify(call.result, rank, iteration);
                      }
                    }};
    Sampler(shared, work, rank, static_cast<uint32_t>(arguments.ranks), cores, arguments.seconds)
        .run();
  }
}

}  // namespace peers
