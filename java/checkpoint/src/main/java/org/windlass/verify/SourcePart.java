// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/** Represents a source tensor that is the whole or a part of a written tensor. */
public final class SourcePart {
  private final String name;
  private final LayoutFile.Entry entry;
  private final Optional<DType> wire;
  private final List<SourcePiece> stored;
  private final Holding.Place place;

  private SourcePart(
      String name,
      LayoutFile.Entry entry,
      Optional<DType> wire,
      List<SourcePiece> stored,
      Holding.Place place) {
    this.name = name;
    this.entry = entry;
    this.wire = wire;
    this.stored = stored;
    this.place = place;
  }

  /**
   * Creates the part for a whole tensor in rank files.
   *
   * @param entry how the source ranks hold the tensor
   * @param wire the wire dtype, if one was requested
   * @param files returns each source rank's file
   */
  public static SourcePart ofRanks(
      String name, LayoutFile.Entry entry, Optional<DType> wire, IntFunction<SafetensorsFile> files) {
    Holding.Place whole = Holding.Place.whole(entry.shape().size());
    return new SourcePart(name, entry, wire, SourcePiece.of(entry, name, files), whole);
  }

  /**
   * Creates the part for a tensor that is whole in a file.
   *
   * @param entry how the source ranks hold the tensor, for messages
   */
  public static SourcePart ofWhole(
      String name, LayoutFile.Entry entry, Optional<DType> wire, SafetensorsFile file) {
    long[] shape = Holding.longs(entry.shape());
    Holding.Place whole = Holding.Place.whole(shape.length);
    return new SourcePart(name, entry, wire, SourcePiece.whole(shape, name, file), whole);
  }

  /**
   * Maps some indices of this tensor to indices of the written tensor.
   *
   * @param axes for each dimension of the written tensor, the index of this tensor's dimension, or
   *     -1 for a new one of extent 1
   * @param dim the index of the written tensor's dimension along which this tensor is a part
   * @param source the first index along {@code dim} in this tensor
   * @param target the same element's index in the written tensor
   * @param length the number of indices along {@code dim}
   */
  public SourcePart placed(List<Integer> axes, int dim, long source, long target, long length) {
    Holding.Place at = new Holding.Place(axes, dim, source, target, length);
    return new SourcePart(name, entry, wire, stored, at);
  }

  /**
   * Compares every source replica with the first, and the padding in every file with zeros.
   *
   * @param between is called repeatedly by the comparing threads, and may throw to end it
   * @throws VerificationFailedException naming the tensor, the first wrong index and its ranks
   */
  public void compareReplicas(Runnable between) {
    for (SourcePiece piece : stored) {
      for (SourcePiece.Term term : piece.terms()) {
        for (int i = 0; i < term.ranks().size() && entry.padded().isPresent(); i++) {
          String who = "source rank " + term.ranks().get(i);
          term.stored().get(i).requirePadding(piece.holding(), who, between);
        }
        StoredTensor first = term.stored().get(0);
        SlowValue value =
            new SlowValue(List.of(first), Optional.empty(), Optional.empty(), first.dtype());
        for (int i = 1; i < term.stored().size(); i++) {
          int replica = term.ranks().get(i);
          Box.of(this, piece, value, piece.holding(), term.stored().get(i)).stream()
              .flatMap(box -> box.shares(SlowCheck.SHARE).stream())
              .parallel()
              .map(
                  share -> {
                    between.run();
                    return Box.firstDifference(share);
                  })
              .flatMap(Optional::stream)
              .min((a, b) -> Arrays.compare(a.index(), b.index()))
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

  /** Returns the pieces, with the indices of the written tensor. */
  List<SourcePiece> pieces() {
    return stored.stream().map(piece -> piece.placed(place)).toList();
  }

  /** Describes the first source rank that holds an element, by its index in the target. */
  String rankOf(long[] index) {
    for (int rank : layout().mesh().ranks()) {
      if (Holding.of(entry, rank).placed(place).contains(index)) {
        return "source rank " + rank;
      }
    }
    throw new IllegalStateException("no source rank holds " + Arrays.toString(index));
  }

  private Layout layout() {
    return entry.layout().orElseGet(() -> entry.parts().get().layouts().get(0));
  }

  /**
   * Returns the computation of the values that a target of this dtype must have. All terms store an
   * element at the same index.
   */
  SlowValue value(List<SourcePiece.Term> terms, DType target) {
    Optional<ReduceOp> op =
        layout().placements().stream()
            .filter(Placement.Partial.class::isInstance)
            .map(placement -> ((Placement.Partial) placement).op())
            .findFirst();
    return new SlowValue(
        terms.stream().map(term -> term.stored().get(0)).toList(), op, wire, target);
  }
}
