// SPDX-License-Identifier: Apache-2.0
/** Manages the files of the checkpoint that is written. */
@NullMarked
package org.windlass.reshard.output;

import org.jspecify.annotations.NullMarked;
