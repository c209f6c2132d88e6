// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.List;
import java.util.Map;

/** The steps by which all ranks of a start tell one another something, within one deadline. */
interface StartSteps {
  /**
   * What each rank says, in rank order, once all have said it; what is thrown where the step has
   * failed is the same on all ranks.
   *
   * @param step its name, by which ranks that are at different ones tell
   * @param own what those of this process say
   * @param refused what makes the step fail on all ranks; null for nothing
   */
  List<byte[]> gather(String step, Map<Integer, byte[]> own, Refused refused);

  /** Says which ranks live on which hosts, once that is known. */
  default void settle(Hosts hosts) {}

  /** A failure as ranks tell it. */
  record Refused(int code, String message) {
    /** As errors tell it of a rank that is called {@code name}, behind "rank". */
    String of(String name) {
      return "rank " + name + ": " + message;
    }
  }
}
