// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.error.InvalidArgumentException;
import org.windlass.reshard.tensor.ByteIndices;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Reads the padding of source tensors, which no target contains. Padding must be zero. If a value
 * in it is not zero, the shape given for the tensor is wrong, and a run would lose values.
 */
public final class Padding {
  private static final int READ_BYTES = 512 << 10;

  private final Team team;
  private final Runnable check;
  private final ByteBuffer memory = ByteBuffer.allocateDirect(READ_BYTES);
  private final ByteBuffer zeros = ByteBuffer.allocateDirect(READ_BYTES);
  private final ByteBuffer scratch = ByteBuffer.allocateDirect(FileBox.SCRATCH_BYTES);

  private Padding(Team team, Runnable check) {
    this.team = team;
    this.check = check;
  }

  /**
   * Checks that the padding of every source tensor is zero.
   *
   * @param check throws an exception if the run must end
   * @throws InvalidArgumentException with a message that names the tensor and the first value that
   *     is not zero
   */
  public static void requireZeros(
      Checkpoint in, List<TensorMove> moves, Team team, Runnable check) {
    Set<String> seen = new HashSet<>();
    for (TensorMove move : moves) {
      SourceTensor source = move.source();
      if (source.division().isPadded(source.shape()) && seen.add(source.stored())) {
        new Padding(team, check).requireZeros(source, new SourceFiles(in, move));
      }
    }
  }

  private void requireZeros(SourceTensor source, SourceFiles files) {
    ByteIndices indices = new ByteIndices(source.dtype());
    long[] own = indices.shape(source.shape());
    long[] padded = indices.shape(source.division().paddedShape());
    long most = Math.max(READ_BYTES / ((long) files.terms() * files.dtype().bytes()), 1);
    for (int dim = 0; dim < own.length; dim++) {
      long[] extents = padded.clone();
      extents[dim] -= own[dim];
      Grid grid = Grid.of(extents, List.of(Grid.rowMajor(own.length)), 1, most);
      for (long i = 0; i < grid.count(); i++) {
        check.run();
        long[] start = grid.start(i);
        long[] shape = grid.shape(start);
        start[dim] += own[dim];
        requireZeros(source, files, dim, start, shape);
      }
    }
  }

  private void requireZeros(
      SourceTensor source, SourceFiles files, int dim, long[] start, long[] shape) {
    long elements = TargetTensor.elements(shape);
    int bytes = (int) (files.terms() * elements * files.dtype().bytes());
    files.read(start, shape, memory, scratch, team);
    int at = memory.clear().limit(bytes).mismatch(zeros.clear().limit(bytes));
    if (at < 0) {
      return;
    }
    long[] index = start.clone();
    long element = at / files.dtype().bytes() % elements;
    for (int d = index.length - 1; d >= 0; d--) {
      index[d] += element % shape[d];
      element /= shape[d];
    }
    // In dtypes of less than a byte, the last index counts bytes.
    index[index.length - 1] =
        index[index.length - 1] * files.dtype().bits() / source.dtype().bits();
    throw new InvalidArgumentException(
        "tensor \"" + source.name() + "\": its rule or layout.json gives the shape "
            + Arrays.toString(source.shape()) + ", so indices from " + source.shape()[dim]
            + " of dimension " + dim + " count as padding, but the value at "
            + Arrays.toString(index) + " is not zero. Correct \"shape\"; or, if this is data,"
            + " remove \"pad_to\" from the rule and \"padded\" from layout.json");
  }
}
