// SPDX-License-Identifier: Apache-2.0
/**
 * Plans of how tensors get from one layout to another: a {@link org.windlass.plan.Plan} is a pure
 * function of two layouts and a shape, and answers with its {@link org.windlass.plan.Route}s, and
 * what they come to for one rank ({@link org.windlass.plan.Chunk}), in one buffer ({@link
 * org.windlass.plan.Bucket}), in bytes ({@link org.windlass.plan.Traffic}). It needs no ranks, no
 * memory and no native library.
 *
 * <p>{@link org.windlass Wrong calls} are those of {@code org.windlass}.
 */
package org.windlass.plan;
