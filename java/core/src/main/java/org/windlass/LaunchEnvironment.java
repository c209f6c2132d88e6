// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.StringJoiner;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.StoreAddress;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Token;

/**
 * What environment variables say of a process that a launcher started: which rank it is, of how
 * many, where the ranks meet, and where the token is that proves that they belong together. A
 * variable that is empty counts as not set.
 *
 * <p>The first launcher whose variables are there counts, since one may run inside another's
 * allocation. What {@code WINDLASS_RENDEZVOUS}, {@code WINDLASS_JOB}, {@code WINDLASS_TOKEN_FILE}
 * and {@code WINDLASS_TOKEN} say holds under any.
 */
public final class LaunchEnvironment {
  /** Those that start a process for each rank, in the order in which their variables count. */
  public enum Launcher {
    /** {@code windlass run}, or who sets {@code WINDLASS_RANK} and {@code WINDLASS_WORLD_SIZE}. */
    WINDLASS(
        "windlass run, or by hand",
        "WINDLASS_RANK",
        "WINDLASS_WORLD_SIZE",
        "WINDLASS_LOCAL_RANK",
        "WINDLASS_LOCAL_WORLD_SIZE",
        "set both, or neither"),
    /** {@code torchrun}, or who sets {@code RANK} and {@code WORLD_SIZE} as it does. */
    TORCHRUN(
        "torchrun",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "set both, as torchrun does, or neither"),
    /** {@code mpirun} of Open MPI. */
    OPEN_MPI(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "start it with mpirun, which sets both"),
    /** A PMIx server. It tells a rank alone, and Slurm's variables the rest where it is Slurm's. */
    PMIX(
        "PMIx",
        "PMIX_RANK",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        null,
        "set WINDLASS_RANK and WINDLASS_WORLD_SIZE, since PMIx sets no number of ranks"),
    /** {@code srun}. */
    SLURM(
        "Slurm",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        null,
        "start it with srun, which sets both");

    private final String label;
    private final String rank;
    private final String size;
    private final String localRank;

    /** Null where the launcher sets none. */
    private final String localSize;

    /** What to do where only one of {@code rank} and {@code size} is set. */
    private final String cure;

    Launcher(
        String label, String rank, String size, String localRank, String localSize, String cure) {
      this.label = label;
      this.rank = rank;
      this.size = size;
      this.localRank = localRank;
      this.localSize = localSize;
      this.cure = cure;
    }

    /** An allocation of Slurm has a size also where no rank runs. */
    private boolean hasLeftTracesIn(LaunchVariables variables) {
      return variables.isSet(rank) || !isSizeOfSlurm() && variables.isSet(size);
    }

    private boolean isSizeOfSlurm() {
      return size.startsWith("SLURM_");
    }

    /** The variable that says how many ranks there are: a step of Slurm may have fewer than the job. */
    private String size(LaunchVariables variables) {
      return isSizeOfSlurm() && variables.isSet(SLURM_STEP_SIZE) ? SLURM_STEP_SIZE : size;
    }

    /** Such as {@code Open MPI}. */
    @Override
    public String toString() {
      return label;
    }
  }

  static final String RENDEZVOUS = "WINDLASS_RENDEZVOUS";

  /** Where who launched this process has a store; it counts where ranks are to meet there. */
  static final String LAUNCHER_STORE = "WINDLASS_LAUNCHER_STORE";

  private static final String JOB = "WINDLASS_JOB";
  private static final String TOKEN_FILE = Token.FILE_VARIABLE;
  private static final String TOKEN = Token.VARIABLE;
  private static final String SLURM_STEP = "SLURM_STEP_ID";
  private static final String SLURM_STEP_SIZE = "SLURM_STEP_NUM_TASKS";
  static final String MASTER_ADDRESS = "MASTER_ADDR";
  private static final String MASTER_PORT = "MASTER_PORT";

  /** Job ids of launchers are texts of their own making. */
  private static final Pattern JOB_ID = Pattern.compile("\\P{Cntrl}{1,255}");

  private final Launcher launcher;
  private final int rank;
  private final int size;
  private final OptionalInt localRank;
  private final OptionalInt localSize;

  /** What another launcher says of a process that this one has be alone. */
  private final Optional<String> others;

  private final Optional<String> job;
  private final Optional<InetSocketAddress> rendezvous;
  private final boolean launcherHasStore;
  private final Optional<String> store;
  private final Optional<String> tokenVariable;
  private final Host host;

