// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Waits;

/**
 * Runs the steps of a start, within one deadline. In each step, all ranks exchange data by one
 * round of an {@link AllGather}. If one rank fails, all throw the same exception.
 */
final class StartSteps {
  static final String LAST = "attach";

  private static final int MOST_NAMED = 8;

  /** Random id of this class as loaded by one class loader of one process. */
  private static final long LOADED = UUID.randomUUID().getMostSignificantBits();

  private final AllGather all;
  private final List<Integer> own;
  private final int size;
  private final Deadline until;

  /** Distinguishes this process from another process that sends values for the same ranks. */
  private final UUID member = new UUID(LOADED, UUID.randomUUID().getLeastSignificantBits());

  private @Nullable List<UUID> members;

  private @Nullable Hosts hosts;

  /**
   * Statement of a rank in a step.
   *
   * @param value empty if the rank has failed
   * @param failure null for none
   */
  private record Statement(
      UUID member, String step, byte @Nullable [] value, @Nullable WindlassException failure) {
    byte[] toBytes() {
      return Encoding.bytes(
          out -> {
            Encoding.putId(out, member);
            out.writeUTF(step);
            out.writeBoolean(failure != null);
            if (failure == null) {
              Encoding.putArray(out, value);
            } else {
              out.writeInt(failure.code().number());
              out.writeUTF(failure.getMessage());
            }
          });
    }

    static Statement of(byte[] bytes) throws MalformedException {
      if (bytes == null) {
        throw new MalformedException("there is nothing");
      }
      return Encoding.read(
          bytes,
          in -> {
            UUID member = Encoding.id(in);
            String step = in.readUTF();
            if (!in.readBoolean()) {
              return new Statement(member, step, Encoding.array(in), null);
            }
            int code = in.readInt();
            String why = Texts.printable(in.readUTF());
            WindlassException failure = WindlassException.of(code, why, List.of());
            if (failure.code().number() != code) {
              throw new IOException("it has the unknown code " + code);
            }
            return new Statement(member, step, new byte[0], failure);
          });
    }
  }

  StartSteps(AllGather all, List<Integer> own, int size, Deadline until) {
    this.all = all;
    this.own = own;
    this.size = size;
    this.until = until;
  }

  UUID member() {
    return member;
  }

  UUID member(int rank) {
    return Objects.requireNonNull(members).get(rank);
  }

  /** Returns true if two ranks of one process were loaded by the same class loader. */
  boolean areLoadedTogether(int one, int other) {
    return member(one).getMostSignificantBits() == member(other).getMostSignificantBits();
  }

  void settle(Hosts settled) {
    hosts = settled;
  }

  List<byte[]> gather(String step, byte[] value) {
    return gather(step, () -> forEachRank(value));
  }

  /** Returns a map that gives each rank of this process the same value. */
  Map<Integer, byte[]> forEachRank(byte[] value) {
    Map<Integer, byte[]> values = new LinkedHashMap<>();
    own.forEach(rank -> values.put(rank, value));
    return values;
  }

  /**
   * Takes part in a step.
   *
   * @param step name of the step, which must be the same on all ranks
   * @param work returns the value of each rank of this process; if it throws a {@link
   *     WindlassException}, the step fails for all ranks
   * @return the value of each rank, in rank order
   */
  List<byte[]> gather(String step, Supplier<Map<Integer, byte[]>> work) {
    WindlassException failure = null;
    Map<Integer, byte[]> values = Map.of();
    try {
      values = work.get();
    } catch (WindlassException e) {
      failure = e;
    }
    Map<Integer, byte[]> statements = new LinkedHashMap<>();
    for (int rank : own) {
      statements.put(rank, new Statement(member, step, values.get(rank), failure).toBytes());
    }
    List<Statement> told = statements(round(step, statements));
    for (int rank : own) {
      if (!told.get(rank).member().equals(member)) {
        throw mismatch(rank, "another has said that it is rank " + rank + "; give each its own");
      }
    }
    for (int rank = 0; rank < size; rank++) {
      requireInStep(rank, told.get(rank), step);
    }
    members = told.stream().map(Statement::member).toList();
    for (int rank = 0; rank < size; rank++) {
      WindlassException why = told.get(rank).failure();
      if (why != null) {
        String message = "rank " + Hosts.rank(hosts, rank) + ": " + why.getMessage();
        throw WindlassException.of(why.code().number(), message, List.of(rank));
      }
    }
    return told.stream().map(Statement::value).toList();
  }

  private void requireInStep(int rank, Statement said, String step) {
    if (!said.step().equals(step)) {
      throw mismatch(
          rank,
          "rank " + rank + " is at step " + Texts.printable(said.step()) + " of its start, rank "
              + own.get(0) + " at " + step + "; start all ranks again together");
    }
    if (members != null && !said.member().equals(members.get(rank))) {
      throw mismatch(
          rank,
          "rank " + rank + " takes part in another start than before; make only one start at a"
              + " time on each rank");
    }
  }

  private List<byte[]> round(String step, Map<Integer, byte[]> statements) {
    Duration left = until.left();
    try {
      return all.round(statements, step.equals(LAST), left);
    } catch (WindlassException e) {
      // The failure of an operation of another communicator has the rank numbers of that
      // communicator.
      String where = e.operation().isEmpty() ? whereabouts(e.faultyRanks()) : "";
      throw where.isEmpty()
          ? e
          : WindlassException.of(
              e.code().number(), e.getMessage() + where, e, e.operation(), e.faultyRanks());
    } catch (TimeoutException e) {
      throw new DeadlineExceededException(
          "some of " + size + " ranks had not reached step " + step
              + " of the start when the deadline of " + Deadline.text(until.deadline())
              + " passed: " + e.getMessage() + "; see which of them run, or give more time",
          e);
    } catch (InterruptedException e) {
      throw Waits.interrupted("step " + step + " of the start");
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new AbortedException("step " + step + " of the start: " + e, e);
    }
  }

  /**
   * Returns a text that says on which hosts ranks live. Empty if the hosts are unknown, or if there
   * is only one.
   */
  private String whereabouts(List<Integer> ranks) {
    if (hosts == null || !hosts.areSeveral() || ranks.isEmpty()) {
      return "";
    }
    return ranks.stream()
        .limit(MOST_NAMED)
        .map(rank -> "rank " + Hosts.rank(hosts, rank))
        .collect(Collectors.joining(", ", " (", ")"));
  }

  private List<Statement> statements(List<byte[]> told) {
    int count = told == null ? 0 : told.size();
    if (count != size) {
      throw new MismatchException(
          "an all-gather of " + size + " ranks gave the data of " + count
              + " ranks; give all ranks the same world size");
    }
    List<Statement> statements = new ArrayList<>(size);
    for (int rank = 0; rank < size; rank++) {
      try {
        statements.add(Statement.of(told.get(rank)));
      } catch (MalformedException e) {
        throw mismatch(
            rank,
            "what rank " + rank + " says at the start can't be read: " + e.getMessage()
                + "; make the same call on all ranks, and run one version of windlass on all of"
                + " them");
      }
    }
    return statements;
  }

  private RuntimeException mismatch(int faultyRank, String message) {
    return new MismatchException(message, List.of(faultyRank));
  }
}
