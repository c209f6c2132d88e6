// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.windlass.Communicator;
import org.windlass.MismatchException;
import org.windlass.WindlassException;
import org.windlass.internal.Access;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Gathered;
import org.windlass.internal.Native;
import org.windlass.internal.store.Encoding;

/**
 * The ranks of a job in the steps that it takes on its way to others: rank 0 leads, and all are
 * told what came of it. They have a communicator of their own.
 */
final class JobRanks implements AutoCloseable {
  /**
   * What ranks have for one another beyond a deadline: what it ends is the way to another job, and
   * not what they have among themselves.
   */
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
  JobRanks(String job, Communicator communicator, Until until) {
    this.job = job;
    this.ranks = again(communicator, until);
    Access.ENDPOINT.of(ranks).own(); // the job is reported
  }

  private static Communicator again(Communicator communicator, Until until) {
    return communicator.split(0, communicator.rank(), until.later(GRACE).left());
  }

  int rank() {
    return ranks.rank();
  }

  int size() {
    return ranks.size();
  }

  /** Collective: the same ranks in one more communicator, the caller's to close. */
  Communicator again(Until until) {
    return again(ranks, until);
  }

  /** Throws where they can't go on. */
  void requireAlive() {
    ranks.failure().ifPresent(
        failure -> {
          throw failure;
        });
  }

  /**
   * Collective: what {@code step} gives on rank 0, on every rank; where it throws, all do.
   *
   * @param until that the step keeps to
   */
  <T> T led(Until until, Form<T> form, Supplier<T> step) {
    until.later(GRACE).on(ranks).barrier();
    byte[] own = new byte[0];
    T made = null;
    RuntimeException failure = null;
    if (ranks.rank() == 0) {
      try {
        made = step.get();
        T done = made;
        own =
            Encoding.bytes(
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
    byte[] told = Gathered.bytes(ranks, until.later(GRACE)::leftNs, Native.WL_OP_LINK, own)[0];
    if (failure != null) {
      throw failure;
    }
    return ranks.rank() == 0 ? made : read(told, form);
  }

  /**
   * Collective: throws on every rank, which then goes on, where two do not call the same.
   *
   * @param call what this rank calls, and with what
   * @throws MismatchException that names both
   */
  void agree(Until until, String call) {
    String here = "of job '" + job + "' calls " + call;
    Alike.require(
        ranks, until.later(GRACE), Native.WL_OP_LINK, new Fingerprint().add(here), here);
  }

  /** Collective: of each word the most that a rank gives; all give as many. */
  long[] most(Until until, long... own) {
    long[] most = own.clone();
    for (long[] each : Gathered.words(ranks, until.later(GRACE)::leftNs, Native.WL_OP_LINK, own)) {
      for (int i = 0; i < most.length; i++) {
        most[i] = Math.max(most[i], each[i]);
      }
    }
    return most;
  }

  /**
   * Collective: throws on every rank where one has a failure.
   *
   * @param what such a rank has, as others are told
   */
  void together(WindlassException failure, String what, Until until) {
    long failed = failure == null ? 0 : failure.code().number();
    long[][] all = Gathered.words(ranks, until.later(GRACE)::leftNs, Native.WL_OP_LINK, failed);
    if (failure != null) {
      throw failure;
    }
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] != 0) {
        boolean isLate = all[rank][0] == Native.WL_TIMEOUT;
        throw WindlassException.of(
            isLate ? Native.WL_TIMEOUT : Native.WL_ABORTED,
            "rank " + rank + " of job '" + job + "' " + what + "; see what it says",
            null,
            "",
            List.of(rank));
      }
    }
  }

  private static byte[] written(WindlassException failure) {
    return Encoding.bytes(
        out -> {
          out.writeByte(FAILED);
          out.writeInt(failure.code().number());
          out.write(String.valueOf(failure.getMessage()).getBytes(StandardCharsets.UTF_8));
        });
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
