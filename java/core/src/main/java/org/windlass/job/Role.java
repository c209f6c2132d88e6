// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

/** What a job is in a pair of jobs. */
public enum Role {
  /** The job that sends. A pair has one. */
  SOURCE,

  /** A job that receives. A pair has any number of them, each linked with the source alone. */
  TARGET
}
