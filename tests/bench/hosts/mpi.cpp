// SPDX-License-Identifier: Apache-2.0
// Open MPI over several hosts.
#include <mpi.h>

#include "sampling.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<uint64_t> sizes = hosts_bench::sizes();
  if (argc > 1) sizes.clear();
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  for (const uint64_t bytes : sizes) {
    std::vector<float> in(bytes / sizeof(float), 1), out(bytes / sizeof(float));
    const auto count = static_cast<int>(in.size());
    const double reduced = hosts_bench::sample(bytes, [&] {
      MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
    if (rank == 0) hosts_bench::print("all-reduce", bytes, reduced);
    const int row = count / ranks;
    const double exchanged = hosts_bench::sample(bytes, [&] {
      MPI_Alltoall(in.data(), row, MPI_FLOAT, out.data(), row, MPI_FLOAT, MPI_COMM_WORLD);
    });
    if (rank == 0) hosts_bench::print("all-to-all", bytes, exchanged);
  }
  MPI_Finalize();
  return 0;
}
