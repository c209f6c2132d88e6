// SPDX-License-Identifier: Apache-2.0
/**
 * Implements a {@link org.windlass.internal.store.Store} of small values under keys, within one
 * process or behind a socket, and finds providers of other stores. It imports {@code
 * org.windlass.internal}, {@code org.windlass.error} and no other package of the library.
 */
@NullMarked
package org.windlass.internal.store;

import org.jspecify.annotations.NullMarked;
