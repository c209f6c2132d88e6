// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * The work of one rank.
 *
 * @param <E> the exception that it may throw
 */
@FunctionalInterface
public interface RankBody<E extends Exception> {
  /** Runs as the rank of {@code communicator}. */
  void run(Communicator communicator) throws E;
}
