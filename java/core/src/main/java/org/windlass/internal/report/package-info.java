// SPDX-License-Identifier: Apache-2.0
/** Reads the state that ranks of this host publish in shared memory. */
package org.windlass.internal.report;
