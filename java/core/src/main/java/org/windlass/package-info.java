// SPDX-License-Identifier: Apache-2.0
/**
 * Communicators, windows, tensors and errors. {@link org.windlass.LocalGroup#of} makes the
 * ranks; {@link org.windlass.Collectives} are their operations. What builds on them has packages of
 * its own, each of which knows those before it alone: {@code org.windlass.layout}, {@code
 * org.windlass.plan} and {@code org.windlass.transfer}.
 *
 * <h2>Wrong calls</h2>
 *
 * <p>One rule holds for every constructor and method of the exported packages:
 *
 * <ul>
 *   <li>A null argument, or a null among what an array, a collection or a map holds, is a {@link
 *       NullPointerException} that names the argument, unless the documentation says that it may be
 *       null. What may be null on some ranks alone is one on the others.
 *   <li>Anything else that is wrong with a call, an index out of range among it, is an {@link
 *       org.windlass.error.InvalidArgumentException} that says what it found and what must hold.
 *   <li>A call on what has been closed, or with it, is a {@link org.windlass.error.ClosedException}.
 *       {@code close} may be called again; questions about what an object is, such as its shape or
 *       rank, are answered all the same.
 * </ul>
 *
 * <p>Where the native library does not load, each call that needs it is an {@link
 * org.windlass.error.UnsupportedException} with the places where it was looked for. Layouts, plans and
 * checkpoint headers need none.
 *
 * <p>In each case nothing was sent, and the communicator lives. Arrays and collections that are
 * given to a value, such as a layout or a plan, are copied; the arrays that a value returns are the
 * caller's own. Lists and maps that are returned can't be changed, unless they were made for the
 * call.
 */
package org.windlass;
