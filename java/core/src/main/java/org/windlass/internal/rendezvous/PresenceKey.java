// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Store;

/**
 * Key of a job that has a known value as long as the job may still join a meeting. A job that gives
 * up removes its key or gives it another value.
 */
public record PresenceKey(String key, byte[] value) {
  private static final Duration REMOVAL_LIMIT = Duration.ofSeconds(2);

  boolean isPresent(Store store, Duration deadline) {
    return Arrays.equals(store.get(key, deadline).orElse(null), value);
  }

  /** Waits for the key to lose its value. Returns false if it still has it after the limit. */
  public boolean awaitRemoval(Store store, Duration limit) {
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

  /** Removes the key of this job if it still has the value. An interrupted thread does so too. */
  public void remove(Store store) {
    uninterrupted(() -> store.compareAndSet(key, value, null, REMOVAL_LIMIT));
  }

  /** Runs a call with the thread's interrupt flag cleared, and restores the flag afterwards. */
  static void uninterrupted(Runnable call) {
    boolean interrupted = Thread.interrupted();
    try {
      call.run();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  void write(DataOutputStream out) throws IOException {
    out.writeUTF(key);
    Encoding.putArray(out, value);
  }

  static PresenceKey read(DataInputStream in) throws IOException {
    return new PresenceKey(in.readUTF(), Encoding.array(in));
  }
}
