// SPDX-License-Identifier: Apache-2.0
/** The commands of {@code scripts/bench}, which compare it with other libraries and builds. */
@NullMarked
package org.windlass.bench.compare;

import org.jspecify.annotations.NullMarked;
