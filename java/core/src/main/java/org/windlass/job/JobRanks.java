// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.io.DataInputStream;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;
import org.windlass.internal.rendezvous.AllGather;
import org.windlass.internal.rendezvous.OthersGoneException;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.transfer.Alike;

/**
 * Executes steps of a job on rank 0 and shares the results with all its ranks. The ranks have a
 * communicator of their own for this.
 */
final class JobRanks implements AutoCloseable {
  /** Time that the ranks have, after a deadline, to exchange results. */
  private static final Duration GRACE = Duration.ofSeconds(5);

  private static final byte DONE = 0;
  private static final byte FAILED = 1;
  private static final byte OTHERS_GONE = 2;

  private final String job;
  private final Communicator ranks;

  /** Makes a copy of {@code communicator} for these exchanges. Collective over it. */
  JobRanks(String job, Communicator communicator, Deadline until) {
    this.job = job;
    this.ranks =
        Objects.requireNonNull(
            communicator.split(0, communicator.rank(), until.later(GRACE).left()));
    ranks.endpoint().own(); // leaks of the job are reported, not of this communicator
  }

  int rank() {
    return ranks.rank();
  }

  int size() {
    return ranks.size();
  }

  Communicator communicator() {
    return ranks;
  }

  /**
   * Returns a {@code JobRanks} with another copy of the communicator, which the caller closes.
   * Collective.
   */
  JobRanks copy(Deadline until) {
    return new JobRanks(job, ranks, until);
  }

  void requireAlive() {
    ranks.failure().ifPresent(
        failure -> {
          throw failure;
        });
  }

  /**
   * Runs a step on rank 0, and returns its result on every rank. Collective. If the step throws a
   * {@link WindlassException} or an {@link OthersGoneException}, every rank throws the same
   * exception.
   */
  <T> T fromRank0(Deadline until, Encoding.Reading<T> reading, Supplier<Encoding> step) {
    ranks.withDeadline(until.later(GRACE).left()).barrier();
    byte[] own = new byte[0];
    RuntimeException failure = null;
    if (ranks.rank() == 0) {
      try {
        Encoding result = step.get();
        own =
            Encoding.bytes(
                out -> {
                  out.writeByte(DONE);
                  result.to(out);
                });
      } catch (WindlassException e) {
        failure = e;
        own =
            Encoding.bytes(
                out -> {
                  out.writeByte(FAILED);
                  Encoding.putFailure(out, e);
                });
      } catch (OthersGoneException e) {
        failure = e;
        own = new byte[] {OTHERS_GONE};
      } catch (RuntimeException | Error e) {
        ranks.abort("rank 0 of job '" + job + "' has failed: " + e);
        throw e;
      }
    }
    byte[] sent = gather(until, own)[0];
    if (failure != null) {
      throw failure;
    }
    try {
      return Encoding.read(
          sent,
          in ->
              switch (in.readByte()) {
                case DONE -> reading.from(in);
                case OTHERS_GONE -> throw new OthersGoneException();
                default -> throw Encoding.failure(in);
              });
    } catch (MalformedException e) {
      throw new MismatchException("the message of rank 0 can't be read: " + e.getMessage(), e);
    }
  }

  boolean testOnRank0(Deadline until, BooleanSupplier step) {
    return fromRank0(
        until,
        DataInputStream::readBoolean,
        () -> {
          boolean result = step.getAsBoolean();
          return out -> out.writeBoolean(result);
        });
  }

  /**
   * Throws Mismatch on every rank if two ranks differ. Collective. The ranks can continue
   * afterwards.
   *
   * @param call name and arguments of the call on this rank
   */
  void requireSame(Deadline until, String call) {
    String here = "of job '" + job + "' calls " + call;
    Alike.require(
        ranks, until.later(GRACE), Native.WL_OP_LINK, new Fingerprint().add(here), here);
  }

  /** Returns for each argument the maximum over the ranks. Collective. */
  long[] max(Deadline until, long... own) {
    long[] max = own.clone();
    for (long[] each :
        Gathered.words(ranks, until.later(GRACE)::leftNs, Native.WL_OP_LINK, own)) {
      for (int i = 0; i < max.length; i++) {
        max[i] = Math.max(max[i], each[i]);
      }
    }
    return max;
  }

  byte[][] gather(Deadline until, byte[] own) {
    return Gathered.bytes(ranks, until.later(GRACE)::leftNs, Native.WL_OP_LINK, own);
  }

  /**
   * Returns an all-gather of the ranks of this job and of another one. Rank 0 collects the values
   * of its ranks, takes part at the store for all of them, and sends them the result.
   *
   * @param first number of this job's rank 0 among the ranks of both jobs
   * @param atStore all-gather of both jobs at the store, on rank 0; null on other ranks
   */
  AllGather allGather(int first, @Nullable StoreAllGather atStore, Deadline until) {
    return new AllGather() {
      @Override
      public List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) {
        byte[][] said = gather(until, Objects.requireNonNull(own.get(first + rank())));
        Supplier<Encoding> step =
            () -> {
              Map<Integer, byte[]> all = new LinkedHashMap<>();
              for (int rank = 0; rank < said.length; rank++) {
                all.put(first + rank, said[rank]);
              }
              List<byte[]> values =
                  Objects.requireNonNull(atStore).round(all, isLast, until.left());
              return out -> Encoding.putArrays(out, values);
            };
        return fromRank0(until, Encoding::arrays, step);
      }

      @Override
      public void quit() {
        if (atStore != null) {
          atStore.quit();
        }
      }
    };
  }

  @Override
  public void close() {
    ranks.close();
  }
}