  private LaunchEnvironment(LaunchVariables variables, Launcher launcher, Host host) {
    this.launcher = launcher;
    this.host = host;
    variables.requireBoth(launcher.rank, launcher.size(variables), launcher.cure);
    requireOneRank(variables, launcher);
    size = variables.number(launcher.size(variables), 1, Native.WL_MAX_RANKS);
    rank = below(variables, launcher.rank, size, launcher.size(variables));
    requireStep(variables, launcher, size);
    localSize = localSize(variables, launcher, size);
    localRank = localRank(variables, launcher, localSize, size);
    others = others(variables, launcher, size);
    tokenVariable = tokenVariable(variables);
    store = store(variables);
    Optional<InetSocketAddress> told =
        store.isPresent() ? Optional.empty() : rendezvous(variables);
    boolean isMaster = !variables.isSet(RENDEZVOUS);
    // MASTER_ADDR is there for any program that torchrun starts.
    rendezvous = told.filter(at -> !isMaster || tokenVariable.isPresent());
    launcherHasStore =
        variables.isSet(RENDEZVOUS)
            && variables.get(RENDEZVOUS).equals(variables.get(LAUNCHER_STORE));
    job =
        job(variables, launcher)
            .or(
                () ->
                    told.filter(at -> isMaster && launcher == Launcher.TORCHRUN)
                        .map(at -> at.getHostString() + ":" + variables.get(MASTER_PORT)));
  }

  /**
   * What these variables say, as {@link System#getenv()} has them; empty where no launcher set any.
   *
   * @throws InvalidArgumentException if one is no number, out of range, at odds with another or
   *     without one that it needs; it names the variables
   */
  public static Optional<LaunchEnvironment> of(Map<String, String> variables) {
    Map<String, String> copy = Copies.map(variables, "variables");
    LaunchVariables all = new LaunchVariables(copy);
    Host host = Host.of(copy, WindlassException::of);
    for (Launcher launcher : Launcher.values()) {
      if (launcher.hasLeftTracesIn(all)) {
        return Optional.of(new LaunchEnvironment(all, launcher, host));
      }
    }
    return Optional.empty();
  }

  /**
   * Reads the token that these variables give, which {@link #of} leaves to those who use it.
   *
   * @return the variable that it comes from; empty where none is set
   * @throws InvalidArgumentException if both are set, or what is there is no token
   * @throws ResourceException if its file can't be read, or is open to others
   */
  public static Optional<String> checkedToken(Map<String, String> variables) {
    Map<String, String> copy = Copies.map(variables, "variables");
    return Token.fromEnvironment(copy, WindlassException::of)
        .flatMap(token -> tokenVariable(new LaunchVariables(copy)));
  }

  private static Optional<String> others(
      LaunchVariables variables, Launcher launcher, int size) {
    if (size > 1 || launcher == Launcher.WINDLASS) {
      return Optional.empty();
    }
    for (Launcher other : Launcher.values()) {
      String told = other.size(variables);
      boolean isThere =
          other != launcher
              && other != Launcher.PMIX
              && variables.isSet(other.rank)
              && variables.isSet(told);
      if (isThere
          && variables.get(told).matches("[0-9]{1,9}")
          && Integer.parseInt(variables.get(told)) > 1) {
        return Optional.of(
            launcher.rank + " and " + launcher.size(variables) + " say rank 0 of 1, and count; "
                + other.rank + " and " + told + " say rank "
                + Texts.printable(variables.get(other.rank)) + " of " + variables.get(told)
                + ": unset those that are left from another start, or set WINDLASS_RANK and"
                + " WINDLASS_WORLD_SIZE");
      }
    }
    return Optional.empty();
  }

  /** What another launcher's variables say, where by those that count there is no other rank. */
  Optional<String> others() {
    return others;
  }

  /** What started this process. */
  public Launcher launcher() {
    return launcher;
  }

  /** This process's rank, from 0 to {@code size() - 1}. */
  public int rank() {
    return rank;
  }

  /** The number of ranks, on all hosts. */
  public int size() {
    return size;
  }

  /** Its number among those of its host; empty where the launcher does not tell. */
  public OptionalInt localRank() {
    return localRank;
  }

  /** The number of ranks on its host; empty where the launcher does not tell. */
  public OptionalInt localSize() {
    return localSize;
  }

