// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Texts;

/**
 * The way of two jobs to one another at a store, by the name of their pair: what rank 0 of each
 * does. A pair has one source and any number of targets, each a job of another name.
 *
 * <pre>
 * pair/P/source     what the source says of itself, which holds it
 * pair/P/calls      the source's too: another value with each target that has come to be open
 * pair/P/target/J   of target J, which holds it: a {@link Standing}, open or answered by the source
 * meeting/N/source  held by the source of meeting N, until all have met there or it gives up; N is
 *                   random, so that nothing in the store has to be right for it to be new
 * </pre>
 *
 * A job that ends, in whatever way, takes what it holds with it. A target that gives up removes its
 * key, and one that is to be matched anew makes itself open again.
 */
public final class Pairing {
  /** For what is told once the deadline has passed. */
  private static final Duration LAST_LOOK = Duration.ofSeconds(2);

  private static final System.Logger LOGGER = System.getLogger("org.windlass");

  private static final String LOOK_FOR_THE_OTHER =
      "; see whether the other job runs, meets there by that name, with the same token where it has"
          + " one, and has the other role";

  private static final byte[] NO_CALLS = new byte[Long.BYTES];
  private static final byte[] THERE = {};

  private final Store store;
  private final String pair;
  private final String path;
  private final Announcement own;
  private final FailureMaker failures;
  private final Deadline until;
  private final Rivals rivals;

  /**
   * How long one waits for a place that another job holds.
   *
   * @param tells before it says so in the log
   * @param ends before it fails where that job is not one that this follows, beyond the time that
   *     the store may take to let go of what a job held that has ended
   */
  public record Patience(Duration tells, Duration ends) {
    public static final Patience USUAL = new Patience(Duration.ofSeconds(2), Duration.ofSeconds(5));
  }

  /** The jobs that held a place which this job wanted. Several looks share what one of them saw. */
  public static final class Rivals {
    private final Patience patience;
    private final Map<String, Rival> byPlace = new HashMap<>();

    public Rivals(Patience patience) {
      this.patience = patience;
    }

    /** {@code holder} in that place; null for one of another version. */
    private Rival in(String place, Announcement holder, Duration silence) {
      String instance = holder == null ? "" : holder.instance();
      Rival known = byPlace.get(place);
      if (known == null || !known.instance.equals(instance)) {
        known = new Rival(instance, patience.tells(), silence.plus(patience.ends()));
        byPlace.put(place, known);
      }
      return known;
    }
  }

  /** A job that holds a place, and the deadlines that began when it was first seen there. */
  private static final class Rival {
    private final String instance;
    private final Deadline tells;
    private final Deadline ends;
    private boolean isTold;

    private Rival(String instance, Duration tells, Duration ends) {
      this.instance = instance;
      this.tells = Deadline.of(tells);
      this.ends = Deadline.of(ends);
    }
  }

  /**
   * Two jobs that have found one another.
   *
   * @param meeting a number of its own
   * @param theirs that the other job may still come
   * @param own that this one may, for its rank 0 to take back: a source once the meeting is over, a
   *     target where it has come to nothing
   * @param other what the other job says of itself
   */
  public record Match(long meeting, Sign theirs, Sign own, Announcement other) {
    /** Tells the meeting from others at the store. */
    public String name() {
      return Pairing.name(meeting);
    }
  }

  private static String name(long meeting) {
    return "meeting/" + meeting;
  }

  private static Sign ofSource(long meeting) {
    return new Sign(name(meeting) + "/source", THERE);
  }

  /**
   * From now on.
   *
   * @param pair whose name has no slash
   * @param own what this job says of itself
   * @param rivals of this job
   * @param failures makes what calls throw: Timeout says whether the other side was there; Mismatch
   *     names the versions of both jobs where they differ, or the job that has this one's place
   */
  public Pairing(
      Store store,
      String pair,
      Announcement own,
      Duration deadline,
      Rivals rivals,
      FailureMaker failures) {
    this.store = store;
    this.pair = pair;
    this.path = "pair/" + pair + "/";
    this.own = own;
    this.until = Deadline.of(deadline, failures);
    this.rivals = rivals;
    this.failures = failures;
  }

  /**
   * As the source: finds a target that is open.
   *
   * @param job of this name; null for any
   */
  public Match source(String job) {
    Predicate<String> isMeant = target -> job == null || job.equals(target);
    while (true) {
      for (String target : awaitOpen(isMeant)) {
        Match match = match(target);
        if (match != null) {
          return match;
        }
      }
    }
  }

  /** As the source: {@link #open}, once there is one. */
  public List<String> awaitOpen() {
    return awaitOpen(target -> true);
  }

  private List<String> awaitOpen(Predicate<String> isMeant) {
    byte[] calls = null;
    while (true) {
      List<String> open = open().stream().filter(isMeant).toList();
      if (!open.isEmpty()) {
        return open;
      }
      try {
        calls = store.awaitOther(path + "calls", calls, until.left()).orElse(null);
      } catch (RuntimeException e) {
        throw until.isOver() ? noneOpen(e) : e;
      }
    }
  }

