// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.time.Duration;
import org.windlass.internal.Deadlines;
import org.windlass.internal.FailureMaker;

/**
 * The end of a call.
 *
 * @param deadline as its caller gave it
 * @param startNs when it began
 * @param limitNs how long it may take
 */
record Until(Duration deadline, long startNs, long limitNs) {
  static Until of(Duration deadline, FailureMaker failures) {
    return new Until(deadline, System.nanoTime(), Deadlines.nanos(deadline, failures));
  }

  /** What is left; 0 or less where it has passed. */
  long leftNs() {
    return limitNs - (System.nanoTime() - startNs);
  }

  /** So much later, with the same name. */
  Until later(long nanos) {
    return new Until(deadline, startNs, limitNs + Math.min(nanos, Long.MAX_VALUE - limitNs));
  }
}
