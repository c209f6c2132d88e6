// SPDX-License-Identifier: Apache-2.0
/** The measured implementations that run in a JVM: the library, and plain Java. */
@NullMarked
package org.windlass.bench.side;

import org.jspecify.annotations.NullMarked;
