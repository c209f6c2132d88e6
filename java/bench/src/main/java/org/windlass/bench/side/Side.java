// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import java.util.function.IntConsumer;
import org.windlass.Communicator;
import org.windlass.DType;

/** An implementation of collectives that is measured: the library's, or another one. */
public interface Side {
  /** Returns the implementation's barrier, to be called by the rank of {@code comm}. */
  Runnable barrier(Communicator comm);

  /**
   * Returns true if tensors lie in the memory of devices. In this case, device copies are the
   * floor.
   */
  default boolean isOnDevices() {
    return false;
  }

  /**
   * Allocates the buffers of the rank of {@code comm}. The call is collective.
   *
   * @param bytes bytes of a row; see {@link Operation}
   */
  Rank open(Communicator comm, Operation operation, long bytes, DType dtype);

  /**
   * One rank's little-endian buffers and its call. A broadcast has one buffer for input and output.
   */
  interface Rank extends AutoCloseable {
    ByteBuffer input();

    ByteBuffer output();

    /** Transfers the written input to the memory from which the operation reads it. */
    default void bring() {}

    /** Fetches the output from the memory to which the operation writes it. */
    default void fetch() {}

    /**
     * Copies the same number of bytes on the device as the operation moves, to measure the floor.
     */
    default void copy() {}

    /** Runs the operation once. {@code root} is the root of a broadcast. */
    void call(int root);

    @Override
    void close();
  }

  /** A rank whose operation works on its buffers directly; its argument is the root. */
  record OnHost(ByteBuffer input, ByteBuffer output, IntConsumer operation, Runnable free)
      implements Rank {
    @Override
    public void call(int root) {
      operation.accept(root);
    }

    @Override
    public void close() {
      free.run();
    }
  }
}
