// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Compares a written tensor with the values that the layouts and the source tensors define. It
 * reads both from their files. It uses only the definitions of placements, casts and reductions,
 * and no code of the planner, the transfer or the kernels.
 *
 * @param name the name of the written tensor
 * @param shape its global shape
 * @param parts the source tensors that it is made of
 * @param between is called repeatedly by the comparing threads. An exception ends the comparison
 */
public record SlowCheck(String name, long[] shape, List<SourcePart> parts, Runnable between) {
  /**
   * Compares the replicas of every source tensor.
   *
   * @throws VerificationFailedException naming tensor, index and both ranks
   */
  public static void compareReplicas(Checkpoint in, List<TensorMove> moves, Runnable between) {
    Set<String> seen = new HashSet<>();
    for (TensorMove move : moves) {
      if (seen.add(move.source().name())) {
        part(in, move).compareReplicas(between);
      }
    }
  }

  /**
   * Reads all written tensors and compares them with the values computed from the source tensors.
   *
   * @throws VerificationFailedException naming tensor, index and both ranks
   */
  public static void compare(
      Checkpoint in, List<TensorMove> moves, Output output, Runnable between) {
    Map<TargetTensor, List<SourcePart>> parts = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      List<SourcePart> made = parts.computeIfAbsent(move.target(), key -> new ArrayList<>());
      SourcePart part = part(in, move);
      for (TensorMove.Segment segment : move.segments()) {
        made.add(part.placed(move.axes().stored(), move.dim(), segment));
      }
    }
    Map<Path, SafetensorsFile> reread = new HashMap<>();
    Function<TargetTensor, Map<Integer, Output.Place>> places = output.places();
    try {
      parts.forEach(
          (target, made) -> {
            SlowCheck check = new SlowCheck(target.name(), target.shape(), made, between);
            places
                .apply(target)
                .forEach(
                    (rank, place) -> {
                      SafetensorsFile file =
                          reread.computeIfAbsent(place.file().path(), SafetensorsFile::open);
                      String who =
                          output.isWhole()
                              ? "the whole tensor in " + file.path()
                              : "target rank " + (rank + target.firstRank());
                      check.compare(who, target.division(), rank, file);
                    });
          });
    } finally {
      reread.values().forEach(SafetensorsFile::close);
    }
  }

  private static SourcePart part(Checkpoint in, TensorMove move) {
    SourceTensor source = move.source();
    Optional<SafetensorsFile> whole =
        in.byRank() ? Optional.empty() : Optional.of(in.whole(source.stored()));
    return new SourcePart(
        source.stored(), source.shape(), source.division(), move.wire(), whole, in.ranks()::get);
  }

  /**
   * Compares a target rank's tensor with the expected values, and its padding with zeros.
   *
   * @param who names the rank, for messages
   * @param division how ranks hold the tensor
   * @throws VerificationFailedException naming the tensor, the first wrong index and both ranks
   */
  public void compare(String who, Division division, int rank, SafetensorsFile file) {
    Runs target = Holding.of(division, shape, rank);
    StoredTensor stored = new StoredTensor(file, name);
    List<Box> boxes = parts.stream().flatMap(part -> part.boxes(target, stored).stream()).toList();
    long covered = boxes.stream().mapToLong(Box::elements).sum();
    long elements = target.elements(new long[shape.length], shape);
    if (covered != elements) {
      throw new IllegalStateException(
          "tensor " + name + ": the source pieces hold " + covered + " of " + elements
              + " elements of " + who);
    }
    Box.firstDifference(boxes, between)
        .ifPresent(
            first -> {
              throw new VerificationFailedException(
                  "tensor \"" + name + "\" differs at index " + Arrays.toString(first.index()) + ": "
                      + who + " holds 0x" + Long.toHexString(first.found()) + ", and "
                      + first.part().rankOf(first.index()) + " gives 0x"
                      + Long.toHexString(first.expected()));
            });
    stored.requirePadding(target, who, between);
  }
}
