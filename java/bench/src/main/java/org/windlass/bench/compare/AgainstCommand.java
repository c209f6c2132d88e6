// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.windlass.bench.compare.BuildRounds.Build;
import org.windlass.bench.sample.Times;
import org.windlass.error.InternalException;
import org.windlass.error.InvalidArgumentException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * The command of {@code scripts/bench --against}. It compares this build with another build, and
 * the other build with itself. The second comparison shows by how much the times of equal builds
 * differ on this machine.
 */
@Command(
    name = "scripts/bench --against",
    mixinStandardHelpOptions = true,
    description =
        "Compares the build of this checkout with that of another, over operations, ranks, sizes"
            + " and kinds of buffers, and the other build with itself. Builds alternate. A ratio is"
            + " the median over the rounds of a run. Rounds in which an empty call took longer with"
            + " one build than with another do not count.")
final class AgainstCommand implements Runnable {
  /** A {@link Cell} counts as slower if its ratio of times exceeds this value in every run. */
  private static final double SLOWER = 1.15;

  /** Largest number of times that a round is repeated until builds are comparable. */
  private static final int MOST_TRIES = 3;

  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "CHECKOUT", description = "The other one, built by its scripts/demo.")
  private Path other;

  @Option(
      names = "--buffers",
      split = ",",
      defaultValue = "window,plain",
      description = "Kinds of buffers (${DEFAULT-VALUE}).")
  private List<String> buffers;

  @Option(names = "--runs", defaultValue = "3", description = "Runs (${DEFAULT-VALUE}).")
  private int runs;

  @Option(
      names = "--rounds",
      defaultValue = "3",
      description = "Rounds of a run (${DEFAULT-VALUE}).")
  private int rounds;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      defaultValue = "0.08",
      description = "Time for the samples of a cell by a build in a round (${DEFAULT-VALUE}).")
  private double seconds;

  @Mixin private RootOption root;

  @Mixin private CellOptions options;

  /** Number of discarded first measurements: compiler threads of new JVMs take cores from ranks. */
  private static final int WARM_UPS = 4;

  /**
   * Cells with the same operation and number of ranks. They are measured together, with one kind of
   * buffers.
   */
  private record Group(String buffers, String op, int ranks, List<Cell> cells) {
    String name(Cell cell) {
      return cell + (op.equals(Cell.BARRIER) ? "" : ", " + buffers);
    }
  }

  public static void main(String[] args) {
    ComparisonOptions.execute(new AgainstCommand(), args);
  }

  @Override
  public void run() {
    if (runs < 1 || rounds < 1 || !(seconds > 0 && seconds <= 60)) {
      throw new InvalidArgumentException(
          "--runs and --rounds are 1 or more, --seconds in (0, 60]: not "
              + runs + ", " + rounds + " and " + seconds);
    }
    List<Group> groups = groups();
    classes(root.folder());
    classes(other);
    List<Map<String, BuildRounds>> measured = new ArrayList<>();
    try {
      for (int run = 0; run < runs; run++) {
        measured.add(run(run, groups));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InternalException("interrupted", e);
    }
    print(measured);
  }

  private List<Group> groups() {
    List<Group> groups = new ArrayList<>();
    for (String kind : buffers) {
      if (!kind.equals("window") && !kind.equals("plain")) {
        throw new InvalidArgumentException("--buffers: '" + kind + "' is neither window nor plain");
      }
      Cell.grouped(options.cells())
          .forEach((key, cells) -> groups.add(new Group(kind, key.op(), key.ranks(), cells)));
    }
    // Barriers have no buffers.
    groups.removeIf(
        group -> group.op.equals(Cell.BARRIER) && !group.buffers.equals(buffers.get(0)));
    return groups;
  }

  private Map<String, BuildRounds> run(int run, List<Group> groups) throws InterruptedException {
    Map<String, BuildRounds> cells = new TreeMap<>();
    PrintWriter progress = spec.commandLine().getErr();
    for (int round = 0; round < rounds; round++) {
      List<Build> order = new ArrayList<>(List.of(Build.values()));
      Collections.rotate(order, run * rounds + round);
      for (Group group : groups) {
        Set<Cell> left = new TreeSet<>(group.cells);
        for (int i = 0; i < MOST_TRIES && !left.isEmpty(); i++) {
          round(order, group, left, cells);
        }
      }
      progress.printf("run %d of %d, round %d of %d%n", run + 1, runs, round + 1, rounds);
      progress.flush();
    }
    return cells;
  }

  /** Measures a group with all builds. Removes from {@code left} the cells with valid rounds. */
  private void round(
      List<Build> order, Group group, Set<Cell> left, Map<String, BuildRounds> cells)
      throws InterruptedException {
    Map<Cell, Map<Build, Times>> measured = new TreeMap<>();
    for (Build build : order) {
      measure(build, group, measured);
    }
    left.removeIf(
        cell ->
            cells
                .computeIfAbsent(group.name(cell), key -> new BuildRounds())
                .add(Objects.requireNonNull(measured.get(cell))));
  }

  private void measure(Build build, Group group, Map<Cell, Map<Build, Times>> measured)
      throws InterruptedException {
    Path log = root.resolve("target/bench-against.log");
    List<String> command = command(build == Build.THIS ? root.folder() : other, group);
    try (Child child = new Child(command, Duration.ofSeconds(120), log)) {
      for (int i = 0; i < WARM_UPS; i++) {
        child.next();
      }
      for (Cell cell : group.cells) {
        String[] words = child.next().split(" ");
        measured
            .computeIfAbsent(cell, key -> new EnumMap<>(Build.class))
            .put(build, Times.parse(words, 1));
      }
    } catch (Child.Stopped | IllegalArgumentException e) {
      throw new InternalException(
          group.op + ", " + group.ranks + " ranks, " + build + ": " + e.getMessage(), e);
    }
  }

  private List<String> command(Path checkout, Group group) {
    Path libraries = checkout.resolve("java/cli/target/windlass/lib");
    String classPath = libraries + "/*:" + classes(checkout);
    List<String> command = new ArrayList<>(Contender.jvm(libraries.toString(), classPath));
    command.addAll(
        List.of(
            group.buffers, group.op, Integer.toString(group.ranks), Double.toString(seconds)));
    List<Cell> cells = new ArrayList<>(Collections.nCopies(WARM_UPS, group.cells.get(0)));
    cells.addAll(group.cells);
    cells.forEach(cell -> command.add(Long.toString(cell.bytes())));
    return command;
  }

  /** Returns the folder with the classes of a checkout's bench module. */
  private static Path classes(Path checkout) {
    Path folder = checkout.resolve("java/bench/target/classes");
    if (!Files.exists(folder.resolve(SideMain.class.getName().replace('.', '/') + ".class"))) {
      throw new InvalidArgumentException(
          checkout + " holds no build: run its scripts/demo first, and name the checkout");
    }
    return folder;
  }

  private void print(List<Map<String, BuildRounds>> measured) {
    PrintWriter out = spec.commandLine().getOut();
    out.printf("%-36s %10s   %s%n", "", "other us", "this / other and, after |, other / itself");
    List<String> slower = new ArrayList<>();
    List<String> unmet = new ArrayList<>();
    for (String cell : measured.get(0).keySet()) {
      List<BuildRounds> all = measured.stream().map(each -> each.get(cell)).toList();
      out.printf("%-36s %10s  ", cell, number("%.2f", median(all)));
      all.forEach(each -> out.printf(" %5s", number("%.2f", each.ratio(Build.THIS))));
      out.print(" |");
      all.forEach(each -> out.printf(" %5s", number("%.2f", each.ratio(Build.CONTROL))));
      out.println();
      if (all.stream()
          .allMatch(each -> each.ratio(Build.THIS) > SLOWER || each.isSlowByItself())) {
        slower.add(cell);
      }
      if (all.stream().anyMatch(each -> each.count() < rounds)) {
        unmet.add(
            cell + all.stream().map(each -> " " + each.count()).collect(Collectors.joining()));
      }
    }
    out.printf("%-36s %10s  ", "geometric mean", "");
    measured.forEach(each -> out.printf(" %5s", number("%.3f", geometricMean(each, Build.THIS))));
    out.print(" |");
    measured.forEach(
        each -> out.printf(" %5s", number("%.3f", geometricMean(each, Build.CONTROL))));
    out.printf(
        "%ncells that are slower: above %.2f in every run, or without a round because an empty call"
            + " always took longer with this build: %s%n",
        SLOWER, slower.isEmpty() ? "none" : String.join("; ", slower));
    if (!unmet.isEmpty()) {
      out.printf(
          "cells with fewer than %d rounds, because the machine changed between builds; with the"
              + " rounds of each run: %s%n",
          rounds, String.join("; ", unmet));
    }
    out.flush();
  }

  /**
   * Returns the median time of the first run that has a valid round. Returns NaN if no run has one.
   */
  private static double median(List<BuildRounds> runs) {
    return runs.stream()
        .mapToDouble(BuildRounds::median)
        .filter(each -> !Double.isNaN(each))
        .findFirst()
        .orElse(Double.NaN);
  }

  private static String number(String format, double value) {
    return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, format, value);
  }

  private static double geometricMean(Map<String, BuildRounds> cells, Build build) {
    return Row.geometricMean(cells.values().stream().mapToDouble(each -> each.ratio(build)));
  }
}
