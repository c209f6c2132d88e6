// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.ReduceOp;

/**
 * Computes the values that a target must have for the elements of a piece. It reduces the terms,
 * casts to the wire dtype, and then to the target dtype.
 */
final class SlowValue {
  // From this number of elements on, a table is cheaper if the source has few values.
  private static final long TABLE_FROM = 1 << 16;
  private static final int TABLE_BITS = 16;
  // Number of elements that are compared at a time. If they are adjacent, they fill a run of the
  // widest dtype.
  private static final int BLOCK = 1024;
  private static final int RUN = FilePages.RANGE_BYTES / Long.BYTES;

  private final List<StoredTensor> terms;
  private final Optional<ReduceOp> op;
  private final DType source;
  private final DType wire;
  private final DType target;
  private long @Nullable [] table;

  SlowValue(
      List<StoredTensor> terms, Optional<ReduceOp> op, Optional<DType> wire, DType target) {
    this.terms = terms;
    this.op = op;
    this.source = terms.get(0).dtype();
    this.wire = wire.orElse(source);
    this.target = target;
  }

  private boolean plain() {
    return terms.size() == 1 && source == target && source == wire;
  }

  /**
   * Fills a table of results if that pays for about this many elements. It changes the speed only.
   * Call it before several threads use this object.
   */
  void expect(long elements) {
    if (terms.size() == 1 && !plain() && source.bits() <= TABLE_BITS && elements >= TABLE_FROM) {
      table = new long[1 << source.bits()];
      for (int bits = 0; bits < table.length; bits++) {
        table[bits] = cast(bits);
      }
    }
  }

  private long cast(long bits) {
    return SlowNumber.cast(wire, target, SlowNumber.cast(source, wire, bits));
  }

  /** Returns the bits that the target must have for the source's stored element {@code at}. */
  long bits(long at) {
    return bits(at, 1, 1)[0];
  }

  /** Returns the same for {@code count} stored elements, {@code stride} apart. */
  private long[] bits(long at, long stride, int count) {
    long[][] each = new long[terms.size()][];
    for (int i = 0; i < each.length; i++) {
      each[i] = terms.get(i).bits(at, stride, count);
    }
    long[] bits = each[0];
    if (table != null) {
      for (int i = 0; i < count; i++) {
        bits[i] = table[(int) bits[i]];
      }
      return bits;
    }
    long[] folded = new long[each.length];
    for (int i = 0; i < count; i++) {
      if (each.length > 1) {
        for (int term = 0; term < each.length; term++) {
          folded[term] = each[term][i];
        }
        bits[i] = SlowNumber.fold(source, op.orElseThrow(), folded);
      }
      bits[i] = cast(bits[i]);
    }
    return bits;
  }

  /**
   * Compares elements of a target with the values that they must have.
   *
   * @param at the first stored element of the source; the next are {@code stride} apart
   * @param foundAt the first stored element of the target; the next are {@code foundStride} apart
   * @param count the number of elements
   * @return the number of equal elements before the first that differs, {@code count} if none does
   */
  long mismatch(
      long at, long stride, StoredTensor found, long foundAt, long foundStride, long count) {
    if (plain() && (count == 1 || stride == 1 && foundStride == 1)) {
      return terms.get(0).mismatch(at, found, foundAt, count);
    }
    int most = stride == 1 && foundStride == 1 ? RUN : BLOCK;
    for (long done = 0; done < count; done += most) {
      int block = (int) Math.min(most, count - done);
      long[] expected = bits(at + done * stride, stride, block);
      long[] bits = found.bits(foundAt + done * foundStride, foundStride, block);
      for (int i = 0; i < block; i++) {
        if (bits[i] != expected[i] && !(anyNan() && bothNan(bits[i], expected[i]))) {
          return done + i;
        }
      }
    }
    return count;
  }

  /**
   * Returns whether the target may have any NaN where a NaN is expected. Arithmetic on NaNs may
   * give any NaN, but max, min and casts give the canonical one.
   */
  private boolean anyNan() {
    return terms.size() > 1
        && target == source
        && wire == source
        && op.filter(o -> o != ReduceOp.MAX && o != ReduceOp.MIN).isPresent()
        && source.canReduce(ReduceOp.AVG);
  }

  private boolean bothNan(long a, long b) {
    return SlowNumber.isNan(target, a) && SlowNumber.isNan(target, b);
  }
}
