// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.internal.Deadlines;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/**
 * The steps by which all ranks of a start tell one another something at a store, within one
 * deadline. Each rank holds a key, whose value is what it says in the step that it has come to;
 * rank 0's process collects what all say and decides the step, for all of them, in a key that it
 * holds too. A step whose deadline passes on another rank before that is decided there. A key that
 * is gone is a rank that is gone. Nothing is left in the store once all that came have called {@link
 * #leave}.
 */
final class Gathering {
  /** How often one who waits for ranks that have not come sees to it that they still may. */
  private static final Duration LOOK = Duration.ofMillis(200);

  /** For what is told and looked at once the deadline has passed. */
  private static final Duration LAST_LOOK = Duration.ofSeconds(2);

  private static final byte SAID = 0;

  private static final byte FAILED = 1;

  /** The outcome before the first step's. */
  private static final byte[] OPEN = bytes(out -> out.writeUTF(""));

  private final Store store;
  private final String prefix;
  private final String decisions;
  private final Sign others;
  private final int size;
  private final long startNs;
  private final long limitNs;
  private final FailureMaker failures;

  /** What each rank said last, as rank 0's process knows it. */
  private final byte[][] seen;

  /** What was decided last, as this process knows it; null for nothing. */
  private byte[] decision;

  /** Whether another rank's deadline had passed before rank 0 came, which is decided. */
  private boolean isTooLate;

  /** Whether a step has come to nothing. */
  private boolean hasFailed;

  /**
   * From now on.
   *
   * @param prefix of all keys
   * @param others without which ranks that have not come so far won't come; null for none
   * @param size ranks
   */
  Gathering(
      Store store,
      String prefix,
      Sign others,
      int size,
      Duration deadline,
      FailureMaker failures) {
    this.store = store;
    this.prefix = prefix;
    this.decisions = decisions(prefix);
    this.others = others;
    this.size = size;
    this.startNs = System.nanoTime();
    this.limitNs = Deadlines.nanos(deadline, failures);
    this.failures = failures;
    this.seen = new byte[size][];
  }

  private static String decisions(String prefix) {
    return prefix + "decision";
  }

  /** Returns once rank 0 has said something under this prefix. */
  static void awaitRankZero(Store store, String prefix, Duration deadline) {
    store.await(decisions(prefix), deadline);
  }

  /** What is left of the deadline, at least a moment. */
  private Duration left() {
    return left(startNs, Duration.ofNanos(limitNs));
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
    byte[] outcome;
    hasFailed = true;
    try {
      for (Map.Entry<Integer, byte[]> said : own.entrySet()) {
        say(said.getKey(), said(step, said.getValue(), refused));
      }
      if (!own.containsKey(0)) {
        outcome = told();
      } else {
        outcome = isTooLate ? decision : decided(collected(step), left());
      }
    } catch (RuntimeException e) {
      if (!isOver()) {
        throw e;
      }
      outcome = late(step, own.containsKey(0), e);
    }
    List<byte[]> said = read(outcome);
    hasFailed = false;
    return said;
  }

  /** After the last step: waits until all ranks but {@code own} have left. */
  void end(List<Integer> own) {
    awaitOthersLeft(own, left());
  }

  /** The same after a failure, for as long as telling it takes. */
  void fail(List<Integer> own) {
    awaitOthersLeft(own, LAST_LOOK);
  }

  private void awaitOthersLeft(List<Integer> own, Duration limit) {
    long startNs = System.nanoTime();
    try {
      for (int rank = 0; rank < size; rank++) {
        byte[] last = own.contains(rank) ? null : lastOf(rank, left(startNs, limit));
        while (last != null) {
          last = store.awaitOther(key(rank), last, left(startNs, limit)).orElse(null);
        }
      }
    } catch (RuntimeException e) {
      // Who has not left by now finds the store gone.
    }
  }

  /** What a rank said last, also where nothing was collected of it behind one that never came. */
  private byte[] lastOf(int rank, Duration limit) {
    return seen[rank] != null ? seen[rank] : store.get(key(rank), limit).orElse(null);
  }

  private static Duration left(long startNs, Duration limit) {
    return Duration.ofNanos(Math.max(1, limit.toNanos() - (System.nanoTime() - startNs)));
  }

  /**
   * Takes back what {@code own} have said: they have heard all that they are to hear. Where rank 0
   * is among them, the others have; where it has not come, who leaves last takes back the decision.
   */
  void leave(List<Integer> own) {
    try {
      for (int rank : own) {
        remove(key(rank));
      }
      boolean isLast =
          own.contains(0)
              || hasFailed && store.keys(prefix + "rank/", LAST_LOOK).isEmpty();
      if (isLast) {
        remove(decisions);
      }
    } catch (RuntimeException e) {
      // What a store that is lost, or does not answer, has of them ends with this way in.
    }
  }

  private void remove(String key) {
    byte[] value = store.get(key, LAST_LOOK).orElse(null);
    if (value != null) {
      store.compareAndSet(key, value, null, LAST_LOOK);
    }
  }

  private String key(int rank) {
    return prefix + "rank/" + rank;
  }

  private void say(int rank, byte[] said) {
    while (rank == 0 && decision == null) {
      decision =
          store.hold(decisions, OPEN, left()) ? OPEN : store.get(decisions, left()).orElse(null);
      isTooLate = decision != OPEN;
    }
    if (!store.hold(key(rank), said, left())) {
      store.set(key(rank), said, left());
    }
  }

  /** What is decided next. */
  private byte[] told() {
    do {
      decision =
          awaitOther(decisions, decision)
              .orElseThrow(
                  () ->
                      failures.make(
                          Native.WL_PEER_LOST,
                          "rank 0 came to the start and left before all had met; see what its"
                              + " process says",
                          null,
                          "",
                          List.of(0)));
    } while (Arrays.equals(decision, OPEN));
    return decision;
  }

  /** {@link Store#awaitOther} until the deadline, or until none will come that has not. */
  private Optional<byte[]> awaitOther(String key, byte[] seen) {
    while (others != null && seen == null) {
      long lookNs = System.nanoTime();
      Duration once = left().compareTo(LOOK) < 0 ? left() : LOOK;
      try {
        return store.awaitOther(key, null, once);
      } catch (RuntimeException e) {
        if (isOver() || System.nanoTime() - lookNs < once.toNanos()) {
          throw e;
        }
        if (!others.isThere(store, left())) {
          throw failures.make(
              Native.WL_PEER_LOST,
              "the others have ended, or met anew, before they came; see what they say",
              e,
              "",
              List.of());
        }
      }
    }
    return store.awaitOther(key, seen, left());
  }

  private static byte[] bytes(Writing writing) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      writing.to(out);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return bytes.toByteArray();
  }

  @FunctionalInterface
  private interface Writing {
    void to(DataOutputStream out) throws IOException;
  }

  private static byte[] said(String step, byte[] value, Refused refused) {
    return bytes(
        out -> {
          out.writeUTF(step);
          if (refused == null) {
            out.writeByte(SAID);
            out.writeInt(value.length);
            out.write(value);
          } else {
            out.writeByte(FAILED);
            out.writeInt(refused.code());
            out.writeUTF(refused.message());
          }
        });
  }

  private static byte[] failed(
      String step, int code, String message, List<Integer> culprits) {
    return bytes(
        out -> {
          out.writeUTF(step);
          out.writeByte(FAILED);
          out.writeInt(code);
          out.writeUTF(message);
          out.writeInt(culprits.size());
          for (int rank : culprits) {
            out.writeInt(rank);
          }
        });
  }

  /** The outcome of a step: what all said, or the first failure. */
  private byte[] collected(String step) {
    List<byte[]> values = new ArrayList<>(size);
    for (int rank = 0; rank < size; rank++) {
      seen[rank] = awaitOther(key(rank), seen[rank]).orElse(null);
      if (seen[rank] == null) {
        return failed(
            step,
            Native.WL_PEER_LOST,
            "rank " + rank + " came to the start and left before " + step
                + "; see what its process says",
            List.of(rank));
      }
      try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(seen[rank]))) {
        in.readUTF();
        if (in.readByte() == FAILED) {
          return failed(step, in.readInt(), "rank " + rank + ": " + in.readUTF(), List.of(rank));
        }
        values.add(value(in));
      } catch (IOException e) {
        return failed(
            step,
            Native.WL_MISMATCH,
            "what rank " + rank + " says at the start can't be read: " + e.getMessage(),
            List.of(rank));
      }
    }
    return bytes(
        out -> {
          out.writeUTF(step);
          out.writeByte(SAID);
          for (byte[] value : values) {
            out.writeInt(value.length);
            out.write(value);
          }
        });
  }

  private static byte[] value(DataInputStream in) throws IOException {
    byte[] value = new byte[Math.min(Math.max(0, in.readInt()), in.available())];
    in.readFully(value);
    return value;
  }

  /** {@code outcome}, or what was decided before. */
  private byte[] decided(byte[] outcome, Duration limit) {
    boolean isFirst;
    do {
      isFirst =
          decision == null
              ? store.hold(decisions, outcome, limit)
              : store.compareAndSet(decisions, decision, outcome, limit);
      decision = isFirst ? outcome : store.get(decisions, limit).orElseThrow();
      // Where nothing was decided yet, rank 0 may have come just now.
    } while (Arrays.equals(decision, OPEN));
    return decision;
  }

  private List<byte[]> read(byte[] outcome) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(outcome))) {
      in.readUTF();
      if (in.readByte() == FAILED) {
        int code = in.readInt();
        String message = in.readUTF();
        int count = Math.min(Math.max(0, in.readInt()), size);
        List<Integer> culprits = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
          culprits.add(in.readInt());
        }
        throw failures.make(code, message, null, "", culprits);
      }
      List<byte[]> said = new ArrayList<>(size);
      for (int rank = 0; rank < size; rank++) {
        said.add(value(in));
      }
      return said;
    } catch (IOException e) {
      throw failures.make(
          Native.WL_MISMATCH, "what ranks say at the start can't be read: " + e.getMessage());
    }
  }

  /** The outcome of a step whose deadline has passed: who has not come so far. */
  private byte[] late(String step, boolean isRankZero, RuntimeException failure) {
    long nowNs = System.nanoTime();
    try {
      List<Integer> missing = new ArrayList<>();
      for (int rank = 0; rank < size; rank++) {
        if (!isAt(step, store.get(key(rank), left(nowNs, LAST_LOOK)))) {
          missing.add(rank);
        }
      }
      byte[] outcome =
          missing.isEmpty()
              ? undecided(step, isRankZero)
              : failed(step, Native.WL_TIMEOUT, absent(step, missing), missing);
      return decided(outcome, LAST_LOOK);
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
      throw failures.make(
          Native.WL_TIMEOUT,
          "the deadline passed in step "
              + step
              + ", and the store at "
              + store.address()
              + " did not say which of "
              + size
              + " ranks had come",
          failure,
          "",
          List.of());
    }
  }

  private String absent(String step, List<Integer> missing) {
    return (missing.size() == 1 ? "rank " : "ranks ")
        + listed(missing)
        + " of "
        + size
        + " had not come to "
        + store.address()
        + " when the deadline passed, in step "
        + step
        + "; see why they did not start, or give more time";
  }

  /** Where all have come, which rank 0 is to say. */
  private byte[] undecided(String step, boolean isRankZero) {
    String message =
        isRankZero
            ? "all of " + size + " ranks came to " + store.address()
                + " as the deadline passed, in step " + step + "; give more time"
            : "rank 0 of " + size + " came to " + store.address()
                + ", and had not let the others go on when the deadline passed, in step " + step
                + "; see whether its process is stopped, or give more time";
    return failed(step, Native.WL_TIMEOUT, message, isRankZero ? List.of() : List.of(0));
  }

  private static boolean isAt(String step, Optional<byte[]> said) {
    try (DataInputStream in =
        new DataInputStream(new ByteArrayInputStream(said.orElse(new byte[0])))) {
      return in.readUTF().equals(step);
    } catch (IOException e) {
      return false;
    }
  }

  private static String listed(List<Integer> ranks) {
    int most = 16;
    String first =
        String.join(", ", ranks.stream().limit(most).map(String::valueOf).toList());
    return ranks.size() <= most ? first : first + " and " + (ranks.size() - most) + " more";
  }
}
