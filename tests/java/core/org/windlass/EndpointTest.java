// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Endpoint;
import org.windlass.internal.Lifetime;
import org.windlass.internal.Native;

/** The end of a call that failed, where the heap has no room to say what. */
@Timeout(60)
class EndpointTest {
  private static final class Pinned extends Lifetime {
    boolean released;

    @Override
    protected void release() {
      released = true;
    }
  }

  @Test
  void aCallThatCannotSayWhatFailedIsOverAllTheSame() {
    long handle = LocalHandles.create(1, CommunicatorOptions.defaults())[0];
    Endpoint endpoint =
        new Endpoint(
            handle,
            (code, message, cause, operation, culprits) -> {
              throw new OutOfMemoryError("the test's");
            },
            code -> "");
    try {
      Thread thread = Thread.currentThread();
      Pinned first = new Pinned();
      Pinned second = new Pinned();
      first.pin();
      second.pin();
      endpoint.begin(thread);
      assertThatThrownBy(() -> endpoint.settle(Native.WL_INVALID_ARGUMENT, first, second))
          .isInstanceOf(OutOfMemoryError.class);
      first.end();
      second.end();
      assertThat(first.released).isTrue();
      assertThat(second.released).isTrue();
      endpoint.begin(thread); // which nobody is in any more
      endpoint.end();
    } finally {
      endpoint.free();
    }
  }
}
