// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.windlass.error.ResourceException;
import org.windlass.internal.Fingerprint;
import org.windlass.layout.TensorSpec;

/**
 * Encodes one rank's part of a transfer as the 64-bit words of {@code wl_transfer_config_t} in
 * windlass.h. They describe the rank's views of all tensors, the boxes that it stages, and the
 * boxes that it writes. A process can also encode them for a rank of another process, if it knows
 * the plans and that rank's views.
 *
 * <p>The encoding begins with a fingerprint. The counts of sources, targets, writes and staged
 * boxes follow, each with its number of words. The words of these four lists come last.
 */
public final class TransferWords {
  /** Largest number of words that one buffer can hold. */
  private static final int MOST = Integer.MAX_VALUE / Long.BYTES - 1;

  /** A view in an allocation of {@code bytes} bytes that begins at address {@code low}. */
  public record Binding(
      int dtype, long address, long low, long bytes, long[] shape, long[] strides) {
    /** Returns the view for a rank that holds no element of a tensor. */
    public static Binding empty(TensorSpec spec) {
      long[] none = new long[Math.max(1, spec.extents().length)];
      return new Binding(spec.dtype().code(), 0, 0, 0, none, none);
    }

    private void addTo(LongStream.Builder words) {
      words.add(dtype).add(shape.length).add(address).add(low).add(bytes);
      TransferWords.add(words, shape);
      TransferWords.add(words, strides);
    }
  }

  private TransferWords() {}

  static void add(LongStream.Builder words, long[] more) {
    for (long word : more) {
      words.add(word);
    }
  }

  /**
   * Encodes the part of {@code rank} as the words of this class. Takes the boxes that the rank
   * stages and writes from {@code memo}. If {@code memo} does not have them, computes them and adds
   * them to it.
   *
   * @param source returns the rank's view of a tensor's source
   * @param target returns the rank's view of a tensor's target
   */
  public static long[] of(
      List<BoundTensor> tensors,
      Function<BoundTensor, Binding> source,
      Function<BoundTensor, Binding> target,
      int rank,
      StepsMemo memo) {
    LongStream.Builder sources = LongStream.builder();
    LongStream.Builder targets = LongStream.builder();
    Fingerprint fingerprint = new Fingerprint();
    for (BoundTensor tensor : tensors) {
      fingerprint.add(tensor.from().name());
      fingerprint.add(tensor.to().name());
      fingerprint.add(tensor.plan().fingerprint());
      source.apply(tensor).addTo(sources);
      target.apply(tensor).addTo(targets);
    }
    TransferSteps steps = memo.of(tensors.stream().map(BoundTensor::plan).toList(), rank);
    long[] sourceWords = sources.build().toArray();
    long[] targetWords = targets.build().toArray();
    long[] header = {
      fingerprint.value(),
      tensors.size(),
      sourceWords.length,
      tensors.size(),
      targetWords.length,
      steps.chunkCount(),
      steps.chunks().length,
      steps.stageCount(),
      steps.stages().length
    };
    if (header.length + sourceWords.length + (long) targetWords.length + steps.size() > MOST) {
      throw new ResourceException(
          "register: this rank's part of the plan exceeds " + MOST + " words; split the transfer");
    }
    return Stream.of(header, sourceWords, targetWords, steps.chunks(), steps.stages())
        .flatMapToLong(Arrays::stream)
        .toArray();
  }
}
