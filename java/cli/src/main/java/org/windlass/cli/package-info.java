// SPDX-License-Identifier: Apache-2.0
/** Implements the {@code windlass} command and its subcommands. */
package org.windlass.cli;
