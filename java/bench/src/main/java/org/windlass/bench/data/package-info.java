// SPDX-License-Identifier: Apache-2.0
/** Values that benchmarks write and check, their memory, and the physical floor of moving them. */
@NullMarked
package org.windlass.bench.data;

import org.jspecify.annotations.NullMarked;
