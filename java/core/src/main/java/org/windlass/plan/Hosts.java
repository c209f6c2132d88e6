// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;

/**
 * Maps ranks to the hosts that they live on. Hosts are numbered from 0, in the order of their
 * lowest ranks. Equal instances map each rank to the same host.
 */
public final class Hosts {
  private static final Hosts ONE = new Hosts(DeviceMesh.MAX_RANKS, null);

  /** Number of consecutive ranks on a host, used if {@link #numbers} is null. */
  private final int ranksPerHost;

  /** Host of each rank; null if all hosts have {@link #ranksPerHost} ranks. */
  private final int @Nullable [] numbers;

  /** Ranks by their hosts; empty if all hosts have {@link #ranksPerHost} ranks. */
  private final Map<Integer, List<Integer>> ranks;

  private Hosts(int ranksPerHost, int @Nullable [] numbers) {
    this.ranksPerHost = ranksPerHost;
    this.numbers = numbers;
    this.ranks =
        IntStream.range(0, numbers == null ? 0 : numbers.length)
            .boxed()
            .collect(Collectors.groupingBy(this::of));
  }

  /** Returns the mapping that has all ranks on one host. */
  public static Hosts one() {
    return ONE;
  }

  /**
   * Returns the mapping that puts {@code ranksPerHost} consecutive ranks on each host, from rank 0
   * on.
   *
   * @param ranksPerHost ranks of a host, at least 1
   * @throws InvalidArgumentException if {@code ranksPerHost} is less than 1
   */
  public static Hosts ofEach(int ranksPerHost) {
    if (ranksPerHost < 1) {
      throw new InvalidArgumentException("ranksPerHost is at least 1, not " + ranksPerHost);
    }
    return ranksPerHost >= DeviceMesh.MAX_RANKS ? ONE : new Hosts(ranksPerHost, null);
  }

  /**
   * Returns the mapping of ranks 0 to {@code hosts.length - 1}. Ranks with the same number share a
   * host.
   *
   * @param hosts for each rank, any number that identifies its host
   * @throws InvalidArgumentException if {@code hosts} is empty or has too many ranks
   */
  public static Hosts of(int... hosts) {
    Objects.requireNonNull(hosts, "hosts");
    if (hosts.length == 0) {
      throw new InvalidArgumentException("hosts: is empty; a rank has a host");
    }
    if (hosts.length > DeviceMesh.MAX_RANKS) {
      throw new InvalidArgumentException(
          "hosts: has " + hosts.length + " ranks, more than " + DeviceMesh.MAX_RANKS);
    }
    Map<Integer, Integer> known = new HashMap<>();
    int[] numbers = new int[hosts.length];
    for (int rank = 0; rank < hosts.length; rank++) {
      Integer number = known.putIfAbsent(hosts[rank], known.size());
      numbers[rank] = number == null ? known.size() - 1 : number;
    }
    return known.size() == 1 ? ONE : new Hosts(0, numbers);
  }

  /** Returns true if ranks may live on different hosts. */
  public boolean areSeveral() {
    return this != ONE;
  }

  /**
   * Returns the number of the host that {@code rank} lives on.
   *
   * @throws InvalidArgumentException if the host of {@code rank} is unknown
   */
  public int hostOf(int rank) {
    if (rank < 0 || rank >= known()) {
      throw new InvalidArgumentException(
          "rank " + rank + " has no host: " + this + " gives the hosts of ranks 0 to"
              + " " + (known() - 1));
    }
    return of(rank);
  }

  /** Returns the number n of ranks whose hosts are known. These are ranks 0 to n - 1. */
  int known() {
    return numbers == null ? DeviceMesh.MAX_RANKS : numbers.length;
  }

  int of(int rank) {
    return numbers == null ? rank / ranksPerHost : numbers[rank];
  }

  boolean areTogether(int one, int other) {
    return of(one) == of(other);
  }

  /** Returns the number of ranks on each host; empty if the host of each rank was given. */
  OptionalInt ranksPerHost() {
    return numbers == null ? OptionalInt.of(ranksPerHost) : OptionalInt.empty();
  }

  Optional<List<Integer>> numbers() {
    return Optional.ofNullable(numbers).map(n -> Arrays.stream(n).boxed().toList());
  }

  void forEachRankOf(int host, IntConsumer action) {
    if (numbers != null) {
      Objects.requireNonNull(ranks.get(host)).forEach(action::accept);
      return;
    }
    long end = Math.min(DeviceMesh.MAX_RANKS, (host + 1L) * ranksPerHost);
    for (int rank = host * ranksPerHost; rank < end; rank++) {
      action.accept(rank);
    }
  }

  /** Returns true if the ranks of both meshes together live on more than one host. */
  boolean divide(DeviceMesh one, DeviceMesh other) {
    if (!areSeveral()) {
      return false;
    }
    int first = of(one.rankAtPlace(0));
    return leaves(first, one) || leaves(first, other);
  }

  private boolean leaves(int host, DeviceMesh mesh) {
    if (numbers == null) {
      return of(mesh.lowestRank()) != host || of(mesh.highestRank()) != host;
    }
    return mesh.ranks().stream().anyMatch(rank -> of(rank) != host);
  }

  boolean mayShare(DeviceMesh one, DeviceMesh other) {
    if (numbers == null) {
      return of(one.lowestRank()) <= of(other.highestRank())
          && of(other.lowestRank()) <= of(one.highestRank());
    }
    return of(one).intersects(of(other));
  }

  private BitSet of(DeviceMesh mesh) {
    BitSet hosts = new BitSet();
    mesh.ranks().forEach(rank -> hosts.set(of(rank)));
    return hosts;
  }

  @Override
  public boolean equals(Object object) {
    return object instanceof Hosts other
        && ranksPerHost == other.ranksPerHost
        && Arrays.equals(numbers, other.numbers);
  }

  @Override
  public int hashCode() {
    return 31 * ranksPerHost + Arrays.hashCode(numbers);
  }

  @Override
  public String toString() {
    if (numbers != null) {
      return "hosts " + Arrays.toString(numbers);
    }
    return areSeveral() ? "hosts of " + ranksPerHost + " ranks" : "one host";
  }
}
