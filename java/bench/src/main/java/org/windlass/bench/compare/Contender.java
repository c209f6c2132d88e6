// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Named;

/**
 * A contender in a comparison. In collectives, these are Windlass (with each kind of buffers, ranks
 * as threads or processes) and its peers. In redistributions, these are Windlass in each mode and
 * MPI_Alltoallw of Open MPI.
 */
enum Contender {
  WINDOW,
  PLAIN,
  WINDOW_PROCESSES,
  PLAIN_PROCESSES,
  JAVA,
  OPENMPI,
  OPENMPI_BOUND,
  MPICH,
  GLOO,
  /** Threads that only wait, for the time that Windlass takes. */
  WAIT,
  DIRECT,
  STAGED,
  GATHER_BROADCAST,
  ALLTOALLW;

  /** Windlass in collectives, with ranks as threads. In the next list, ranks are processes. */
  static final List<Contender> THREADS = List.of(WINDOW, PLAIN);

  static final List<Contender> PROCESSES = List.of(WINDOW_PROCESSES, PLAIN_PROCESSES);
  static final List<Contender> OURS =
      Stream.of(THREADS, PROCESSES).flatMap(List::stream).toList();

  static final List<Contender> PEERS = List.of(JAVA, OPENMPI, OPENMPI_BOUND, MPICH, GLOO, WAIT);
  static final List<Contender> REDISTRIBUTIONS =
      List.of(DIRECT, STAGED, GATHER_BROADCAST, ALLTOALLW);

  static Contender peer(String name) {
    return Named.of(name, PEERS, "--peers: no peer " + name + "; ");
  }

  static Contender redistribution(String name) {
    return Named.of(name, REDISTRIBUTIONS, "--sides: no side " + name + "; ");
  }

  static List<Contender> launched(List<String> launches) {
    List<Contender> all = new ArrayList<>();
    for (String launch : launches) {
      switch (launch) {
        case "threads" -> all.addAll(THREADS);
        case "processes" -> all.addAll(PROCESSES);
        default ->
            throw new InvalidArgumentException(
                "--launch: '" + launch + "' is neither threads nor processes");
      }
    }
    return all;
  }

  static Contender parse(String name) {
    return valueOf(name.toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  /**
   * Returns true if this contender can measure the cell. A barrier is measured with one kind of
   * buffers only, since it uses none. MPICH waits without yielding, so ranks that share a core
   * would wait for scheduler ticks. OPENMPI_BOUND and WAIT need one core for each rank.
   * MPI_Alltoallw can't reduce. JAVA and GLOO are measured only in collectives.
   */
  boolean has(Cell cell) {
    return switch (this) {
      case PLAIN, PLAIN_PROCESSES -> !cell.op().equals(Cell.BARRIER);
      case MPICH, OPENMPI_BOUND, WAIT -> cell.ranks() <= Runtime.getRuntime().availableProcessors();
      case JAVA, GLOO -> !cell.isOfMessages();
      case ALLTOALLW -> !Redistribution.parse(cell.op()).source().hasPartial();
      default -> true;
    };
  }

  /**
   * Returns the command that measures {@code op} at each of {@code sizes} and prints a line for
   * each. A size is a number of bytes, and for {@link #WAIT} BYTES:NANOSECONDS.
   *
   * @param programs folder of the programs {@code peer_openmpi} and so on
   * @param scratch folder for their input files
   */
  List<String> command(
      Path programs, Path scratch, String op, int ranks, double seconds, List<String> sizes) {
    String processes = Integer.toString(ranks);
    String program = programs.resolve("peer_" + this).toString();
    List<String> command = new ArrayList<>();
    switch (this) {
      case WINDOW, PLAIN, JAVA, WAIT, DIRECT, STAGED, GATHER_BROADCAST -> {
        command.addAll(jvm());
        command.add(toString());
      }
      case WINDOW_PROCESSES, PLAIN_PROCESSES -> {
        String libraries = System.getProperty("org.windlass.library.path");
        String windlass = Path.of(libraries).resolveSibling("bin/windlass").toString();
        command.addAll(List.of(windlass, "run", "-n", processes, "--"));
        command.addAll(jvm());
        command.add(toString());
      }
      case OPENMPI, ALLTOALLW ->
          command.addAll(openMpi("none", processes, program));
      case OPENMPI_BOUND ->
          command.addAll(
              openMpi("core", processes, programs.resolve("peer_" + OPENMPI).toString()));
      case MPICH -> command.addAll(List.of("mpiexec.hydra", "-n", processes, program));
      case GLOO -> command.add(program);
    }
    if (this == ALLTOALLW) {
      command.add(Double.toString(seconds));
      Redistribution what = Redistribution.parse(op);
      sizes.forEach(
          size -> command.add(ExchangePlan.write(scratch, what, Long.parseLong(size)).toString()));
    } else {
      command.addAll(List.of(op, processes, Double.toString(seconds)));
      command.addAll(sizes);
    }
    return command;
  }

  private static List<String> openMpi(String bound, String processes, String program) {
    return List.of(
        "mpirun.openmpi",
        "--oversubscribe",
        "--bind-to",
        bound,
        "--allow-run-as-root",
        "-np",
        processes,
        program);
  }

  /** Returns a line of the command's output, without the rank that mpirun writes in front of it. */
  String said(String line) {
    String rank = "[0] ";
    return PROCESSES.contains(this) && line.startsWith(rank) ? line.substring(rank.length()) : line;
  }

  private static List<String> jvm() {
    return jvm(
        System.getProperty("org.windlass.library.path"),
        System.getProperty("java.class.path"));
  }

  static List<String> jvm(String libraries, String classPath) {
    return List.of(
        System.getProperty("java.home") + "/bin/java",
        "--enable-native-access=ALL-UNNAMED",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xshare:auto",
        "-Dorg.windlass.library.path=" + libraries,
        "-cp",
        classPath,
        SideMain.class.getName());
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
