// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Store;

/**
 * The steps by which all ranks of a start tell one another something at a store, within one
 * deadline.
 *
 * <pre>
 * decision    what has come of the last step: an {@link Outcome}, held by rank 0's process
 * of/ID/S/N   the outcome's value N of step S of start ID, where it has several; held by it, too
 * rank/R      what rank R says in the step that it has come to: a {@link Word}, held by its process
 * </pre>
 *
 * <p>Rank 0 opens the start, under an id of its own that every word and outcome of it has; what
 * others of that prefix have left, or still say, passes by. It collects what all say and decides
 * the step; another rank does so where the deadline passes first. A key that is gone is a rank that
 * is gone, and so is one in which another member speaks. Who comes while a start is decided already
 * waits for the next. Nothing is left in the store once all that came have called {@link #leave}.
 */
final class Gathering implements StartSteps {
  /** How often one who waits for ranks that have not come sees to it that they still may. */
  private static final Duration LOOK = Duration.ofMillis(200);

  /** For what is told and looked at once the deadline has passed. */
  private static final Duration LAST_LOOK = Duration.ofSeconds(2);

  /** After which it is said who is awaited; a fourth of the deadline at most. */
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private static final System.Logger LOGGER = System.getLogger("org.windlass");

  private final Store store;
  private final String prefix;
  private final String decisions;
  private final Sign others;
  private final int size;
  private final Deadline until;
  private final FailureMaker failures;

  /** Tells what is said here from what is said of the same ranks elsewhere. */
  private final UUID member = UUID.randomUUID();

  /** That of the start which this takes part in; null where rank 0 has not opened it so far. */
  private UUID start;

  /** What was decided last in it, as this process knows it; null where it knows of no start. */
  private byte[] decision;

  /** Under which this process has further values of outcomes. */
  private final List<String> further = new ArrayList<>();

  /** What this process's ranks have said last. */
  private final Map<Integer, byte[]> said = new HashMap<>();

  /** What each rank's key had last, and what that rank has said in this start; of rank 0's process. */
  private final byte[][] seen;

  private final Word[] heard;

  /** Null before it is known which ranks live on which. */
  private Hosts hosts;

  /** Whether it was said who is awaited. */
  private boolean hasTold;

  /** Why a start that was there before has failed; empty for none. */
  private String earlier = "";

  /**
   * From now on.
   *
   * @param prefix of all keys
   * @param others without which ranks that have not come so far won't come; null for none
   * @param size ranks; a start of another size fails on all that came
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
    this.until = Deadline.of(deadline, failures);
    this.failures = failures;
    this.seen = new byte[size][];
    this.heard = new Word[size];
  }

  private static String decisions(String prefix) {
    return prefix + "decision";
  }

  /**
   * Waits until rank 0 has opened a start under this prefix, which has not come to anything.
   *
   * @return the start, for {@link #joining}
   */
  static byte[] awaitOpen(Store store, String prefix, Duration deadline) {
    Deadline until = Deadline.of(deadline);
    byte[] now = null;
    do {
      now = store.awaitOther(decisions(prefix), now, until.left()).orElse(null);
    } while (!isOpen(now));
    return now;
  }

  /** Takes part in a start that was seen open, whatever has become of it since. */
  void joining(byte[] open) {
    decision = open;
  }

  private static boolean isOpen(byte[] decision) {
    Outcome outcome = Outcome.peek(decision);
    return outcome != null && outcome.kind() == Outcome.Kind.OPEN;
  }

  @Override
  public void settle(Hosts settled) {
    hosts = settled;
  }

  @Override
  public List<byte[]> gather(String step, Map<Integer, byte[]> own, Refused refused) {
    boolean isRankZero = own.containsKey(0);
    Outcome outcome;
    try {
      if (start == null && isRankZero) {
        open();
      } else if (start == null) {
        join(step, own);
      }
      say(step, own, refused);
      outcome =
          isRankZero
              ? decide(step)
              : told();
    } catch (RuntimeException e) {
      if (!until.isOver()) {
        throw e;
      }
      outcome = late(step, isRankZero, e);
    }
    return read(step, own, outcome);
  }

