// SPDX-License-Identifier: Apache-2.0
/**
 * Tensors on their way from one layout to another. A {@link org.windlass.redistribute.Batch} binds
 * tensors of one communicator to memory, and its {@link org.windlass.redistribute.Transfer} moves
 * them; a {@link org.windlass.redistribute.Link} joins two sides that each know their own layouts
 * alone, version after version: of one communicator, or of two {@linkplain
 * org.windlass.redistribute.Job jobs} that were launched apart.
 *
 * <p>{@link org.windlass Wrong calls} are those of {@code org.windlass}.
 */
package org.windlass.redistribute;
