// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.windlass.InvalidArgumentException;

/** Who is measured: Windlass with either kind of buffers, and its peers. */
enum Contender {
  WINDOW,
  PLAIN,
  JAVA,
  OPENMPI,
  MPICH,
  GLOO;

  /** The ones that are Windlass. */
  static final List<Contender> OURS = List.of(WINDOW, PLAIN);

  /**
   * @throws InvalidArgumentException if there is no such peer
   */
  static Contender peer(String name) {
    return Arrays.stream(values())
        .filter(each -> !OURS.contains(each) && each.toString().equals(name))
        .findFirst()
        .orElseThrow(() -> new InvalidArgumentException("--peers: no peer " + name + "; " + all()));
  }

  private static String all() {
    return Arrays.stream(values())
        .filter(each -> !OURS.contains(each))
        .map(Contender::toString)
        .collect(Collectors.joining(", "));
  }

  static Contender parse(String name) {
    return valueOf(name.toUpperCase(Locale.ROOT));
  }

  /**
   * Whether it takes part. Buffers make no difference to a barrier; MPICH waits without yielding,
   * so that ranks which share a core wait for the scheduler's ticks.
   */
  boolean has(Cell cell) {
    return switch (this) {
      case PLAIN -> !cell.op().equals(Cell.BARRIER);
      case MPICH -> cell.ranks() <= Runtime.getRuntime().availableProcessors();
      default -> true;
    };
  }

  /**
   * The command that measures {@code op} at each of {@code sizes} and prints a line for each.
   *
   * @param folder where the programs {@code peer_openmpi} and so on lie
   */
  List<String> command(String folder, String op, int ranks, double seconds, List<Long> sizes) {
    String processes = Integer.toString(ranks);
    String program = folder + "/peer_" + this;
    List<String> command = new ArrayList<>();
    switch (this) {
      case WINDOW, PLAIN, JAVA -> {
        command.addAll(jvm());
        command.add(toString());
      }
      case OPENMPI ->
          command.addAll(
              List.of(
                  "mpirun.openmpi",
                  "--oversubscribe",
                  "--allow-run-as-root",
                  "-np",
                  processes,
                  program));
      case MPICH -> command.addAll(List.of("mpiexec.hydra", "-n", processes, program));
      case GLOO -> command.add(program);
    }
    command.addAll(List.of(op, processes, Double.toString(seconds)));
    sizes.forEach(size -> command.add(size.toString()));
    return command;
  }

  private static List<String> jvm() {
    return List.of(
        System.getProperty("java.home") + "/bin/java",
        "--enable-native-access=ALL-UNNAMED",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xshare:auto",
        "-Dorg.windlass.library.path=" + System.getProperty("org.windlass.library.path"),
        "-cp",
        System.getProperty("java.class.path"),
        SideMain.class.getName());
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
