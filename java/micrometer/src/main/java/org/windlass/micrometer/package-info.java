// SPDX-License-Identifier: Apache-2.0
/**
 * Shows what communicators, links and followers do as meters of Micrometer. See {@link
 * org.windlass.micrometer.WindlassMetrics}.
 */
@NullMarked
package org.windlass.micrometer;

import org.jspecify.annotations.NullMarked;
