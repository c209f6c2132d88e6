// SPDX-License-Identifier: Apache-2.0
/** Communicators of the tasks of Spark's barrier stages. */
package org.windlass.spark;
