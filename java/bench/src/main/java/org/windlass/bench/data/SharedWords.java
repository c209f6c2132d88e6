// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import org.windlass.Communicator;
import org.windlass.Window;
import org.windlass.internal.memory.PaddedWords;

/**
 * Words that all ranks of a communicator share, in whatever process. They start at zero. They lie
 * in rank 0's part of a window, which every process maps.
 */
public final class SharedWords extends PaddedWords implements AutoCloseable {
  private final Window window;

  /** Creates the words. The call is collective. Each rank closes its own object after use. */
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
