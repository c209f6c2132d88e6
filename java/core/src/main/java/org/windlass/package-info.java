// SPDX-License-Identifier: Apache-2.0
/**
 * Communicators, windows, tensors and errors. {@link org.windlass.LocalGroup#of} makes the ranks,
 * and {@link org.windlass.Collectives} has their operations. Higher layers are in the packages
 * {@code org.windlass.layout}, {@code org.windlass.plan} and {@code org.windlass.transfer}. Each of
 * them uses only the layers before it. A deadline is a {@link java.time.Duration} from the start of
 * the call.
 *
 * <h2>Wrong calls</h2>
 *
 * <p>One rule holds for every constructor and method of the exported packages:
 *
 * <ul>
 *   <li>A null argument throws a {@link NullPointerException} that names the argument, unless the
 *       documentation allows null. The same holds for a null in an array, a collection or a map. If
 *       an argument may be null only on some ranks, null throws on the other ranks.
 *   <li>Any other wrong argument, such as an index out of range, throws an {@link
 *       org.windlass.error.InvalidArgumentException}. The message has the wrong value and the
 *       condition that it must meet.
 *   <li>A call on a closed object, or with a closed object as argument, throws a {@link
 *       org.windlass.error.ClosedException}. {@code close} may be called again. Queries of
 *       properties, such as a shape or rank, still work.
 * </ul>
 *
 * <p>If the native library does not load, each call that needs it throws an {@link
 * org.windlass.error.UnsupportedException} with the locations that were searched. Layouts, plans
 * and checkpoint headers do not need it.
 *
 * <p>In each of these cases nothing was sent, and the communicator stays alive. Values such as a
 * layout or a plan copy the arrays and collections that they are given. The arrays that a value
 * returns belong to the caller. Returned lists and maps are unmodifiable, unless they were made for
 * the call.
 */
@NullMarked
package org.windlass;

import org.jspecify.annotations.NullMarked;
