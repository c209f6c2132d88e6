// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import org.windlass.internal.Deadline;

/** A call of a member: its name, with which errors begin, and its deadline. */
record Call(String name, Deadline until) {}