  /** As rank 0. */
  private void open() {
    start = UUID.randomUUID();
    decision = Outcome.open(start, size).toValues().get(0);
    while (!store.hold(decisions, decision, until.left())) {
      // The rest of an earlier start, whose rank 0 has ended or was started again.
      Optional<byte[]> rest = store.get(decisions, until.left());
      if (rest.isPresent()) {
        store.compareAndSet(decisions, rest.get(), null, until.left());
      }
    }
  }

  /** As another: takes part in the start that is open, as soon as one is. */
  private void join(String step, Map<Integer, byte[]> own) {
    byte[] now = decision != null ? decision : store.get(decisions, until.left()).orElse(null);
    Outcome before = Outcome.peek(now);
    boolean isThere = false;
    while (!isOpen(now)) {
      Outcome outcome = Outcome.peek(now);
      boolean isNew =
          outcome != null && (before == null || !outcome.start().equals(before.start()));
      if (isNew && outcome.kind() == Outcome.Kind.FAILED) {
        start = outcome.start(); // it was opened, and has failed, while this waited for it
        return;
      }
      if (!isThere) {
        start = Word.NO_START;
        say(step, own, null);
        start = null;
        isThere = true;
      }
      noteEarlier(now);
      now = awaitOther(decisions, now, this::requireOthers).orElse(null);
    }
    start = Outcome.peek(now).start();
    decision = now;
    requireSize(step, own);
  }

  /** Fails the start, for all that came, where rank 0 counts other ranks. */
  private void requireSize(String step, Map<Integer, byte[]> own) {
    int other;
    try {
      other = Outcome.peek(decision).size();
    } catch (IOException e) {
      throw unreadable(e);
    }
    if (other == size) {
      return;
    }
    int rank = own.keySet().stream().min(Integer::compare).orElseThrow();
    Outcome.Failed why =
        new Outcome.Failed(
            Native.WL_MISMATCH,
            "rank 0 was started as one of "
                + other
                + " ranks, rank "
                + rank
                + " as one of "
                + size
                + "; give all ranks one size, WINDLASS_WORLD_SIZE or what the launcher sets, and"
                + " all processes as many ranks",
            List.of(0, rank));
    decided(failed(step, why), until.left());
    throw thrown(why, null);
  }

  private void noteEarlier(byte[] decision) {
    Outcome outcome = Outcome.peek(decision);
    try {
      if (outcome != null && outcome.kind() == Outcome.Kind.FAILED) {
        earlier = "; the start before has failed: " + outcome.why(size).message();
      }
    } catch (IOException e) {
      // Of another version: there is nothing to say of it.
    }
  }

  /** After the last step: waits until all ranks but {@code own} have left. */
  void end(List<Integer> own) {
    awaitOthersLeft(own, until);
  }

  /** The same after a failure, for as long as telling it takes. */
  void fail(List<Integer> own) {
    Deadline last = Deadline.of(LAST_LOOK);
    try {
      if (isOpen(decision)) {
        decided(failed("", rankZeroLeft()), LAST_LOOK);
      }
    } catch (RuntimeException e) {
      // Who waits sees then that rank 0 is gone.
    }
    awaitOthersLeft(own, last);
  }

  private void awaitOthersLeft(List<Integer> own, Deadline end) {
    try {
      for (int rank = 0; rank < size; rank++) {
        byte[] last = own.contains(rank) ? null : lastOf(rank, end.left());
        while (isOfThisStart(Word.peek(last))) {
          last = store.awaitOther(key(rank), last, end.left()).orElse(null);
        }
      }
    } catch (RuntimeException e) {
      // Who has not left by now finds the store gone.
    }
  }

  /** What a rank said last, also where nothing was collected of it behind one that never came. */
  private byte[] lastOf(int rank, Duration limit) {
    return heard[rank] != null ? seen[rank] : store.get(key(rank), limit).orElse(null);
  }

