// SPDX-License-Identifier: Apache-2.0
/**
 * How ranks become a communicator, and jobs find one another: steps at a {@link
 * org.windlass.internal.store.Store}. It imports {@code org.windlass.internal}, that store's
 * package and no other of the library.
 */
package org.windlass.internal.rendezvous;
