// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * Code that runs as one rank.
 *
 * @param <E> the exception that it may throw
 */
@FunctionalInterface
public interface RankBody<E extends Exception> {
  /** Runs the code as the rank of {@code communicator}. */
  void run(Communicator communicator) throws E;
}
