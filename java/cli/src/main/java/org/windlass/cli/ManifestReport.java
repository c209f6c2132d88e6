// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.windlass.manifest.Bootstrap;
import org.windlass.manifest.Slot;

/** Formats a bootstrap configuration as text for people. */
final class ManifestReport {
  private final Bootstrap bootstrap;
  private final boolean summary;

  /** For each group, the rank of each device; -1 if the device is not a member. */
  private final List<int[]> ranks;

  ManifestReport(Bootstrap bootstrap, boolean summary) {
    this.bootstrap = bootstrap;
    this.summary = summary;
    this.ranks = bootstrap.groups().stream().map(this::ranksOf).toList();
  }

  private int[] ranksOf(Bootstrap.Group group) {
    int[] of = new int[bootstrap.devices()];
    Arrays.fill(of, -1);
    for (int rank = 0; rank < group.members().size(); rank++) {
      of[group.members().get(rank)] = rank;
    }
    return of;
  }

  List<String> lines(String file) {
    List<String> lines = new ArrayList<>();
    List<Bootstrap.Group> groups = bootstrap.groups();
    lines.add(file + ": " + count(groups.size(), "group") + ", " + devices());
    for (int i = 0; i < groups.size(); i++) {
      lines.add(head(i));
      if (!summary && !groups.get(i).slots().isEmpty()) {
        lines.addAll(slots(groups.get(i)));
      }
    }
    if (!summary) {
      lines.addAll(coreLines());
    }
    lines.add("  " + totals());
    return lines;
  }

  private String devices() {
    return count(bootstrap.devices(), "device");
  }

  private String head(int index) {
    Bootstrap.Group group = bootstrap.groups().get(index);
    int size = group.members().size();
    String name = group.name().map(given -> ", " + escaped(given)).orElse("");
    return "group " + index + name + ": " + (size == 1 ? "device " : "devices ")
        + runs(group.members()) + (size == 1 ? " is rank " : " are ranks ") + run(0, size - 1)
        + "; window " + number(group.windowBytes()) + " bytes" + (size == 1 ? "" : " each");
  }

  private static List<String> slots(Bootstrap.Group group) {
    List<List<String>> rows = new ArrayList<>();
    rows.add(List.of("slot", "offset", "bytes", "holds", "host"));
    group.slots().forEach(place -> rows.add(row(place)));
    String form =
        "  %-" + width(rows, 0) + "s  %" + width(rows, 1) + "s  %" + width(rows, 2) + "s  %-"
            + width(rows, 3) + "s  %s";
    return rows.stream().map(row -> String.format(form, row.toArray())).toList();
  }

  private static List<String> row(Bootstrap.Place place) {
    Slot slot = place.slot();
    return List.of(
        escaped(slot.name()),
        number(place.offset()),
        number(slot.bytes()),
        holds(slot.extent()),
        slot.loadFromHost() && slot.storeToHost()
            ? "load, store"
            : slot.loadFromHost() ? "load" : slot.storeToHost() ? "store" : "-");
  }

  private static String holds(Slot.Extent extent) {
    if (!(extent instanceof Slot.Elements elements)) {
      return "bytes";
    }
    boolean isHalf = elements.bitsPerElement() != elements.type().bits();
    return number(elements.size()) + " x " + elements.type()
        + (isHalf ? " of " + elements.bitsPerElement() + " bits" : "");
  }

  private static int width(List<List<String>> rows, int column) {
    return rows.stream().mapToInt(row -> row.get(column).length()).max().orElse(1);
  }

  /** Returns lines about devices. Consecutive devices with consecutive ranks share a line. */
  private List<String> coreLines() {
    List<String> lines = new ArrayList<>();
    int first = 0;
    for (int device = 1; device <= bootstrap.devices(); device++) {
      if (device == bootstrap.devices() || !follows(device)) {
        lines.add(
            (first == device - 1 ? "device " : "devices ") + run(first, device - 1) + ": "
                + ranks(first, device - 1));
        first = device;
      }
    }
    return lines;
  }

  private boolean follows(int device) {
    return ranks.stream()
        .allMatch(of -> of[device] == (of[device - 1] < 0 ? -1 : of[device - 1] + 1));
  }

  private String ranks(int first, int last) {
    List<String> held = new ArrayList<>();
    for (int i = 0; i < ranks.size(); i++) {
      int rank = ranks.get(i)[first];
      if (rank >= 0) {
        held.add(
            (first == last ? "rank " : "ranks ") + run(rank, rank + last - first) + " of "
                + bootstrap.groups().get(i).name().map(ManifestReport::escaped).orElse("group " + i));
      }
    }
    return held.isEmpty() ? "in no group" : String.join(", ", held);
  }

  private String totals() {
    long all = 0;
    long[] own = new long[bootstrap.devices()];
    for (Bootstrap.Group group : bootstrap.groups()) {
      for (int device : group.members()) {
        own[device] = sum(own[device], group.windowBytes());
        all = sum(all, group.windowBytes());
      }
    }
    int most = 0;
    for (int device = 1; device < own.length; device++) {
      most = own[device] > own[most] ? device : most;
    }
    return number(all) + " bytes of windows on " + devices() + ", at most " + number(own[most])
        + " on one (device " + most + "); " + count(slots(Slot::loadFromHost), "slot") + " loaded, "
        + slots(Slot::storeToHost) + " stored";
  }

  /** Adds two sizes; a sum that overflows becomes the largest long. No machine has such windows. */
  private static long sum(long one, long other) {
    return one > Long.MAX_VALUE - other ? Long.MAX_VALUE : one + other;
  }

  private long slots(Predicate<Slot> which) {
    return bootstrap.groups().stream()
        .flatMap(group -> group.slots().stream())
        .map(Bootstrap.Place::slot)
        .filter(which)
        .count();
  }

  /** Formats numbers in their order, with consecutive ones shortened: {@code 0-3,7,5}. */
  private static String runs(List<Integer> numbers) {
    List<String> runs = new ArrayList<>();
    int first = 0;
    for (int i = 1; i <= numbers.size(); i++) {
      if (i == numbers.size() || numbers.get(i) != numbers.get(i - 1) + 1) {
        runs.add(run(numbers.get(first), numbers.get(i - 1)));
        first = i;
      }
    }
    return runs.stream().collect(Collectors.joining(","));
  }

  private static String run(int first, int last) {
    return first == last ? "" + first : first + (last == first + 1 ? "," : "-") + last;
  }

  private static String count(long count, String what) {
    return number(count) + " " + what + (count == 1 ? "" : "s");
  }

  private static String number(long number) {
    return String.format(Locale.ROOT, "%,d", number);
  }

  /** Escapes a name as in a JSON file, so that it has no line breaks. */
  private static String escaped(String name) {
    return new String(JsonStringEncoder.getInstance().quoteAsString(name));
  }
}
