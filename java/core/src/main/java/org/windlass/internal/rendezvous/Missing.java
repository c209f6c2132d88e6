// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import org.windlass.internal.Native;

/**
 * The ranks that a step of a start lacks.
 *
 * @param size all ranks
 * @param address where they are to come
 * @param absent that have not come
 * @param elsewhere those of them of which there is what they said in another start
 * @param behind that have come and not said anything in this step
 * @param name what one is called, behind "rank"
 */
record Missing(
    int size,
    String address,
    List<Integer> absent,
    List<Integer> elsewhere,
    List<Integer> behind,
    IntFunction<String> name) {
  private static final String ALONE = " (which no other host reaches: see /etc/hosts)";

  /**
   * Those that a step lacks.
   *
   * @param words what each rank says; null where there is nothing of it
   * @param start that of the step; null where rank 0 has not opened it so far
   * @param name what a rank is called, behind "rank"
   */
  static Missing of(
      List<Word> words, UUID start, String step, String address, IntFunction<String> name) {
    List<Integer> absent = new ArrayList<>();
    List<Integer> elsewhere = new ArrayList<>();
    List<Integer> behind = new ArrayList<>();
    for (int rank = 0; rank < words.size(); rank++) {
      Word word = words.get(rank);
      if (word == null) {
        absent.add(rank);
      } else if (!word.start().equals(start) && !word.start().equals(Word.NO_START)) {
        absent.add(rank);
        elsewhere.add(rank);
      } else if (!word.step().equals(step)) {
        behind.add(rank);
      }
    }
    return new Missing(words.size(), address, absent, elsewhere, behind, name);
  }

  boolean isNone() {
    return absent.isEmpty() && behind.isEmpty();
  }

  /** Which, and where they are. */
  String said() {
    String come = " of " + size + " had not come to " + address + (isOfOneHost() ? ALONE : "");
    String gone = " of " + size + " had come to " + address + " and not gone on with the others";
    return (absent.isEmpty() ? "" : listed(absent) + come)
        + (absent.isEmpty() || behind.isEmpty() ? "" : ", and ")
        + (behind.isEmpty() ? "" : listed(behind) + gone);
  }

  /** As Debian's /etc/hosts has a host's own name; where the address is the usual one, it is meant. */
  private boolean isOfOneHost() {
    return address.startsWith("127.") && !address.startsWith("127.0.0.1:");
  }

  /**
   * What the step fails with where the deadline has passed.
   *
   * @param earlier what else is to be said
   */
  Outcome.Failed late(String earlier) {
    String cure;
    if (!elsewhere.isEmpty()) {
      cure =
          " when the deadline passed; there is what "
              + listed(elsewhere)
              + " said in another start: see whether those processes are stopped, or start all"
              + " ranks again";
    } else if (!absent.isEmpty()) {
      cure = " when the deadline passed; see why they did not start, or give more time";
    } else {
      cure =
          " when the deadline passed; see whether their processes are stopped, or give more time";
    }
    return new Outcome.Failed(
        Native.WL_TIMEOUT,
        said() + cure + earlier,
        Stream.concat(absent.stream(), behind.stream()).sorted().toList());
  }

  /** Such as {@code ranks 1, 3}. */
  private String listed(List<Integer> ranks) {
    int most = 16;
    String first =
        String.join(", ", ranks.stream().limit(most).map(name::apply).toList());
    return (ranks.size() == 1 ? "rank " : "ranks ")
        + first
        + (ranks.size() <= most ? "" : " and " + (ranks.size() - most) + " more");
  }
}
