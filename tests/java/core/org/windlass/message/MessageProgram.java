// SPDX-License-Identifier: Apache-2.0
package org.windlass.message;

import static org.windlass.PointToPoint.ANY_SOURCE;
import static org.windlass.PointToPoint.ANY_TAG;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Operation;
import org.windlass.Received;
import org.windlass.Tensor;
import org.windlass.error.WindlassException;
import org.windlass.message.MessageHistory.OfRank;
import org.windlass.message.MessageHistory.Sent;

/**
 * A random program of sends and receives with at most one fault. In each round, every rank begins
 * its sends before its receives. A rank's receives of a round are of one kind, so that none takes
 * what another one needs.
 */
record MessageProgram(int ranks, List<Round> rounds, Fault fault, long seed) {
  /** Elements of the longest message, and of every receive. */
  private static final int MOST = 40_000;

  /** What a rank does wrong before its calls of a round. */
  enum Kind {
    NONE,
    PAUSE,
    WITHDRAW,
    STALL,
    THROW,
    INTERRUPT,
    ABORT,
    CLOSE,
    CANCEL,
    MISTAKE,
    /** Only in processes of their own: a test ends or stops the rank. */
    LEAVE;

    /** Whether every rank goes through the program in spite of it. */
    boolean isHarmless() {
      return ordinal() <= WITHDRAW.ordinal();
    }

    /** Whether every rank fails. Other faults may come too late, or change nothing. */
    boolean endsAll() {
      return switch (this) {
        case STALL, THROW, ABORT, CLOSE, CANCEL, LEAVE -> true;
        default -> false;
      };
    }
  }

  record Fault(Kind kind, int rank, int round) {}

  /** Thrown by a rank whose fault is to throw. */
  static final class Thrown extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** How a rank asks for its messages of a round. */
  private enum Asks {
    EXACTLY,
    BY_TAG,
    BY_SOURCE,
    FOR_ANY
  }

  /** How a rank calls. */
  private enum Calls {
    ASYNC,
    RECEIVES,
    GROUP
  }

  /** Messages of a round, and for each rank how it asks and calls. */
  private record Round(List<Sent> messages, List<Asks> asks, List<Calls> calls) {
    /** Whether a receive could take a message of the next round. */
    boolean mustEndTogether() {
      return asks.contains(Asks.FOR_ANY) || asks.contains(Asks.BY_TAG);
    }
  }

