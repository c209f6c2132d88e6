// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import org.windlass.internal.Deadline;

/** A member's call of a store method. Messages begin with its name. */
record Call(String name, Deadline until) {}
