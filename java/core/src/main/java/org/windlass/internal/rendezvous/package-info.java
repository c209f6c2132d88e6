// SPDX-License-Identifier: Apache-2.0
/**
 * Starts the communicator of a group of ranks, and finds the two jobs of a link. Both exchange data
 * at a {@link org.windlass.internal.store.Store}. Of the library, it imports only {@code
 * org.windlass.internal} and the store's package.
 */
@NullMarked
package org.windlass.internal.rendezvous;

import org.jspecify.annotations.NullMarked;
