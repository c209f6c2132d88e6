// SPDX-License-Identifier: Apache-2.0
/** The files of the checkpoint that is written. */
package org.windlass.reshard.output;
