// SPDX-License-Identifier: Apache-2.0
/** Manages the files of the checkpoint that is written. */
package org.windlass.reshard.output;
