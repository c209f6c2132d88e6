// SPDX-License-Identifier: Apache-2.0
/**
 * Benchmarks: workloads of each operation, samplers that time them on one clock, the floor that they
 * are held against, and comparisons with other libraries and with other builds.
 */
package org.windlass.bench;
