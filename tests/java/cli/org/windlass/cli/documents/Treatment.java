// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

/**
 * What was done with a block.
 *
 * @param how in one word
 * @param by what does it, or what runs where it can't be done here
 */
record Treatment(How how, String by) {
  /** From the most that is done with a block to the least. */
  enum How {
    /** Code: compiled, and run here. */
    COMPILED_AND_RUN,
    /** Commands: run here. */
    RUN,
    /** Output: compared with that of a run. */
    COMPARED,
    /** Data: read by what it is for, and used. */
    READ,
    /** Compiled, or taken as it is, and run by another block or by another suite. */
    RUN_ELSEWHERE,
    /** A part of a source that a suite compiles and runs. */
    QUOTED,
    /** Held against what it names. */
    CHECKED
  }
}
