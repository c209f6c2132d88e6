// SPDX-License-Identifier: Apache-2.0
/**
 * The exceptions that Windlass throws. {@link org.windlass.error.WindlassException} is their base
 * class, with a subclass for each kind of failure. All other packages depend on this one.
 */
@NullMarked
package org.windlass.error;

import org.jspecify.annotations.NullMarked;
