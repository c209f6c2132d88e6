// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Store;

/**
 * A sign that some who meet may still come: a key of theirs, and the value that it has so long.
 * Where they give up it goes, or gets another value.
 */
public record Sign(String key, byte[] value) {
  /** For a store that may answer no more. */
  private static final Duration LAST_LOOK = Duration.ofSeconds(2);

  public Sign {
    Objects.requireNonNull(key, "key");
    Objects.requireNonNull(value, "value");
  }

  boolean isThere(Store store, Duration deadline) {
    return Arrays.equals(store.get(key, deadline).orElse(null), value);
  }

  /**
   * Whether it has gone, or goes within {@code limit}: those who fail together with others take it
   * back a moment later.
   */
  public boolean goes(Store store, Duration limit) {
    Deadline until = Deadline.of(limit);
    try {
      store.awaitOther(key, value, limit);
      return true;
    } catch (RuntimeException e) {
      if (until.isOver()) {
        return false;
      }
      throw e;
    }
  }

  /** By those whose it is: they come no more. An interrupt stays for what comes next. */
  public void takeBack(Store store) {
    boolean interrupted = Thread.interrupted();
    try {
      store.compareAndSet(key, value, null, LAST_LOOK);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
