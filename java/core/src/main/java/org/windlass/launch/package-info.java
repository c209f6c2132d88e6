// SPDX-License-Identifier: Apache-2.0
/**
 * Reads how a launcher describes the processes of a job and where the processes find each other.
 */
@NullMarked
package org.windlass.launch;

import org.jspecify.annotations.NullMarked;
