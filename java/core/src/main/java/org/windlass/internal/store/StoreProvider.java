// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.Map;
import org.windlass.internal.FailureMaker;

/**
 * A kind of store that an artifact of its own brings along, with what it depends on.
 * {@link StoreProviders} finds it. The module's descriptor names it, which is compiled before what
 * is generated: nothing that it names may know that.
 */
public interface StoreProvider {
  /** What comes before {@code ://} in an address, such as {@code etcd}. */
  String scheme();

  /**
   * A way into a store that the ranks of one job share. It is rank 0's: it begins with that rank's
   * way in, for which the others wait, and ends with it, by which all of it is removed.
   *
   * @param address which begins with this scheme
   * @param name tells the job from others that meet at that address at the same time
   * @param variables the environment, which may have credentials
   * @param deadline of connecting
   * @param failures makes what this and all calls throw. Here: InvalidArgument for what is wrong
   *     with the address or the variables; Mismatch where a rank of that number is there already,
   *     or rank 0 states another version; Resource where this member is not let in;
   *     Unsupported where something is lacking; Timeout; Aborted
   */
  Store connect(
      String address,
      String name,
      Member member,
      Map<String, String> variables,
      Duration deadline,
      FailureMaker failures);
}
