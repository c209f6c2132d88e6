// SPDX-License-Identifier: Apache-2.0
/** Writes the command's files and its lines of JSON. */
@NullMarked
package org.windlass.cli.out;

import org.jspecify.annotations.NullMarked;
