// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * The function that one rank computes.
 *
 * @param <T> its result
 * @param <E> what it may throw
 */
@FunctionalInterface
public interface RankFunction<T, E extends Exception> {
  /** Runs as the rank of {@code communicator}, and gives its result. */
  T call(Communicator communicator) throws E;
}
