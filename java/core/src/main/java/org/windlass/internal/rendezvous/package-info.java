// SPDX-License-Identifier: Apache-2.0
/**
 * Makes a communicator of ranks, and finds the jobs of a link, in steps at a
 * {@link org.windlass.internal.store.Store}. It imports {@code org.windlass.internal}, that store's
 * package and no other of the library.
 */
@NullMarked
package org.windlass.internal.rendezvous;

import org.jspecify.annotations.NullMarked;