  private boolean isOfThisStart(Word word) {
    return word != null && word.start().equals(start);
  }

  private boolean isOfThisStart(Outcome outcome) {
    return outcome != null && outcome.start().equals(start);
  }

  /**
   * Takes back what {@code own} have said: they have heard all that they are to hear. Where rank 0
   * is among them, the others have.
   */
  void leave(List<Integer> own) {
    try {
      for (int rank : own) {
        byte[] last = store.get(key(rank), LAST_LOOK).orElse(null);
        Word word = Word.peek(last);
        if (word != null && word.member().equals(member)) {
          remove(key(rank), last);
        }
      }
      for (String key : further) {
        remove(key, store.get(key, LAST_LOOK).orElse(null));
      }
      if (own.contains(0) && start != null) {
        byte[] last = store.get(decisions, LAST_LOOK).orElse(null);
        Outcome outcome = Outcome.peek(last);
        if (isOfThisStart(outcome)) {
          remove(decisions, last);
        }
      }
    } catch (RuntimeException e) {
      // What a store that is lost, or does not answer, has of them ends with this way in.
    }
  }

  private void remove(String key, byte[] value) {
    if (value != null) {
      store.compareAndSet(key, value, null, LAST_LOOK);
    }
  }

  private String key(int rank) {
    return prefix + "rank/" + rank;
  }

  private String furtherKey(String step, int value) {
    return prefix + "of/" + start + "/" + step + "/" + value;
  }

  private void say(String step, Map<Integer, byte[]> own, Refused refused) {
    own.forEach(
        (rank, value) -> say(rank, new Word(start, member, step, value, refused).toBytes()));
  }

  private void say(int rank, byte[] word) {
    String key = key(rank);
    byte[] before = said.put(rank, word);
    if (before != null) {
      if (!store.compareAndSet(key, before, word, until.left())) {
        throw another(rank);
      }
      return;
    }
    while (!store.hold(key, word, until.left())) {
      // What a process has left, or says, that was this rank before.
      Optional<byte[]> rest = store.get(key, until.left());
      if (rest.isPresent()) {
        store.compareAndSet(key, rest.get(), null, until.left());
      }
    }
  }

  /** Where one is not who has its rank. */
  private RuntimeException another(int rank) {
    return failures.make(
        Native.WL_MISMATCH,
        "another process has come to this start as rank "
            + rank
            + " too, and counts as that; two may not have one rank: start all ranks again",
        null,
        "",
        List.of(rank));
  }

  private Outcome.Failed rankZeroLeft() {
    return new Outcome.Failed(
        Native.WL_PEER_LOST,
        left(0),
        List.of(0));
  }

  private String left(int rank) {
    return "rank " + name(rank)
        + " came to the start and left before all had met; see what its process says";
  }

  /** What a rank is called, behind "rank". */
  private String name(int rank) {
    return Hosts.rank(hosts, rank);
  }

  private RuntimeException thrown(Outcome.Failed why, Throwable cause) {
    return failures.make(why.code(), why.message(), cause, "", why.culprits());
  }

  /** What is decided next. */
  private Outcome told() {
    byte[] now = store.awaitOther(decisions, decision, until.left()).orElse(null);
    return outcome(now, until.left()).orElseThrow(() -> thrown(rankZeroLeft(), null));
  }

  /** That of this start which a decision is; empty for null, and for one of another start. */
  private Optional<Outcome> outcome(byte[] now, Duration limit) {
    if (now == null) {
      return Optional.empty();
    }
    try {
      Outcome first = Outcome.of(now, value -> new byte[0]);
      if (!isOfThisStart(first)) {
        return Optional.empty();
      }
      decision = now;
      return Optional.of(Outcome.of(now, value -> further(first.step(), value, limit)));
    } catch (MalformedException e) {
      throw unreadable(e);
    }
  }

  private byte[] further(String step, int value, Duration limit) {
    return store
        .get(furtherKey(step, value), limit)
        .orElseThrow(() -> thrown(rankZeroLeft(), null));
  }

