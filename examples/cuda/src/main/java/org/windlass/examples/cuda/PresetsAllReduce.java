// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.cuda;

import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.FloatPointer;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.cuda.CudaPresets;
import org.windlass.cuda.DevicePointers;
import org.windlass.cuda.DeviceStreams;
import org.windlass.error.UnsupportedException;
import org.windlass.gpu.CudaDriver;
import org.windlass.kernel.Target;

/**
 * Sums data on GPUs with an all-reduce, in a program that uses Bytedeco's CUDA presets. Each rank
 * copies its numbers to its GPU on a stream of the presets, into memory of their cudaMalloc. The
 * all-reduce runs on the same stream. The presets' calls then copy the result back.
 */
public final class PresetsAllReduce {
  private static final int COUNT = 1 << 20;
  private static final long BYTES = (long) COUNT * Float.BYTES;

  /** Largest number of ranks of a communicator on GPUs. */
  private static final int MOST_RANKS = 64;

  private PresetsAllReduce() {}

  /**
   * Runs the example. The argument is the number of ranks (2). The exit status is 2 if the argument
   * is not a valid number, and 3 without a GPU or the presets.
   */
  public static void main(String[] args) {
    int ranks = args.length == 0 ? 2 : ranks(args[0]);
    try {
      Target.CUDA.use();
    } catch (UnsupportedException e) {
      refuse(e.getMessage());
    }
    CudaPresets.problem().ifPresent(PresetsAllReduce::refuse);
    try (var group = LocalGroup.of(ranks)) {
      group.run(PresetsAllReduce::sumOnGpu);
    }
    System.out.printf("%d ranks, %d sums equal the golden ones%n", ranks, COUNT);
  }

  private static int ranks(String given) {
    int ranks = given.matches("\\d{1,2}") ? Integer.parseInt(given) : 0;
    if (ranks < 1 || ranks > MOST_RANKS) {
      end(2, "the number of ranks is \"" + given + "\"; give one from 1 to " + MOST_RANKS);
    }
    return ranks;
  }

  private static void refuse(String reason) {
    end(3, "this example takes an NVIDIA GPU: " + reason);
  }

  private static void end(int status, String said) {
    System.err.println(said);
    System.exit(status);
  }

  private static void sumOnGpu(Communicator comm) {
    check(cudart.cudaSetDevice(comm.rank() % CudaDriver.deviceCount()));
    var stream = new CUstream_st();
    var onHost = new FloatPointer();
    var onGpu = new FloatPointer();
    check(cudart.cudaStreamCreateWithFlags(stream, cudart.cudaStreamNonBlocking));
    check(cudart.cudaMallocHost(onHost, BYTES));
    check(cudart.cudaMalloc(onGpu, BYTES));
    try {
      for (int i = 0; i < COUNT; i++) {
        onHost.put(i, base(i) + comm.rank());
      }
      copy(onGpu, onHost, cudart.cudaMemcpyHostToDevice, stream);

      var numbers = DevicePointers.tensor(onGpu, DType.F32, COUNT);
      var sum = DeviceStreams.on(comm, stream).allReduce(numbers, ReduceOp.SUM);

      copy(onHost, onGpu, cudart.cudaMemcpyDeviceToHost, stream);
      sum.await();
      check(cudart.cudaStreamSynchronize(stream));
      int ofRanks = comm.size() * (comm.size() - 1) / 2;
      for (int i = 0; i < COUNT; i++) {
        float golden = comm.size() * base(i) + ofRanks;
        if (onHost.get(i) != golden) {
          throw new AssertionError("sum " + i + " is " + onHost.get(i) + ", not " + golden);
        }
      }
    } finally {
      check(cudart.cudaFree(onGpu));
      check(cudart.cudaFreeHost(onHost));
      check(cudart.cudaStreamDestroy(stream));
    }
  }

  private static void copy(FloatPointer to, FloatPointer from, int kind, CUstream_st stream) {
    check(cudart.cudaMemcpyAsync(to, from, BYTES, kind, stream));
  }

  /** Returns element {@code i} of rank 0. Rank r adds r to it. */
  private static float base(int i) {
    return 1 + i % 1024 / 4f;
  }

  private static void check(int error) {
    if (error != cudart.cudaSuccess) {
      throw new IllegalStateException(
          cudart.cudaGetErrorName(error).getString()
              + ": "
              + cudart.cudaGetErrorString(error).getString());
    }
  }
}
