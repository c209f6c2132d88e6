// SPDX-License-Identifier: Apache-2.0
/** Workloads: what every rank does in a sample, and how its result is checked. */
package org.windlass.bench.workload;
