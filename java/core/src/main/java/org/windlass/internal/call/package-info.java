// SPDX-License-Identifier: Apache-2.0
/**
 * Calls of the native library by one rank: one at a time, queued, or for all ranks of a group.
 */
package org.windlass.internal.call;
