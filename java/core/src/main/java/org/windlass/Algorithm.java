// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;
import org.windlass.error.InvalidArgumentException;

/**
 * The ways in which a collective moves its bytes. The results are the same, except that the rings
 * of an all-reduce add in another order.
 */
public enum Algorithm {
  /** Whatever is fastest here. */
  AUTO(0),
  /** All-to-all: every rank writes into its peers' outputs. */
  PUSH(1),
  /** All-to-all: every rank reads from its peers' inputs. */
  PULL(2),
  /** Broadcast: the root stages, every other rank reads. */
  STAGED(3),
  /** All-reduce: every rank folds every input. */
  ONE_PHASE(4),
  /** All-reduce: every rank folds its share of every input, and writes it to every rank. */
  TWO_PHASE(5),
  /** All-reduce: sums, then results, travel from rank to rank. Needs at most 128 ranks. */
  RING(6),
  /** All-reduce: as {@link #RING}, half of the elements each way. */
  BIDIRECTIONAL_RING(7);

  private final int code;

  Algorithm(int code) {
    this.code = code;
  }

  /** The number in the C ABI, {@code wl_algorithm}. */
  public int code() {
    return code;
  }

  /** The algorithm of a name: {@code auto}, {@code push}, {@code one-phase} and so on. */
  public static Algorithm parse(String name) {
    Objects.requireNonNull(name, "name");
    for (Algorithm algorithm : values()) {
      if (algorithm.toString().equals(name)) {
        return algorithm;
      }
    }
    throw new InvalidArgumentException(
        "algorithm is \"" + name + "\"; known are "
            + Arrays.stream(values()).map(Algorithm::toString).collect(Collectors.joining(", ")));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
