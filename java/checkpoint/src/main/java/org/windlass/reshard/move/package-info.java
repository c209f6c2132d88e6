// SPDX-License-Identifier: Apache-2.0
/** Moves bytes from files to files. */
@NullMarked
package org.windlass.reshard.move;

import org.jspecify.annotations.NullMarked;
