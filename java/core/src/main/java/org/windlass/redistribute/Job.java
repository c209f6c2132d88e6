// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.windlass.AbortedException;
import org.windlass.ClosedException;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DeadlineExceededException;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.PeerLostException;
import org.windlass.WindlassException;
import org.windlass.internal.Access;
import org.windlass.internal.Deadlines;
import org.windlass.internal.Leaks;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Announcement;
import org.windlass.internal.rendezvous.MeetingFile;
import org.windlass.internal.rendezvous.MeetingStore;
import org.windlass.internal.rendezvous.Member;
import org.windlass.internal.rendezvous.Pairing;
import org.windlass.internal.rendezvous.SocketStore;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.rendezvous.Store;
import org.windlass.internal.rendezvous.Token;
import org.windlass.layout.Layout;
import org.windlass.plan.Plan;

/**
 * A job as one of its ranks has it: a communicator of its own, and the way to other jobs. Jobs are
 * launched apart, in any order, and meet by the name of a pair, of which one is the source and
 * sends, and any number are targets and receive.
 *
 * <pre>{@code
 * try (var job = Job.fromEnvironment("inference");
 *     var link = job.meet("policy", Role.TARGET, ofMinutes(5))) {
 *   var batch = link.batch()
 *       .into("l0.q_proj", shape, qkv.narrow(0, 0, 128), tp.layout(shard(0)))
 *       .register(ofMinutes(1));
 *   while (serving) {
 *     batch.receive(ofSeconds(30));
 *     engine.swap(batch.version());
 *   }
 * }
 * }</pre>
 *
 * <p>They meet at a store, which the environment variable {@code WINDLASS_MEETING} names:
 * HOST:PORT, with a token as for the start of a communicator, or a name, by which jobs of one user
 * find one another on one host. It belongs to the job that comes first, as long as rank 0's process
 * has its job open. Once jobs have met, they do without it. Where it is lost, the next meeting is
 * at a new one.
 *
 * <p>When a rank of either job is lost, or closes, their link ends, and each side may meet again:
 * the one that is started anew as the one that went on.
 */
public final class Job implements AutoCloseable {
  /** Goes up with every change of how jobs meet and what their ranks tell one another then. */
  private static final int PROTOCOL = 1;

  private static final Pattern NAME = Pattern.compile("[^\\p{Cntrl}/]+");
  private static final int LONGEST_NAME = 64;

  /** For what rank 0 tells the others of its job once a deadline has passed. */
  private static final Duration GRACE = Duration.ofSeconds(5);

  /** For an answer of a store that may be there no more. */
  private static final Duration PROBE = Duration.ofSeconds(2);

  private static final byte DONE = 0;
  private static final byte FAILED = 1;

  private final String name;
  private final Communicator communicator;
  private final boolean ownsCommunicator;

  /** The same ranks, for what this calls by itself. */
  private final Communicator ranks;

  private final CommunicatorOptions options;

  private final Means means;
  private final Cleaner.Cleanable cleanable;

  /** Tells this way to the store from all others, earlier ones of this job too. */
  private String instance;

  private volatile boolean closed;

  /** The thread whose call is in progress. */
  private final AtomicReference<Thread> caller = new AtomicReference<>();

  /** What outlives an object that nobody closes. */
  private static final class Means extends Leaks.Resource {
    /** On rank 0; null elsewhere. */
    private MeetingStore meeting;

    /** Null where there is none, or none any more. */
    private Store store;

    Means(String what) {
      super(what);
    }

    @Override
    protected void free() {
      if (store != null) {
        store.close();
      }
      if (meeting != null) {
        meeting.close();
      }
    }
  }

  private Job(
      String name,
      Communicator communicator,
      boolean ownsCommunicator,
      CommunicatorOptions options,
      Map<String, String> environment,
      Duration deadline) {
    this.name = name;
    this.communicator = communicator;
    this.ownsCommunicator = ownsCommunicator;
    this.options = options;
    Until until = until(deadline);
    ranks = communicator.subset(IntStream.range(0, communicator.size()).toArray());
    means = new Means("Job '" + name + "' of rank " + communicator.rank());
    cleanable = Leaks.watch(this, means);
    try {
      connect(environment, until);
    } catch (RuntimeException | Error e) {
      means.closed();
      cleanable.clean();
      try (ranks) {
        throw e;
      }
    }
  }

