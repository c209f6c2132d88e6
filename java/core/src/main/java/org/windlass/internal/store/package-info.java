// SPDX-License-Identifier: Apache-2.0
/**
 * Implements a {@link org.windlass.internal.store.Store} of small values under keys, within one
 * process or behind a socket, and finds providers of other stores. Of the library, it imports only
 * {@code org.windlass.internal} and {@code org.windlass.error}.
 */
@NullMarked
package org.windlass.internal.store;

import org.jspecify.annotations.NullMarked;