  private RuntimeException unreadable(IOException e) {
    return failures.make(
        Native.WL_MISMATCH, "what ranks say at the start can't be read: "
            + Encoding.why(e)
            + "; run one version of windlass on all of them");
  }

  /** {@link Store#awaitOther}, with a look at something else from time to time, which may throw. */
  private Optional<byte[]> awaitOther(String key, byte[] seen, Consumer<RuntimeException> look) {
    while (true) {
      long lookNs = System.nanoTime();
      Duration once = until.left(LOOK);
      try {
        return store.awaitOther(key, seen, once);
      } catch (RuntimeException e) {
        if (until.isOver() || System.nanoTime() - lookNs < once.toNanos()) {
          throw e;
        }
        look.accept(e);
      }
    }
  }

  /** Throws where those that have not come won't. */
  private void requireOthers(RuntimeException late) {
    if (others != null && !others.isThere(store, until.left())) {
      throw new OthersGoneException(late);
    }
  }

  /** As rank 0: throws where another has decided what this waits to decide. */
  private void requireUndecided() {
    byte[] now = store.get(decisions, until.left()).orElse(null);
    if (!Arrays.equals(now, decision)) {
      throw new DecidedException(now);
    }
  }

  /** What another has decided; null where that is gone. */
  private static final class DecidedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final byte[] decision;

