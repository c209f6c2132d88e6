// SPDX-License-Identifier: Apache-2.0
/**
 * Benchmarks of the library. They consist of a workload for each operation, samplers that measure
 * workloads on one clock, physical floors (lower bounds of the times), and comparisons with other
 * libraries and other builds.
 */
@NullMarked
package org.windlass.bench;

import org.jspecify.annotations.NullMarked;
