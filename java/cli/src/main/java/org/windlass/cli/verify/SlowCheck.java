// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.verify;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import org.windlass.DType;
import org.windlass.Layout;
import org.windlass.Placement;
import org.windlass.ReduceOp;
import org.windlass.VerificationFailedException;
import org.windlass.checkpoint.SafetensorsFile;

/**
 * Compares a tensor as it was written with what the layouts say about the one that was read. It
 * reads both from their files and goes by the meaning of placements, casts and reductions alone:
 * nothing here comes from the planner, the transfer or the kernels.
 */
public final class SlowCheck {
  private final String name;
  private final long[] shape;
  private final Layout from;
  private final Optional<DType> wire;
  private final List<SourcePiece> pieces;
  private final DType source;
  private final Optional<ReduceOp> op;

  private SlowCheck(
      String name, long[] shape, Layout from, Optional<DType> wire, List<SourcePiece> pieces) {
    this.name = name;
    this.shape = shape;
    this.from = from;
    this.wire = wire;
    this.pieces = pieces;
    this.source = pieces.get(0).terms().get(0).stored().get(0).dtype();
    this.op =
        from.placements().stream()
            .filter(Placement.Partial.class::isInstance)
            .map(placement -> ((Placement.Partial) placement).op())
            .findFirst();
  }

  /**
   * A check of a tensor that lies in rank files.
   *
   * @param from the source layout as it applies to this tensor
   * @param wire the wire dtype, if it was asked for
   * @param files each source rank's file
   */
  public static SlowCheck ofRanks(
      String name, long[] shape, Layout from, Optional<DType> wire, IntFunction<SafetensorsFile> files) {
    return new SlowCheck(name, shape, from, wire, SourcePiece.of(from, shape, name, files));
  }

  /** A check of a tensor that lies whole in a file. */
  public static SlowCheck ofWhole(
      String name, long[] shape, Layout from, Optional<DType> wire, SafetensorsFile file) {
    return new SlowCheck(name, shape, from, wire, SourcePiece.whole(shape, name, file));
  }

  /**
   * Compares every source replica with the first.
   *
   * @throws VerificationFailedException naming the tensor, the first index that differs and both ranks
   */
  public void compareReplicas() {
    for (SourcePiece piece : pieces) {
      for (SourcePiece.Term term : piece.terms()) {
        for (int i = 1; i < term.stored().size(); i++) {
          compareReplica(piece.holding(), term, i);
        }
      }
    }
  }

  private void compareReplica(Holding holding, SourcePiece.Term term, int replica) {
    StoredTensor first = term.stored().get(0);
    StoredTensor other = term.stored().get(replica);
    long elements = elements(holding.shape());
    for (long at = 0; at < elements; ) {
      long count = Math.min(StoredTensor.reach(source), elements - at);
      first.load(at, count);
      other.load(at, count);
      long same = first.mismatch(at, other, at, count);
      if (same < count) {
        throw differs(
            globalIndex(holding, at + same),
            "source rank " + term.ranks().get(0) + " holds 0x" + Long.toHexString(first.bits(at + same))
                + ", and its replica rank " + term.ranks().get(replica) + " holds 0x"
                + Long.toHexString(other.bits(at + same)));
      }
      at += count;
    }
  }

  /**
   * Compares what a target rank was given with what the source says.
   *
   * @throws VerificationFailedException naming the tensor, the first index that differs and both ranks
   */
  public void compareRank(Layout to, int rank, SafetensorsFile file) {
    compare(Holding.of(to, shape, rank), "target rank " + rank, new StoredTensor(file, name));
  }

  /** Compares a whole tensor that was written with what the source says. */
  public void compareWhole(SafetensorsFile file) {
    compare(Holding.whole(shape), "the whole tensor in " + file.path(), new StoredTensor(file, name));
  }

  private void compare(Holding target, String who, StoredTensor stored) {
    long[] local = target.shape();
    if (elements(local) == 0) {
      return;
    }
    int last = local.length - 1;
    long[] outer = new long[Math.max(last, 0)];
    long rowLength = last < 0 ? 1 : local[last];
    long row = 0;
    do {
      compareRow(target, who, stored, outer, row * rowLength);
      row++;
    } while (next(outer, local));
  }

