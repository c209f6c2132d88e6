// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.jspecify.annotations.Nullable;

/**
 * The function that one rank computes.
 *
 * @param <T> its result
 * @param <E> the exception that it may throw
 */
@FunctionalInterface
public interface RankFunction<T extends @Nullable Object, E extends Exception> {
  /** Runs as the rank of {@code communicator}, and returns its result. */
  T call(Communicator communicator) throws E;
}
