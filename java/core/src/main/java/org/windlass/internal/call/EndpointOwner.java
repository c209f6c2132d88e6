// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

/** A communicator, as packages below its own know it. */
public interface EndpointOwner {
  /** Its calls of the native library. */
  Endpoint endpoint();
}
