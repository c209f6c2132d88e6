// SPDX-License-Identifier: Apache-2.0
package org.windlass.launch;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.StringJoiner;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Copies;
import org.windlass.internal.Log;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.StoreProviders;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Token;

/**
 * Reads the environment variables of a process that a launcher started. They give its rank, the
 * number of ranks, the rendezvous of the ranks, and the source of their token. An empty variable
 * counts as not set.
 *
 * <p>One launcher may run inside another one's allocation. The first launcher whose variables are
 * set counts. {@link Launcher} lists launchers in this order. Without a launcher, set {@code
 * WINDLASS_RANK}, {@code WINDLASS_WORLD_SIZE} and {@code WINDLASS_JOB} for each process. {@code
 * WINDLASS_RENDEZVOUS}, {@code WINDLASS_JOB}, {@code WINDLASS_TOKEN_FILE} and {@code
 * WINDLASS_TOKEN} count under any launcher.
 */
public final class LaunchEnvironment {
  /** Launchers that start a process for each rank, in the order in which their variables count. */
  public enum Launcher {
    /**
     * {@code windlass run}, or {@code WINDLASS_RANK} and {@code WINDLASS_WORLD_SIZE} set by the
     * user.
     */
    WINDLASS(
        "windlass run, or by hand",
        "WINDLASS_RANK WINDLASS_WORLD_SIZE WINDLASS_LOCAL_RANK WINDLASS_LOCAL_WORLD_SIZE",
        "set both, or neither"),
    /** {@code torchrun}, or its variables {@code RANK} and {@code WORLD_SIZE} set by the user. */
    TORCHRUN(
        "torchrun",
        "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE",
        "set both, as torchrun does, or neither"),
    /** Open MPI's {@code mpirun}. */
    OPEN_MPI(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE"
            + " OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE",
        "start it with mpirun, which sets both"),
    /** A PMIx server. It sets only the rank; if it is Slurm's, Slurm sets the other variables. */
    PMIX(
        "PMIx",
        "PMIX_RANK SLURM_NTASKS SLURM_LOCALID",
        "set WINDLASS_RANK and WINDLASS_WORLD_SIZE, since PMIx sets no number of ranks"),
    /** Slurm's {@code srun}. */
    SLURM(
        "Slurm", "SLURM_PROCID SLURM_NTASKS SLURM_LOCALID", "start it with srun, which sets both");

    private final String label;
    private final String rank;
    private final String size;
    private final String localRank;
    private final @Nullable String localSize; // null if the launcher does not set it

    /** Advice to the user if only one of {@code rank} and {@code size} is set. */
    private final String cure;

    /** Creates a launcher. {@code names} lists its variables in the order of the fields. */
    Launcher(String label, String names, String cure) {
      String[] each = names.split(" ");
      this.label = label;
      rank = each[0];
      size = each[1];
      localRank = each[2];
      localSize = each.length > 3 ? each[3] : null;
      this.cure = cure;
    }

    /**
     * Returns true if this launcher started the process. In a Slurm allocation that runs no ranks,
     * the size is set too, so for Slurm only the rank counts.
     */
    private boolean isIn(LaunchVariables variables) {
      return variables.isSet(rank) || !size.equals(SLURM_SIZE) && variables.isSet(size);
    }

    /**
     * Name of the variable with the number of ranks. A Slurm step may have fewer ranks than its
     * job.
     */
    private String size(LaunchVariables variables) {
      boolean isStep = size.equals(SLURM_SIZE) && variables.isSet(SLURM_STEP_SIZE);
      return isStep ? SLURM_STEP_SIZE : size;
    }

    /** Returns the launcher's name, such as {@code Open MPI}. */
    @Override
    public String toString() {
      return label;
    }
  }

  static final String RENDEZVOUS = "WINDLASS_RENDEZVOUS";

  /**
   * Variable with the address of the launcher's store, read only if the ranks find each other
   * there.
   */
  static final String LAUNCHER_STORE = "WINDLASS_LAUNCHER_STORE";

  static final String MASTER_ADDRESS = "MASTER_ADDR";
  private static final String MASTER_PORT = "MASTER_PORT";
  private static final String JOB = "WINDLASS_JOB";
  private static final String SLURM_SIZE = "SLURM_NTASKS";
  private static final String SLURM_STEP = "SLURM_STEP_ID";
  private static final String SLURM_STEP_SIZE = "SLURM_STEP_NUM_TASKS";
  private static final Pattern JOB_ID = Pattern.compile("\\P{Cntrl}{1,255}");

