// SPDX-License-Identifier: Apache-2.0
/** Reads and writes JSON. */
@NullMarked
package org.windlass.internal.json;

import org.jspecify.annotations.NullMarked;
