// SPDX-License-Identifier: Apache-2.0
/** What ranks of this host publish about themselves in shared memory. */
package org.windlass.internal.report;
