// SPDX-License-Identifier: Apache-2.0
/** Values that benchmarks write and check, the memory for them, and the floor of what they move. */
package org.windlass.bench.data;
