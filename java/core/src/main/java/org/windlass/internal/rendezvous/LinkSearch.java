// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Waits;

/**
 * Searches a store for the other job of a link, for a job's rank 0. A link name has one source and
 * any number of targets, each a job with a name of its own. docs/explanation/link-protocol.md has
 * the keys.
 *
 * <p>When a job's connection to the store ends, the keys that the job holds disappear. A target
 * that gives up removes its key. A target that looks for another source writes a new entry without
 * an answer.
 *
 * <p>At the deadline, the exception says whether the other job was seen. Mismatch names the
 * versions that differ, or the other job that holds this job's key.
 *
 * @param linkName name of the link, without a slash
 * @param own announcement of this job
 */
public record LinkSearch(
    Store store, String linkName, Announcement own, Deadline until, Holders holders) {
  /** Time limit of store calls that explain a failure or clean up after the deadline. */
  private static final Duration CLEANUP_LIMIT = Duration.ofSeconds(2);

  private static final String CHECK_OTHER_JOB =
      "; check that the other job runs, connects to the same store with the same link name and"
          + " token, and has the other role";

  /**
   * Other jobs that hold keys which this job needs. Consecutive searches share one object.
   *
   * @param logAfter time after which a job that waits for a key logs the key's holder
   * @param failAfter time after which the search fails if a job of another name holds the key. The
   *     time for which the store keeps keys of an ended job is added
   */
  public record Holders(Duration logAfter, Duration failAfter, Map<String, Holder> byKey) {
    /** Creates an empty table, with the limits 2 s and 5 s. */
    public Holders() {
      this(Duration.ofSeconds(2), Duration.ofSeconds(5));
    }

    public Holders(Duration logAfter, Duration failAfter) {
      this(logAfter, failAfter, new HashMap<>());
    }

    /** Returns the entry of a key's holder; {@code job} is null for a job of another version. */
    private Holder holder(String key, Announcement job, Duration silence) {
      String instance = job == null ? "" : job.instance();
      return byKey.compute(
          key,
          (any, known) ->
              known != null && known.instance.equals(instance)
                  ? known
                  : new Holder(
                      instance, Deadline.of(logAfter), Deadline.of(silence.plus(failAfter)),
                      new AtomicBoolean()));
    }
  }

  /** Records which job holds a key. The limits begin when the job was first seen as the holder. */
  record Holder(String instance, Deadline log, Deadline fail, AtomicBoolean isLogged) {}

  /**
   * Two jobs that have found each other.
   *
   * @param name name of their start at the store
   * @param theirs presence key of the other job
   * @param own presence key of this job. Rank 0 removes it when the job fails to connect. Rank 0 of
   *     a source also removes it when the start is over.
   */
  public record Match(
      String name, Presence theirs, Presence own, Announcement other) {}

  private static String name(long number) {
    return "rendezvous/" + number;
  }

  private static Presence sourceOf(String name) {
    return new Presence(name + "/source", new byte[0]);
  }

  private String path() {
    return "link/" + linkName + "/";
  }

  /**
   * Finds a target that waits for this source: the job named {@code job}, or any target if {@code
   * job} is null.
   */
  public Match source(@Nullable String job) {
    while (true) {
      for (String target : awaitOpen(job)) {
        Match match = match(target);
        if (match != null) {
          return match;
        }
      }
    }
  }

  /**
   * Returns the targets that wait for this source. Blocks until there is at least one. If {@code
   * job} is not null, only the target of that name counts.
   */
  public List<String> awaitOpen(@Nullable String job) {
    byte[] calls = null;
    while (true) {
      List<String> open =
          open().stream().filter(target -> job == null || job.equals(target)).toList();
      if (!open.isEmpty()) {
        return open;
      }
      try {
        calls = store.awaitOther(path() + "calls", calls, until.left()).orElse(null);
      } catch (RuntimeException e) {
        throw until.isOver() ? noneOpen(e) : e;
      }
    }
  }

  private RuntimeException noneOpen(RuntimeException failure) {
    String none = "no job receives it here that is not linked yet";
    Deadline limit = Deadline.of(CLEANUP_LIMIT);
    try {
      for (String key : store.keys(path() + "target/", limit.left())) {
        TargetEntry entry = entry(key, limit.left());
        Announcement target = Announcement.peek(entry.target());
        Announcement source = Announcement.peek(entry.source());
        boolean isOther =
            source != null && !(source.job().equals(own.job()) && source.pid() == own.pid());
        if (target != null && isOther) {
          return late(
              failure, none + ": " + target + " has connected to " + source,
              "; a link name has one source, and a target connects to another once it has seen its"
                  + " link end");
        }
      }
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
    return late(failure, none, CHECK_OTHER_JOB);
  }

  /** Returns the names of the targets that now wait for this source. */
  public List<String> open() {
    hold(
        path() + "source", own.toBytes(), Announcement::peek,
        "another sends it already: %s; a link name has one source: use another link name, or end"
            + " that job");
    store.hold(path() + "calls", new byte[Long.BYTES], until.left()); // or has held it before
    String targets = path() + "target/";
    return store.keys(targets, until.left()).stream()
        .filter(key -> entry(key, until.left()).number() == TargetEntry.OPEN)
        .map(key -> key.substring(targets.length()))
        // Other programs may have left other keys in the store.
        .filter(job -> !job.isEmpty() && !job.contains("/") && Texts.printable(job).equals(job))
        .toList();
  }

  private TargetEntry entry(String key, Duration limit) {
    return TargetEntry.of(store.get(key, limit).orElse(new byte[0]));
  }

  /** Changes the value of the source's key, so that a waiting source looks at the targets again. */
  private void notifySource() {
    String calls = path() + "calls";
    byte[] next = ByteBuffer.allocate(Long.BYTES).putLong(randomNumber()).array();
    boolean isDone = false;
    while (!isDone) {
      byte[] last = store.get(calls, until.left()).orElse(null);
      isDone = last == null || store.compareAndSet(calls, last, next, until.left());
    }
  }

  /** Returns a positive random number. The first half of a random UUID has 60 random bits. */
  private static long randomNumber() {
    return UUID.randomUUID().getMostSignificantBits() >>> 1;
  }

  /**
   * Sets a key to a value, and holds the key. Blocks while another job holds it.
   *
   * @param holderIn reads the announcement of the holder from a value; may return null
   * @param reason format of the reason why the key is not available; its argument is the holder
   */
  private void hold(
      String key, byte[] value, Function<byte[], Announcement> holderIn, String reason) {
    while (!store.hold(key, value, until.left())) {
      byte[] found = store.get(key, until.left()).orElse(null);
      if (found == null) {
        continue;
      }
      Announcement job = holderIn.apply(found);
      if (isOwn(job)) {
        store.set(key, value, until.left());
        break;
      }
      // Another job of the same name is an earlier start of this job, which is about to end.
      boolean isOther = job != null && !job.job().equals(own.job());
      String why = reason.formatted(job == null ? "a job of another version" : job);
      Holder holder = holders.holder(key, job, store.silence());
      if (isOther && holder.fail.isOver()) {
        throw new MismatchException("link '" + linkName + "': " + why);
      }
      if (holder.log.isOver() && holder.isLogged.compareAndSet(false, true)) {
        Log.warn(
            "job ''{0}'', link ''{1}'': {2}; it waits for that one to end, {3} at most", own.job(),
            linkName, why, Deadline.text(isOther ? until.left(holder.fail.left()) : until.left()));
      }
      Deadline next = !holder.isLogged.get() ? holder.log : isOther ? holder.fail : until;
      try {
        store.awaitOther(key, found, until.left(next.left()));
      } catch (RuntimeException e) {
        if (until.isOver()) {
          throw late(e, why, "");
        }
        if (!next.isOver()) {
          throw e;
        }
      }
    }
    holders.byKey.remove(key);
  }

  private boolean isOwn(@Nullable Announcement job) {
    return job != null && job.instance().equals(own.instance());
  }

  /** Answers a target that then joins this source. Returns null if the target no longer waits. */
  private @Nullable Match match(String target) {
    String key = path() + "target/" + target;
    byte[] found = store.get(key, until.left()).orElse(new byte[0]);
    TargetEntry entry = TargetEntry.of(found);
    if (entry.number() != TargetEntry.OPEN) {
      return null;
    }
    long number = randomNumber();
    Presence source = sourceOf(name(number));
    store.hold(source.key(), source.value(), until.left());
    boolean isMatched = false;
    try {
      byte[] answered = new TargetEntry(entry.target(), number, own.toBytes()).toBytes();
      if (!store.compareAndSet(key, found, answered, until.left())) {
        return null;
      }
      // If the versions differ, the target reads the answer and fails too.
      Announcement other = Announcement.of(entry.target(), own.versions());
      isMatched = true;
      return new Match(name(number), new Presence(key, answered), source, other);
    } finally {
      if (!isMatched) {
        remove(store, source);
      }
    }
  }

  /** Announces this target to the source, and waits for the source's answer. */
  public Match target() {
    String key = path() + "target/" + own.job();
    byte[] open = new TargetEntry(own.toBytes(), TargetEntry.OPEN, new byte[0]).toBytes();
    byte[] answered;
    boolean isOpen = false;
    try {
      hold(
          key, open, LinkSearch::targetIn,
          "%s, which has the same name as this job, receives it already; give each job a name of"
              + " its own");
      isOpen = true;
      notifySource();
      answered = store.awaitOther(key, open, until.left()).orElse(new byte[0]);
    } catch (RuntimeException e) {
      retract(key, e);
      throw isOpen && until.isOver() ? late(e, sourceState(e), CHECK_OTHER_JOB) : e;
    }
    TargetEntry entry = TargetEntry.of(answered);
    if (entry.number() <= TargetEntry.OPEN) {
      throw new MismatchException(
          "link '" + linkName + "': the source's answer can't be read; run one version on both"
              + " jobs");
    }
    Announcement source = Announcement.of(entry.source(), own.versions());
    String name = name(entry.number());
    return new Match(name, sourceOf(name), new Presence(key, answered), source);
  }

  /**
   * Removes a presence key of this job if it still has the expected value. An interrupt does not
   * prevent this.
   */
  public static void remove(Store store, Presence own) {
    Waits.uninterrupted(() -> store.compareAndSet(own.key(), own.value(), null, CLEANUP_LIMIT));
  }

  private static @Nullable Announcement targetIn(byte[] value) {
    return Announcement.peek(TargetEntry.of(value).target());
  }

  /** Removes this target's key. Also called if it is unknown whether the key was written. */
  private void retract(String key, RuntimeException failure) {
    try {
      Waits.uninterrupted(
          () -> {
            byte[] found;
            do { // again if the source has answered meanwhile
              found = store.get(key, CLEANUP_LIMIT).orElse(new byte[0]);
            } while (isOwn(targetIn(found))
                && !store.compareAndSet(key, found, null, CLEANUP_LIMIT));
          });
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  private String sourceState(RuntimeException failure) {
    try {
      byte[] found = store.get(path() + "source", CLEANUP_LIMIT).orElse(new byte[0]);
      Announcement source = Announcement.peek(found);
      if (source != null) {
        return "the source, " + source + ", has not answered";
      }
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
    return "no job sends it here yet";
  }

  private RuntimeException late(RuntimeException failure, String why, String advice) {
    return new DeadlineExceededException(
        "link '" + linkName + "': " + why + ", at the store at " + store.address()
            + ", when the deadline passed" + advice,
        failure);
  }

  /**
   * Value of a target's key: the announcements of the target and of the source.
   *
   * @param number number of the rendezvous that the target must join; {@link #OPEN} until the
   *     source answers
   */
  private record TargetEntry(byte[] target, long number, byte[] source) {
    static final long OPEN = 0;
    static final TargetEntry NONE = new TargetEntry(new byte[0], -1, new byte[0]);

    byte[] toBytes() {
      return Encoding.bytes(
          out -> {
            out.writeLong(number);
            Encoding.putArray(out, target);
            out.write(source);
          });
    }

    static TargetEntry of(byte[] value) {
      try {
        return Encoding.read(
            value,
            in -> {
              long number = in.readLong();
              return new TargetEntry(Encoding.array(in), number, in.readAllBytes());
            });
      } catch (MalformedException e) {
        return NONE;
      }
    }
  }
}
