// SPDX-License-Identifier: Apache-2.0
/** Workloads: the code that every rank runs in a sample, and the checks of its results. */
package org.windlass.bench.workload;
