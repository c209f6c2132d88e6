// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.Map;

/**
 * A kind of store that a separate artifact provides, together with its dependencies. See {@link
 * StoreProviders}. The module descriptor names this type. The compiler reads it before any code is
 * generated, so this type must not depend on generated code.
 */
public interface StoreProvider {
  /** Returns the part before {@code ://} in an address, such as {@code etcd}. */
  String scheme();

  /**
   * Enters a store that the ranks of one job share. Rank 0 owns the store: the others wait for it,
   * and the store is removed when rank 0 closes it.
   *
   * @param address an address with this scheme
   * @param name name of the job's store among the stores at that address
   * @param variables the environment, which may have credentials
   * @param deadline time limit for this call
   * @throws WindlassException InvalidArgument for a wrong address or variable. Mismatch if the rank
   *     is present already, or rank 0 runs another version. Resource if this member is refused.
   *     Also Unsupported, DeadlineExceeded and Aborted.
   */
  Store connect(
      String address, String name, Member member, Map<String, String> variables, Duration deadline);
}
