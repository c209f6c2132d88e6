// SPDX-License-Identifier: Apache-2.0
/** Makes native calls for one rank: one at a time, queued, or exchanges between all ranks. */
@NullMarked
package org.windlass.internal.call;

import org.jspecify.annotations.NullMarked;
