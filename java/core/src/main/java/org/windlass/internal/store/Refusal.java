// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.List;
import org.windlass.error.WindlassException;

/** A store's reply instead of a result: a code of the C ABI, a text, and the faulty ranks. */
public final class Refusal extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;
  private final List<Integer> faultyRanks;

  public Refusal(int code, String message) {
    this(code, message, List.of());
  }

  /** @param faultyRanks ranks that are to blame */
  public Refusal(int code, String message, List<Integer> faultyRanks) {
    super(message, null, false, false);
    this.code = code;
    this.faultyRanks = List.copyOf(faultyRanks);
  }

  /** Returns the refusal of an all-gather whose other ranks come no more. */
  public static Refusal othersGone() {
    return new Refusal(Wire.GONE, "those whose ranks were to come have given up");
  }

  /** Returns one of {@code wl_code}, or {@link Wire#GONE}. */
  public int code() {
    return code;
  }

  public List<Integer> faultyRanks() {
    return faultyRanks;
  }

  /** Returns true if the other ranks of an all-gather come no more. */
  public boolean isOthersGone() {
    return code == Wire.GONE;
  }

  /** Returns the exception for the caller of {@code call}, with this as its cause. */
  public RuntimeException thrown(String call) {
    return WindlassException.of(code, call + ": " + getMessage(), this, "", faultyRanks);
  }
}
