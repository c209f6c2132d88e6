// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.RandomAccess;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.Ranges;
import org.windlass.internal.Shapes;

/**
 * A grid of ranks with named or unnamed dimensions. Its positions are filled in row-major order,
 * with consecutive ranks or with the ranks of a list. A mesh of consecutive ranks needs the same
 * time and memory for every size.
 */
public final class DeviceMesh {
  /** Upper bound of rank numbers: each rank is less than this. */
  public static final int MAX_RANKS = 1 << 20;

  private final List<String> names;
  private final int[] sizes;
  private final int size;
  private final int lowest;
  private final int highest;

  /** Ranks in row-major order; null if the ranks are consecutive. */
  private final int @Nullable [] listed;

  /**
   * For each rank from the lowest one on, its position or -1. Null if the ranks are consecutive.
   */
  private final int @Nullable [] places;

  private DeviceMesh(List<String> names, int[] sizes, int first, int @Nullable [] listed) {
    this.names = names;
    this.sizes = sizes;
    this.size = checkedSize(sizes);
    if (listed == null || isConsecutive(listed)) {
      this.listed = null;
      this.places = null;
      this.lowest = listed == null ? first : listed[0];
      if (lowest < 0 || lowest > MAX_RANKS - size) {
        throw new InvalidArgumentException(
            "a mesh of " + size + " ranks from rank " + lowest + " has ranks outside 0 to "
                + (MAX_RANKS - 1));
      }
      this.highest = lowest + size - 1;
      return;
    }
    this.listed = listed;
    this.lowest = Arrays.stream(listed).min().orElseThrow();
    this.highest = Arrays.stream(listed).max().orElseThrow();
    this.places = new int[highest - lowest + 1];
    Arrays.fill(places, -1);
    for (int place = 0; place < size; place++) {
      int rank = listed[place];
      if (places[rank - lowest] >= 0) {
        throw new InvalidArgumentException("rank " + rank + " is twice in mesh " + grid());
      }
      places[rank - lowest] = place;
    }
  }

