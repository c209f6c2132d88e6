// SPDX-License-Identifier: Apache-2.0
// What the processes of an MPI program share beside MPI: the words and stamps of the sampling.
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampling.h"

namespace peers {

// A block that the processes share; its file is gone once all have mapped it.
inline Shared* share(int rank) {
  char path[] = "/dev/shm/windlass-peer-XXXXXX";
  int file = rank == 0 ? mkstemp(path) : -1;
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank != 0) {
    file = open(path, O_RDWR);
  }
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) {
    stop(std::string("cannot share ") + path);
  }
  void* block = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (block == MAP_FAILED) {
    stop(std::string("cannot map ") + path);
  }
  close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    unlink(path);
  }
  return static_cast<Shared*>(block);
}

}  // namespace peers