  private final LaunchVariables variables;
  private final Launcher launcher;
  private final String sizeName;
  private final int rank;
  private final int size;

  private LaunchEnvironment(LaunchVariables variables, Launcher launcher) {
    this.variables = variables;
    this.launcher = launcher;
    sizeName = launcher.size(variables);
    variables.requireBoth(launcher.rank, sizeName, launcher.cure);
    requireOneRank();
    size = variables.count(sizeName);
    rank = variables.rank(launcher.rank, sizeName);
    requireStep();
    // Each of these calls parses variables, and throws here if they are wrong.
    localSize();
    localRank();
    rendezvous();
    job();
  }

  /**
   * Parses variables such as {@link System#getenv()}. Empty if no launcher has set any.
   *
   * @throws InvalidArgumentException if a variable is malformed, out of range, contradicts another
   *     one or lacks another one; the message names them
   */
  public static Optional<LaunchEnvironment> of(Map<String, String> variables) {
    Map<String, String> copy = Copies.map(variables, "variables");
    LaunchVariables all = new LaunchVariables(copy);
    Host.of(copy); // only checks its variables
    return Stream.of(Launcher.values())
        .filter(launcher -> launcher.isIn(all))
        .findFirst()
        .map(launcher -> new LaunchEnvironment(all, launcher));
  }

  /**
   * Parses the variables as {@link #of} does. Logs a warning about variables of another launcher
   * that has several ranks. For packages of Windlass.
   *
   * @throws InvalidArgumentException also if no launcher has set any
   * @hidden
   */
  public static LaunchEnvironment required(Map<String, String> variables) {
    LaunchEnvironment found =
        of(variables)
            .orElseThrow(
                () -> new InvalidArgumentException("fromEnvironment: " + noLauncher(variables)));
    found.others().ifPresent(told -> Log.warn(told));
    return found;
  }

  private static String noLauncher(Map<String, String> variables) {
    if (new LaunchVariables(variables).isSet("PMI_RANK")) {
      return "only PMI_RANK is set, as MPICH's mpiexec does, which is not supported; have each rank"
          + " set WINDLASS_RANK to $PMI_RANK, WINDLASS_WORLD_SIZE to $PMI_SIZE and WINDLASS_JOB to"
          + " a name of the job's own, or start it with windlass run or Open MPI's mpirun";
    }
    return "no launcher has set its variables; start the program with windlass run, Open MPI's"
        + " mpirun, torchrun or srun, or set WINDLASS_RANK, WINDLASS_WORLD_SIZE and WINDLASS_JOB, a"
        + " name of the job's own";
  }

  /**
   * Reads the token that the variables give. {@link #of} does not read it.
   *
   * @return the name of the variable; empty if none is set
   * @throws InvalidArgumentException if both variables are set, or the token is malformed
   * @throws ResourceException if the file can't be read, or other users may access it
   */
  public static Optional<String> checkedToken(Map<String, String> variables) {
    Map<String, String> copy = Copies.map(variables, "variables");
    return Token.fromEnvironment(copy)
        .flatMap(token -> tokenVariable(new LaunchVariables(copy)));
  }

  /**
   * Returns a warning if another launcher's variables say that there are several ranks, but this
   * launcher's say one.
   */
  Optional<String> others() {
    if (size > 1 || launcher == Launcher.WINDLASS) {
      return Optional.empty();
    }
    return Stream.of(Launcher.values())
        .filter(other -> other != launcher && other != Launcher.PMIX)
        .filter(other -> variables.isSet(other.rank) && hasSeveralRanks(other))
        .findFirst()
        .map(
            other ->
                launcher.rank + " and " + sizeName + " say rank 0 of 1, and count; "
                    + other.rank + " and " + other.size(variables) + " say rank "
                    + Texts.printable(variables.get(other.rank)) + " of "
                    + variables.get(other.size(variables))
                    + ": unset those that are left from another start, or set WINDLASS_RANK and"
                    + " WINDLASS_WORLD_SIZE");
  }

  private boolean hasSeveralRanks(Launcher other) {
    String count = variables.value(other.size(variables)).orElse("");
    return count.matches("[0-9]{1,9}") && Integer.parseInt(count) > 1;
  }

