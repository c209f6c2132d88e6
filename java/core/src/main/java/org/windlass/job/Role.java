// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

/** Role of a job in a link. */
public enum Role {
  /** The job that sends. A link name has one source. */
  SOURCE,

  /**
   * A job that receives. A link name has any number of targets. Each of them is linked only with
   * the source.
   */
  TARGET
}