  /**
   * What tells this job from others that run at the same time: {@code WINDLASS_JOB}, else the
   * launcher's own id, or torchrun's {@code MASTER_ADDR:MASTER_PORT} where it was given none; empty
   * where there is none of them.
   */
  public Optional<String> job() {
    return job;
  }

  /**
   * Where the ranks meet, not resolved: {@code WINDLASS_RENDEZVOUS} (HOST:PORT); else, where a
   * token is set, the host {@code MASTER_ADDR} and the port after {@code MASTER_PORT}, or the one
   * before where that is the last, since torchrun's agent may hold {@code MASTER_PORT} itself.
   *
   * <p>Where there is neither this nor a {@link #tokenVariable}, the ranks meet on one host and as
   * one user: rank 0 tells the others of an address of that host and of a token of its own in a
   * file that only this user can reach, and that {@link #job} names.
   */
  public Optional<InetSocketAddress> rendezvous() {
    return rendezvous;
  }

  /**
   * Whether the store at {@link #rendezvous} is that of {@code windlass run}, or of another {@link
   * LaunchStore}, as {@code WINDLASS_LAUNCHER_STORE} says, which has the same address then. Rank 0's
   * process opens it else.
   */
  public boolean launcherHasStore() {
    return launcherHasStore;
  }

  /**
   * The address of a store at which the ranks meet and that none of them opens, where {@code
   * WINDLASS_RENDEZVOUS} has one, such as {@code etcd://10.0.0.1:2379/windlass}; {@link
   * #rendezvous} is empty then. A {@link #tokenVariable}, where there is one, tells {@link #job}
   * from others of its name there.
   */
  public Optional<String> store() {
    return store;
  }

  /**
   * The variable that the token comes from: {@code WINDLASS_TOKEN}, which is its 64 hexadecimal
   * digits, or {@code WINDLASS_TOKEN_FILE}, the name of a file of them; empty where neither is set.
   * What it is worth is seen where it is used.
   */
  public Optional<String> tokenVariable() {
    return tokenVariable;
  }

  /** One line of it all; no part of the token. */
  @Override
  public String toString() {
    StringJoiner text = new StringJoiner(", ", launcher + ": ", "");
    text.add("rank " + rank + " of " + size);
    localRank.ifPresent(local -> text.add("local rank " + local));
    localSize.ifPresent(local -> text.add(local + " on this host"));
    if (!host.name().isEmpty()) {
      text.add("host " + host.name());
    }
    job.ifPresent(id -> text.add("job " + id));
    return text.add(meeting()).toString() + others.map(told -> "; " + told).orElse("");
  }

  private String meeting() {
    if (store.isPresent()) {
      return "rendezvous "
          + store.get()
          + tokenVariable
              .map(name -> ", token from " + name)
              .orElse(job.isPresent() || size == 1 ? "" : ", no job or token; set " + JOB);
    }
    if (rendezvous.isEmpty() && tokenVariable.isEmpty()) {
      return size == 1
          ? "no other rank to meet"
          : job.isPresent()
              ? "ranks meet by a file of this host"
              : "no job, rendezvous or token, so that ranks can't meet; set "
                  + JOB
                  + " to a name of the job's own";
    }
    return rendezvous
            .map(at -> "rendezvous " + at.getHostString() + " port " + at.getPort())
            .map(at -> launcherHasStore ? at + ", which the launcher has" : at)
            .orElse("no rendezvous")
        + ", "
        + tokenVariable.map(name -> "token from " + name).orElse("no token");
  }

  /** Where two launchers speak for this process, each names the same rank. */
  private static void requireOneRank(LaunchVariables variables, Launcher launcher) {
    String other = null;
    if (launcher == Launcher.PMIX) {
      other = Launcher.SLURM.rank;
      variables.requireBoth(launcher.rank, other, launcher.cure);
    } else if (launcher == Launcher.WINDLASS && variables.isSet(Launcher.TORCHRUN.rank)) {
      other = Launcher.TORCHRUN.rank;
    }
    if (other != null && !variables.get(launcher.rank).equals(variables.get(other))) {
      throw new InvalidArgumentException(
          variables.quoted(launcher.rank, other)
              + ": one launcher runs inside another; unset the variables of the one not meant");
    }
  }

  /** A batch script of Slurm has a rank and a size too, and runs once. */
  private static void requireStep(LaunchVariables variables, Launcher launcher, int size) {
    if (launcher == Launcher.SLURM && size > 1 && !variables.isSet(SLURM_STEP)) {
      throw new InvalidArgumentException(
          variables.quoted(launcher.rank, launcher.size(variables))
              + ", and "
              + SLURM_STEP
              + " is not set, as in a batch script, which is one process; start it with srun");
    }
  }

