// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static java.time.Duration.ofMillis;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.windlass.Communicator;

/** Training whose first attempt fails: a rank doesn't come. */
public abstract class Attempts extends Scene {
  private final AtomicInteger trained = new AtomicInteger();

  protected final void train(Communicator comm) {
    boolean first = trained.incrementAndGet() <= comm.size();
    if (first && comm.rank() == 3) {
      return;
    }
    comm.withDeadline(first ? ofMillis(200) : SOON).barrier();
  }

  @Override
  public final void play() throws Exception {
    fragment();
    assertThat(trained).hasValue(8);
  }
}
