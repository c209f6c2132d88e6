// SPDX-License-Identifier: Apache-2.0
/** Creates communicators of the tasks of Spark's barrier stages. */
@NullMarked
package org.windlass.spark;

import org.jspecify.annotations.NullMarked;
