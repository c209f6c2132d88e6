// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

/** Gives internal packages access to a communicator's native calls. */
public interface EndpointOwner {
  Endpoint endpoint();
}
