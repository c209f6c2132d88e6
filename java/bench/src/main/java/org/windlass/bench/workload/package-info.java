// SPDX-License-Identifier: Apache-2.0
/** Workloads: the code that every rank runs in a sample, and the checks of its results. */
@NullMarked
package org.windlass.bench.workload;

import org.jspecify.annotations.NullMarked;
