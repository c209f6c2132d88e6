// SPDX-License-Identifier: Apache-2.0
/**
 * Plans of how tensors move from one layout to another.
 *
 * <p>A {@link org.windlass.plan.Plan} is a pure function of two layouts and a shape. It answers
 * with these types:
 *
 * <ul>
 *   <li>{@link org.windlass.plan.Route}: one region on its way between ranks
 *   <li>{@link org.windlass.plan.Chunk}: a route as one rank sees it
 *   <li>{@link org.windlass.plan.Bucket}: routes that share one buffer
 *   <li>{@link org.windlass.plan.Traffic}: the bytes that move
 * </ul>
 *
 * <p>A plan needs no ranks, no memory and no native library. {@link org.windlass Invalid calls}
 * throw the exceptions that {@code org.windlass} describes.
 */
@NullMarked
package org.windlass.plan;

import org.jspecify.annotations.NullMarked;
