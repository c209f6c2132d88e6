// SPDX-License-Identifier: Apache-2.0
/** Values that benchmarks write and check, their memory, and the physical floor of moving them. */
package org.windlass.bench.data;