    DecidedException(byte[] decision) {
      this.decision = decision;
    }
  }

  /** As rank 0: says in the log, once, whom it waits for. */
  private void tellWhoIsAwaited(String step) {
    long waitedNs = until.limitNs() - until.leftNs();
    if (hasTold || waitedNs < Math.min(until.limitNs() / 4, PATIENCE.toNanos())) {
      return;
    }
    hasTold = true;
    Missing missing = missing(step, until);
    if (!missing.isNone()) {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "{0} so far; the start waits for {1} more",
          missing.said(),
          Deadline.text(Duration.ofMillis(Math.max(1, until.left().toMillis()))));
    }
  }

  /** As rank 0. */
  private Outcome decide(String step) {
    Optional<Outcome> outcome;
    try {
      outcome = decided(collected(step), until.left());
    } catch (DecidedException e) {
      outcome = outcome(e.decision, until.left());
    }
    return outcome.orElseThrow(() -> another(0));
  }

  /** The outcome of a step: what all said, or the first failure. */
  private Outcome collected(String step) {
    List<Word> words = new ArrayList<>(size);
    for (int rank = 0; rank < size; rank++) {
      Word word;
      try {
        word = heard[rank] == null ? awaitFirstWord(rank, step) : awaitNextWord(rank, step);
        if (word != null && !word.step().equals(step)) {
          throw new MalformedException("it is at step " + word.step());
        }
      } catch (MalformedException e) {
        return failed(
            step,
            new Outcome.Failed(
                Native.WL_MISMATCH,
                "what rank " + rank + " says at the start can't be read: " + e.getMessage()
                    + "; run one version of windlass on all of them",
                List.of(rank)));
      }
      if (word == null) {
        return failed(
            step,
            new Outcome.Failed(
                Native.WL_PEER_LOST,
                left(rank),
                List.of(rank)));
      }
      if (word.refused() != null) {
        return failed(step, whyRefused(rank, word.refused()));
      }
      words.add(word);
    }
    return Outcome.said(start, step, words);
  }

  /** What {@code rank} says; where others have left meanwhile, that, which may be why it does. */
  private Outcome.Failed whyRefused(int rank, Refused refused) {
    try {
      for (int other = 0; other < size; other++) {
        if (heard[other] != null && store.get(key(other), until.left()).isEmpty()) {
          return new Outcome.Failed(Native.WL_PEER_LOST, left(other), List.of(other));
        }
      }
    } catch (RuntimeException e) {
      if (!until.isOver()) {
        throw e;
      }
      // The store doesn't say in time.
    }
    return new Outcome.Failed(refused.code(), refused.of(name(rank)), List.of(rank));
  }

  /** Of {@code rank} in this start. */
  private Word awaitFirstWord(int rank, String step) throws MalformedException {
    Consumer<RuntimeException> look =
        late -> {
          requireOthers(late);
          requireUndecided();
          tellWhoIsAwaited(step);
        };
    while (true) {
      seen[rank] = awaitOther(key(rank), seen[rank], look).orElse(null);
      Word word = seen[rank] == null ? null : Word.of(seen[rank]);
      if (isOfThisStart(word)) {
        heard[rank] = word;
        return word;
      }
    }
  }

  /** What {@code rank} says after its last word; null where it has left. */
  private Word awaitNextWord(int rank, String step) throws MalformedException {
    Consumer<RuntimeException> look =
        late -> {
          requireUndecided();
          tellWhoIsAwaited(step);
        };
    byte[] next = awaitOther(key(rank), seen[rank], look).orElse(null);
    Word word = next == null ? null : Word.of(next);
    if (!isOfThisStart(word) || !word.member().equals(heard[rank].member())) {
      return null;
    }
    seen[rank] = next;
    heard[rank] = word;
    return word;
  }

  private Outcome failed(String step, Outcome.Failed why) {
    return Outcome.failed(start, step, why);
  }

  /** {@code outcome}, or what was decided before; empty where the start is there no more. */
  private Optional<Outcome> decided(Outcome outcome, Duration limit) {
    List<byte[]> values = outcome.toValues();
    for (int value = 1; value < values.size(); value++) {
      String key = furtherKey(outcome.step(), value);
      further.add(key);
      store.hold(key, values.get(value), limit);
    }
    if (store.compareAndSet(decisions, decision, values.get(0), limit)) {
      decision = values.get(0);
      return Optional.of(outcome);
    }
    return outcome(store.get(decisions, limit).orElse(null), limit);
  }

  private List<byte[]> read(String step, Map<Integer, byte[]> own, Outcome outcome) {
    try {
      switch (outcome.kind()) {
        case FAILED -> throw thrown(outcome.why(size), null);
        case SAID -> {
          if (!outcome.step().equals(step)) {
            throw new MalformedException("step " + outcome.step() + " in " + step);
          }
          List<Outcome.Said> all = outcome.said(size);
          for (int rank : own.keySet()) {
            if (!all.get(rank).member().equals(member)) {
              throw another(rank);
            }
          }
          return all.stream().map(Outcome.Said::value).toList();
        }
        default -> throw new MalformedException("nothing is decided");
      }
    } catch (IOException e) {
      throw unreadable(e);
    }
  }

  /** The outcome of a step whose deadline has passed: who has not come so far. */
  private Outcome late(String step, boolean isRankZero, RuntimeException failure) {
    Deadline last = Deadline.of(LAST_LOOK);
    Outcome.Failed why;
    try {
      Missing missing = missing(step, last);
      why = missing.isNone() ? undecided(isRankZero) : missing.late(earlier);
      if (start != null) {
        Optional<Outcome> outcome = decided(failed(step, why), last.left());
        if (outcome.isPresent()) {
          return outcome.get();
        }
      }
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
      throw failures.make(
          Native.WL_TIMEOUT,
          "the deadline passed, and the store at "
              + store.address()
              + " did not say which of "
              + size
              + " ranks had come",
          failure,
          "",
          List.of());
    }
    throw thrown(why, failure);
  }

  private Missing missing(String step, Deadline end) {
    List<Word> words = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      words.add(Word.peek(store.get(key(rank), end.left()).orElse(null)));
    }
    return Missing.of(words, start, step, store.address(), this::name);
  }

  /** Where all have come, which rank 0 is to say. */
  private Outcome.Failed undecided(boolean isRankZero) {
    String message =
        isRankZero
            ? "all of " + size + " ranks came to " + store.address()
                + " as the deadline passed; give more time"
            : "rank 0 of " + size + " came to " + store.address()
                + ", and had not let the others go on when the deadline passed; see whether its"
                + " process is stopped, or give more time";
    return new Outcome.Failed(
        Native.WL_TIMEOUT, message, isRankZero ? List.of() : List.of(0));
  }
}