  /**
   * {@link #fromEnvironment(String, CommunicatorOptions, Duration)} with defaults and 60 seconds.
   */
  public static Job fromEnvironment(String name) {
    return fromEnvironment(name, CommunicatorOptions.defaults(), Duration.ofSeconds(60));
  }

  /**
   * Collective over the ranks that a launcher started: {@link Communicator#fromEnvironment}, and
   * the way to the store where jobs meet, which is opened where there is none.
   *
   * @param name of the job, at most 64 bytes without a slash; jobs of one pair have different names
   * @param deadline for all of it
   */
  public static Job fromEnvironment(
      String name, CommunicatorOptions options, Duration deadline) {
    requireName("name", name);
    long startNs = System.nanoTime();
    Communicator communicator = Communicator.fromEnvironment(options, deadline);
    try {
      long leftNs = Deadlines.nanos(deadline, WindlassException::of);
      leftNs = Math.max(1, leftNs - (System.nanoTime() - startNs));
      Duration left = Duration.ofNanos(leftNs);
      return new Job(name, communicator, true, options, System.getenv(), left);
    } catch (RuntimeException | Error e) {
      try (communicator) {
        throw e;
      }
    }
  }

  /**
   * Collective over {@code communicator}: the job of its ranks, which stays the caller's to close.
   *
   * @param deadline for all of it
   */
  public static Job of(String name, Communicator communicator, Duration deadline) {
    return of(name, communicator, System.getenv(), deadline);
  }

  /** The same with other variables than the process has. */
  static Job of(
      String name, Communicator communicator, Map<String, String> environment, Duration deadline) {
    requireName("name", name);
    Objects.requireNonNull(communicator, "communicator");
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(communicator.deadline());
    return new Job(name, communicator, false, options, environment, deadline);
  }

  private static void requireName(String what, String name) {
    Objects.requireNonNull(name, what);
    if (!NAME.matcher(name).matches()
        || name.getBytes(StandardCharsets.UTF_8).length > LONGEST_NAME) {
      throw new InvalidArgumentException(
          what
              + ": '"
              + name
              + "' is no name, which has 1 to "
              + LONGEST_NAME
              + " bytes of characters that print, and no slash");
    }
  }

  /** The name that it was given. */
  public String name() {
    return name;
  }

  /** That of the job's own ranks. */
  public Communicator communicator() {
    return communicator;
  }

  /** {@link #meet(String, Role, Layout, Duration)} without a layout: each tensor names its own. */
  public Link meet(String pair, Role role, Duration deadline) {
    return met(pair, role, null, null, until(deadline));
  }

  /**
   * Collective over this job's ranks: meets the other job of a pair, in whatever order they come.
   * Both compare the versions of what they run. The source meets a target that is not linked with
   * it, the one that has come if there is one; it calls this once for each.
   *
   * <p>Where it fails on a rank it fails on all of both jobs, and both may try again. It may be
   * called again when a link has ended, by the job that went on as by one that was started anew.
   *
   * @param pair by which the jobs find one another, at most 64 bytes without a slash
   * @param layout of tensors for which none is named, over ranks of this job; on the target without
   *     {@code Partial}
   * @param deadline for the other job to come, and for all of it
   * @return the link, of which the source sends and the target receives; layouts are by ranks as
   *     each job counts its own
   * @throws DeadlineExceededException if the other job has not come
   * @throws MismatchException if the jobs run different versions; it names both
   * @throws PeerLostException if a rank, or the store, was lost meanwhile
   */
  public Link meet(String pair, Role role, Layout layout, Duration deadline) {
    Objects.requireNonNull(layout, "layout");
    return met(pair, role, layout, null, until(deadline));
  }

