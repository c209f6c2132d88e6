// SPDX-License-Identifier: Apache-2.0
/**
 * Where processes and jobs find one another: a {@link
 * org.windlass.internal.rendezvous.Store} of small records under names, within one process or
 * behind a socket. It imports {@code org.windlass.internal} and no other package of the library.
 */
package org.windlass.internal.rendezvous;
