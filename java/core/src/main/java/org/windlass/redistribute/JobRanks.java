// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.windlass.AbortedException;
import org.windlass.Communicator;
import org.windlass.MismatchException;
import org.windlass.WindlassException;
import org.windlass.internal.Native;

/**
 * The ranks of a job in the steps that it takes on its way to others: rank 0 leads, and all are
 * told what came of it. They have a communicator of their own.
 */
final class JobRanks implements AutoCloseable {
  /** For what rank 0 tells the others once a deadline has passed. */
  private static final Duration GRACE = Duration.ofSeconds(5);

  private static final byte DONE = 0;
  private static final byte FAILED = 1;

  private final String job;
  private final Communicator ranks;

  /** How rank 0 tells the others of something. */
  interface Form<T> {
    void write(T what, DataOutputStream out) throws IOException;

    T read(DataInputStream in) throws IOException;
  }

  /** Collective over {@code communicator}, whose ranks they are. */
  JobRanks(String job, Communicator communicator) {
    this.job = job;
    this.ranks = again(communicator);
  }

  private static Communicator again(Communicator communicator) {
    return communicator.subset(IntStream.range(0, communicator.size()).toArray());
  }

  int rank() {
    return ranks.rank();
  }

  int size() {
    return ranks.size();
  }

  /** Collective: the same ranks in one more communicator, the caller's to close. */
  Communicator again() {
    return again(ranks);
  }

  /** Throws where they can't go on. */
  void requireAlive() {
    ranks.failure().ifPresent(
        failure -> {
          throw failure;
        });
  }

  /**
   * Collective: what {@code step} gives on rank 0, on every rank; where it throws, all do. Ranks
   * come within what is left, then wait for rank 0, whose step keeps to it too.
   */
  <T> T led(Until until, Form<T> form, Supplier<T> step) {
    until.on(ranks).barrier();
    byte[] own = new byte[0];
    T made = null;
    RuntimeException failure = null;
    if (ranks.rank() == 0) {
      try {
        made = step.get();
        T done = made;
        own =
            written(
                out -> {
                  out.writeByte(DONE);
                  form.write(done, out);
                });
      } catch (WindlassException e) {
        failure = e;
        own = written(e);
      } catch (RuntimeException | Error e) {
        ranks.abort("rank 0 of job '" + job + "' has failed: " + e);
        throw e;
      }
    }
    byte[] told = Gathered.bytes(ranks, telling(until), Native.WL_OP_LINK, own)[0];
    if (failure != null) {
      throw failure;
    }
    return ranks.rank() == 0 ? made : read(told, form);
  }

  /** Collective: whether any rank says so. */
  boolean any(boolean own, Until until) {
    boolean any = false;
    for (long[] each : Gathered.words(ranks, until, Native.WL_OP_LINK, own ? 1 : 0)) {
      any |= each[0] == 1;
    }
    return any;
  }

  /**
   * Collective: throws on every rank where one has a failure.
   *
   * @param what such a rank has, as others are told
   */
  void together(WindlassException failure, String what, Until until) {
    long failed = failure == null ? 0 : 1;
    long[][] all = Gathered.words(ranks, telling(until), Native.WL_OP_LINK, failed);
    if (failure != null) {
      throw failure;
    }
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] != 0) {
        throw new AbortedException(
            "rank " + rank + " of job '" + job + "' " + what + "; see what it says",
            null,
            "",
            List.of(rank));
      }
    }
  }

  private static Until telling(Until until) {
    return new Until(Math.min(until.leftNs(), Long.MAX_VALUE / 4) + GRACE.toNanos());
  }

  @FunctionalInterface
  private interface Writing {
    void to(DataOutputStream out) throws IOException;
  }

  private static byte[] written(WindlassException failure) {
    return written(
        out -> {
          out.writeByte(FAILED);
          out.writeInt(failure.code().number());
          out.write(String.valueOf(failure.getMessage()).getBytes(StandardCharsets.UTF_8));
        });
  }

  private static byte[] written(Writing writing) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      writing.to(out);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return bytes.toByteArray();
  }

  private static <T> T read(byte[] told, Form<T> form) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(told))) {
      if (in.readByte() == DONE) {
        return form.read(in);
      }
      int code = in.readInt();
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      throw WindlassException.of(code, text, null, "", List.of());
    } catch (IOException e) {
      throw new MismatchException("what rank 0 told can't be read: " + e.getMessage(), e);
    }
  }

  @Override
  public void close() {
    ranks.close();
  }
}
