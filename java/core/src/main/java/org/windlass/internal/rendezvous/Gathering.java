// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/**
 * The steps by which all ranks of a job tell one another something at a store, within one deadline.
 * Rank 0's process collects what each says, and gives it to all.
 */
final class Gathering {
  /** For a look at who is missing once the deadline has passed. */
  private static final Duration LAST_LOOK = Duration.ofSeconds(2);

  private static final byte SAID = 0;

  private static final byte FAILED = 1;

  private final Store store;
  private final String prefix;
  private final int size;
  private final long startNs;
  private final long limitNs;
  private final FailureMaker failures;

  /**
   * From now on.
   *
   * @param prefix of all keys
   * @param size ranks
   */
  Gathering(Store store, String prefix, int size, Duration deadline, FailureMaker failures) {
    this.store = store;
    this.prefix = prefix;
    this.size = size;
    this.startNs = System.nanoTime();
    this.limitNs = deadline.toNanos();
    this.failures = failures;
  }

  /** What is left of the deadline, at least a moment. */
  Duration left() {
    return Duration.ofNanos(Math.max(1, limitNs - (System.nanoTime() - startNs)));
  }

  private boolean isOver() {
    return System.nanoTime() - startNs >= limitNs;
  }

  /** A failure as ranks tell it. */
  record Refused(int code, String message) {}

  /**
   * What each rank says, in rank order.
   *
   * @param own what those of this process say
   * @param refused what makes the step fail on all ranks; null for nothing
   */
  List<byte[]> gather(String step, Map<Integer, byte[]> own, Refused refused) {
    try {
      for (Map.Entry<Integer, byte[]> said : own.entrySet()) {
        store.set(key(step, said.getKey()), said(said.getValue(), refused), left());
      }
      byte[] all;
      if (own.containsKey(0)) {
        all = collected(step);
        store.set(prefix + step + "/all", all, left());
      } else {
        all = store.await(prefix + step + "/all", left());
      }
      return read(all);
    } catch (RuntimeException e) {
      throw isOver() ? late(step, e) : e;
    }
  }

  private String key(String step, int rank) {
    return prefix + step + "/rank/" + rank;
  }

  private static byte[] said(byte[] value, Refused refused) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      if (refused == null) {
        out.writeByte(SAID);
        out.writeInt(value.length);
        out.write(value);
      } else {
        out.writeByte(FAILED);
        out.writeInt(refused.code());
        out.writeUTF(refused.message());
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return bytes.toByteArray();
  }

  private byte[] collected(String step) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int rank = 0; rank < size; rank++) {
      all.writeBytes(store.await(key(step, rank), left()));
    }
    return all.toByteArray();
  }

  private List<byte[]> read(byte[] all) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(all))) {
      List<byte[]> said = new ArrayList<>(size);
      for (int rank = 0; rank < size; rank++) {
        if (in.readByte() == FAILED) {
          int code = in.readInt();
          throw failures.make(code, "rank " + rank + ": " + in.readUTF(), null, "", List.of(rank));
        }
        byte[] value = new byte[Math.min(Math.max(0, in.readInt()), in.available())];
        in.readFully(value);
        said.add(value);
      }
      return said;
    } catch (IOException e) {
      throw failures.make(
          Native.WL_MISMATCH, "what ranks say at the start can't be read: " + e.getMessage());
    }
  }

  /** The deadline has passed: who has not come so far. */
  private RuntimeException late(String step, RuntimeException failure) {
    List<Integer> missing = new ArrayList<>();
    try {
      List<String> keys = store.keys(prefix + step + "/rank/", LAST_LOOK);
      for (int rank = 0; rank < size; rank++) {
        if (!keys.contains(key(step, rank))) {
          missing.add(rank);
        }
      }
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
      return failure;
    }
    if (missing.isEmpty()) {
      return failure;
    }
    return failures.make(
        Native.WL_TIMEOUT,
        (missing.size() == 1 ? "rank " : "ranks ")
            + listed(missing)
            + " of "
            + size
            + " had not come to "
            + step
            + " at "
            + store.address()
            + " within "
            + Duration.ofNanos(limitNs).toMillis()
            + " ms; see why they did not start, or give more time",
        failure,
        "",
        missing);
  }

  private static String listed(List<Integer> ranks) {
    int most = 16;
    String first =
        String.join(", ", ranks.stream().limit(most).map(String::valueOf).toList());
    return ranks.size() <= most ? first : first + " and " + (ranks.size() - most) + " more";
  }
}
