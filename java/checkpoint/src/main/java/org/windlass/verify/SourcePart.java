// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.stream.LongStream;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/** Represents a source tensor that is the whole or a part of a written tensor. */
public final class SourcePart {
  private final String name;
  private final Layout from;
  private final Optional<DType> wire;
  private final List<SourcePiece> stored;
  private final Holding whole;
  private final Holding.Place place;

  private SourcePart(
      String name,
      Layout from,
      Optional<DType> wire,
      List<SourcePiece> stored,
      Holding whole,
      Holding.Place place) {
    this.name = name;
    this.from = from;
    this.wire = wire;
    this.stored = stored;
    this.whole = whole;
    this.place = place;
  }

  private SourcePart(
      String name, long[] shape, Layout from, Optional<DType> wire, List<SourcePiece> stored) {
    this(
        name,
        from,
        wire,
        stored,
        Holding.whole(shape),
        Holding.Place.moved(shape.length, 0, 0));
  }

  /**
   * Creates the part for a whole tensor in rank files.
   *
   * @param from the source layout as it applies to this tensor
   * @param wire the wire dtype, if one was requested
   * @param files returns each source rank's file
   */
  public static SourcePart ofRanks(
      String name,
      long[] shape,
      Layout from,
      Optional<DType> wire,
      IntFunction<SafetensorsFile> files) {
    return new SourcePart(name, shape, from, wire, SourcePiece.of(from, shape, name, files));
  }

  /** Creates the part for a tensor that is whole in a file. */
  public static SourcePart ofWhole(
      String name, long[] shape, Layout from, Optional<DType> wire, SafetensorsFile file) {
    return new SourcePart(name, shape, from, wire, SourcePiece.whole(shape, name, file));
  }

  /**
   * Returns some indices of this tensor at their position in another tensor.
   *
   * @param axes for each dimension of that tensor, the dimension of this one, or -1 for a new one
   *     of extent 1
   * @param dim a dimension of that tensor
   * @param source the first index along {@code dim} in this tensor
   * @param target the same index in that tensor
   * @param length the number of indices along {@code dim}
   */
  public SourcePart placed(List<Integer> axes, int dim, long source, long target, long length) {
    Holding.Place at = new Holding.Place(axes, dim, source, target, length);
    return new SourcePart(name, from, wire, stored, whole, at);
  }

  /**
   * Compares every source replica with the first.
   *
   * @param between is called repeatedly by the comparing threads, and may throw to end the
   *     comparison
   * @throws VerificationFailedException naming the tensor, the first index that differs and both
   *     ranks
   */
  public void compareReplicas(Runnable between) {
    for (SourcePiece piece : stored) {
      long elements = Holding.elements(piece.holding().shape());
      for (SourcePiece.Term term : piece.terms()) {
        for (int i = 1; i < term.stored().size(); i++) {
          StoredTensor first = term.stored().get(0);
          StoredTensor other = term.stored().get(i);
          long same = same(first, other, elements, between);
          if (same < elements) {
            throw new VerificationFailedException(
                "tensor \"" + name + "\" differs at index "
                    + Arrays.toString(piece.holding().index(same)) + ": source rank "
                    + term.ranks().get(0) + " holds 0x" + Long.toHexString(first.bits(same))
                    + ", and its replica rank " + term.ranks().get(i) + " holds 0x"
                    + Long.toHexString(other.bits(same)));
          }
        }
      }
    }
  }

  /** Returns the number of equal elements before the first difference. */
  private static long same(
      StoredTensor first, StoredTensor other, long elements, Runnable between) {
    return LongStream.rangeClosed(0, elements / SlowCheck.SHARE)
        .parallel()
        .map(
            share -> {
              between.run();
              long begin = share * SlowCheck.SHARE;
              long count = Math.min(SlowCheck.SHARE, elements - begin);
              long same = first.mismatch(begin, other, begin, count);
              return same < count ? begin + same : elements;
            })
        .min()
        .getAsLong();
  }

  /** Returns the pieces at their positions in the target. */
  List<SourcePiece> pieces() {
    return stored.stream().map(piece -> piece.placed(place)).toList();
  }

  /** Returns the first rank of the source layout that holds an element of the target. */
  String rankOf(long[] index) {
    for (int rank : from.mesh().ranks()) {
      Holding holding = Holding.of(from, whole.shape(), rank).placed(place);
      if (holding.contains(index)) {
        return "source rank " + rank;
      }
    }
    throw new IllegalStateException("no source rank holds " + Arrays.toString(index));
  }

  /**
   * Returns the computation of an element in a target dtype. Each term stores it at the same
   * position.
   */
  SlowValue value(List<SourcePiece.Term> terms, DType target) {
    Optional<ReduceOp> op =
        from.placements().stream()
            .filter(Placement.Partial.class::isInstance)
            .map(placement -> ((Placement.Partial) placement).op())
            .findFirst();
    return new SlowValue(
        terms.stream().map(term -> term.stored().get(0)).toList(), op, wire, target);
  }
}
