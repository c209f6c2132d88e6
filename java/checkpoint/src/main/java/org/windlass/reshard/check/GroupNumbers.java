// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.windlass.DType;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.InvalidArgumentException;
import org.windlass.reshard.tensor.Moves;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Checks the tensor {@code g_idx} of a GPTQ weight, which gives each input of the weight the number
 * of its group. All inputs of a group share their scales.
 *
 * <p>If the groups are in the order of the inputs, they are cut together with the inputs. If they
 * are in another order (act-order), any input may belong to any group. Then a rank takes the scales
 * of all groups, and weights with different orders can't be joined.
 */
public final class GroupNumbers {
  private final Checkpoint in;
  private final Moves moves;
  private final Map<String, SourceTensor> numbersOf = new HashMap<>();
  private final Map<String, List<TensorMove>> scalesOf = new HashMap<>();
  private final Doubts doubts;

  private GroupNumbers(Checkpoint in, Moves moves, Doubts doubts) {
    this.in = in;
    this.moves = moves;
    this.doubts = doubts;
  }

  static boolean isName(String name) {
    return name.endsWith("g_idx");
  }

  static boolean isShape(String name) {
    return name.endsWith("weight_shape");
  }

  private static boolean isNumbers(SourceTensor tensor) {
    boolean isWhole = tensor.dtype() == DType.I32 || tensor.dtype() == DType.I64;
    return isName(tensor.name()) && isWhole && tensor.shape().length == 1;
  }

  /**
   * Returns the index of a stored weight's dimension that runs over its inputs: 0 (rows) in GPTQ,
   * the last one (columns) in other packed weights.
   */
  static int inputs(SourceTensor weight) {
    return weight.name().endsWith("qweight") ? 0 : weight.shape().length - 1;
  }

  /**
   * Checks the group numbers of all weights.
   *
   * @param doubts receives a warning if group numbers refer to the whole weight, but a file holds
   *     only some of its groups
   * @throws InvalidArgumentException with a message that names the tensor and a rule that would
   *     work
   */
  public static void check(Checkpoint in, Scales scales, Moves moves, Doubts doubts) {
    List<Scales.Pair> pairs = scales.pairs();
    GroupNumbers numbers = new GroupNumbers(in, moves, doubts);
    pairs.forEach(numbers::add);
    pairs.stream().filter(pair -> isNumbers(pair.scale())).forEach(numbers::check);
    pairs.forEach(numbers::lookAtShape);
  }

  private void add(Scales.Pair pair) {
    String weight = pair.weight().name();
    if (isNumbers(pair.scale())) {
      numbersOf.put(weight, pair.scale());
    } else {
      scalesOf
          .computeIfAbsent(weight, key -> new ArrayList<>())
          .add(move(pair.scale()));
    }
  }

  private TensorMove move(SourceTensor tensor) {
    return moves.of(tensor).get(0);
  }

  private void lookAtShape(Scales.Pair pair) {
    String name = pair.scale().name();
    TensorMove weight = move(pair.weight());
    boolean isOfWhole = isShape(name) || name.contains(".bitsandbytes__");
    if (isShape(name) && weight.isPart()) {
      doubts.add(name, "they tell the shapes that weights had before rules joined or split them");
    } else if (isOfWhole && weight.isCut()) {
      doubts.add(name, "they tell the shape of the whole weight, of which each file has a part");
    }
  }

  private void check(Scales.Pair pair) {
    TensorMove weight = move(pair.weight());
    if (in.byRank() || weight.isPart() || isCut(pair.weight())) {
      checkGroups(pair);
    }
    if (weight.isPart()) {
      checkJoined(pair, weight, moves.into(weight.target()));
    }
    if (isCut(pair.weight())) {
      if (!isInOrder(pair)) {
        throw new InvalidArgumentException(
            "tensor \"" + pair.scale().name() + "\": the inputs of \"" + pair.weight().name()
                + "\" are not in the order of their groups (act-order), so that a rank takes scales of"
                + " any group, and the layout cuts them; rules that give the scales and zero points "
                + weight.target().to().mesh().size() + ":R keep them whole");
      }
      doubts.add(
          pair.scale().name(),
          "they count the groups of the whole weight, of which each file has a part");
    }
  }

  /** Throws unless the group numbers range over exactly the groups that have scales. */
  private void checkGroups(Scales.Pair pair) {
    long[] numbers = values(pair.scale());
    long groups = groups(pair.weight());
    long named = LongStream.of(numbers).distinct().count();
    boolean areWithin = LongStream.of(numbers).allMatch(number -> number >= 0 && number < groups);
    if (groups > 0 && !isUnset(numbers) && (!areWithin || named != groups)) {
      throw new InvalidArgumentException(
          "tensor \"" + pair.scale().name() + "\" names " + named + " groups of the inputs of \""
              + pair.weight().name() + "\", and its scales have " + groups
              + ": each rank of IN may count its own from 0; ignoreScales() takes them as they are");
    }
  }

