// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TensorMove;

/** Represents a source tensor that is the whole or a part of a written tensor. */
public final class SourcePart {
  /**
   * Represents one term of a reduction.
   *
   * @param ranks the ranks that hold replicas of the term, in the mesh's order
   * @param stored each rank's copy
   */
  record Term(List<Integer> ranks, List<StoredTensor> stored) {}

  /**
   * Groups the ranks of a source layout that hold the same indices of a tensor.
   *
   * @param held those indices
   * @param strides for each dimension, the distance between two neighbours in the file, in elements
   * @param terms the terms in the order in which they are reduced, row-major over the mesh; a
   *     single one unless the layout is Partial
   */
  record Piece(Runs held, long[] strides, List<Term> terms) {}

  /**
   * Maps indices of the source to those of the written tensor.
   *
   * @param axes for each written dimension, the index of the source's, or -1 for a new one
   * @param dim the written dimension along which the source is a part
   * @param segment the indices along {@code dim} that are mapped
   */
  private record Place(List<Integer> axes, int dim, TensorMove.Segment segment) {
    Runs of(Runs held) {
      List<List<Runs.Run>> placed = new ArrayList<>();
      for (int d = 0; d < axes.size(); d++) {
        int axis = axes.get(d);
        List<Runs.Run> runs = axis < 0 ? List.of(new Runs.Run(0, 1, 0)) : held.dims().get(axis);
        long begin = segment.source();
        placed.add(
            d == dim
                ? Holding.clipped(runs, begin, begin + segment.length(), segment.target() - begin)
                : runs);
      }
      return new Runs(placed, held.shape());
    }

    Piece of(Piece piece) {
      long[] strides = axes.stream().mapToLong(d -> d < 0 ? 0 : piece.strides()[d]).toArray();
      return new Piece(of(piece.held()), strides, piece.terms());
    }
  }

  private final String name;
  private final long[] shape;
  private final Division division;
  private final Optional<DType> wire;
  private final List<Piece> stored;
  private final Place place;

  private SourcePart(SourcePart whole, Place place) {
    this.name = whole.name;
    this.shape = whole.shape;
    this.division = whole.division;
    this.wire = whole.wire;
    this.stored = whole.stored;
    this.place = place;
  }

  /**
   * Creates the part for a whole tensor.
   *
   * @param division how the source ranks hold the tensor
   * @param wire the wire dtype, if one was requested
   * @param whole the file that has the whole tensor; if empty, ranks have it
   * @param files returns each source rank's file
   */
  public SourcePart(
      String name,
      long[] shape,
      Division division,
      Optional<DType> wire,
      Optional<SafetensorsFile> whole,
      IntFunction<SafetensorsFile> files) {
    this.name = name;
    this.shape = shape;
    this.division = division;
    this.wire = wire;
    this.stored =
        whole
            .map(file -> pieces(Division.plain(Layout.parse("1:R"), shape), rank -> file))
            .orElseGet(() -> pieces(division, files));
    List<Integer> axes = IntStream.range(0, shape.length).boxed().toList();
    this.place = new Place(axes, 0, new TensorMove.Segment(0, 0, Long.MAX_VALUE));
  }

  private List<Piece> pieces(Division held, IntFunction<SafetensorsFile> files) {
    List<Piece> pieces = new ArrayList<>();
    for (int part = 0; part < held.layouts().size(); part++) {
      Layout layout = held.layouts().get(part);
      Map<List<Integer>, Integer> byCut = new LinkedHashMap<>();
      Map<List<List<Integer>>, Term> terms = new LinkedHashMap<>();
      for (int rank : layout.mesh().ranks()) {
        List<Integer> cut = new ArrayList<>();
        List<Integer> partial = new ArrayList<>();
        int[] coordinates = Holding.coordinates(layout, rank);
        for (int m = 0; m < coordinates.length; m++) {
          Placement placement = layout.placements().get(m);
          if (placement instanceof Placement.Partial) {
            partial.add(coordinates[m]);
          } else if (!(placement instanceof Placement.Replicate)) {
            cut.add(coordinates[m]);
          }
        }
        if (byCut.putIfAbsent(cut, pieces.size()) == null) {
          Runs runs = Holding.of(held, shape, rank, part);
          pieces.add(new Piece(runs, Holding.rowMajor(runs.shape()), new ArrayList<>()));
        }
        Term term = terms.get(List.of(cut, partial));
        if (term == null) {
          term = new Term(new ArrayList<>(), new ArrayList<>());
          terms.put(List.of(cut, partial), term);
          pieces.get(byCut.get(cut)).terms().add(term);
        }
        term.ranks().add(rank);
        term.stored().add(new StoredTensor(files.apply(rank), name));
      }
    }
    return pieces;
  }

