// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import org.windlass.Communicator;
import org.windlass.DType;

/** A side that carries an operation out: the library, or what it is compared with. */
public interface Side {
  /** A barrier of all ranks, for the rank of {@code comm}. */
  Runnable barrier(Communicator comm);

  /** Whether the operation's tensors lie in the memory of devices, whose copies are its floor. */
  default boolean isOnDevices() {
    return false;
  }

  /** Makes the buffers of the rank of {@code comm}, for rows of {@code bytes}. Collective. */
  Rank open(Communicator comm, Operation operation, long bytes, DType dtype);

  /** One rank's buffers, little-endian, and its call. A broadcast has one buffer for both. */
  interface Rank extends AutoCloseable {
    ByteBuffer input();

    ByteBuffer output();

    /** Brings the input, once written, to where the operation takes it. */
    default void bring() {}

    /** Fetches the output from where the operation has put it. */
    default void fetch() {}

    /** Has the device copy just the bytes, of a side on devices; overwrites the output. */
    default void copy() {}

    /** The operation, once; {@code root} is a broadcast's. */
    void call(int root);

    @Override
    void close();
  }
}
