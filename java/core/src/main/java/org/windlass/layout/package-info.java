// SPDX-License-Identifier: Apache-2.0
/**
 * Layouts of tensors on ranks.
 *
 * <ul>
 *   <li>{@link org.windlass.layout.DeviceMesh} is a mesh of ranks.
 *   <li>{@link org.windlass.layout.Placement} is the effect of a mesh dimension on a tensor.
 *   <li>{@link org.windlass.layout.Region} is the part of a tensor that a rank holds.
 * </ul>
 *
 * <p>Layouts are only computed. They need no communication and no native library. {@link
 * org.windlass Invalid calls} throw the exceptions that {@code org.windlass} describes.
 */
@NullMarked
package org.windlass.layout;

import org.jspecify.annotations.NullMarked;
