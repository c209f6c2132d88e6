// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;

/**
 * Parses layout strings.
 *
 * <pre>
 * layout     MESH ":" PLACEMENT ("," PLACEMENT)*
 * MESH       DIM ("x" DIM)* ["@" RANKS]       DIM = SIZE | NAME "=" SIZE
 * RANKS      FIRST | "[" RANGE ("," RANGE)* "]"
 * PLACEMENT  R | S&lt;dim&gt;["*"&lt;unit&gt;] | SS&lt;dim&gt;"/"&lt;split&gt; | P | P:&lt;op&gt;
 * </pre>
 *
 * <p>Every error names the string, the position (from 0) and the expected text.
 */
final class LayoutParser {
  private final String text;
  private int at;

  LayoutParser(String text) {
    this.text = Objects.requireNonNull(text, "text");
  }

  /** Parses a mesh. Without {@code @}, it begins at rank {@code defaultFirst}. */
  DeviceMesh mesh(int defaultFirst) {
    DeviceMesh mesh = meshPart(defaultFirst);
    expectEnd("':' or the end");
    return mesh;
  }

  /** Parses a layout. Without {@code @}, its mesh begins at rank {@code defaultFirst}. */
  Layout layout(int defaultFirst) {
    DeviceMesh mesh = meshPart(defaultFirst);
    if (!accept(':')) {
      throw error(at, "expected ':' before the placements");
    }
    List<Placement> placements = new ArrayList<>();
    do {
      placements.add(placement());
    } while (accept(','));
    expectEnd("',' or the end");
    if (placements.size() != mesh.ndim()) {
      throw error(
          text.indexOf(':') + 1,
          placements.size() + " placements for " + mesh.ndim() + " mesh dimensions");
    }
    return located(0, () -> new Layout(mesh, placements));
  }

  private DeviceMesh meshPart(int defaultFirst) {
    List<String> names = new ArrayList<>();
    List<Integer> sizes = new ArrayList<>();
    do {
      names.add(dimensionName());
      int start = at;
      int size = (int) number("a mesh dimension's size", DeviceMesh.MAX_RANKS);
      if (size == 0) {
        throw error(start, "a mesh dimension of size 0");
      }
      sizes.add(size);
    } while (accept('x'));
    int[] extents = sizes.stream().mapToInt(Integer::intValue).toArray();
    DeviceMesh mesh = located(0, () -> DeviceMesh.of(names, extents));
    int start = at;
    if (!accept('@')) {
      return located(start, () -> mesh.at(defaultFirst));
    }
    if (!accept('[')) {
      int first = (int) number("a first rank or '['", DeviceMesh.MAX_RANKS - 1);
      return located(start + 1, () -> mesh.at(first));
    }
    int[] ranks = rankList(mesh.size());
    return located(start + 1, () -> mesh.ranks(ranks));
  }

  private String dimensionName() {
    int start = at;
    while (at < text.length() && isNamePart(text.charAt(at), at == start)) {
      at++;
    }
    if (at == start) {
      return "";
    }
    String name = text.substring(start, at);
    if (!accept('=')) {
      throw error(at, "expected '=' after mesh dimension name '" + name + "'");
    }
    return name;
  }

  private int[] rankList(int size) {
    List<Integer> ranks = new ArrayList<>();
    do {
      int start = at;
      int low = (int) number("a rank", DeviceMesh.MAX_RANKS - 1);
      int high =
          accept('-') ? (int) number("the last rank of a range", DeviceMesh.MAX_RANKS - 1) : low;
      if (high < low) {
        throw error(start, "range " + low + "-" + high + " runs backwards");
      }
      if (high - low + 1 > size - ranks.size()) {
        throw error(start, "the list has more ranks than the mesh's " + size + " places");
      }
      IntStream.rangeClosed(low, high).forEach(ranks::add);
    } while (accept(','));
    if (!accept(']')) {
      throw error(at, "expected ',' or ']' in the list of ranks");
    }
    return ranks.stream().mapToInt(Integer::intValue).toArray();
  }

  private Placement placement() {
    int start = at;
    if (accept('R')) {
      return Placement.replicate();
    }
    if (accept('P')) {
      return Placement.partial(accept(':') ? operation() : ReduceOp.SUM);
    }
    if (!accept('S')) {
      throw error(
          at, "expected a placement: R, S<dim>, S<dim>*<unit>, SS<dim>/<split>, P or P:<op>");
    }
    boolean strided = accept('S');
    int dim = (int) number("a tensor dimension", Integer.MAX_VALUE);
    if (!strided) {
      long unit = accept('*') ? number("a unit", Long.MAX_VALUE) : 1;
      return located(start, () -> Placement.shard(dim, unit));
    }
    if (!accept('/')) {
      throw error(at, "expected '/' and the split of a strided shard");
    }
    int split = (int) number("a split", Integer.MAX_VALUE);
    return located(start, () -> Placement.stridedShard(dim, split));
  }

  private ReduceOp operation() {
    int start = at;
    while (at < text.length() && isNamePart(text.charAt(at), false)) {
      at++;
    }
    String name = text.substring(start, at);
    return located(start, () -> ReduceOp.parse(name));
  }

  private long number(String what, long limit) {
    int start = at;
    long value = 0;
    while (at < text.length() && isDigit(text.charAt(at))) {
      int digit = text.charAt(at) - '0';
      if (value > (limit - digit) / 10) {
        throw error(start, what + " is above " + limit);
      }
      value = 10 * value + digit;
      at++;
    }
    if (at == start) {
      throw error(start, "expected " + what);
    }
    return value;
  }

  private boolean accept(char wanted) {
    if (at < text.length() && text.charAt(at) == wanted) {
      at++;
      return true;
    }
    return false;
  }

  private void expectEnd(String what) {
    if (at < text.length()) {
      throw error(at, "expected " + what);
    }
  }

  private <T> T located(int position, Supplier<T> step) {
    try {
      return step.get();
    } catch (InvalidArgumentException e) {
      throw new InvalidArgumentException(
          "layout '" + text + "', position " + position + ": " + e.getMessage(), e);
    }
  }

  private InvalidArgumentException error(int position, String message) {
    String found =
        position < text.length() ? "found '" + text.charAt(position) + "'" : "the string ends";
    return new InvalidArgumentException(
        "layout '" + text + "', position " + position + ": " + message + " (" + found + ")");
  }

  private static boolean isDigit(char c) {
    return c >= '0' && c <= '9';
  }

  private static boolean isNamePart(char c, boolean first) {
    return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || !first && isDigit(c);
  }
}
