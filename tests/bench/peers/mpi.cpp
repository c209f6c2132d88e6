// SPDX-License-Identifier: Apache-2.0
// An MPI library, sampled: one process a rank, started by its own launcher.
#include "collectives.h"
#include "mpi_block.h"

namespace {

using peers::Buffer;
using peers::Call;
using peers::Operation;
using peers::Shape;

std::function<void(int)> callOf(const Shape& shape, float* in, float* out) {
  const int row = static_cast<int>(shape.row);
  const int ranks = static_cast<int>(shape.ranks);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  switch (shape.operation) {
    case Operation::kBarrier:
      return [](int) { MPI_Barrier(MPI_COMM_WORLD); };
    case Operation::kAllToAll:
      return [=](int) { MPI_Alltoall(in, row, MPI_FLOAT, out, row, MPI_FLOAT, MPI_COMM_WORLD); };
    case Operation::kBroadcast:
      return [=](int root) { MPI_Bcast(in, row, MPI_FLOAT, root, MPI_COMM_WORLD); };
    case Operation::kAllGather:
      return [=](int) { MPI_Allgather(in, row, MPI_FLOAT, out, row, MPI_FLOAT, MPI_COMM_WORLD); };
    case Operation::kReduceScatter:
      return
          [=](int) { MPI_Reduce_scatter_block(in, out, row, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    case Operation::kAllReduce:
      return [=](int) { MPI_Allreduce(in, out, row, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    case Operation::kSendReceive:
      if (ranks % 2 != 0) peers::stop("send-receive takes an even number of ranks");
      if (rank % 2 == 0) {
        return [=](int) {
          MPI_Send(in, row, MPI_FLOAT, rank + 1, 0, MPI_COMM_WORLD);
          MPI_Recv(out, row, MPI_FLOAT, rank + 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        };
      }
      return [=](int) {
        MPI_Recv(out, row, MPI_FLOAT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, row, MPI_FLOAT, rank - 1, 0, MPI_COMM_WORLD);
      };
    case Operation::kRing:
      return [=](int) {
        MPI_Sendrecv(in, row, MPI_FLOAT, (rank + 1) % ranks, 0, out, row, MPI_FLOAT,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      };
  }
  peers::stop("no such operation");
}

}  // namespace

int main(int argc, char** argv) {
  // Before the library binds this process to a core.
  const uint32_t cores = peers::allowedCores();
  const peers::Arguments arguments(argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != arguments.ranks) {
    peers::stop("the launcher started " + std::to_string(ranks) + " ranks");
  }
  peers::measure(arguments, *peers::share(rank), static_cast<uint32_t>(rank), cores,
                 [](const Shape& shape) {
                   Call call;
                   call.in = Buffer(shape.inputCount());
                   const bool inPlace = shape.operation == Operation::kBroadcast;
                   if (!inPlace) {
                     call.out = Buffer(shape.outputCount());
                   }
                   call.result = inPlace ? call.in.data() : call.out.data();
                   call.run = callOf(shape, call.in.data(), call.result);
                   return call;
                 });
  MPI_Finalize();
  return 0;
}
