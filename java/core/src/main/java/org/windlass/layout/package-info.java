// SPDX-License-Identifier: Apache-2.0
/**
 * Layouts of tensors on ranks: a {@link org.windlass.layout.DeviceMesh} of ranks, a {@link
 * org.windlass.layout.Placement} for each of its dimensions, and the {@link
 * org.windlass.layout.Region} of a tensor that a rank holds by them. All of it is arithmetic: it
 * asks no rank anything and needs no native library.
 *
 * <p>{@link org.windlass Wrong calls} are those of {@code org.windlass}.
 */
package org.windlass.layout;
