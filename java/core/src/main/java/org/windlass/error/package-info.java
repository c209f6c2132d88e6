// SPDX-License-Identifier: Apache-2.0
/**
 * What Windlass throws: a {@link org.windlass.error.WindlassException} of one of eleven kinds. All
 * other packages stand on this one.
 */
package org.windlass.error;
