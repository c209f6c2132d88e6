// SPDX-License-Identifier: Apache-2.0
/** Moves bytes from files to files. */
package org.windlass.reshard.move;