  /**
   * Returns a mesh of named dimensions, with ranks from 0.
   *
   * @param name name of the first dimension
   * @param size size of the first dimension
   * @param namesAndSizes alternately a name (String) and a size (Integer), such as {@code "dp", 2,
   *     "tp", 4}. A name is empty, or a letter or _ followed by letters, digits or _.
   * @throws InvalidArgumentException if names and sizes do not alternate, a name is not valid or
   *     occurs twice, or the mesh has no ranks or too many
   */
  public static DeviceMesh of(String name, int size, Object... namesAndSizes) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(namesAndSizes, "namesAndSizes");
    Copies.list(Arrays.asList(namesAndSizes), "namesAndSizes");
    if (namesAndSizes.length % 2 != 0) {
      throw new InvalidArgumentException("give names and sizes in pairs");
    }
    int ndim = 1 + namesAndSizes.length / 2;
    List<String> names = new ArrayList<>();
    int[] sizes = new int[ndim];
    names.add(name);
    sizes[0] = size;
    for (int d = 1; d < ndim; d++) {
      if (!(namesAndSizes[2 * d - 2] instanceof String n)
          || !(namesAndSizes[2 * d - 1] instanceof Integer s)) {
        throw new InvalidArgumentException(
            "mesh dimension " + d + " is a name (String) and a size (Integer), not "
                + namesAndSizes[2 * d - 2] + ", " + namesAndSizes[2 * d - 1]);
      }
      names.add(n);
      sizes[d] = s;
    }
    return of(names, sizes);
  }

  /**
   * Returns a mesh of unnamed dimensions, with ranks from 0.
   *
   * @param sizes size of each dimension
   * @throws InvalidArgumentException if there is no dimension, or the mesh has no ranks or too many
   */
  public static DeviceMesh of(int... sizes) {
    int[] copy = Objects.requireNonNull(sizes, "sizes").clone();
    return new DeviceMesh(Collections.nCopies(copy.length, ""), copy, 0, null);
  }

  /**
   * Returns a mesh with ranks from 0, whose dimensions are called {@code names}. An empty name
   * means an unnamed dimension.
   *
   * @param names name of each dimension
   * @param sizes size of each dimension
   * @throws InvalidArgumentException if the lists differ in length, a name is not valid or occurs
   *     twice, or the mesh has no ranks or too many
   */
  public static DeviceMesh of(List<String> names, int[] sizes) {
    List<String> named = Copies.list(names, "names");
    int[] copy = Objects.requireNonNull(sizes, "sizes").clone();
    if (named.size() != copy.length) {
      throw new InvalidArgumentException(
          named.size() + " names for " + copy.length + " mesh dimensions");
    }
    Set<String> seen = new HashSet<>();
    for (String name : named) {
      if (!name.isEmpty() && !name.matches("[A-Za-z_][A-Za-z0-9_]*")) {
        throw new InvalidArgumentException(
            "mesh dimension name '" + name + "' is not a letter or _, then letters, digits or _");
      }
      if (!name.isEmpty() && !seen.add(name)) {
        throw new InvalidArgumentException("two mesh dimensions are named '" + name + "'");
      }
    }
    return new DeviceMesh(named, copy, 0, null);
  }

  /**
   * Parses a mesh such as {@code dp=2xtp=4@8} or {@code 4@[0-1,6,4]}. Without {@code @}, its ranks
   * begin at 0.
   *
   * @throws InvalidArgumentException if the string is not a valid mesh; the message names the
   *     position
   */
  public static DeviceMesh parse(String text) {
    return new LayoutParser(text).mesh(0);
  }

  /** Returns a mesh with the same dimensions, over consecutive ranks from {@code firstRank} on. */
  public DeviceMesh at(int firstRank) {
    return new DeviceMesh(names, sizes, firstRank, null);
  }

  /**
   * Returns a mesh with the same dimensions, over the given ranks in row-major order.
   *
   * @throws InvalidArgumentException if their number is not {@link #size()}, or a rank is out of
   *     range or occurs twice
   */
  public DeviceMesh ranks(int... ranks) {
    int[] copy = Objects.requireNonNull(ranks, "ranks").clone();
    if (copy.length != size) {
      throw new InvalidArgumentException(
          "mesh " + grid() + " has " + size + " places, but the list has " + copy.length
              + " ranks");
    }
    for (int rank : copy) {
      if (rank < 0 || rank >= MAX_RANKS) {
        throw new InvalidArgumentException(
            "rank " + rank + " of mesh " + grid() + " is not in 0 to " + (MAX_RANKS - 1));
      }
    }
    return new DeviceMesh(names, sizes, 0, copy);
  }

  /** Returns a layout over this mesh, with one placement for each mesh dimension, in order. */
  public Layout layout(Placement... placements) {
    Objects.requireNonNull(placements, "placements");
    return new Layout(this, Arrays.asList(placements));
  }

  /** Returns the number of dimensions. */
  public int ndim() {
    return sizes.length;
  }

  /**
   * Returns the extent of dimension {@code dim}.
   *
   * @throws InvalidArgumentException if the mesh has no such dimension
   */
  public int size(int dim) {
    return sizes[checked("size", dim)];
  }

  /** Returns the number of ranks. */
  public int size() {
    return size;
  }

  /**
   * Returns the name of dimension {@code dim}; empty if it has none.
   *
   * @throws InvalidArgumentException if the mesh has no such dimension
   */
  public String name(int dim) {
    return names.get(checked("name", dim));
  }

  private int checked(String call, int dim) {
    if (dim < 0 || dim >= sizes.length) {
      throw new InvalidArgumentException(Shapes.badDimension(call, "dim", dim, sizes.length));
    }
    return dim;
  }

  /**
   * Returns the rank at the given coordinates, one for each dimension.
   *
   * @throws InvalidArgumentException if the number of coordinates is wrong, or one is outside the
   *     mesh
   */
  public int rankAt(int... coordinates) {
    if (Objects.requireNonNull(coordinates, "coordinates").length != sizes.length) {
      throw new InvalidArgumentException(
          coordinates.length + " coordinates for mesh " + grid() + " of " + sizes.length
              + " dimensions");
    }
    int place = 0;
    for (int d = 0; d < sizes.length; d++) {
      if (coordinates[d] < 0 || coordinates[d] >= sizes[d]) {
        throw new InvalidArgumentException(
            "coordinate " + coordinates[d] + " of dimension " + d + " is outside mesh " + grid());
      }
      place = place * sizes[d] + coordinates[d];
    }
    return rankAtPlace(place);
  }

  /** Returns the coordinates of {@code rank}, or null if the mesh does not contain it. */
  public int @Nullable [] coordinates(int rank) {
    int place = placeOf(rank);
    if (place < 0) {
      return null;
    }
    int[] coordinates = new int[sizes.length];
    for (int d = sizes.length - 1; d >= 0; d--) {
      coordinates[d] = place % sizes[d];
      place /= sizes[d];
    }
    return coordinates;
  }

  /**
   * Returns the rank at a position of the mesh.
   *
   * @param place the position in row-major order, from 0 to {@code size() - 1}
   */
  public int rankAtPlace(int place) {
    if (place < 0 || place >= size) {
      throw new InvalidArgumentException("place " + place + " is outside mesh " + grid());
    }
    return listed == null ? lowest + place : listed[place];
  }

  /** Returns the row-major position of {@code rank}, from 0; -1 if it is not in the mesh. */
  public int placeOf(int rank) {
    if (rank < lowest || rank > highest) {
      return -1;
    }
    return places == null ? rank - lowest : places[rank - lowest];
  }

  /** Returns true if {@code rank} is in the mesh. */
  public boolean contains(int rank) {
    return placeOf(rank) >= 0;
  }

  /** Returns the ranks in row-major order. */
  public List<Integer> ranks() {
    return new Ranks();
  }

  /** Returns the lowest rank. */
  public int lowestRank() {
    return lowest;
  }

  /** Returns the highest rank. */
  public int highestRank() {
    return highest;
  }

  /** Returns true if the meshes have a rank in common. */
  public boolean overlaps(DeviceMesh other) {
    Objects.requireNonNull(other, "other");
    if (lowest > other.highest || other.lowest > highest) {
      return false;
    }
    if (listed == null && other.listed == null) {
      return true;
    }
    DeviceMesh small = size <= other.size ? this : other;
    DeviceMesh large = small == this ? other : this;
    return small.ranks().stream().anyMatch(large::contains);
  }

  @Override
  public boolean equals(Object object) {
    return object instanceof DeviceMesh other
        && lowest == other.lowest
        && Arrays.equals(sizes, other.sizes)
        && names.equals(other.names)
        && Arrays.equals(listed, other.listed);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * Arrays.hashCode(sizes) + names.hashCode())
        + (listed == null ? lowest : Arrays.hashCode(listed));
  }

  /**
   * Returns the mesh in the form that {@link #parse} reads. {@code @} is left out if ranks are
   * consecutive from 0.
   */
  @Override
  public String toString() {
    return listed == null && lowest == 0 ? grid() : qualified();
  }

  /** Returns the mesh in the form that {@link #parse} reads, always with {@code @}. */
  String qualified() {
    if (listed == null) {
      return grid() + "@" + lowest;
    }
    return grid() + "@[" + Ranges.text(ranks(), ",") + "]";
  }

  private String grid() {
    return IntStream.range(0, sizes.length)
        .mapToObj(d -> (names.get(d).isEmpty() ? "" : names.get(d) + "=") + sizes[d])
        .collect(Collectors.joining("x"));
  }

  private static int checkedSize(int[] sizes) {
    if (sizes.length == 0) {
      throw new InvalidArgumentException("a mesh has at least one dimension");
    }
    long product = 1;
    for (int d = 0; d < sizes.length; d++) {
      if (sizes[d] < 1) {
        throw new InvalidArgumentException(
            "mesh dimension " + d + " has size " + sizes[d] + "; sizes are at least 1");
      }
      product *= sizes[d];
      if (product > MAX_RANKS) {
        throw new InvalidArgumentException(
            "mesh of sizes " + Arrays.toString(sizes) + " has more than " + MAX_RANKS + " ranks");
      }
    }
    return (int) product;
  }

  private static boolean isConsecutive(int[] ranks) {
    return IntStream.range(1, ranks.length).allMatch(i -> ranks[i] == ranks[i - 1] + 1);
  }

  private final class Ranks extends AbstractList<Integer> implements RandomAccess {
    @Override
    public Integer get(int place) {
      if (place < 0 || place >= size) {
        throw new IndexOutOfBoundsException(place);
      }
      return rankAtPlace(place);
    }

    @Override
    public int size() {
      return size;
    }

    @Override
    public boolean contains(Object rank) {
      return rank instanceof Integer r && DeviceMesh.this.contains(r);
    }
  }
}
