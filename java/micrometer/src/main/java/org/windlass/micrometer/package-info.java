// SPDX-License-Identifier: Apache-2.0
/**
 * Shows the activity of communicators, links and followers as meters of Micrometer. See {@link
 * org.windlass.micrometer.WindlassMetrics}.
 */
@NullMarked
package org.windlass.micrometer;

import org.jspecify.annotations.NullMarked;
