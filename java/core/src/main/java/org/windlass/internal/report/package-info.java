// SPDX-License-Identifier: Apache-2.0
/** Reads the state that ranks of this host publish in shared memory. */
@NullMarked
package org.windlass.internal.report;

import org.jspecify.annotations.NullMarked;
