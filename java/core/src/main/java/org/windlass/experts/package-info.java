// SPDX-License-Identifier: Apache-2.0
/**
 * Expert parallelism: tokens go to the ranks whose experts a router chose, and what those make of them
 * comes back, weighed and added up.
 */
package org.windlass.experts;