  /**
   * The same.
   *
   * @param other the name of the job to meet; null for any
   */
  Link met(String pair, Role role, Layout layout, String other, Until until) {
    requireName("pair", pair);
    Objects.requireNonNull(role, "role");
    requireLayout(role, layout);
    String operation =
        "meet of pair '" + pair + "' as " + role.name().toLowerCase(Locale.ROOT);
    enter(operation);
    try {
      connect(null, until);
      Announcement own = announcement(layout);
      Pairing.Match match = match(pair, role, other, own, until);
      return join(pair, role, match, own, until);
    } catch (WindlassException e) {
      throw Link.within(operation, e);
    } finally {
      caller.set(null);
    }
  }

  private static Until until(Duration deadline) {
    return new Until(Deadlines.nanos(deadline, WindlassException::of));
  }

  /**
   * The jobs that follow this one by a pair, of which it is the source.
   *
   * @param binding adds to a batch what is sent; called for each follower that comes
   */
  public Followers followers(String pair, Consumer<LinkBatch> binding) {
    requireName("pair", pair);
    return new Followers(this, pair, binding);
  }

  /** Collective, as the source: the targets of a pair that wait for it. */
  List<String> open(String pair, Until until) {
    return open(pair, until, Pairing::open);
  }

  /** {@link #open}, once there is one. */
  List<String> awaitOpen(String pair, Until until) {
    return open(pair, until, Pairing::awaitOpen);
  }

  private List<String> open(
      String pair, Until until, Function<Pairing, List<String>> look) {
    enter("look for followers of pair '" + pair + "'");
    try {
      connect(null, until);
      byte[] names =
          led(
              until,
              () ->
                  String.join("/", look.apply(pairing(pair, announcement(null), until)))
                      .getBytes(StandardCharsets.UTF_8));
      return names.length == 0
          ? List.of()
          : List.of(new String(names, StandardCharsets.UTF_8).split("/"));
    } finally {
      caller.set(null);
    }
  }

  /** Throws where this job's own ranks can't go on. */
  void requireAlive() {
    ranks.failure().ifPresent(
        failure -> {
          throw failure;
        });
  }

  private Pairing pairing(String pair, Announcement own, Until until) {
    return new Pairing(means.store, pair, own, left(until), WindlassException::of);
  }

  private void requireLayout(Role role, Layout layout) {
    if (layout == null) {
      return;
    }
    if (layout.mesh().highestRank() >= communicator.size()) {
      throw new InvalidArgumentException(
          "meet: layout "
              + layout.qualified()
              + " holds rank "
              + layout.mesh().highestRank()
              + "; the job has ranks 0 to "
              + (communicator.size() - 1));
    }
    if (role == Role.TARGET && layout.hasPartial()) {
      throw new InvalidArgumentException(
          "meet: layout "
              + layout.qualified()
              + " holds Partial; a target holds values: use R or S");
    }
  }

  private void enter(String what) {
    Thread other = caller.compareAndExchange(null, Thread.currentThread());
    if (other != null) {
      throw new InvalidArgumentException(
          what
              + ": job '"
              + name
              + "' is in a call of thread \""
              + other.getName()
              + "\"; one thread at a time may call operations on it");
    }
    if (closed) {
      caller.set(null);
      throw new ClosedException(what + ": job '" + name + "' was closed");
    }
  }

  private Announcement announcement(Layout layout) {
    return new Announcement(
        versions(),
        name,
        instance,
        ProcessHandle.current().pid(),
        communicator.size(),
        layout == null ? "" : layout.qualified(),
        new Start.Config(
            options.firstSequence(),
            options.cores(),
            options.blocks(),
            Deadlines.nanos(options.deadline(), WindlassException::of),
            options.adjustThreads()));
  }

  /** Of all that two jobs have to have alike. */
  private static String versions() {
    return "windlass "
        + Native.wl_version()
        + ", ABI "
        + Native.wl_abi_version()
        + ", meeting protocol "
        + PROTOCOL
        + ", plan "
        + Plan.VERSION
        + ", offer "
        + Offer.FORMAT;
  }