  /**
   * Compares the target's row at the local indices {@code outer}, whose first element is {@code
   * rowStart}.
   */
  private void compareRow(
      Holding target, String who, StoredTensor stored, long[] outer, long rowStart) {
    int last = target.ndim() - 1;
    long[] index = new long[target.ndim()];
    for (int d = 0; d < outer.length; d++) {
      index[d] = target.global(d, outer[d]);
    }
    long covered = 0;
    for (SourcePiece piece : pieces) {
      long at = 0;
      boolean holds = true;
      for (int d = 0; d < outer.length && holds; d++) {
        long local = piece.holding().local(d, index[d]);
        holds = local >= 0;
        at = at * piece.holding().extent(d) + local;
      }
      if (!holds) {
        continue;
      }
      if (last < 0) {
        compareSpan(new Span(piece, 0, 0, 1), who, stored, index);
        covered++;
        continue;
      }
      long pieceRow = at * piece.holding().extent(last);
      for (Holding.Run run : target.runs(last)) {
        for (Holding.Run other : piece.holding().runs(last)) {
          long begin = Math.max(run.start(), other.start());
          long end = Math.min(run.end(), other.end());
          if (begin < end) {
            index[last] = begin;
            compareSpan(
                new Span(
                    piece,
                    pieceRow + other.local() + begin - other.start(),
                    rowStart + run.local() + begin - run.start(),
                    end - begin),
                who,
                stored,
                index);
            covered += end - begin;
          }
        }
      }
    }
    long rowLength = last < 0 ? 1 : target.extent(last);
    if (covered != rowLength) {
      throw new IllegalStateException(
          "tensor " + name + ": the source pieces hold " + covered + " of " + rowLength
              + " elements of a row of " + who);
    }
  }

  /** {@code count} elements that lie side by side in both the source piece and the target. */
  private record Span(SourcePiece piece, long source, long target, long count) {}

  private void compareSpan(Span span, String who, StoredTensor stored, long[] index) {
    List<StoredTensor> terms = new ArrayList<>();
    span.piece().terms().forEach(term -> terms.add(term.stored().get(0)));
    DType target = stored.dtype();
    boolean plain = terms.size() == 1 && target == source && wire.orElse(source) == source;
    long reach = Math.min(StoredTensor.reach(source), StoredTensor.reach(target));
    for (long done = 0; done < span.count(); ) {
      long count = Math.min(reach, span.count() - done);
      long from = span.source() + done;
      long to = span.target() + done;
      stored.load(to, count);
      terms.forEach(term -> term.load(from, count));
      long same =
          plain
              ? terms.get(0).mismatch(from, stored, to, count)
              : firstDifference(terms, from, stored, to, count);
      if (same < count) {
        if (index.length > 0) {
          index[index.length - 1] += done + same;
        }
        throw differs(
            index,
            who + " holds 0x" + Long.toHexString(stored.bits(to + same)) + ", and " + sourceRank(index)
                + " gives 0x" + Long.toHexString(expected(terms, from + same, target)));
      }
      done += count;
    }
  }

  private long firstDifference(
      List<StoredTensor> terms, long from, StoredTensor stored, long to, long count) {
    DType target = stored.dtype();
    boolean anyNan = anyNan(terms, target);
    for (long i = 0; i < count; i++) {
      long found = stored.bits(to + i);
      long expected = expected(terms, from + i, target);
      if (found != expected && !(anyNan && bothNan(target, found, expected))) {
        return i;
      }
    }
    return count;
  }

  private long expected(List<StoredTensor> terms, long element, DType target) {
    long value;
    if (terms.size() == 1) {
      value = terms.get(0).bits(element);
    } else {
      long[] bits = new long[terms.size()];
      for (int i = 0; i < bits.length; i++) {
        bits[i] = terms.get(i).bits(element);
      }
      value = SlowNumber.fold(source, op.orElseThrow(), bits);
    }
    DType between = wire.orElse(source);
    return SlowNumber.cast(between, target, SlowNumber.cast(source, between, value));
  }

  /** Arithmetic on NaNs may give any NaN; max, min and casts give the canonical one. */
  private boolean anyNan(List<StoredTensor> terms, DType target) {
    return terms.size() > 1
        && target == source
        && wire.orElse(source) == source
        && op.filter(o -> o != ReduceOp.MAX && o != ReduceOp.MIN).isPresent()
        && source.canReduce(ReduceOp.AVG);
  }

  private static boolean bothNan(DType dtype, long a, long b) {
    return SlowNumber.isNan(dtype, a) && SlowNumber.isNan(dtype, b);
  }

  /** The first rank of the source layout that holds an element. */
  private String sourceRank(long[] index) {
    for (int rank : from.mesh().ranks()) {
      if (Holding.of(from, shape, rank).contains(index)) {
        return "source rank " + rank;
      }
    }
    return "the source";
  }

  private VerificationFailedException differs(long[] index, String how) {
    return new VerificationFailedException(
        "tensor \"" + name + "\" differs at index " + Arrays.toString(index) + ": " + how);
  }

  private static long[] globalIndex(Holding holding, long element) {
    long[] index = new long[holding.ndim()];
    for (int d = index.length - 1; d >= 0; d--) {
      long extent = holding.extent(d);
      index[d] = holding.global(d, element % extent);
      element /= extent;
    }
    return index;
  }

  private static long elements(long[] shape) {
    long elements = 1;
    for (long extent : shape) {
      elements *= extent;
    }
    return elements;
  }

  /**
   * Steps through all indices of {@code extents} but the last dimension's, row-major; false after
   * the last.
   */
  private static boolean next(long[] outer, long[] extents) {
    for (int d = outer.length - 1; d >= 0; d--) {
      if (++outer[d] < extents[d]) {
        return true;
      }
      outer[d] = 0;
    }
    return false;
  }
}
