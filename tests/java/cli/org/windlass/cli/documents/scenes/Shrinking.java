// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static java.time.Duration.ofMillis;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.windlass.Communicator;

/** Three ranks, of which the last hangs in its training, and then is gone. */
public abstract class Shrinking extends Scene {
  private static final CountDownLatch FAILED = new CountDownLatch(2);

  protected Communicator comm;

  protected final void train(Communicator comm) {
    if (comm.rank() < 2) {
      try {
        comm.withDeadline(ofMillis(200)).barrier();
      } finally {
        FAILED.countDown();
      }
    }
  }

  protected final void restore(Communicator to, Communicator from) {
    assertThat(to.size()).isEqualTo(2);
    assertThat(to.rank()).isEqualTo(from.rank());
    to.barrier();
  }

  @Override
  public final void play() throws Exception {
    onRanks(
        3,
        Shrinking.class,
        (own, comm) -> {
          own.comm = comm;
          if (comm.rank() == 2) {
            assertThat(FAILED.await(SOON.toSeconds(), TimeUnit.SECONDS)).isTrue();
            comm.close();
            return;
          }
          own.fragment();
          assertThat(own.comm).isNotSameAs(comm);
          own.comm.close();
        });
  }
}
