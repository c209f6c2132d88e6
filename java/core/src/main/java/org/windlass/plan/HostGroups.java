// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Groups the members of each target cell by the hosts that they live on. The members of a cell are
 * the ranks that hold it; see {@link Grid}. All members of a cell need the same data. So if the
 * data is sent to a host for one member, all members on that host can use it. If there is only one
 * host, each member is a group of its own.
 *
 * <p>To count the groups of all cells, each target rank is visited once.
 */
final class HostGroups {
  /**
   * The groups of one target cell, in the order of their first members.
   *
   * @param of for each member, the index of its group
   * @param members the members of each group, ascending
   */
  record Cell(int[] of, List<List<Integer>> members) {
    int count() {
      return members.size();
    }
  }

  private final Grid target;
  private final Hosts hosts;

  /** {@link Grid#offsets}; empty if each member is a group of its own. */
  private final int[] offsets;

  private final Map<Integer, Cell> cells = new HashMap<>();
  private int most;
  private int least;

  private HostGroups(Grid target, Hosts hosts, int[] offsets) {
    this.target = target;
    this.hosts = hosts;
    this.offsets = offsets;
    this.most = target.members;
    this.least = target.members;
  }

  static HostGroups single(Grid target) {
    return new HostGroups(target, Hosts.one(), new int[0]);
  }

  static HostGroups of(Grid target, Hosts hosts) {
    HostGroups groups = new HostGroups(target, hosts, target.offsets());
    if (target.members > 1) {
      groups.count();
    }
    return groups;
  }

  private void count() {
    int[] seen = new int[16]; // for each host, the last cell that has a rank there
    most = 0;
    int cell = 0;
    for (int base : target.bases()) {
      cell++;
      int count = 0;
      for (int offset : offsets) {
        int host = hosts.of(target.mesh.rankAtPlace(base + offset));
        if (host >= seen.length) {
          seen = Arrays.copyOf(seen, 2 * host);
        }
        count += seen[host] == cell ? 0 : 1;
        seen[host] = cell;
      }
      most = Math.max(most, count);
      least = Math.min(least, count);
    }
  }

  boolean areSingle() {
    return offsets.length == 0;
  }

  int most() {
    return most;
  }

  boolean areUneven() {
    return least < most;
  }

  /** Returns the groups of the target cell with base {@code base}. */
  Cell of(int base) {
    return cells.computeIfAbsent(base, this::find);
  }

  /** Returns the members of some groups of the target cell with base {@code base}, ascending. */
  int[] members(int base, int[] groups) {
    Cell cell = of(base);
    return Arrays.stream(groups)
        .flatMap(group -> cell.members.get(group).stream().mapToInt(Integer::intValue))
        .sorted()
        .toArray();
  }

  int of(int base, int member) {
    return areSingle() ? member : of(base).of[member];
  }

  private Cell find(int base) {
    int[] of = new int[offsets.length];
    Map<Integer, Integer> groups = new HashMap<>(); // by host
    List<List<Integer>> members = new ArrayList<>();
    for (int member = 0; member < of.length; member++) {
      int host = hosts.of(target.mesh.rankAtPlace(base + offsets[member]));
      of[member] = groups.computeIfAbsent(host, first -> groups.size());
      if (of[member] == members.size()) {
        members.add(new ArrayList<>());
      }
      members.get(of[member]).add(member);
    }
    return new Cell(of, members);
  }
}
