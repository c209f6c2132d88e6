// SPDX-License-Identifier: Apache-2.0
/** Samplers, which measure a workload on one clock, and their results. */
@NullMarked
package org.windlass.bench.sample;

import org.jspecify.annotations.NullMarked;
