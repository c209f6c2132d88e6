// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.util.Arrays;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;

final class ExpertAgreement {
  private static final String[] NAMES = {
    "experts", "topK", "hidden", "tokens", "dtype", "rows", "alignment", "quantised"
  };

  private ExpertAgreement() {}

  /**
   * Throws InvalidArgumentException on all ranks, if a rank's options differ from rank 0's. The
   * call is collective.
   */
  static void check(Communicator communicator, ExpertOptions options) {
    long[] own = {
      options.experts(),
      options.topK(),
      options.hidden(),
      options.tokens(),
      options.dtype().ordinal(),
      options.rows(),
      options.alignment(),
      options.quantised() ? 1 : 0
    };
    long[][] all =
        Gathered.words(communicator, () -> Deadline.DEFAULT, Native.WL_OP_EXPERTS_OPEN, own);
    for (int rank = 1; rank < all.length; rank++) {
      int option = Arrays.mismatch(all[rank], all[0]);
      if (option >= 0) {
        throw new InvalidArgumentException(
            "experts: rank " + rank + " has " + text(option, all[rank][option]) + ", rank 0 has "
                + text(option, all[0][option]) + "; all ranks open them with the same options");
      }
    }
  }

  private static String text(int option, long value) {
    String name = NAMES[option];
    return switch (name) {
      case "dtype" -> "dtype " + DType.values()[(int) value];
      case "quantised" -> value == 1 ? "quantised tokens" : "tokens as they are";
      default -> name + " " + value;
    };
  }
}
