// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.jspecify.annotations.Nullable;

/**
 * Code that runs as one rank and returns a result.
 *
 * @param <T> type of the result
 * @param <E> the exception that it may throw
 */
@FunctionalInterface
public interface RankFunction<T extends @Nullable Object, E extends Exception> {
  /** Runs the code as the rank of {@code communicator}, and returns its result. */
  T call(Communicator communicator) throws E;
}
