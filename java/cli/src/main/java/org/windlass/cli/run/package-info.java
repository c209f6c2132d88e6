// SPDX-License-Identifier: Apache-2.0
/** Starts the ranks of a job on this machine, and stops them. */
@NullMarked
package org.windlass.cli.run;

import org.jspecify.annotations.NullMarked;