  /** Returns the launcher that started this process. */
  public Launcher launcher() {
    return launcher;
  }

  /** Returns this process's rank, from 0 to {@code size() - 1}. */
  public int rank() {
    return rank;
  }

  /** Returns the number of ranks on all hosts. */
  public int size() {
    return size;
  }

  /**
   * Returns this rank's number among the ranks of its host. Empty if the launcher does not set it.
   */
  public OptionalInt localRank() {
    String localSize = launcher.localSize;
    String counter = localSize != null && variables.isSet(localSize) ? localSize : sizeName;
    return variables.isSet(launcher.localRank)
        ? OptionalInt.of(variables.rank(launcher.localRank, counter))
        : OptionalInt.empty();
  }

  /** Returns the number of ranks on this rank's host. Empty if the launcher does not set it. */
  public OptionalInt localSize() {
    String localSize = launcher.localSize;
    if (localSize == null || !variables.isSet(localSize)) {
      return OptionalInt.empty();
    }
    variables.requireBoth(localSize, launcher.localRank, "set both, or neither");
    int local = variables.count(localSize);
    if (local > size) {
      throw new InvalidArgumentException(
          variables.quoted(localSize, sizeName)
              + "; a host can't have more ranks than the job; correct the variables");
    }
    return OptionalInt.of(local);
  }

  /**
   * Returns the name that distinguishes this job from others that run at the same time. The name is
   * {@code WINDLASS_JOB}, or the launcher's id, or torchrun's {@code MASTER_ADDR:MASTER_PORT}.
   * Empty if none is set. If the launcher sets no id, for example if you set {@code RANK} and
   * {@code WORLD_SIZE} yourself, set {@code WINDLASS_JOB}.
   */
  public Optional<String> job() {
    return jobFrom(JOB).or(this::launcherJob);
  }

  private Optional<String> launcherJob() {
    return switch (launcher) {
      case WINDLASS -> Optional.empty();
      // The id of a torchrun job without an id is "none".
      case TORCHRUN ->
          jobFrom("TORCHELASTIC_RUN_ID").filter(id -> !id.equals("none")).or(this::masterName);
      case OPEN_MPI, PMIX -> jobFrom("PMIX_NAMESPACE");
      // Each srun of an allocation is a separate step.
      case SLURM ->
          jobFrom("SLURM_JOB_ID")
              .map(id -> id + jobFrom(SLURM_STEP).map(step -> "." + step).orElse(""));
    };
  }

  private Optional<String> jobFrom(String name) {
    Optional<String> id = variables.value(name);
    if (id.isPresent() && !JOB_ID.matcher(id.get()).matches()) {
      throw new InvalidArgumentException(
          name + " has " + id.get().length() + " characters, or some that do not print; a job's id"
              + " has at most 255 that do; set " + JOB + " to one");
    }
    return id;
  }

  private Optional<String> masterName() {
    return address()
        .filter(at -> !variables.isSet(RENDEZVOUS))
        .map(at -> at.getHostString() + ":" + variables.get(MASTER_PORT));
  }

  /**
   * Returns the unresolved address of the rendezvous: {@code WINDLASS_RENDEZVOUS} if it is
   * HOST:PORT. If it is not set, but a token is set, the host is {@code MASTER_ADDR}. The port is
   * {@code MASTER_PORT + 1}, since torchrun's agent may use {@code MASTER_PORT}. If {@code
   * MASTER_PORT} is the highest port number, the port is {@code MASTER_PORT - 1}.
   *
   * <p>Without an address and a {@link #tokenVariable}, the ranks find each other on one host as
   * one user. Rank 0 writes a local address and a new token to a file that only this user can read.
   * {@link #job} determines the file's name.
   */
  public Optional<InetSocketAddress> rendezvous() {
    boolean hasToken = tokenVariable().isPresent();
    // torchrun sets MASTER_ADDR for any program.
    return address().filter(at -> hasToken || variables.isSet(RENDEZVOUS));
  }

