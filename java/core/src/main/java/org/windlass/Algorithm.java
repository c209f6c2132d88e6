// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/** How a collective moves its bytes. The results are the same. */
public enum Algorithm {
  /** Whatever is fastest here. */
  AUTO(0),
  /** All-to-all: every rank writes into its peers' outputs. */
  PUSH(1),
  /** All-to-all: every rank reads from its peers' inputs. */
  PULL(2),
  /** Broadcast: the root stages, every other rank reads. */
  STAGED(3);

  private final int code;

  Algorithm(int code) {
    this.code = code;
  }

  /** The number in the C ABI, {@code wl_algorithm}. */
  public int code() {
    return code;
  }

  /** The algorithm named {@code auto}, {@code push}, {@code pull} or {@code staged}. */
  public static Algorithm parse(String name) {
    for (Algorithm algorithm : values()) {
      if (algorithm.toString().equals(name)) {
        return algorithm;
      }
    }
    throw new InvalidArgumentException(
        "algorithm is \"" + name + "\"; known are auto, push, pull and staged");
  }

  @Override
  public String toString() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }
}
