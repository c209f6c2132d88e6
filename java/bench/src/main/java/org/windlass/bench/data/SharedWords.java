// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import org.windlass.Communicator;
import org.windlass.Window;
import org.windlass.internal.memory.PaddedWords;

/**
 * Words that all ranks of a communicator share, whichever process they live in, zero at first: rank
 * 0's part of a window, which every process has in its memory.
 */
public final class SharedWords extends PaddedWords implements AutoCloseable {
  private final Window window;

  /** Collective. Valid until it is closed, which each rank does for itself. */
  public SharedWords(Communicator comm, int count) {
    this(comm.window(bytes(count)), count);
  }

  private SharedWords(Window window, int count) {
    super(window.address(0), count);
    this.window = window;
  }

  @Override
  public void close() {
    window.close();
  }
}
