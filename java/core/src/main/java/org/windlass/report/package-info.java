// SPDX-License-Identifier: Apache-2.0
/**
 * Reports the state of running ranks, for one communicator or a whole job, and profiles of kernels.
 */
@NullMarked
package org.windlass.report;

import org.jspecify.annotations.NullMarked;