  private static int below(LaunchVariables variables, String name, int count, String counter) {
    int value = variables.number(name, 0, Native.WL_MAX_RANKS - 1);
    if (value >= count) {
      throw new InvalidArgumentException(
          variables.quoted(name, counter)
              + "; a rank lies below the number of ranks; correct what sets them");
    }
    return value;
  }

  private static OptionalInt localSize(LaunchVariables variables, Launcher launcher, int size) {
    if (!variables.isSet(launcher.localSize)) {
      return OptionalInt.empty();
    }
    variables.requireBoth(launcher.localSize, launcher.localRank, "set both, or neither");
    int local = variables.number(launcher.localSize, 1, Native.WL_MAX_RANKS);
    if (local > size) {
      throw new InvalidArgumentException(
          variables.quoted(launcher.localSize, launcher.size(variables))
              + "; a host has no more ranks than there are; correct what sets them");
    }
    return OptionalInt.of(local);
  }

  private static OptionalInt localRank(
      LaunchVariables variables, Launcher launcher, OptionalInt localSize, int size) {
    if (!variables.isSet(launcher.localRank)) {
      return OptionalInt.empty();
    }
    return OptionalInt.of(
        localSize.isPresent()
            ? below(variables, launcher.localRank, localSize.getAsInt(), launcher.localSize)
            : below(variables, launcher.localRank, size, launcher.size(variables)));
  }

  private static Optional<String> job(LaunchVariables variables, Launcher launcher) {
    if (variables.isSet(JOB)) {
      return job(variables, JOB);
    }
    return switch (launcher) {
      case WINDLASS -> Optional.empty();
      // torchrun calls a job so that was given no id.
      case TORCHRUN -> job(variables, "TORCHELASTIC_RUN_ID").filter(id -> !id.equals("none"));
      case OPEN_MPI, PMIX -> job(variables, "PMIX_NAMESPACE");
      case SLURM ->
          // Each srun of an allocation is a step of its own.
          job(variables, "SLURM_JOB_ID")
              .map(id -> id + job(variables, SLURM_STEP).map(step -> "." + step).orElse(""));
    };
  }

  private static Optional<String> job(LaunchVariables variables, String name) {
    if (!variables.isSet(name)) {
      return Optional.empty();
    }
    String id = variables.get(name);
    if (!JOB_ID.matcher(id).matches()) {
      throw new InvalidArgumentException(
          name
              + " has "
              + id.length()
              + " characters, or some that do not print; a job's id has at most 255 that do; set "
              + JOB
              + " to one");
    }
    return Optional.of(id);
  }

  private static Optional<String> store(LaunchVariables variables) {
    return variables.isSet(RENDEZVOUS)
        ? StoreAddress.parse(RENDEZVOUS, variables.get(RENDEZVOUS), WindlassException::of)
        : Optional.empty();
  }

  private static Optional<InetSocketAddress> rendezvous(LaunchVariables variables) {
    if (variables.isSet(RENDEZVOUS)) {
      return Optional.of(
          HostAndPort.parse(
              RENDEZVOUS,
              variables.get(RENDEZVOUS),
              ", or the address of a store, such as etcd://127.0.0.1:2379/windlass",
              WindlassException::of));
    }
    if (!variables.isSet(MASTER_ADDRESS) && !variables.isSet(MASTER_PORT)) {
      return Optional.empty();
    }
    variables.requireBoth(MASTER_ADDRESS, MASTER_PORT, "set both, or " + RENDEZVOUS);
    int port = variables.number(MASTER_PORT, 1, HostAndPort.LAST_PORT);
    String host = variables.get(MASTER_ADDRESS);
    return Optional.of(
        HostAndPort.of(
            MASTER_ADDRESS,
            host,
            host,
            port < HostAndPort.LAST_PORT ? port + 1 : port - 1,
            WindlassException::of));
  }

  private static Optional<String> tokenVariable(LaunchVariables variables) {
    if (variables.isSet(TOKEN) && variables.isSet(TOKEN_FILE)) {
      throw new InvalidArgumentException(
          TOKEN_FILE + " and " + TOKEN + " are both set, and a job has one token; unset either");
    }
    return Stream.of(TOKEN, TOKEN_FILE).filter(variables::isSet).findFirst();
  }
}
