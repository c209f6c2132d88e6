// SPDX-License-Identifier: Apache-2.0
/** Implements the {@code windlass} command and its subcommands. */
@NullMarked
package org.windlass.cli;

import org.jspecify.annotations.NullMarked;