  /**
   * Maps some indices of this tensor to indices of the written tensor.
   *
   * @param axes for each dimension of the written tensor, the index of this tensor's dimension, or
   *     -1 for a new one of extent 1
   * @param dim the index of the written tensor's dimension along which this tensor is a part
   * @param segment the indices along {@code dim}
   */
  public SourcePart placed(List<Integer> axes, int dim, TensorMove.Segment segment) {
    return new SourcePart(this, new Place(axes, dim, segment));
  }

  /**
   * Compares every source replica with the first, and the padding in every file with zeros.
   *
   * @param between is called repeatedly by the comparing threads, and may throw to end it
   * @throws VerificationFailedException naming the tensor, the first wrong index and its ranks
   */
  public void compareReplicas(Runnable between) {
    for (Piece piece : stored) {
      for (Term term : piece.terms()) {
        for (int i = 0; i < term.ranks().size() && division.isPadded(shape); i++) {
          String who = "source rank " + term.ranks().get(i);
          term.stored().get(i).requirePadding(piece.held(), who, between);
        }
        StoredTensor first = term.stored().get(0);
        SlowValue value =
            new SlowValue(List.of(first), Optional.empty(), Optional.empty(), first.dtype());
        for (int i = 1; i < term.stored().size(); i++) {
          int replica = term.ranks().get(i);
          List<Box> boxes = Box.of(this, piece, value, piece.held(), term.stored().get(i));
          Box.firstDifference(boxes, between)
              .ifPresent(
                  differs -> {
                    throw new VerificationFailedException(
                        "tensor \"" + name + "\" differs at index "
                            + Arrays.toString(differs.index()) + ": source rank "
                            + term.ranks().get(0) + " holds 0x"
                            + Long.toHexString(differs.expected()) + ", and its replica rank "
                            + replica + " holds 0x" + Long.toHexString(differs.found()));
                  });
        }
      }
    }
  }

  /**
   * Returns the elements that this part and a target rank both hold.
   *
   * @param target the indices that the rank holds
   * @param found the rank's tensor
   */
  List<Box> boxes(Runs target, StoredTensor found) {
    List<Box> boxes = new ArrayList<>();
    for (Piece piece : stored) {
      // All terms store an element at the same index.
      List<StoredTensor> terms = piece.terms().stream().map(term -> term.stored().get(0)).toList();
      SlowValue value = new SlowValue(terms, division.layout().partialOp(), wire, found.dtype());
      List<Box> own = Box.of(this, place.of(piece), value, target, found);
      value.expect(own.stream().mapToLong(Box::elements).sum());
      boxes.addAll(own);
    }
    return boxes;
  }

  /** Describes the first source rank that holds an element, by its index in the target. */
  String rankOf(long[] index) {
    for (int rank : division.layout().mesh().ranks()) {
      List<List<Runs.Run>> dims = place.of(Holding.of(division, shape, rank)).dims();
      if (IntStream.range(0, index.length)
          .allMatch(
              d ->
                  dims.get(d).stream()
                      .anyMatch(run -> index[d] >= run.start() && index[d] < run.end()))) {
        return "source rank " + rank;
      }
    }
    throw new IllegalStateException("no source rank holds " + Arrays.toString(index));
  }
}
