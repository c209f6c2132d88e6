// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

/** What a job is in a link. */
public enum Role {
  /** The job that sends. A link name has one. */
  SOURCE,

  /** A job that receives. A link name has any number of them, each linked with the source alone. */
  TARGET
}
