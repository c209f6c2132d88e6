// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import org.windlass.Communicator;

/** Two ranks, each of which runs the fragment on {@code comm}: around blocks that name no scene. */
public abstract class Ranks extends Scene {
  protected Communicator comm;

  @Override
  public final void play() throws Exception {
    onRanks(
        2,
        Ranks.class,
        (own, comm) -> {
          own.comm = comm;
          own.fragment();
          comm.barrier();
        });
  }
}