  /** Programs of ranks that are threads ({@code kinds} without LEAVE) or processes. */
  static MessageProgram random(long seed, int ranks, Kind... kinds) {
    Random random = new Random(seed);
    List<Round> rounds = new ArrayList<>();
    int number = 0;
    for (int count = 1 + random.nextInt(5); rounds.size() < count; ) {
      List<Sent> messages = new ArrayList<>();
      int most = random.nextInt(12);
      for (int i = 0; i <= most; i++) {
        int[] lengths = {6, 600, 3000, MOST};
        messages.add(
            new Sent(
                number++,
                random.nextInt(ranks),
                random.nextInt(ranks),
                random.nextInt(3),
                1 + random.nextInt(lengths[random.nextInt(lengths.length)])));
      }
      List<Asks> asks = new ArrayList<>();
      List<Calls> calls = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        asks.add(Asks.values()[random.nextInt(Asks.values().length)]);
        calls.add(Calls.values()[random.nextInt(Calls.values().length)]);
      }
      rounds.add(new Round(messages, asks, calls));
    }
    Fault fault =
        new Fault(
            kinds[random.nextInt(kinds.length)],
            random.nextInt(ranks),
            random.nextInt(rounds.size()));
    return new MessageProgram(ranks, rounds, fault, seed);
  }

  Duration deadline() {
    return Duration.ofMillis(fault.kind == Kind.STALL || isStopped() ? 700 : 30_000);
  }

  /** Whether a rank whose fault is to leave is stopped, and not killed. */
  boolean isStopped() {
    return fault.kind == Kind.LEAVE && seed % 2 == 0;
  }

  /**
   * Runs the part of {@code comm}'s rank.
   *
   * @param leaves called by a rank whose fault is to leave
   */
  void run(Communicator comm, OfRank own, Runnable leaves) {
    try {
      for (int round = 0; round < rounds.size(); round++) {
        boolean isMistaken = false;
        if (comm.rank() == fault.rank && round == fault.round) {
          isMistaken = fault.kind == Kind.MISTAKE;
          fail(comm, leaves);
        }
        run(comm, own, rounds.get(round), isMistaken);
      }
      comm.barrier();
    } catch (Throwable e) {
      own.failure = e;
      if (e instanceof WindlassException failure) {
        own.named.addAll(failure.faultyRanks());
      }
      throw e;
    }
  }

  private void fail(Communicator comm, Runnable leaves) {
    Tensor tensor = Tensor.allocate(DType.I64, MOST);
    switch (fault.kind) {
      case PAUSE -> LockSupport.parkNanos(20_000_000);
      case STALL -> pause(2 * deadline().toMillis());
      case THROW -> throw new Thrown();
      case INTERRUPT -> Thread.currentThread().interrupt();
      case ABORT -> comm.abort("the program said so");
      case CLOSE -> comm.close();
      case WITHDRAW -> {
        Operation<Received> receive = comm.receiveAsync(tensor, ANY_SOURCE, 99);
        if (!receive.cancel() && comm.failure().isEmpty()) {
          throw new AssertionError("a receive without a message is not withdrawn");
        }
      }
      case CANCEL -> comm.sendAsync(tensor, comm.rank(), 99).cancel(); // in progress
      case LEAVE -> {
        leaves.run();
        pause(60_000);
      }
      default -> {}
    }
  }

  private static void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void run(Communicator comm, OfRank own, Round round, boolean isMistaken) {
    int rank = comm.rank();
    List<Sent> out = round.messages.stream().filter(each -> each.from() == rank).toList();
    List<Sent> in = new ArrayList<>(round.messages);
    in.removeIf(each -> each.to() != rank);
    Collections.shuffle(in, new Random(seed + rank));
    List<Tensor> sent = out.stream().map(each -> data(each, isMistaken)).toList();
    List<Tensor> received =
        in.stream().map(each -> Tensor.allocate(DType.I64, MOST)).toList();
    Calls calls = round.calls.get(rank);
    List<Operation<Void>> sends = new ArrayList<>();
    for (int i = 0; i < out.size(); i++) {
      own.sent.add(out.get(i));
      if (calls != Calls.GROUP) {
        sends.add(comm.sendAsync(sent.get(i), out.get(i).to(), out.get(i).tag()));
      }
    }
    List<Integer> places = new ArrayList<>();
    List<Operation<Received>> receives = new ArrayList<>();
    for (int i = 0; i < in.size(); i++) {
      Asks asks = round.asks.get(rank);
      int source = asks == Asks.BY_TAG || asks == Asks.FOR_ANY ? ANY_SOURCE : in.get(i).from();
      int tag = asks == Asks.BY_SOURCE || asks == Asks.FOR_ANY ? ANY_TAG : in.get(i).tag();
      places.add(own.post(source, tag));
      if (calls == Calls.ASYNC) {
        receives.add(comm.receiveAsync(received.get(i), source, tag));
      } else if (calls == Calls.RECEIVES) {
        note(own, places.get(i), comm.receive(received.get(i), source, tag), received.get(i));
      }
    }
    for (int i = 0; i < receives.size(); i++) {
      note(own, places.get(i), receives.get(i).await(), received.get(i));
    }
    for (int i = 0; i < sends.size(); i++) {
      sends.get(i).await();
      own.returned.add(out.get(i).number());
    }
    if (calls == Calls.GROUP) {
      List<Received> results =
          comm.group(
              group -> {
                for (int i = 0; i < out.size(); i++) {
                  group.send(sent.get(i), out.get(i).to(), out.get(i).tag());
                }
                for (int i = 0; i < in.size(); i++) {
                  MessageHistory.Posted asked = own.posted.get(places.get(i));
                  group.receive(received.get(i), asked.source(), asked.tag());
                }
              });
      for (int i = 0; i < results.size(); i++) {
        note(own, places.get(i), results.get(i), received.get(i));
      }
      out.forEach(each -> own.returned.add(each.number()));
    }
    if (round.mustEndTogether()) {
      comm.barrier();
    }
  }

  /** Element i of a message is its number and i. */
  private static long element(int number, int i) {
    return (long) number << 32 | i;
  }

  private static Tensor data(Sent message, boolean isMistaken) {
    if (isMistaken) {
      return Tensor.allocate(DType.F32, message.elements());
    }
    Tensor tensor = Tensor.allocate(DType.I64, message.elements());
    long[] values = new long[message.elements()];
    for (int i = 0; i < values.length; i++) {
      values[i] = element(message.number(), i);
    }
    tensor.copyFrom(values);
    return tensor;
  }

  /** Notes what a receive got. Its data is whole. */
  private void note(OfRank own, int place, Received received, Tensor data) {
    long[] values = new long[MOST];
    data.copyTo(values);
    int number = (int) (values[0] >> 32);
    Sent message =
        rounds.stream()
            .flatMap(round -> round.messages.stream())
            .filter(each -> each.number() == number)
            .findFirst()
            .orElseThrow(() -> new AssertionError("no message has number " + number));
    Received wanted = new Received(message.from(), message.tag(), message.elements());
    if (!received.equals(wanted)) {
      throw new AssertionError("message " + number + " is " + wanted + ", and not " + received);
    }
    for (int i = 0; i < MOST; i++) {
      long element = i < message.elements() ? element(number, i) : 0;
      if (values[i] != element) {
        throw new AssertionError(
            "element " + i + " of message " + number + " is " + Long.toHexString(values[i]));
      }
    }
    own.got(place, number);
  }
}
