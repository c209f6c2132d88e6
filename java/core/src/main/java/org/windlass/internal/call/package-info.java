// SPDX-License-Identifier: Apache-2.0
/**
 * Makes calls of the native library for one rank: one at a time, queued, or for all ranks of a
 * group.
 */
@NullMarked
package org.windlass.internal.call;

import org.jspecify.annotations.NullMarked;
