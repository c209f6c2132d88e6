// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Named;

/**
 * Selects the way in which a collective moves its bytes. The results are the same, except that the
 * rings of an all-reduce add in another order.
 */
public enum Algorithm {
  /** The fastest algorithm for the operation on this machine. */
  AUTO(0),
  /** All-to-all: every rank writes into its peers' outputs. */
  PUSH(1),
  /** All-to-all: every rank reads from its peers' inputs. */
  PULL(2),
  /** Broadcast: the root writes to staging buffers, and every other rank reads them. */
  STAGED(3),
  /** All-reduce: every rank reduces all elements of all inputs. */
  ONE_PHASE(4),
  /** All-reduce: every rank reduces its share of all inputs and writes the result to every rank. */
  TWO_PHASE(5),
  /**
   * All-reduce: each rank passes partial sums, and then results, to the next rank. Needs at most
   * 128 ranks.
   */
  RING(6),
  /** All-reduce: like {@link #RING}, with half of the elements in each direction. */
  BIDIRECTIONAL_RING(7);

  private final int code;

  Algorithm(int code) {
    this.code = code;
  }

  /** Returns the algorithm's number in the C ABI, {@code wl_algorithm}. */
  public int code() {
    return code;
  }

  /**
   * Returns the algorithm with a name: {@code auto}, {@code push}, {@code one-phase} and so on.
   *
   * @throws InvalidArgumentException if there is no such algorithm
   */
  public static Algorithm parse(String name) {
    Objects.requireNonNull(name, "name");
    return Named.of(
        name, List.of(values()), "algorithm is \"" + name + "\"; known are ");
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