  private Pairing.Match match(
      String pair, Role role, String other, Announcement own, Until until) {
    byte[] told =
        led(
            until,
            () -> {
              Pairing pairing = pairing(pair, own, until);
              Pairing.Match match =
                  role == Role.SOURCE ? pairing.source(other) : pairing.target();
              return written(
                  out -> {
                    out.writeLong(match.meeting());
                    out.writeUTF(match.guard());
                    out.write(match.other().toBytes());
                  });
            });
    return read(
        told,
        in ->
            new Pairing.Match(
                in.readLong(),
                in.readUTF(),
                Announcement.of(in.readAllBytes(), versions(), WindlassException::of)));
  }

  /** Makes the link, with the ranks of the other job. */
  private Link join(
      String pair, Role role, Pairing.Match match, Announcement own, Until until) {
    boolean sends = role == Role.SOURCE;
    Announcement source = sends ? own : match.other();
    Announcement target = sends ? match.other() : own;
    String whose = whose(source, target);
    Communicator side = ranks.subset(IntStream.range(0, ranks.size()).toArray());
    try {
      long handle =
          Start.join(
              means.store,
              "meeting/" + match.meeting() + "/",
              match.guard(),
              List.of((sends ? 0 : source.ranks()) + ranks.rank()),
              source.ranks() + target.ranks(),
              source.options(),
              left(until),
              WindlassException::of)[0];
      Communicator both = (Communicator) Access.ADOPTION.of(communicator).of(handle, "meet");
      return Link.between(
          pair,
          whose,
          both,
          side,
          source.ranks(),
          layout(source),
          layout(target),
          left(until));
    } catch (WindlassException e) {
      side.close();
      throw WindlassException.of(
          e.code().number(), e.getMessage() + whose, e, e.operation(), e.culprits());
    } catch (RuntimeException | Error e) {
      side.close();
      throw e;
    }
  }

  /** Null where the job has named none. */
  private static Layout layout(Announcement job) {
    return job.layout().isEmpty() ? null : Layout.parse(job.layout());
  }

  /** What messages that name ranks of both say of them. */
  private static String whose(Announcement source, Announcement target) {
    return " (" + ranks(0, source) + ", " + ranks(source.ranks(), target) + ")";
  }

  private static String ranks(int first, Announcement of) {
    int last = first + of.ranks() - 1;
    return (first == last ? "rank " + first + " is" : "ranks " + first + " to " + last + " are")
        + " job '"
        + of.job()
        + "'";
  }

  /**
   * Collective: sees to it that every rank has a way into the store.
   *
   * @param environment what says where it is, at the first time; then null
   */
  private void connect(Map<String, String> environment, Until until) {
    boolean isLost = means.store == null || isLost(means.store, until);
    boolean anyLost = false;
    for (long[] each : Gathered.words(ranks, until, Native.WL_OP_LINK, isLost ? 1 : 0)) {
      anyLost |= each[0] == 1;
    }
    if (!anyLost) {
      return;
    }
    byte[] told =
        led(
            until,
            () -> {
              if (means.meeting == null) {
                means.meeting =
                    new MeetingStore(environment, Native.wl_version(), WindlassException::of);
              }
              return written(out -> write(out, opened(until)));
            });
    WindlassException failure = null;
    if (communicator.rank() > 0) {
      try {
        MeetingFile.Place place = read(told, Job::place);
        drop();
        means.store = connected(place, left(until));
      } catch (WindlassException e) {
        failure = e;
      }
    }
    together(failure, until);
  }

  private static boolean isLost(Store store, Until until) {
    try {
      store.get("meetings", Duration.ofNanos(Math.min(until.leftNs(), PROBE.toNanos())));
      return false;
    } catch (PeerLostException | ClosedException | DeadlineExceededException e) {
      return true;
    }
  }

  /** Where the store is that rank 0 has found or opened, and has a way into. */
  private MeetingFile.Place opened(Until until) {
    while (true) {
      MeetingFile.Place place = means.meeting.find(left(until));
      Duration once = Duration.ofNanos(Math.min(until.leftNs(), PROBE.toNanos()));
      try {
        drop();
        means.store = connected(place, once);
        return place;
      } catch (WindlassException e) {
        boolean mayComeBack =
            e instanceof PeerLostException || e instanceof DeadlineExceededException;
        if (!mayComeBack || until.isOver()) {
          throw e;
        }
      }
    }
  }

