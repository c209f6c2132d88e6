// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

/**
 * A member of a store: a rank of a job, or an observer of the job, with rank -1 and size 0.
 *
 * @param job 1 to {@link #JOB} bytes of UTF-8
 * @param library the version of the member's library, at most {@link #LIBRARY} bytes
 */
public record Member(String job, int rank, int size, String library) {
  public static final int JOB = 128;
  public static final int LIBRARY = 64;

  public static final int MOST_RANKS = 4096;

  public Member {
    int bytes = Limits.bytes(job);
    require(bytes > 0 && bytes <= JOB, "job has " + bytes + " bytes of UTF-8; it has 1 to " + JOB);
    require(
        Limits.bytes(library) <= LIBRARY, "library has more than " + LIBRARY + " bytes of UTF-8");
    require(
        (rank == -1 && size == 0) || (0 <= rank && rank < size && size <= MOST_RANKS),
        "rank " + rank + " of " + size + " ranks; there are 1 to " + MOST_RANKS);
  }

  private static void require(boolean isRight, String wrong) {
    if (!isRight) {
      throw new IllegalArgumentException(wrong);
    }
  }

  /**
   * Returns an observer of {@code job}, which is none of its ranks. A job may have many observers.
   */
  public static Member observer(String job, String library) {
    return new Member(job, -1, 0, library);
  }

  boolean isObserver() {
    return rank < 0;
  }

  @Override
  public String toString() {
    String who = isObserver() ? "an observer" : "rank " + rank + " of " + size;
    return who + " of job \"" + Texts.printable(job) + "\"";
  }
}
