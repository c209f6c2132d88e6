// SPDX-License-Identifier: Apache-2.0
/**
 * Implements a store of {@code org.windlass.internal.rendezvous} in etcd, for ranks that find each
 * other at an existing etcd.
 */
@NullMarked
package org.windlass.etcd;

import org.jspecify.annotations.NullMarked;