  /** Returns the number of groups in a weight's scales, or 0 if no scales run along its inputs. */
  private long groups(SourceTensor weight) {
    return scalesOf.getOrDefault(weight.name(), List.of()).stream()
        .map(scale -> scale.source().shape())
        .filter(shape -> shape.length == weight.shape().length)
        .mapToLong(shape -> shape[inputs(weight)])
        .max()
        .orElse(0);
  }

  /**
   * Returns whether all group numbers are -1. Some libraries write -1 if the groups are in the
   * order of the inputs.
   */
  private static boolean isUnset(long[] numbers) {
    return LongStream.of(numbers).allMatch(number -> number == -1);
  }

  private void checkJoined(Scales.Pair pair, TensorMove weight, List<TensorMove> parts) {
    String them = "tensor \"" + pair.scale().name() + "\" numbers the groups of \"" + pair.weight().name() + "\"";
    if (weight.axes().stored().get(weight.dim()) == inputs(pair.weight())) {
      throw new InvalidArgumentException(
          them + "; a rule joins or splits these weights along their input dimension, but the group"
              + " numbers of each begin at 0");
    }
    if (moves.into(move(pair.scale()).target()).size() > 1) {
      throw new InvalidArgumentException(
          them + ", and a rule joins them with those of others; weights that are joined along their"
              + " outputs have one in common: leave each apart");
    }
    long[] own = values(pair.scale());
    for (TensorMove part : parts) {
      SourceTensor other = numbersOf.get(part.source().name());
      if (other == null || !Arrays.equals(own, values(other))) {
        throw new InvalidArgumentException(
            them + ", and \"" + part.source().name() + "\", with which that is joined, has "
                + (other == null ? "none" : "others in \"" + other.name() + "\"")
                + ": in one weight all outputs have the same groups; leave them apart");
      }
    }
    String module = Scales.module(weight.target().name());
    boolean isThere =
        parts.stream()
            .map(part -> Objects.requireNonNull(numbersOf.get(part.source().name())))
            .map(numbers -> move(numbers).target().name())
            .anyMatch(name -> Scales.module(name).equals(module));
    if (!isThere && !isInOrder(pair)) {
      throw new InvalidArgumentException(
          them + ", which are not in the order of the inputs (act-order), and \"" + weight.target().name()
              + "\" gets none; the rule {\"match\": \"" + pair.scale().name() + "\", \"as\": \"" + module
              + Purpose.last(pair.scale().name()) + "\"} gives it the same numbers");
    }
  }

  /** Returns whether a file holds the scales of only some groups of that weight. */
  private boolean isCut(SourceTensor weight) {
    int inputs = inputs(weight);
    return scalesOf.getOrDefault(weight.name(), List.of()).stream()
            .anyMatch(
                scale -> {
                  int written = scale.axes().stored().indexOf(inputs);
                  return written >= 0 && scale.target().isCut(written);
                });
  }

  private boolean isInOrder(Scales.Pair pair) {
    long[] numbers = values(pair.scale());
    long groups = groups(pair.weight());
    if (isUnset(numbers) || groups == 0) {
      return isUnset(numbers);
    }
    long size = (numbers.length + groups - 1) / groups;
    for (int i = 0; i < numbers.length; i++) {
      if (numbers[i] != i / size) {
        return false;
      }
    }
    return true;
  }

  private long[] values(SourceTensor tensor) {
    long[] all = new long[Math.toIntExact(TargetTensor.elements(tensor.shape()))];
    if (!in.byRank()) {
      return values(in.whole(tensor.stored()), tensor, all.length);
    }
    for (int rank : tensor.from().mesh().ranks()) {
      Runs runs = tensor.held(rank);
      SafetensorsFile file = Objects.requireNonNull(in.ranks().get(rank));
      long[] own = values(file, tensor, Math.toIntExact(runs.shape()[0]));
      for (Runs.Run run : runs.dims().get(0)) {
        System.arraycopy(
            own, (int) run.local(), all, (int) run.start(), (int) (run.end() - run.start()));
      }
    }
    return all;
  }

  private static long[] values(SafetensorsFile file, SourceTensor tensor, int elements) {
    int bytes = tensor.dtype().bytes();
    ByteBuffer stored = ByteBuffer.allocate(elements * bytes).order(ByteOrder.LITTLE_ENDIAN);
    file.read(tensor.stored(), 0, stored);
    return IntStream.range(0, elements)
        .mapToLong(i -> bytes == Long.BYTES ? stored.getLong(i * bytes) : stored.getInt(i * bytes))
        .toArray();
  }
}
