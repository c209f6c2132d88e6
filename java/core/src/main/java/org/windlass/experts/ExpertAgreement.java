// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Tensor;

/** The comparison of what ranks open an {@link ExpertParallel} with. */
final class ExpertAgreement {
  private static final String[] NAMES = {
    "experts", "topK", "hidden", "tokens", "dtype", "rows", "alignment", "quantised"
  };

  private ExpertAgreement() {}

  /**
   * Collective.
   *
   * @throws InvalidArgumentException on all ranks if any has other options than rank 0
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
    int ranks = communicator.size();
    long[] all = new long[ranks * own.length];
    try (Tensor in = Tensor.allocate(DType.I64, own.length);
        Tensor out = Tensor.allocate(DType.I64, all.length)) {
      in.copyFrom(own);
      communicator.allGather(in, out);
      out.copyTo(all);
    }
    for (int i = own.length; i < all.length; i++) {
      int option = i % own.length;
      if (all[i] != all[option]) {
        throw new InvalidArgumentException(
            "experts: rank " + i / own.length + " has " + text(option, all[i]) + ", rank 0 has "
                + text(option, all[option]) + "; all ranks open them with the same options");
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
