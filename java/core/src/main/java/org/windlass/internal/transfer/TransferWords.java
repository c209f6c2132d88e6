// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.LongBuffer;
import java.util.List;
import org.windlass.internal.Fingerprint;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;

/**
 * Encodes one rank's part of a transfer as the words of {@code wl_transfer_config_t} in windlass.h.
 * The words describe the rank's views of all tensors, the boxes that it stages, and the boxes that
 * it writes. A process may make the words of a rank of another process, if it knows the plans and
 * the rank's views.
 *
 * <p>A fingerprint comes first. Then follow the number of sources, targets, chunks and stages, and
 * the number of words of each. Then come their words.
 */
public final class TransferWords {
  /**
   * A view of one tensor, in native terms.
   *
   * @param low address of the allocation that contains the view
   * @param bytes size of the allocation
   */
  public record Binding(
      int dtype, long address, long low, long bytes, long[] shape, long[] strides) {
    /** Returns the binding of a rank that holds no part of a tensor. */
    public static Binding empty(TensorSpec spec) {
      long[] none = new long[Math.max(1, spec.extents().length)];
      return new Binding(spec.dtype().code(), 0, 0, 0, none, none);
    }
  }

  /** A tensor that moves, with one rank's bindings of its parts. */
  public record Bound(TensorSpec from, Binding source, TensorSpec to, Binding target, Plan plan) {}

  private TransferWords() {}

  /** Returns the words of {@code rank}. Computes its steps if {@code memo} does not have them. */
  public static long[] of(List<Bound> tensors, int rank, StepsMemo memo) {
    Words sources = new Words();
    Words targets = new Words();
    Fingerprint fingerprint = new Fingerprint();
    for (Bound tensor : tensors) {
      fingerprint.add(tensor.from().name());
      fingerprint.add(tensor.to().name());
      fingerprint.add(tensor.plan().fingerprint());
      sources.add(tensor.source());
      targets.add(tensor.target());
    }
    TransferSteps steps = memo.of(tensors.stream().map(Bound::plan).toList(), rank);
    long[] header = {
      fingerprint.value(),
      tensors.size(),
      sources.size(),
      tensors.size(),
      targets.size(),
      steps.chunkCount(),
      steps.chunks().size(),
      steps.stageCount(),
      steps.stages().size()
    };
    List<Words> sections = List.of(sources, targets, steps.chunks(), steps.stages());
    long size = header.length + sections.stream().mapToLong(Words::size).sum();
    LongBuffer all = LongBuffer.allocate(Words.checked(size)).put(header);
    sections.forEach(section -> section.into(all));
    return all.array();
  }
}
