// SPDX-License-Identifier: Apache-2.0
/**
 * Benchmarks of the library. They consist of workloads of each operation, samplers that time them
 * on one clock, physical floors, and comparisons with other libraries and other builds.
 */
@NullMarked
package org.windlass.bench;

import org.jspecify.annotations.NullMarked;
