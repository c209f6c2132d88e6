// SPDX-License-Identifier: Apache-2.0
/**
 * Starts the communicator of a group of ranks, and finds the two jobs of a link. Both exchange data
 * at a {@link org.windlass.internal.store.Store}. It imports {@code org.windlass.internal}, that
 * store's package and no other of the library.
 */
@NullMarked
package org.windlass.internal.rendezvous;

import org.jspecify.annotations.NullMarked;