  private Store connected(MeetingFile.Place place, Duration deadline) {
    // A way that was lost may count as one that is there, for as long as its end takes to arrive.
    instance = UUID.randomUUID().toString();
    Member member =
        new Member(
            name + "/" + instance, communicator.rank(), communicator.size(), Native.wl_version());
    return SocketStore.connect(
        place.address(), place.token(), member, deadline, WindlassException::of);
  }

  private void drop() {
    if (means.store != null) {
      means.store.close();
      means.store = null;
    }
  }

  private static void write(DataOutputStream out, MeetingFile.Place place) throws IOException {
    byte[] host = place.address().getAddress().getAddress();
    out.writeInt(host.length);
    out.write(host);
    out.writeInt(place.address().getPort());
    out.writeUTF(place.token().digits());
  }

  private static MeetingFile.Place place(DataInputStream in) throws IOException {
    InetAddress host = InetAddress.getByAddress(in.readNBytes(in.readInt()));
    InetSocketAddress address = new InetSocketAddress(host, in.readInt());
    return new MeetingFile.Place(
        address, Token.parse(in.readUTF(), "what rank 0 told", WindlassException::of));
  }

  /** Collective: throws on every rank where one has a failure. */
  private void together(WindlassException failure, Until until) {
    long failed = failure == null ? 0 : 1;
    long[][] all = Gathered.words(ranks, telling(until), Native.WL_OP_LINK, failed);
    if (failure != null) {
      throw failure;
    }
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] != 0) {
        throw new AbortedException(
            "rank " + rank + " of job '" + name + "' finds no way to the store; see what it says",
            null,
            "",
            List.of(rank));
      }
    }
  }

  /**
   * Collective: what {@code step} gives on rank 0, on every rank; where it throws, all do. Ranks
   * come within what is left, then wait for rank 0, whose step keeps to it too.
   */
  private byte[] led(Until until, Supplier<byte[]> step) {
    until.on(ranks).barrier();
    byte[] own = new byte[0];
    RuntimeException failure = null;
    if (ranks.rank() == 0) {
      try {
        byte[] made = step.get();
        own =
            written(
                out -> {
                  out.writeByte(DONE);
                  out.write(made);
                });
      } catch (WindlassException e) {
        failure = e;
        own =
            written(
                out -> {
                  out.writeByte(FAILED);
                  out.writeInt(e.code().number());
                  byte[] text = String.valueOf(e.getMessage()).getBytes(StandardCharsets.UTF_8);
                  out.write(text);
                });
      } catch (RuntimeException | Error e) {
        ranks.abort("rank 0 of job '" + name + "' has failed: " + e);
        throw e;
      }
    }
    byte[] told = Gathered.bytes(ranks, telling(until), Native.WL_OP_LINK, own)[0];
    if (failure != null) {
      throw failure;
    }
    return read(
        told,
        in -> {
          if (in.readByte() == DONE) {
            return in.readAllBytes();
          }
          int code = in.readInt();
          String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
          throw WindlassException.of(code, text, null, "", List.of());
        });
  }

  private static Until telling(Until until) {
    return new Until(Math.min(until.leftNs(), Long.MAX_VALUE / 4) + GRACE.toNanos());
  }

  private static Duration left(Until until) {
    return Duration.ofNanos(until.leftNs());
  }

  @FunctionalInterface
  private interface Writing {
    void to(DataOutputStream out) throws IOException;
  }

  @FunctionalInterface
  private interface Reading<T> {
    T of(DataInputStream in) throws IOException;
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

  private static <T> T read(byte[] bytes, Reading<T> reading) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return reading.of(in);
    } catch (IOException e) {
      throw new MismatchException("what rank 0 told can't be read: " + e.getMessage(), e);
    }
  }

  /**
   * Lets go of the store, which others lose where this process has it, and of the communicator
   * where the job made it. Links go on. Idempotent.
   */
  @Override
  public void close() {
    closed = true;
    means.closed();
    cleanable.clean();
    try {
      ranks.close();
    } finally {
      if (ownsCommunicator) {
        communicator.close();
      }
    }
  }

  @Override
  public String toString() {
    return "Job '" + name + "', " + communicator;
  }
}
