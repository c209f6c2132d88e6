// SPDX-License-Identifier: Apache-2.0
/**
 * A {@link org.windlass.internal.store.Store} of small records under names, within one process or
 * behind a socket, and those who provide others. It imports {@code org.windlass.internal}, {@code
 * org.windlass.error} and no other package of the library.
 */
package org.windlass.internal.store;
