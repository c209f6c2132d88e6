// SPDX-License-Identifier: Apache-2.0
/** Runs the demo of the {@code windlass} command. */
@NullMarked
package org.windlass.cli.demo;

import org.jspecify.annotations.NullMarked;
