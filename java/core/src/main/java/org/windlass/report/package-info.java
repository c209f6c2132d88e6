// SPDX-License-Identifier: Apache-2.0
/** Reports the state of running ranks, for a communicator or a job, and kernel profiles. */
@NullMarked
package org.windlass.report;

import org.jspecify.annotations.NullMarked;
