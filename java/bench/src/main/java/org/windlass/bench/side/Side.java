// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import java.util.function.IntConsumer;
import org.windlass.Communicator;
import org.windlass.DType;

/** A side that carries out an operation: the library, or an implementation to compare it with. */
public interface Side {
  /** Returns the barrier of all ranks for the rank of {@code comm}. */
  Runnable barrier(Communicator comm);

  /** Returns true if tensors lie in the memory of devices. Device copies are then the floor. */
  default boolean isOnDevices() {
    return false;
  }

  /**
   * Makes the buffers of the rank of {@code comm}, with rows of {@code bytes}. The call is
   * collective.
   */
  Rank open(Communicator comm, Operation operation, long bytes, DType dtype);

  /**
   * One rank's little-endian buffers and its call. A broadcast has one buffer for input and output.
   */
  interface Rank extends AutoCloseable {
    ByteBuffer input();

    ByteBuffer output();

    /** Transfers the written input to the location where the operation reads it. */
    default void bring() {}

    /** Fetches the output from the location where the operation has written it. */
    default void fetch() {}

    /** Makes the device only copy the bytes, for a side on devices. Overwrites the output. */
    default void copy() {}

    /** Runs the operation once. {@code root} is the root of a broadcast. */
    void call(int root);

    @Override
    void close();
  }

  /** A rank whose call, a function of the root, works on its buffers directly. */
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
