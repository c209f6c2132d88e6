// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

/** An object with an endpoint. Gives internal packages access to a communicator's native calls. */
public interface EndpointOwner {
  Endpoint endpoint();
}
