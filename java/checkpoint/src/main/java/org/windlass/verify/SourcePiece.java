// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntFunction;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Groups the ranks of a source layout that hold the same indices of a tensor.
 *
 * @param holding those indices
 * @param strides for each dimension, the distance between two neighbours in the file, in elements
 * @param terms the terms in the order in which they are reduced, row-major over the mesh; a single
 *     one unless the layout is Partial
 */
record SourcePiece(Holding holding, long[] strides, List<Term> terms) {
  /**
   * Represents one term of the reduction.
   *
   * @param ranks the ranks that hold replicas of the term, in the mesh's order
   * @param stored each rank's copy
   */
  record Term(List<Integer> ranks, List<StoredTensor> stored) {}

  static List<SourcePiece> of(
      LayoutFile.Entry entry, String name, IntFunction<SafetensorsFile> files) {
    List<SourcePiece> all = new ArrayList<>();
    entry
        .layout()
        .ifPresent(each -> add(all, each, rank -> Holding.of(entry, rank), name, files));
    List<Layout> parts = entry.parts().map(LayoutFile.Parts::layouts).orElse(List.of());
    for (int i = 0; i < parts.size(); i++) {
      int part = i;
      add(all, parts.get(i), rank -> Holding.of(entry, rank, part, part + 1), name, files);
    }
    return all;
  }

  private static void add(
      List<SourcePiece> all,
      Layout layout,
      IntFunction<Holding> held,
      String name,
      IntFunction<SafetensorsFile> files) {
    Map<List<Integer>, Map<List<Integer>, Term>> pieces = new LinkedHashMap<>();
    Map<List<Integer>, Holding> holdings = new LinkedHashMap<>();
    for (int rank : layout.mesh().ranks()) {
      int[] coordinates = Holding.coordinates(layout, rank);
      List<Integer> cut = new ArrayList<>();
      List<Integer> partial = new ArrayList<>();
      for (int m = 0; m < coordinates.length; m++) {
        Placement placement = layout.placements().get(m);
        if (placement instanceof Placement.Partial) {
          partial.add(coordinates[m]);
        } else if (!(placement instanceof Placement.Replicate)) {
          cut.add(coordinates[m]);
        }
      }
      holdings.computeIfAbsent(cut, key -> held.apply(rank));
      Term term =
          pieces
              .computeIfAbsent(cut, key -> new LinkedHashMap<>())
              .computeIfAbsent(partial, key -> new Term(new ArrayList<>(), new ArrayList<>()));
      term.ranks().add(rank);
      term.stored().add(new StoredTensor(files.apply(rank), name));
    }
    pieces.forEach(
        (cut, terms) -> {
          Holding holding = Objects.requireNonNull(holdings.get(cut));
          all.add(stored(holding, List.copyOf(terms.values())));
        });
  }

  static List<SourcePiece> whole(long[] shape, String name, SafetensorsFile file) {
    Term term = new Term(List.of(), List.of(new StoredTensor(file, name)));
    return List.of(stored(Holding.whole(shape), List.of(term)));
  }

  private static SourcePiece stored(Holding holding, List<Term> terms) {
    return new SourcePiece(holding, Holding.rowMajor(holding.shape()), terms);
  }

  /** Returns this piece with its indices mapped to those of another tensor. */
  SourcePiece placed(Holding.Place place) {
    long[] placed = place.axes().stream().mapToLong(d -> d < 0 ? 0 : strides[d]).toArray();
    return new SourcePiece(holding.placed(place), placed, terms);
  }
}