  /** What a source throws that no target has come to. */
  private RuntimeException noneOpen(RuntimeException failure) {
    String none = "no job receives it here that is not linked already";
    String met = null;
    try {
      met = metByAnother();
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
    return met == null
        ? late(failure, none, LOOK_FOR_THE_OTHER)
        : late(
            failure,
            none + ": " + met,
            "; a pair has one source, and a target meets another once it has seen its link end");
  }

  /** A target here that another source has answered, which may hold its place no more; or null. */
  private String metByAnother() {
    Deadline last = Deadline.of(LAST_LOOK);
    for (String key : store.keys(path + "target/", last.left())) {
      Standing standing = store.get(key, last.left()).map(Standing::of).orElse(null);
      Announcement target = standing == null ? null : Announcement.peek(standing.target());
      Announcement source = standing == null ? null : Announcement.peek(standing.source());
      boolean isAnothers =
          source != null && !(source.job().equals(own.job()) && source.pid() == own.pid());
      if (target != null && isAnothers) {
        return target + " has met " + source;
      }
    }
    return null;
  }

  /** As the source: the jobs that are open as targets; it waits for none. */
  public List<String> open() {
    takeSource();
    String targets = path + "target/";
    return store.keys(targets, until.left()).stream()
        .filter(
            key -> store.get(key, until.left()).map(Standing::of).filter(Standing::isOpen).isPresent())
        .map(key -> key.substring(targets.length()))
        .filter(Pairing::isName)
        .toList();
  }

  /** Whether a job may have it for a name; strangers may leave other keys in a store of theirs. */
  private static boolean isName(String target) {
    return !target.isEmpty() && !target.contains("/") && Texts.printable(target).equals(target);
  }

  /** Holds the source's place, as long as this way in lasts. */
  private void takeSource() {
    take(
        path + "source",
        own.toBytes(),
        value -> value,
        other -> "another sends it already: " + other + "; a pair has one source: name another pair, or end"
                + " that job",
        other -> !other.job().equals(own.job()));
    store.hold(path + "calls", NO_CALLS, until.left()); // or has it
  }

  /** As a target that is open: tells a source that waits. One that comes finds it open. */
  private void call() {
    String calls = path + "calls";
    while (true) {
      byte[] seen = store.get(calls, until.left()).orElse(null);
      if (seen == null) {
        return;
      }
      if (store.compareAndSet(calls, seen, anyCall(), until.left())) {
        return;
      }
    }
  }

  /** A value that no call had before, whatever others have left there. */
  private static byte[] anyCall() {
    return ByteBuffer.allocate(Long.BYTES).putLong(anyNumber()).array();
  }

  /** One that nobody has had, at least 1: a random UUID's first half holds its version. */
  private static long anyNumber() {
    return UUID.randomUUID().getMostSignificantBits() >>> 1;
  }

  /**
   * Gives {@code key} a value, held by this job.
   *
   * @param said what a value says of who holds it
   * @param why it can't be had, of who has it
   * @param staysAnothers whether a job that has it, and has not ended, is not one that this follows
   */
  private void take(
      String key,
      byte[] value,
      UnaryOperator<byte[]> said,
      Function<String, String> why,
      Predicate<Announcement> staysAnothers) {
    while (!store.hold(key, value, until.left())) {
      byte[] there = store.get(key, until.left()).orElse(null);
      if (there == null) {
        continue;
      }
      Announcement holder = Announcement.peek(said.apply(there));
      if (holder != null && holder.instance().equals(own.instance())) {
        store.set(key, value, until.left());
        break;
      }
      String reason = why.apply(holder == null ? "a job of another version" : holder.toString());
      boolean isFinal = holder != null && staysAnothers.test(holder);
      Rival rival = rivals.in(key, holder, store.silence());
      if (isFinal && rival.ends.isOver()) {
        throw failures.make(Native.WL_MISMATCH, "pair '" + pair + "': " + reason);
      }
      if (!rival.isTold && rival.tells.isOver()) {
        rival.isTold = true;
        LOGGER.log(
            System.Logger.Level.WARNING,
            "job ''{0}'', pair ''{1}'': {2}; it waits for that one to end, {3} at most",
            own.job(),
            pair,
            reason,
            Deadline.text(isFinal ? until.left(rival.ends.left()) : until.left()));
      }
      try {
        awaitChange(key, there, !rival.isTold ? rival.tells : isFinal ? rival.ends : until);
      } catch (RuntimeException e) {
        throw until.isOver() ? late(e, reason, "") : e;
      }
    }
    rivals.byPlace.remove(key);
  }

  /** Waits until it is another value, or until the first of two deadlines has passed. */
  private void awaitChange(String key, byte[] seen, Deadline first) {
    try {
      store.awaitOther(key, seen, until.left(first.left()));
    } catch (RuntimeException e) {
      // What else it may be, the next call at the store says.
      if (!first.isOver() || until.isOver()) {
        throw e;
      }
    }
  }

  /** Null where the target is open no more. */
  private Match match(String target) {
    String key = path + "target/" + target;
    byte[] seen = store.get(key, until.left()).orElse(null);
    Standing standing = seen == null ? null : Standing.of(seen);
    if (standing == null || !standing.isOpen()) {
      return null;
    }
    long meeting = anyNumber();
    Sign own = ofSource(meeting);
    store.hold(own.key(), own.value(), until.left());
    boolean isMatched = false;
    try {
      byte[] answered = new Standing(standing.target(), meeting, this.own.toBytes()).toBytes();
      if (!store.compareAndSet(key, seen, answered, until.left())) {
        return null;
      }
      // Where versions differ, the target finds that too.
      Announcement other =
          Announcement.of(standing.target(), this.own.versions(), failures);
      isMatched = true;
      return new Match(meeting, new Sign(key, answered), own, other);
    } finally {
      if (!isMatched) {
        own.takeBack(store);
      }
    }
  }

  /** As a target: opens itself, and waits for the source. */
  public Match target() {
    String key = path + "target/" + own.job();
    byte[] open = new Standing(own.toBytes(), Standing.OPEN, new byte[0]).toBytes();
    try {
      take(
          key,
          open,
          Pairing::targetOf,
          other ->
              other
                  + " receives it already, under the name that this job has too; give each job a"
                  + " name of its own",
          other -> false);
    } catch (RuntimeException e) {
      takeBack(key, e);
      throw e;
    }
    byte[] answered;
    try {
      call();
      answered = store.awaitOther(key, open, until.left()).orElse(new byte[0]);
    } catch (RuntimeException e) {
      throw unanswered(key, e);
    }
    Standing answer = Standing.of(answered);
    if (answer == null || answer.isOpen()) {
      throw failures.make(
          Native.WL_MISMATCH,
          "pair '"
              + pair
              + "': what the source answered can't be read; run one version on both jobs");
    }
    Announcement source = Announcement.of(answer.source(), own.versions(), failures);
    return new Match(
        answer.meeting(), ofSource(answer.meeting()), new Sign(key, answered), source);
  }

  /** What a target says of itself. */
  private static byte[] targetOf(byte[] value) {
    Standing standing = Standing.of(value);
    return standing == null ? new byte[0] : standing.target();
  }

  /** As a target: is there no more, also where it was not told that it had come to be there. */
  private void takeBack(String key, RuntimeException failure) {
    boolean interrupted = Thread.interrupted(); // it may not be waited for either
    try {
      Optional<byte[]> there = store.get(key, LAST_LOOK);
      while (there.isPresent()
          && isOwn(there.get())
          && !store.compareAndSet(key, there.get(), null, LAST_LOOK)) {
        there = store.get(key, LAST_LOOK); // the source answers just now
      }
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private boolean isOwn(byte[] value) {
    Announcement target = Announcement.peek(targetOf(value));
    return target != null && target.instance().equals(own.instance());
  }

  /** What a target throws that has waited in vain, and is there no more. */
  private RuntimeException unanswered(String key, RuntimeException failure) {
    takeBack(key, failure);
    return until.isOver() ? late(failure, whoSends(failure), LOOK_FOR_THE_OTHER) : failure;
  }

  private String whoSends(RuntimeException failure) {
    try {
      Announcement there =
          Announcement.peek(store.get(path + "source", LAST_LOOK).orElse(new byte[0]));
      if (there != null) {
        return "the source, " + there + ", has not answered";
      }
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
    return "no job sends it here yet";
  }

  private RuntimeException late(RuntimeException failure, String why, String advice) {
    return failures.make(
        Native.WL_TIMEOUT,
        "pair '"
            + pair
            + "': "
            + why
            + ", at the store at "
            + store.address()
            + ", when the deadline passed"
            + advice,
        failure,
        "",
        List.of());
  }

  /**
   * What a target's key has.
   *
   * @param target what it says of itself
   * @param meeting that it is to go to, or {@link #OPEN}
   * @param source what that says of itself; empty where it has not answered
   */
  private record Standing(byte[] target, long meeting, byte[] source) {
    static final long OPEN = 0;

    boolean isOpen() {
      return meeting == OPEN;
    }

    byte[] toBytes() {
      return ByteBuffer.allocate(Long.BYTES + Integer.BYTES + target.length + source.length)
          .putLong(meeting)
          .putInt(target.length)
          .put(target)
          .put(source)
          .array();
    }

    /** Null for what is none. */
    static Standing of(byte[] bytes) {
      ByteBuffer all = ByteBuffer.wrap(bytes);
      if (all.remaining() < Long.BYTES + Integer.BYTES) {
        return null;
      }
      long meeting = all.getLong();
      int length = all.getInt();
      if (length < 0 || length > all.remaining()) {
        return null;
      }
      byte[] target = new byte[length];
      all.get(target);
      byte[] source = new byte[all.remaining()];
      all.get(source);
      return new Standing(target, meeting, source);
    }
  }
}
