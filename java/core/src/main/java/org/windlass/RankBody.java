// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * What one rank does.
 *
 * @param <E> what it may throw
 */
@FunctionalInterface
public interface RankBody<E extends Exception> {
  /** Runs as the rank of {@code communicator}. */
  void run(Communicator communicator) throws E;
}
