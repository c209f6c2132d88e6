// SPDX-License-Identifier: Apache-2.0
/**
 * A store of {@code org.windlass.internal.rendezvous} that lies in etcd, for ranks that find each
 * other at an etcd which is there anyway.
 */
package org.windlass.etcd;