  private Optional<InetSocketAddress> address() {
    if (store().isPresent()) {
      return Optional.empty();
    }
    if (variables.isSet(RENDEZVOUS)) {
      return Optional.of(
          HostAndPort.parse(
              RENDEZVOUS,
              variables.get(RENDEZVOUS),
              ", or the address of a store, such as etcd://127.0.0.1:2379/windlass"));
    }
    variables.requireBoth(MASTER_ADDRESS, MASTER_PORT, "set both, or " + RENDEZVOUS);
    if (!variables.isSet(MASTER_ADDRESS)) {
      return Optional.empty();
    }
    int port = variables.number(MASTER_PORT, 1, HostAndPort.LAST_PORT);
    int next = port < HostAndPort.LAST_PORT ? port + 1 : port - 1;
    String name = variables.get(MASTER_ADDRESS);
    return Optional.of(HostAndPort.of(MASTER_ADDRESS, name, name, next));
  }

  /**
   * Returns true if {@link #rendezvous} is the address of the launcher's store. {@code windlass
   * run} or another {@link LaunchStore} has opened that store. Otherwise rank 0's process opens the
   * store.
   */
  public boolean launcherHasStore() {
    Optional<String> address = variables.value(RENDEZVOUS);
    return address.isPresent() && address.equals(variables.value(LAUNCHER_STORE));
  }

  /**
   * Returns the address of an external store where the ranks find each other, such as {@code
   * etcd://10.0.0.1:2379/windlass}. Empty unless {@code WINDLASS_RENDEZVOUS} has such an address.
   * If it has one, {@link #rendezvous} is empty, and a token only distinguishes this job from other
   * jobs of the same name ({@link #job}).
   */
  public Optional<String> store() {
    return variables
        .value(RENDEZVOUS)
        .flatMap(text -> StoreProviders.address(RENDEZVOUS, text));
  }

  /**
   * Returns the name of the variable with the token. {@code WINDLASS_TOKEN} has its 64 hexadecimal
   * digits, and {@code WINDLASS_TOKEN_FILE} names a file of them. Empty if neither is set.
   */
  public Optional<String> tokenVariable() {
    return tokenVariable(variables);
  }

  private static Optional<String> tokenVariable(LaunchVariables variables) {
    if (variables.isSet(Token.VARIABLE) && variables.isSet(Token.FILE_VARIABLE)) {
      throw new InvalidArgumentException(
          Token.FILE_VARIABLE + " and " + Token.VARIABLE
              + " are both set, but a job has one token; unset one of them");
    }
    return Stream.of(Token.VARIABLE, Token.FILE_VARIABLE).filter(variables::isSet).findFirst();
  }

  @Override
  public String toString() {
    StringJoiner text = new StringJoiner(", ", launcher + ": ", "");
    text.add("rank " + rank + " of " + size);
    localRank().ifPresent(local -> text.add("local rank " + local));
    localSize().ifPresent(local -> text.add(local + " on this host"));
    variables.value(Host.NAME_VARIABLE).ifPresent(name -> text.add("host " + name));
    job().ifPresent(id -> text.add("job " + id));
    return text.add(rendezvousText()).toString() + others().map(other -> "; " + other).orElse("");
  }

  private String rendezvousText() {
    Optional<String> token = tokenVariable().map(name -> ", token from " + name);
    boolean hasJob = job().isPresent();
    if (store().isPresent()) {
      String missing = hasJob || size == 1 ? "" : ", no job or token; set " + JOB;
      return "rendezvous " + store().get() + token.orElse(missing);
    }
    if (rendezvous().isPresent() || token.isPresent()) {
      return rendezvous()
              .map(at -> "rendezvous " + at.getHostString() + " port " + at.getPort())
              .map(at -> launcherHasStore() ? at + ", which the launcher has" : at)
              .orElse("no rendezvous")
          + token.orElse(", no token");
    }
    if (size == 1) {
      return "no other rank";
    }
    return hasJob
        ? "ranks join by a file of this host"
        : "no job, rendezvous or token, so that ranks can't join; set " + JOB
            + " to a name of the job's own";
  }

  private void requireOneRank() {
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
              + ": one launcher runs inside another; unset the variables of the launcher that"
              + " should not count");
    }
  }

  /** Throws in a Slurm batch script: it has the variables of a rank, but runs only once. */
  private void requireStep() {
    if (launcher == Launcher.SLURM && size > 1 && !variables.isSet(SLURM_STEP)) {
      throw new InvalidArgumentException(
          variables.quoted(launcher.rank, sizeName) + ", and " + SLURM_STEP
              + " is not set, as in a batch script, which is one process; start it with srun");
    }
  }
}
